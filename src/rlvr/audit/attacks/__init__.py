"""The attacks: each module turns a profile into trials; none of them judges its own success."""

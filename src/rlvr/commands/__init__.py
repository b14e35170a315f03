"""One module a command; each is the composition root of its stage."""

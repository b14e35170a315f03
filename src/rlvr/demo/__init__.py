"""The embedded default: a tiny model, a task it half knows, and the whole chain run on both."""

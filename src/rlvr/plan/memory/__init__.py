"""Memory of one GRPO run, by closed form and by a trace of the real model code."""

"""From a verifier to a trained policy, with gates: GRPO on verifiable rewards."""

__version__ = "0.1.0"

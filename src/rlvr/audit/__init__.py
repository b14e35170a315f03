"""Attacks a reward by program, on the user's own rows, before anything is trained on it."""

from rlvr.audit.chain import Label, audit_rewards
from rlvr.audit.engine import audit_target

__all__ = ["Label", "audit_rewards", "audit_target"]

"""Training by TRL's ``GRPOTrainer``, subclassed as little as possible.

For a guided tour read :mod:`rlvr.train.run` (what happens in order), then :mod:`rlvr.train.trainer` (what differs
from TRL), then :mod:`rlvr.train.rollouts` (what is kept).
"""

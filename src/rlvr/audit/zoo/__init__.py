"""Rewards with one planted defect each, and sound ones: what `rlvr audit --selftest` measures itself on."""

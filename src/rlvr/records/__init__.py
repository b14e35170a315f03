"""Frozen records that pass between stages, each with a schema number; one module a stage."""

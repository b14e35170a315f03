"""Hands a task over to whoever trains: plain TRL or verl files that run without this project's command line.

For a guided tour read :mod:`rlvr.export.inputs` (what is handed over), then :mod:`rlvr.export.brief` (what the
consumer's program reads), then one target: :mod:`rlvr.export.trl` or :mod:`rlvr.export.verl`.
"""

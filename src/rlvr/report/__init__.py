"""The page that says what a run changed: a verdict, its evidence, the samples, and the record of every gate.

For a guided tour read :mod:`rlvr.report.verdict` (the sentence), then :mod:`rlvr.report.report` (the page's parts),
then :mod:`rlvr.report.figures` (the drawings). Everything is pure: records in, one HTML text out.
"""

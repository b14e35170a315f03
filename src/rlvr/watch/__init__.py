"""Watch: read a run's own numbers and name the symptoms; decide which one change the evidence supports.

Read in this order: :mod:`~rlvr.watch.metrics` (one table of log names), :mod:`~rlvr.watch.history` and
:mod:`~rlvr.watch.completions` (what a run is, in memory), :mod:`~rlvr.watch.ingest` (every format they are read
from), :mod:`~rlvr.watch.statistics`, :mod:`~rlvr.watch.symptoms` (the judgement, pure), :mod:`~rlvr.watch.live`
and :mod:`~rlvr.watch.callback` (the same while a run trains), :mod:`~rlvr.watch.variants` (from evidence to one
change), :mod:`~rlvr.watch.simulate` (runs whose answer is known).
"""

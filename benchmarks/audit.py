"""Recall, false alarms and speed of the audit on its own zoo.

Writes ``benchmarks/results/audit.md``. Run from the repository: ``python benchmarks/audit.py``.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from pathlib import Path

from rlvr.audit.selftest import Outcome, Selftest, run_selftest

RESULT = Path(__file__).parent / "results" / "audit.md"


def _lines(result: Selftest, load: str) -> list[str]:
    total = result.as_output()
    seconds = sorted(one.seconds for one in result.outcomes)
    text = [
        one.seconds
        for one in result.outcomes
        if one.specimen.rows not in ("programs", "cases", "input_output")
    ]
    found = f"{total['found']} of {total['planted']} ({result.recall:.0%})"
    return [
        "# Audit: recall, false alarms, speed",
        "",
        f"`python benchmarks/audit.py` on {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"load average before and after {load}. The zoo is the project's own (`src/rlvr/audit/zoo`), so these "
        "figures say what the audit was built to see, not what it sees of rewards by others.",
        "",
        "| | |",
        "|---|---|",
        f"| planted defects found under their name | {found} |",
        f"| sound rewards with a finding of medium severity or more | {total['false_alarms']} of {total['sound']} |",
        f"| median time a reward | {total['median_seconds']:.2f} s |",
        f"| median time a reward that runs no programs | {statistics.median(text):.2f} s |",
        f"| 90th percentile | {seconds[int(0.9 * len(seconds))]:.2f} s |",
        f"| worst | {total['worst_seconds']:.2f} s |",
        "",
        "| reward | rows | planted | outcome | s |",
        "|---|---|---|---|---|",
        *[_row(one) for one in result.outcomes],
        "",
    ]


def _row(one: Outcome) -> str:
    planted = " or ".join(one.specimen.categories) or "(sound)"
    said = (
        "; ".join(one.alarms) or "quiet" if one.specimen.is_sound else "found" if one.found else "**missed**"
    )
    return f"| {one.specimen.function} | {one.specimen.rows} | {planted} | {said} | {one.seconds:.2f} |"


def main() -> None:
    """Run the zoo and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    before = os.getloadavg()[0]
    result = run_selftest(
        progress=lambda one: print(f"{one.specimen.function:24} {one.seconds:6.2f} s", flush=True)
    )
    lines = _lines(result, f"{before:.1f} and {os.getloadavg()[0]:.1f}")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines[6:14]))


if __name__ == "__main__":
    main()

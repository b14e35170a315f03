"""Makes records of a run for tests of the report: held-out results, a manifest, a reading, a log."""

import math

from rlvr.evaluation import accuracy
from rlvr.records.base import Fingerprints
from rlvr.records.inspection import Attestation, Pace, Side
from rlvr.records.run import Evaluation, Manifest, PromptResult
from rlvr.report.inputs import ReportInputs

FINGERPRINTS = Fingerprints(reward="r1", data="d1", held_out="h1", model="m1", sampling="s1", recipe="c1")


def results(right, wrong, rollouts=1, start=0, text="completion"):
    """Return `right` prompts that succeed throughout and `wrong` that never do, in that order."""
    return [
        PromptResult(
            row_hash=f"row{start + number}",
            prompt=f"prompt {start + number}",
            correct=rollouts if number < right else 0,
            judged=rollouts,
            completion=f"{text} {start + number}",
            outcome="right" if number < right else "wrong",
        )
        for number in range(right + wrong)
    ]


def evaluation(found, made_from=FINGERPRINTS, **changes):
    within = accuracy(found)
    fields = {
        "made_at": "2026-01-01T10:00:00Z",
        "made_from": made_from,
        "passed": True,
        "why": f"{within.value:.1%}",
        "accuracy": within.value,
        "low": within.low,
        "high": within.high,
        "interval": within.interval,
        "prompts": len(found),
        "rollouts": max(one.judged for one in found),
        "check": "correct",
        "independent": True,
        "results": found,
    }
    return Evaluation(**(fields | changes))


def manifest(**changes):
    fields = {
        "name": "base-1",
        "state": "finished",
        "model": "some/model",
        "made_at": "2026-01-01T09:00:00Z",
        "made_from": FINGERPRINTS,
        "passed": True,
        "why": "100 of 100 steps",
        "steps": 100,
        "total_steps": 100,
        "seconds": 60.0,
        "tokens": 12000,
        "peak_bytes": 2**31,
        "settings": {
            "learning_rate": {"value": 5e-7, "why": "the reference", "source": "reference"},
            "max_steps": {"value": 100, "why": "enough to see a gain", "source": "override"},
        },
    }
    return Manifest(**(fields | changes))


def reading(read=20, **changes):
    side = Side(read=10, exist=10, errors=0, upper=None, judged=False)
    fields = {
        "made_at": "2026-01-01T11:00:00Z",
        "made_from": FINGERPRINTS,
        "passed": True,
        "why": "read",
        "source": "base-1",
        "reader": "Kim",
        "readers": ["Kim"],
        "refusals": [],
        "read": read,
        "needed": 20,
        "agreement": 1.0,
        "agreement_low": 0.83,
        "agreement_high": 1.0,
        "kappa": 1.0,
        "table": {},
        "disagreement_upper": 0.139,
        "false_positives": side,
        "false_negatives": side,
        "open_disagreements": [],
        "unsure": [],
        "unread": 0,
        "pace": Pace(median_seconds=9.0, floor_seconds=2.0, ratio=4.5, possible=True),
        "standing": [],
    }
    return Attestation(**(fields | changes))


def log(rows=20):
    return [
        {
            "step": 5 * number,
            "reward": number / rows,
            "rewards/correct/mean": number / rows,
            "rewards/tidy/mean": 1.0,
            "entropy": math.exp(-number / rows),
            "rlvr/right_share": number / rows,
        }
        for number in range(1, rows + 1)
    ]


def inputs(**changes):
    fields = {
        "name": "base-1",
        "manifest": manifest(),
        "log": log(),
        "before": evaluation(results(20, 80)),
        "after": evaluation(results(70, 30), made_at="2026-01-01T12:00:00Z"),
        "reading": reading(),
        "made_at": "2026-01-01T13:00:00Z",
        "version": "0",
    }
    return ReportInputs(**(fields | changes))

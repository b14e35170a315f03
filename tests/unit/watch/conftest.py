from dataclasses import replace
from functools import lru_cache

import pytest

from rlvr.records.watch import Findings
from rlvr.watch.simulate import Setting, Simulated, simulate
from rlvr.watch.symptoms import judge_history


@lru_cache(maxsize=64)
def simulated(illness: str | None, seed: int, keep: bool = True, strength: float = 1.0) -> Simulated:
    setting = Setting(illness=illness, strength=strength, steps=100, rate=1.5, keep=keep)  # type: ignore[arg-type]
    if illness is None:
        setting = replace(setting, hopeless=0.1)
    return simulate(setting, seed)


@lru_cache(maxsize=64)
def judged(illness: str | None, seed: int, keep: bool = True, strength: float = 1.0) -> Findings:
    run = simulated(illness, seed, keep, strength)
    return judge_history(run.history(), run.completions(), run.facts)


@pytest.fixture
def judge():
    return judged


@pytest.fixture
def make():
    return simulated

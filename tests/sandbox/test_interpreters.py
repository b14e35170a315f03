# one program a line
"""Other interpreters, and packages warmed before the first job."""

import subprocess
import sys
from pathlib import Path

import pytest

from rlvr.sandbox import CallTest, Comparison, Job, Pool, ScriptTests, StdioTest

SYSTEM_PYTHON = "/usr/bin/python3"


def test_numpy_is_there_when_preloaded() -> None:
    code = "import numpy as np\nimport numpy.linalg\ndef solve(n): return np.arange(n) * np.float64(0.5)"
    scalar = "import numpy as np\ndef solve(n): return np.float64(n) / 2"
    script = "import numpy as np\na = solve(4)\nassert a.shape == (4,)\nnp.testing.assert_allclose(a, [0, .5, 1, 1.5])"
    lying = "import numpy as np\nclass A(np.ndarray):\n    def __eq__(self, o): return np.array(True)\ndef solve(n): return np.zeros(4).view(A)"
    with Pool(2, preload=("numpy",)) as pool:
        jobs = [
            Job(code, [CallTest((3,), {}, [0.0, 0.5, 1.0])], "solve", Comparison.FLOAT),
            Job(scalar, [CallTest((3,), {}, 1.5)], "solve"),
            Job(code, ScriptTests(script, "solve")),
            Job(
                "import numpy as np\nprint(np.sum(np.fromstring(input(), sep=' ')))",
                [StdioTest("1 2", "3.0")],
            ),
            Job(lying, ScriptTests(script, "solve")),
            Job("import scipy\ndef solve(n): return 1", [CallTest((1,), {}, 1)]),
        ]
        statuses = [one.status.value for one in pool.run(jobs)]
    assert statuses == ["pass", "pass", "pass", "pass", "wrong", "error"]


def test_packages_that_were_not_named_stay_out() -> None:
    """They may hold the data set itself."""
    site = next(path for path in sys.path if path.endswith("site-packages"))
    code = f"import os, sys\nsys.path.insert(0, {site!r})\nimport numpy\ndef solve(): return 1"
    for without in ((), ("namespaces",)):
        with Pool(1, without=without, min_isolation="E") as pool:
            assert pool.run([Job(code, [CallTest((), {}, 1)], "solve")])[0].status == "error"


def test_another_interpreter_runs_the_code() -> None:
    if not Path(SYSTEM_PYTHON).exists():
        pytest.skip(f"there is no {SYSTEM_PYTHON}")
    version = subprocess.run(
        [SYSTEM_PYTHON, "-V"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    code = "import sys\ndef solve(): return sys.version.split()[0]"
    script = ScriptTests(f"assert solve() == {version!r}", "solve")
    with Pool(1, python=SYSTEM_PYTHON) as pool:
        results = pool.run([Job(code, [CallTest((), {}, version)], "solve"), Job(code, script)])
    assert [one.status.value for one in results] == ["pass", "pass"]

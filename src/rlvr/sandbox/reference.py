"""From a data set's reference to a job: ``{"fn", "tests": [{"args", "expect"}], "float_tol"}`` and its kin."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rlvr.errors import DataError, did_you_mean
from rlvr.sandbox.protocol import CallTest, Comparison, Job, Limits, ScriptTests, StdioTest, Tests

_KEYS = ("fn", "tests", "float_tol", "comparison", "prelude", "imports")


def job_from_reference(code: str, reference: Mapping[str, Any], limits: Limits | None = None) -> Job:
    """Return the job that tests ``code`` as ``reference`` says.

    ``tests`` is a list of ``{"args", "kwargs", "expect"}``, a list of ``{"input", "output"}``, or a string of test
    source. ``fn`` names the function, ``float_tol`` declares a tolerance, ``comparison`` is one of
    :class:`Comparison`, ``prelude`` is trusted source that the tests' helpers stand in, ``imports`` lists the
    modules the code may import.

    Raises:
        DataError: ``data.code-reference`` when the reference cannot be read.
    """
    _known_keys(reference)
    tests = _tests(reference)
    tolerance = _tolerance(reference)
    comparison = reference.get("comparison", Comparison.LINES if tolerance is None else Comparison.FLOAT)
    if comparison not in set(Comparison):
        raise _wrong(f"comparison {comparison!r}", "one of " + ", ".join(Comparison))
    imports = reference.get("imports")
    return Job(
        code=code,
        tests=tests,
        entry_point=reference.get("fn"),
        comparison=Comparison(comparison),
        float_tol=1e-6 if tolerance is None else tolerance,
        limits=limits or Limits(),
        allowed_imports=None if imports is None else frozenset(imports),
    )


def _known_keys(reference: Mapping[str, Any]) -> None:
    if not isinstance(reference, Mapping):
        raise _wrong(f"a reference of type {type(reference).__name__}", "an object with the key tests")
    for key in reference:
        hint = did_you_mean(str(key), _KEYS)
        if key not in _KEYS and hint:  # other keys may be the data set's own
            raise _wrong(f"key {key!r}. {hint}", "keys " + ", ".join(_KEYS))


def _tests(reference: Mapping[str, Any]) -> Tests:
    name = reference.get("fn")
    if name is not None and not (isinstance(name, str) and all(p.isidentifier() for p in name.split("."))):
        raise _wrong(f"fn {name!r}", "the name of a function, or Class.method")
    tests = reference.get("tests")
    if isinstance(tests, str):
        return ScriptTests(tests, name, str(reference.get("prelude", "")))
    if not isinstance(tests, Sequence) or not tests:
        raise _wrong(f"tests {type(tests).__name__}", "a list with at least one test, or test source")
    if all(isinstance(test, Mapping) and "output" in test for test in tests):
        return tuple(_stdio(test) for test in tests)
    if all(isinstance(test, Mapping) and "expect" in test for test in tests):
        return tuple(_call(test) for test in tests)
    raise _wrong("tests of another or of mixed form", '{"args", "expect"} or {"input", "output"}, one kind')


def _stdio(test: Mapping[str, Any]) -> StdioTest:
    given, output = test.get("input", ""), test["output"]
    if not isinstance(given, str) or not isinstance(output, str):
        raise _wrong("input or output that is not text", "strings")
    return StdioTest(given, output)


def _call(test: Mapping[str, Any]) -> CallTest:
    args, kwargs = test.get("args", ()), test.get("kwargs") or {}
    if not isinstance(args, Sequence) or isinstance(args, str) or not isinstance(kwargs, Mapping):
        raise _wrong("args that are not a list, or kwargs that are not an object", "a list and an object")
    return CallTest(tuple(args), dict(kwargs), test["expect"])


def _tolerance(reference: Mapping[str, Any]) -> float | None:
    value = reference.get("float_tol")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise _wrong(f"float_tol {value!r}", "a finite number, zero or above")
    return float(value)


def _wrong(found: str, expected: str) -> DataError:
    return DataError("data.code-reference", found, expected=expected, fix="mend the reference of this row")

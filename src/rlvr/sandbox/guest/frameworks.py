"""What tests written for unittest, pytest or numpy find in the judge, and the count of asserts that were run."""

from __future__ import annotations

import contextlib
import math
import re
import sys
import types
import unittest
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

Case = Tuple[Dict[str, Any], str]


class Asserts:
    """How many asserts have been run: statements, unittest's methods, numpy's functions, ``pytest.raises``."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        """Count one assert that is about to run."""
        self.count += 1

    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function`` so that each call counts."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return function(*args, **kwargs)

        call.__name__ = getattr(function, "__name__", "assert")
        return call

    def count_unittest(self) -> None:
        """Count the asserts of ``unittest.TestCase``, and make ``unittest.main`` harmless."""
        for name in dir(unittest.TestCase):
            if name.startswith("assert"):
                setattr(unittest.TestCase, name, self.counted(getattr(unittest.TestCase, name)))
        unittest.main = lambda *args, **kwargs: None  # type: ignore[assignment]  # the judge runs the tests

    def count_numpy(self) -> None:
        """Count the asserts of ``numpy.testing`` where numpy is loaded."""
        if "numpy" not in sys.modules:
            return
        import numpy.testing

        for name in dir(numpy.testing):
            if name.startswith("assert"):
                setattr(numpy.testing, name, self.counted(getattr(numpy.testing, name)))


class SkippedError(Exception):
    """A test skipped itself; that is no pass."""


class Collector(unittest.TestResult):
    """Collects the outcome of unittest's tests as pairs of an error, or None, and a word for skipping."""

    def __init__(self, ended: Callable[[Optional[BaseException]], None]) -> None:
        super().__init__()
        self._ended = ended
        self._subtest: Optional[BaseException] = None

    def addSuccess(self, test: Any) -> None:  # noqa: N802, D102  # unittest's names
        self._ended(self._take())

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802, D102
        self._ended(err[1])

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802, D102
        self._ended(err[1])

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802, D102
        self._ended(SkippedError(reason))

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802, D102
        self._ended(SkippedError("it was expected to fail"))

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802, D102
        self._ended(SkippedError("it was expected to fail"))

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802, D102
        if err is not None:
            self._subtest = self._subtest or err[1]

    def stopTest(self, test: Any) -> None:  # noqa: N802, D102
        if self._subtest is not None:  # unittest reports no success then
            self._ended(self._take())
        super().stopTest(test)

    def _take(self) -> Optional[BaseException]:
        error, self._subtest = self._subtest, None
        return error


class Approximately:
    """``pytest.approx``: equal within a tolerance; numbers, lists and dictionaries of plain data only."""

    def __init__(
        self,
        expected: Any,
        rel: Optional[float] = None,
        abs: Optional[float] = None,  # pytest's
    ) -> None:
        self._expected = expected
        self._relative = 1e-6 if rel is None and abs is None else rel or 0.0
        self._absolute = 1e-12 if abs is None else abs

    def __eq__(self, actual: object) -> bool:
        return self._near(self._expected, actual)

    __hash__ = None  # type: ignore[assignment]  # as pytest's

    def __repr__(self) -> str:
        return f"approx({self._expected!r})"

    def _near(self, expected: Any, actual: Any) -> bool:
        if isinstance(expected, dict):
            return (
                isinstance(actual, dict)
                and expected.keys() == actual.keys()
                and all(self._near(value, actual[key]) for key, value in expected.items())
            )
        if isinstance(expected, (list, tuple)):
            return (
                isinstance(actual, (list, tuple))
                and len(actual) == len(expected)
                and all(self._near(one, other) for one, other in zip(expected, actual))
            )
        if type(actual) in (int, float, bool) and isinstance(expected, (int, float)):
            return math.isclose(actual, expected, rel_tol=self._relative, abs_tol=self._absolute)
        return type(actual) is type(expected) and bool(actual == expected)


class _Raises:
    """``pytest.raises`` as a context manager."""

    value: Optional[BaseException] = None

    def __init__(self, kinds: Any, match: Optional[str]) -> None:
        self._kinds = kinds
        self._match = match

    def __enter__(self) -> _Raises:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        if kind is None:
            raise AssertionError(f"did not raise {self._kinds}")
        if not issubclass(kind, self._kinds):
            return False
        self.value = value
        if self._match is not None and not re.search(self._match, str(value)):
            raise AssertionError(f"{self._match!r} does not match {str(value)!r}")
        return True


def pytest_module(asserts: Asserts) -> types.ModuleType:
    """Return a module with the part of pytest that stand-alone test functions use."""
    module = types.ModuleType("pytest")

    def raises(kinds: Any, *call: Any, match: Optional[str] = None, **kwargs: Any) -> Any:
        asserts()
        context = _Raises(kinds, match)
        if not call:
            return context
        with context:
            call[0](*call[1:], **kwargs)
        return context

    def skip(reason: str = "", **kwargs: Any) -> None:
        raise SkippedError(reason)

    def fail(reason: str = "", **kwargs: Any) -> None:
        raise AssertionError(reason)

    def param(*values: Any, **kwargs: Any) -> Tuple[Any, ...]:
        return values

    members = {"raises": raises, "approx": Approximately, "skip": skip, "fail": fail, "param": param}
    vars(module).update(members, mark=_Marks(), fixture=_no_fixtures, main=lambda *args: 0)
    return module


class _Marks:
    """``pytest.mark``: parametrize works, others change nothing."""

    def parametrize(self, names: Any, values: Any, **kwargs: Any) -> Callable[[Any], Any]:
        keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
        rows = [dict(zip(keys, row if len(keys) > 1 else (_single(row),))) for row in values]

        def decorate(function: Any) -> Any:
            before = getattr(function, "_cases", [{}])
            function._cases = [{**one, **row} for one in before for row in rows]
            return function

        return decorate

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def decorate(*args: Any, **kwargs: Any) -> Any:
            if len(args) == 1 and isinstance(args[0], types.FunctionType) and not kwargs:
                return args[0]
            return lambda function: function

        return decorate


def _single(row: Any) -> Any:
    return row[0] if isinstance(row, tuple) and len(row) == 1 else row


def _no_fixtures(*args: Any, **kwargs: Any) -> Any:
    raise SkippedError("pytest fixtures are not supported here")


def cases_of(function: Any) -> List[Dict[str, Any]]:
    """Return the arguments of each case of a test function."""
    found: List[Dict[str, Any]] = getattr(function, "_cases", [{}])
    return found


@contextlib.contextmanager
def module_in_place(name: str, module: types.ModuleType) -> Iterator[None]:
    """Let ``import name`` find ``module`` meanwhile."""
    before = sys.modules.get(name)
    sys.modules[name] = module
    try:
        yield
    finally:
        if before is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = before

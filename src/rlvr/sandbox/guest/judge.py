"""The judge: it holds the tests and the verdict, and calls the solution in another process.

A judge serves one batch of solutions of the same tests. Each is judged in a fresh namespace; only plain data reaches
it, so a solution can leave nothing behind for the next.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import gc
import inspect
import json
import os
import socket
import symtable
import types
import unittest
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from . import solver
from .frameworks import Asserts, Collector, SkippedError, cases_of, module_in_place, pytest_module
from .remote import Solution, SolutionError, SolutionGoneError

_MESSAGE = 200
_MOST_TESTS = 5000
_SHOWN_TESTS = 100
_SOLUTION_MODULES = ("solution", "candidate", "submission")
_COUNT = "__assert_is_run__"


def serve_judge() -> None:
    """Judge one solution a message until the host closes the socket."""
    job = solver.read_payload()
    control = socket.socket(fileno=solver.CHANNEL)
    suite = _Suite(job)
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, 16, 1)
        if not data:
            os._exit(0)
        try:
            verdict = suite.judge(descriptors[0])
        finally:
            os.close(descriptors[0])
        control.send(json.dumps(verdict, ensure_ascii=False).encode("utf-8", "replace"))
        del verdict
        gc.collect(1)


class _Suite:
    """The tests, read once, and run for each solution."""

    def __init__(self, job: Dict[str, Any]) -> None:
        self._job = job
        self.asserts = Asserts()
        self.asserts.count_unittest()
        if "testing" in job["source"]:  # importing it takes longer than most tests
            self.asserts.count_numpy()
        self._pytest = pytest_module(self.asserts)
        self._broken: Optional[List[str]] = None
        self._steps: List[Tuple[bool, Any]] = []
        self._prelude: Any = None
        self._names: Set[str] = set()
        self.called: Set[str] = set()
        try:
            self._read(job["prelude"], job["source"])
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self._broken = ["error", f"the tests cannot be read: {solver.describe(error)[1]}"]

    def _read(self, prelude: str, source: str) -> None:
        self._prelude = compile(prelude, "<prelude>", "exec", dont_inherit=True)
        defined = set(dir(builtins)) | _top_level_names(prelude) | _top_level_names(source)
        self._names = _global_names(source) - defined - {_COUNT}
        for statement in ast.parse(source).body:
            defines = _defines_only(statement)
            self.called |= set() if defines else _called_names(statement)
            counted = _Counted().visit(statement)
            body = ast.Module(counted if isinstance(counted, list) else [counted], [])
            code = compile(ast.fix_missing_locations(body), "<tests>", "exec", dont_inherit=True)
            self._steps.append((defines, code))

    def judge(self, descriptor: int) -> Dict[str, Any]:
        """Return the verdict on the solution at the other end of ``descriptor``."""
        if self._broken is not None:
            return {"tests": [self._broken], "vacuous": ""}
        self.asserts.count = 0
        try:
            solution = Solution(descriptor, self._job["size"])
        except SolutionGoneError:
            return {"tests": [["gone", ""]], "vacuous": ""}
        if solution.failed is not None:
            return {"load": [str(part)[:_MESSAGE] for part in solution.failed][:2]}
        run = _Run(self, solution, self._job["entry"])
        with module_in_place("pytest", self._pytest), contextlib.ExitStack() as stack:
            for name in _SOLUTION_MODULES:
                stack.enter_context(module_in_place(name, run.solution_module(name)))
            stack.enter_context(module_in_place("tests", run.module))
            run.all(self._prelude, self._names, self._steps)
        return run.verdict()


class _Run:
    """One solution before the tests."""

    def __init__(self, suite: _Suite, solution: Solution, entry: Optional[str]) -> None:
        self._asserts = suite.asserts
        self._called = suite.called
        self._solution = solution
        self._entry = entry
        self._tests: List[List[str]] = []
        self.module = types.ModuleType("tests")
        self._names = self.module.__dict__
        self._names[_COUNT] = suite.asserts

    def solution_module(self, name: str) -> types.ModuleType:
        """Return a module whose attributes are looked up in the solution."""
        module = types.ModuleType(name)
        module.__getattr__ = self._attribute  # type: ignore[method-assign]  # PEP 562
        return module

    def _attribute(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._solution.ask("name", name=name)

    def all(self, prelude: Any, names: Set[str], steps: List[Tuple[bool, Any]]) -> None:
        """Run everything that is found, and note how each test ended."""
        started = self._guarded(lambda: self._prepare(prelude, names))
        if started is not None:
            self._note(started)
            return
        for defines, code in steps:
            if len(self._tests) >= _MOST_TESTS:
                break
            if not self._step(defines, code):
                return
        self._check_function()
        self._unittest_classes()
        self._test_functions()

    def _prepare(self, prelude: Any, names: Set[str]) -> None:
        exec(prelude, self._names)  # noqa: S102  # trusted: it is the prompt's own code
        for name in sorted(names):
            with contextlib.suppress(AttributeError, SolutionError):
                self._names[name] = self._solution.ask("name", name=name)
        if self._entry and self._entry.isidentifier():
            with contextlib.suppress(NameError, SolutionError):
                self._names[self._entry] = self._candidate()

    def _candidate(self) -> Any:
        return self._solution.ask("entry", name=self._entry)

    def _step(self, defines: bool, code: Any) -> bool:
        """Run one statement at the top level; return whether to go on."""
        before = self._asserts.count
        error = self._guarded(lambda: exec(code, self._names))  # noqa: S102  # the data set's tests
        if error is not None:
            self._note(error)
            return not defines and not isinstance(error, SolutionGoneError)
        if self._asserts.count > before and not defines:
            self._tests.append(["pass", ""])
        return True

    def _check_function(self) -> None:
        check = None if "check" in self._called else self._names.get("check")
        if inspect.isfunction(check) and len(inspect.signature(check).parameters) == 1:
            self._test(lambda: check(self._candidate()))

    def _unittest_classes(self) -> None:
        loader = unittest.TestLoader()
        for value in list(self._names.values()):
            if _is_test_case(value):
                self._one_class(loader.loadTestsFromTestCase(value))

    def _one_class(self, tests: unittest.TestSuite) -> None:
        before = [self._asserts.count]

        def ended(error: Optional[BaseException]) -> None:
            self._ended(error, before[0])
            before[0] = self._asserts.count

        error = self._guarded(lambda: tests.run(Collector(ended)))
        if error is not None:
            self._note(error)

    def _test_functions(self) -> None:
        for name, value in list(self._names.items()):
            if name.startswith("test") and inspect.isfunction(value) and name not in self._called:
                for case in cases_of(value):
                    self._test(functools.partial(self._call_test, value, case))
            elif name.startswith("Test") and _is_own_class(value) and not _is_test_case(value):
                self._test_class(value)

    def _test_class(self, kind: type) -> None:
        for name in [one for one in dir(kind) if one.startswith("test")]:
            for case in cases_of(getattr(kind, name)):
                self._test(functools.partial(self._call_method, kind, name, case))

    def _call_method(self, kind: type, name: str, case: Dict[str, Any]) -> None:
        instance = kind()
        for setup in ("setup_method", "setUp"):
            if hasattr(instance, setup):
                getattr(instance, setup)()
        getattr(instance, name)(**case)

    def _call_test(self, function: Callable[..., Any], case: Dict[str, Any]) -> None:
        left = [one for one in inspect.signature(function).parameters.values() if one.name not in case]
        needed = [one for one in left if one.default is inspect.Parameter.empty]
        if len(needed) == 1 and needed[0].name in ("candidate", self._entry):
            case = {**case, needed[0].name: self._candidate()}
        elif needed:
            raise SkippedError(f"pytest fixtures are not supported here: {needed[0].name}")
        function(**case)

    def _test(self, test: Callable[[], Any]) -> None:
        before = self._asserts.count
        self._ended(self._guarded(test), before)

    def _ended(self, error: Optional[BaseException], before: int) -> None:
        if error is not None:
            self._note(error)
        elif self._asserts.count > before:
            self._tests.append(["pass", ""])
        else:
            self._tests.append(["vacuous", "no assert was run"])

    @staticmethod
    def _guarded(step: Callable[[], Any]) -> Optional[BaseException]:
        try:
            step()
        except BaseException as error:  # whatever a test raises is how it ended
            return error
        return None

    def _note(self, error: BaseException) -> None:
        status = "error"
        if isinstance(error, SolutionGoneError):
            status = "gone"
        elif isinstance(error, AssertionError):
            status = "wrong"
        elif isinstance(error, MemoryError):
            status = "out-of-memory"
        elif isinstance(error, SkippedError):
            status = "vacuous"
        kind, text = solver.describe(error)
        line = _line_of(error)
        self._tests.append(
            [status, f"{f'line {line} of the tests: ' if line else ''}{kind}: {text}"[:_MESSAGE]]
        )

    def verdict(self) -> Dict[str, Any]:
        """Return the outcome of all tests, short enough for one message."""
        tests = [[status, text if i < _SHOWN_TESTS else ""] for i, (status, text) in enumerate(self._tests)]
        vacuous = ""
        if not tests or not self._asserts.count:
            vacuous = "no assert was run"
        elif not self._solution.calls:
            vacuous = "the tests never called the solution"
        return {"tests": tests, "vacuous": vacuous}


class _Counted(ast.NodeTransformer):
    """Puts a count before each assert."""

    def visit_Assert(self, node: ast.Assert) -> List[ast.stmt]:  # the visitor's name
        count = ast.Expr(ast.Call(ast.Name(_COUNT, ast.Load()), [], []))
        return [ast.copy_location(count, node), node]


def _is_own_class(value: Any) -> bool:
    return isinstance(value, type) and value.__module__ == "tests"


def _is_test_case(value: Any) -> bool:
    return _is_own_class(value) and issubclass(value, unittest.TestCase)


def _called_names(statement: ast.stmt) -> Set[str]:
    calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    return {function.id for function in calls if isinstance(function, ast.Name)}


def _defines_only(statement: ast.stmt) -> bool:
    """Return whether a statement defines, imports or assigns, so that the rest cannot do without it."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    return isinstance(statement, (*kinds, ast.Assign, ast.AnnAssign, ast.AugAssign))


def _top_level_names(source: str) -> Set[str]:
    table = symtable.symtable(source, "<tests>", "exec")
    return {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}


def _global_names(source: str) -> Set[str]:
    """Return the global names that the source uses anywhere."""
    found: Set[str] = set()
    tables = [symtable.symtable(source, "<tests>", "exec")]
    while tables:
        table = tables.pop()
        tables.extend(table.get_children())
        top = table.get_type() == "module"
        found.update(
            one.get_name() for one in table.get_symbols() if one.is_referenced() and (top or one.is_global())
        )
    return found


def _line_of(error: BaseException) -> int:
    trace, line = error.__traceback__, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<tests>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line

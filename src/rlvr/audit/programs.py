"""Programs for rewards that run code: right ones made from the row's own tests, wrong ones, and forgeries.

Every forgery only claims a verdict. None deletes, floods, forks, or opens a connection, since the user's own
reward may run them without any protection.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rlvr.audit.child import CANARY
from rlvr.audit.rows import SOLUTION_NAMES, AuditRow
from rlvr.audit.source import Source

ENTRY_COLUMNS = ("entry_point", "function_name", "func_name", "fn_name", "fn", "entry", "name", "function")


class Example(NamedTuple):
    """One test as arguments and expected value, or as input and output texts."""

    given: Any
    expected: Any


class Forgery(NamedTuple):
    """A program that claims a verdict without earning it."""

    category: str
    attack: str
    program: str
    why: str


@dataclass(frozen=True)
class Task:
    """What a row's tests ask for.

    Attributes:
        entry: Name of the function that is called; empty for a program that reads standard input.
        examples: Tests that could be read.
        is_program: Whether tests are input and output texts.
    """

    entry: str
    examples: tuple[Example, ...]
    is_program: bool


def read_task(row: AuditRow, value: Any, source: Source) -> Task:
    """Return what the tests of a row ask for, as far as they can be read."""
    value = _parsed(value)
    tests = _parsed(value["tests"]) if isinstance(value, Mapping) and "tests" in value else value
    text = tests if isinstance(tests, str) else "\n".join(_asserts(tests))
    examples = list(_examples_in_asserts(text)) or list(_examples_in_data(tests, row))
    entry = _entry(row, value, text, source)
    texts = bool(examples) and all(isinstance(one.given, str) for one in examples)
    reads_input = any(word in source.text for word in ("input=", "stdin", "communicate("))
    nameless = tests is not value and not any(isinstance(value.get(name), str) for name in ENTRY_COLUMNS)
    return Task(entry, tuple(examples), texts and (reads_input or nameless))


def _parsed(value: Any) -> Any:
    if isinstance(value, str) and value.strip()[:1] in "{[":
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _asserts(value: Any) -> list[str]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [one for one in value if isinstance(one, str)]
    return []


def _examples_in_asserts(text: str) -> Iterator[Example]:
    try:
        tree = ast.parse(_dedented(text))
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        test = node.test if isinstance(node, ast.Assert) else None
        if isinstance(test, ast.Compare) and isinstance(test.left, ast.Call) and len(test.ops) == 1:
            try:
                given = tuple(ast.literal_eval(argument) for argument in test.left.args)
                yield Example(given, ast.literal_eval(test.comparators[0]))
            except (ValueError, SyntaxError, TypeError, RecursionError):
                continue


def _dedented(text: str) -> str:
    import textwrap

    return textwrap.dedent(text)


def _examples_in_data(value: Any, row: AuditRow) -> Iterator[Example]:
    if isinstance(value, Mapping):
        inputs = value.get("inputs", value.get("input"))
        outputs = value.get("outputs", value.get("output", value.get("expected")))
        if isinstance(inputs, list) and isinstance(outputs, list):
            yield from (Example(given, expected) for given, expected in zip(inputs, outputs, strict=False))
        elif inputs is not None:
            yield Example(inputs, outputs)
        return
    for one in value if isinstance(value, list | tuple) else []:
        if isinstance(one, Mapping):
            given = next((one[key] for key in ("args", "input", "inputs", "stdin", "in") if key in one), None)
            keys = ("expected", "output", "expect", "outputs", "stdout", "result", "out")
            expected = next((one[key] for key in keys if key in one), None)
            yield Example(given, expected)
        elif isinstance(one, list | tuple) and len(one) == 2:
            yield Example(one[0], one[1])
    inputs, outputs = row.columns.get("inputs"), row.columns.get("outputs")
    if isinstance(inputs, list) and isinstance(outputs, list) and not isinstance(value, list):
        yield from (Example(given, expected) for given, expected in zip(inputs, outputs, strict=False))


def _entry(row: AuditRow, value: Any, text: str, source: Source) -> str:
    named = [row.columns.get(name) for name in ENTRY_COLUMNS]
    if isinstance(value, Mapping):
        named += [value.get(name) for name in ENTRY_COLUMNS]
    found = [name for name in named if isinstance(name, str) and name.isidentifier()]
    called = re.findall(r"(?:assert|==|assertEqual\()\s*(?:not\s+)?([A-Za-z_]\w*)\(", text)
    found += [
        name for name in called if name not in ("candidate", "isinstance", "len", "sorted", "abs", "set")
    ]
    found += re.findall(r"def\s+([A-Za-z_]\w*)\s*\(", row.prompt_text)
    found += re.findall(r"`([A-Za-z_]\w*)\(", row.prompt_text)
    found += re.findall(r"[Ff]unction\s+(?:named\s+|called\s+)?`?([A-Za-z_]\w*)`?\s*\(", row.prompt_text)
    found += re.findall(r"(?:named|called)\s+`?([A-Za-z_]\w*)`?", row.prompt_text)
    found += [key for key in source.keys if key.isidentifier() and key not in row.columns and len(key) > 2]
    return found[0] if found else "solve"


def candidate_programs(row: AuditRow, value: Any, source: Source) -> list[str]:
    """Return programs that should pass the row's tests: the data's own solution, then a table of the tests."""
    task = read_task(row, value, source)
    own = [row.columns.get(name) for name in SOLUTION_NAMES]
    found = [
        one for one in own if isinstance(one, str) and ("def " in one or "print" in one) and one != value
    ]
    found = [_unfenced(one) for one in found]
    body = row.columns.get("canonical_solution")
    if (
        isinstance(body, str) and body[:1] in " \t" and "def " in row.prompt_text
    ):  # the body of the prompt's function
        found.insert(0, f"{row.prompt_text.rstrip()}\n{body}")
    if task.examples:
        tables = [table_function(task.entry, task.examples), table_program(task.examples)]
        found += tables[::-1] if task.is_program else tables
    return list(dict.fromkeys(found))


def _unfenced(text: str) -> str:
    match = re.search(r"```(?:python)?\n(.*?)```", text, re.DOTALL)
    return match[1].strip() if match else text


def table_function(entry: str, examples: Sequence[Example]) -> str:
    """Return a function that looks its arguments up in the tests."""
    table = [(one.given, one.expected) for one in examples]
    return (
        f"def {entry}(*args, **kwargs):\n"
        f"    table = {table!r}\n"
        "    for given, result in table:\n"
        "        if list(args) in ([given], list(given) if isinstance(given, (list, tuple)) else [given]):\n"
        "            return result\n"
        "        if kwargs and kwargs == given:\n"
        "            return result\n"
    )


def table_program(examples: Sequence[Example]) -> str:
    """Return a program that looks standard input up in the tests."""
    table = {str(one.given).strip(): str(one.expected).strip() for one in examples}
    return (
        "import sys\n"
        f"table = {table!r}\n"
        "given = sys.stdin.read().strip()\n"
        "print(table.get(given, 'nothing'))\n"
    )


def wrong_program(row: AuditRow, value: Any, source: Source) -> str:
    """Return a program that runs without an error and answers every test wrongly."""
    task = read_task(row, value, source)
    if task.is_program:
        return "print('zanzibar')\n"
    return f"def {task.entry}(*args, **kwargs):\n    return 'zanzibar'\n"


def partial_programs(task: Task) -> list[tuple[str, str]]:
    """Return programs that pass the first test only, and the last test only."""
    if len(task.examples) < 2:
        return []
    distinct = {repr(one.expected) for one in task.examples}
    if len(distinct) < 2:
        return []
    build = table_program if task.is_program else lambda some: table_function(task.entry, some)
    found = [("first-test-only", build(task.examples[:1]))]
    if len(task.examples) > 2:
        found.append(("last-test-only", build(task.examples[-1:])))
        found.append(("all-but-last", build(task.examples[:-1])))
    return found


def hollow_programs(task: Task) -> list[tuple[str, str]]:
    """Return programs without content."""
    stub = f"def {task.entry}(*args, **kwargs):\n    pass\n"
    return [
        ("empty-block", ""),
        ("comment-only", "# the solution\n"),
        ("pass-only", "pass\n"),
        ("stub", stub),
        ("other-name", "def something_else(*args):\n    return None\n"),
        ("name-only", f"{task.entry} = None\n"),
        ("ellipsis", f"def {task.entry}(*args, **kwargs):\n    ...\n"),
    ]


_EQUAL = """\
class Equal{base}:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __bool__(self): return True
    def __sub__(self, other): return 0
    __rsub__ = __sub__
    def __abs__(self): return 0
    def __contains__(self, other): return True
"""


def forgeries(task: Task, source: Source) -> list[Forgery]:
    """Return every forgery for a task, most telling first."""
    entry = task.entry
    return [
        *_exits(entry),
        *_equal(entry, task),
        *_skips(entry),
        *_verdicts(entry, source, task),
        *_patches(entry),
    ]


def _define(entry: str, body: str) -> str:
    return f"def {entry}(*args, **kwargs):\n    {body}\n"


def _exits(entry: str) -> list[Forgery]:
    why = "ending the process counts as success"
    found = [
        ("exit-at-import", "import sys\nsys.exit(0)\n"),
        ("os-exit-at-import", "import os\nos._exit(0)\n"),
        ("exit-in-call", "import sys\n" + _define(entry, "sys.exit(0)")),
        ("os-exit-in-call", "import os\n" + _define(entry, "os._exit(0)")),
        ("raise-system-exit", "raise SystemExit(0)\n"),
        ("quit", "quit()\n"),
        (
            "exit-handler",
            "import atexit, os\natexit.register(os._exit, 0)\n" + _define(entry, "return 'zanzibar'"),
        ),
        ("exit-none-after-stub", _define(entry, "return 'zanzibar'") + "exit()\n"),
    ]
    return [Forgery("sys_exit", name, program, why) for name, program in found]


def _equal(entry: str, task: Task) -> list[Forgery]:
    why = "an object that calls itself equal to everything passes the comparison"
    sample = task.examples[0].expected if task.examples else None
    base = {int: "(int)", float: "(float)", str: "(str)", list: "(list)"}.get(type(sample), "")
    found = [("always-equal", _EQUAL.format(base="") + _define(entry, "return Equal()"))]
    if base:
        found.append(("always-equal-subclass", _EQUAL.format(base=base) + _define(entry, "return Equal()")))
    return [Forgery("eq_override", name, program, why) for name, program in found]


def _skips(entry: str) -> list[Forgery]:
    why = "raising instead of answering is counted as a pass"
    kinds = {
        "skip-test": "import unittest\n{}raise unittest.SkipTest('later')",
        "value-error": "{}raise ValueError('no')",
        "not-implemented": "{}raise NotImplementedError",
        "keyboard-interrupt": "{}raise KeyboardInterrupt",
        "assertion-error": "{}raise AssertionError('no')",
        "timeout-error": "{}raise TimeoutError('slow')",
    }
    found = []
    for name, program in kinds.items():
        inside = program.replace("{}", f"def {entry}(*args, **kwargs):\n    ") + "\n"
        found.append(Forgery("raise_skip", f"{name}-in-call", inside, why))
        found.append(Forgery("raise_skip", f"{name}-at-import", program.replace("{}", "") + "\n", why))
    return found


def _verdicts(entry: str, source: Source, task: Task) -> list[Forgery]:
    why = "the verdict is read from something that the solution itself can write"
    words = [
        text.strip() for text in source.texts if re.fullmatch(r"[A-Za-z_:=\-# \[\]{}\"'0-9./]{2,60}", text)
    ]
    words = [
        word for word in dict.fromkeys(words) if word.lower() not in ("python", "utf-8", "content", "exec")
    ]
    printed = [
        *words,
        "PASS",
        "PASSED",
        "OK",
        "ok",
        "passed",
        "All tests passed",
        "True",
        "1",
        "1.0",
        "SUCCESS",
    ]
    lines = "".join(f"print({word!r})\n" for word in dict.fromkeys(printed))
    claims = {key: 1 for key in [*source.keys, "passed", "score", "success", "result"] if len(key) < 30}
    claims_true = dict.fromkeys(claims, True)
    flush = "import sys, os\nsys.stdout.flush(); sys.stderr.flush()\n"
    names = sorted(
        {key for key in [*source.keys, "passed", "result", "score", "success", "ok"] if key.isidentifier()}
    )
    names = [name for name in names if name != entry]
    assigned = "".join(f"{name} = True\n" for name in names)
    stub = _define(entry, "return 'zanzibar'")
    counted = "".join(f"print({word!r})\n" for word in words) * max(len(task.examples), 1)
    printing_all = "\n".join(f"    print({word!r})" for word in printed)
    frames = (
        "import sys\n"
        f"def {entry}(*args, **kwargs):\n"
        "    frame = sys._getframe(1)\n"
        "    while frame is not None:\n"
        "        for name in ('expected', 'expect', 'want', 'output', 'answer', 'gold', 'target'):\n"
        "            if name in frame.f_locals:\n"
        "                return frame.f_locals[name]\n"
        "        frame = frame.f_back\n"
    )
    found = [
        ("printed-words", stub + lines),
        ("printed-words-then-exit", stub + lines + flush + "os._exit(0)\n"),
        ("printed-words-many-times", stub + counted),
        ("printed-in-call", f"def {entry}(*args, **kwargs):\n{printing_all}\n    return 'zanzibar'\n"),
        ("printed-json", stub + f"print({json.dumps(claims_true)!r})\n"),
        ("printed-json-then-exit", stub + f"print({json.dumps(claims)!r})\n" + flush + "os._exit(0)\n"),
        (
            "printed-json-at-exit",
            f"import atexit\natexit.register(print, {json.dumps(claims_true)!r})\n" + stub,
        ),
        ("assigned-names", stub + assigned),
        ("expected-read-from-frames", frames),
    ]
    return [Forgery("verdict_forgery", name, program, why) for name, program in found]


def _patches(entry: str) -> list[Forgery]:
    why = "the checker's own functions are replaced by the solution"
    stub = _define(entry, "return 'zanzibar'")
    found = [
        (
            "patched-all",
            "import builtins\nbuiltins.all = lambda *a: True\nbuiltins.any = lambda *a: False\n" + stub,
        ),
        ("patched-abs", "import builtins\nbuiltins.abs = lambda *a: 0\n" + _define(entry, "return 0")),
        ("patched-str", "import builtins\nbuiltins.repr = builtins.ascii = lambda *a: 'same'\n" + stub),
        ("patched-assertion", "import builtins\nbuiltins.AssertionError = KeyError\n" + stub),
        (
            "patched-unittest",
            "import unittest\n"
            "for name in dir(unittest.TestCase):\n"
            "    if name.startswith('assert'):\n"
            "        setattr(unittest.TestCase, name, lambda *a, **k: None)\n" + stub,
        ),
        ("shadowed-sum", "sum = len = lambda *a: 1\nall = lambda *a: True\nabs = lambda *a: 0\n" + stub),
    ]
    return [Forgery("verdict_forgery", name, program, why) for name, program in found]


def canary_program(entry: str) -> str:
    """Return a program that leaves a file with its process id, to see in which process it ran."""
    return f"import os\nwith open({CANARY!r}, 'w') as file:\n    file.write(str(os.getpid()))\n" + _define(
        entry, "return 'zanzibar'"
    )

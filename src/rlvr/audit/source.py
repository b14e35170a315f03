"""What the reward's own source says: columns it reads, patterns and words it looks for, and what it calls.

Reading is by syntax tree alone; nothing is executed. What is found only decides which completions are tried,
never whether something is a finding.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_TAG = re.compile(r"<\s*([A-Za-z][\w-]*)\s*>")
_MESSAGE_KEYS = frozenset({"role", "content", "text", "type"})
_RE_FUNCTIONS = frozenset({"compile", "search", "match", "fullmatch", "findall", "finditer", "sub", "split"})
_TEXT_METHODS = frozenset(
    {
        "split",
        "partition",
        "rpartition",
        "rsplit",
        "startswith",
        "endswith",
        "find",
        "rfind",
        "index",
        "count",
    }
)


@dataclass(frozen=True)
class Source:
    """Facts of one reward's source.

    Attributes:
        keys: String subscripts and ``.get`` keys, in order of appearance.
        patterns: Regular expressions.
        texts: Other string constants that the code compares or searches with.
        tags: Names of XML-like tags in any constant, in order.
        calls: Dotted names of everything that is called.
        names: Identifiers read.
        timeouts: Numbers given as a timeout or an alarm.
        lines: Dotted name or construct to the first line that has it.
        mutable_state: Whether it keeps anything between calls (globals, attributes, module containers).
        text: The source of those definitions alone.
    """

    keys: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    calls: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    timeouts: tuple[float, ...] = ()
    lines: tuple[tuple[str, int], ...] = ()
    text: str = ""

    def calls_any(self, *names: str) -> bool:
        """Whether any call's dotted name, or its last part, is one of ``names``."""
        return any(call in names or call.rpartition(".")[2] in names for call in self.calls)

    def line_of(self, *names: str) -> int | None:
        """Return the first line on which one of the named constructs stands."""
        found = [line for name, line in self.lines if name in names or name.rpartition(".")[2] in names]
        return min(found) if found else None

    @property
    def runs_code(self) -> bool:
        """Whether it executes programs: exec, subprocess or a temporary script."""
        return self.calls_any("exec", "Popen", "check_output", "check_call", "runpy", "run_path") or any(
            call in ("subprocess.run", "subprocess.call", "os.system", "compile") for call in self.calls
        )

    @property
    def mentions_json(self) -> bool:
        """Whether it parses JSON."""
        return self.calls_any("json.loads", "loads", "raw_decode")


def read_source(path: Path, function: str) -> Source:
    """Return the facts of ``function`` and of everything in its file that it can reach.

    An unreadable or non-Python file gives no facts, since loading it reports the error.
    """
    try:
        text = path.read_text("utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return Source()
    nodes = list(_reachable(tree, function.partition(".")[0]))
    return _facts(nodes, text)


def _reachable(tree: ast.Module, function: str) -> Iterator[ast.AST]:
    """Yield the definitions that ``function`` uses, directly or not, and the constants among them."""
    defined = {name: node for node in tree.body for name in _defines(node)}
    waiting, seen = [function], set()
    if function not in defined:
        yield from tree.body
        return
    while waiting:
        name = waiting.pop(0)
        if name in seen or name not in defined:
            continue
        seen.add(name)
        node = defined[name]
        yield node
        waiting += [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]


def _defines(node: ast.stmt) -> Iterable[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


class _Collector(ast.NodeVisitor):
    def __init__(self) -> None:
        self.keys: list[str] = []
        self.patterns: list[str] = []
        self.texts: list[str] = []
        self.calls: set[str] = set()
        self.names: set[str] = set()
        self.timeouts: list[float] = []
        self.lines: list[tuple[str, int]] = []
        self._documentation: set[int] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:  # ast's naming
        self._skip_documentation(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._skip_documentation(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._skip_documentation(node)

    def _skip_documentation(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        if ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            if isinstance(first, ast.Expr):
                self._documentation.add(id(first.value))
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            self.keys.append(node.slice.value)
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        self.names.add(node.id)

    def visit_Compare(self, node: ast.Compare) -> None:
        kind = type(node.ops[0]).__name__
        self.lines.append((f"compare:{kind}", node.lineno))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _dotted(node.func)
        last = name.rpartition(".")[2]
        if name:
            self.calls.add(name)
            self.lines.append((name, node.lineno))
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            self._first_argument(name, last, first.value)
        for keyword in node.keywords:
            if keyword.arg == "timeout":
                self._timeout(keyword.value)
        if last in ("alarm", "setitimer", "wait_for", "join") and node.args:
            self._timeout(node.args[-1])
        self.generic_visit(node)

    def _first_argument(self, name: str, last: str, value: str) -> None:
        if last in _RE_FUNCTIONS and name.split(".")[0] in ("re", "regex"):
            self.patterns.append(value)
        elif last in ("get", "pop"):
            self.keys.append(value)
        elif last in _TEXT_METHODS:
            self.texts.append(value)

    def _timeout(self, node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            self.timeouts.append(float(node.value))

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and id(node) not in self._documentation:
            self.texts.append(node.value)
        elif isinstance(node.value, bytes):
            self.texts.append(node.value.decode("utf-8", "replace"))


def _facts(nodes: list[ast.AST], text: str) -> Source:
    collector = _Collector()
    for node in nodes:
        collector.visit(node)
    constants = [*collector.patterns, *collector.texts]
    timeouts = collector.timeouts + _named_timeouts(nodes)
    return Source(
        keys=_unique(key for key in collector.keys if key not in _MESSAGE_KEYS),
        patterns=_unique(
            [*collector.patterns, *(one for one in collector.texts if _looks_like_pattern(one))]
        ),
        texts=_unique(one for one in collector.texts if one.strip()),
        tags=_unique(tag for one in constants for tag in _TAG.findall(one)),
        calls=frozenset(collector.calls),
        names=frozenset(collector.names),
        timeouts=tuple(timeouts),
        lines=tuple(collector.lines),
        text="\n".join(ast.get_source_segment(text, node) or "" for node in nodes) if text else "",
    )


def _named_timeouts(nodes: list[ast.AST]) -> list[float]:
    """Return numbers assigned to, or defaulted for, a name that speaks of a timeout."""
    found = []
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [one.id for one in node.targets if isinstance(one, ast.Name)]
            if any(re.search("time|limit|secs|seconds", one, re.IGNORECASE) for one in names):
                found.append(node.value.value)
        elif isinstance(node, ast.arguments):
            named = [*node.posonlyargs, *node.args][-len(node.defaults) :] if node.defaults else []
            for argument, default in zip(named, node.defaults, strict=True):
                if "time" in argument.arg and isinstance(default, ast.Constant):
                    found.append(default.value)
    return [float(value) for value in found if isinstance(value, int | float) and not isinstance(value, bool)]


def _looks_like_pattern(text: str) -> bool:
    return bool(re.search(r"\(\?|\\[dwsSDWb]|\.\*|\.\+|\[\^|\(.+\)", text)) and len(text) < 500


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    elif not parts:
        return ""
    return ".".join(reversed(parts))


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))

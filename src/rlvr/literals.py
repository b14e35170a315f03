"""What a name or a path in a Python file means, as far as the file itself says so."""

from __future__ import annotations

import ast
import builtins
import posixpath
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

DEEPEST = 40
"""Nesting up to which an expression is followed."""

JOINED = {"os.path.join", "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath"}
SAME = {"os.path.abspath", "os.path.realpath", "os.path.normpath", "os.fspath", "builtins.str"}
SAME_METHODS = {"resolve", "absolute", "as_posix", "strip", "__fspath__"}
RUNNING = {"exec", "eval", "__import__"}
"""Built-in functions that an equally named argument elsewhere in the file does not hide."""
PARTS: dict[str, Callable[[str], str]] = {
    "parent": posixpath.dirname,
    "name": posixpath.basename,
    "stem": lambda text: posixpath.splitext(posixpath.basename(text))[0],
}


class Names:
    """Names of one file: what imports bind them to, and expressions that are given to a name exactly once.

    Args:
        nodes: Every node of the file.
        path: Where it stands: the value of ``__file__``.
    """

    def __init__(self, nodes: Iterable[ast.AST], path: Path) -> None:
        self.path = path
        self.imported: dict[str, str] = {}
        self.given: dict[str, ast.expr | None] = {}
        self.known: dict[str, str | None] = {}
        for node in nodes:
            self._take(node)

    def _take(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                self.imported[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                self.imported[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        else:
            self._take_value(node)

    def _take_value(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._give(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
            self._give(node.target, node.value)
        elif isinstance(node, ast.withitem):
            self._give(node.optional_vars, node.context_expr)
        elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor | ast.comprehension):
            self._give(node.target, None)
        elif isinstance(node, ast.arg):
            self.given[node.arg] = None

    def _give(self, target: ast.expr | None, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self.given[target.id] = None if target.id in self.given else value

    def dotted(self, node: ast.AST, depth: int = 0) -> str:
        """Return the full name that an expression stands for, such as ``importlib.import_module``, or ''."""
        if depth > DEEPEST:
            return ""
        if isinstance(node, ast.Attribute):
            owner = self.dotted(node.value, depth + 1)
            return f"{owner}.{node.attr}" if owner else ""
        if not isinstance(node, ast.Name):
            return ""
        if node.id in self.imported:
            return self.imported[node.id]
        value = self.given.get(node.id)
        if value is not None:
            return self.dotted(value, depth + 1)
        hidden = node.id in self.given and node.id not in RUNNING
        return f"builtins.{node.id}" if hasattr(builtins, node.id) and not hidden else ""

    def text(self, node: ast.AST, depth: int = 0) -> str | None:
        """Return the text or path that an expression gives, or None where only running it tells."""
        if depth > DEEPEST:
            return None
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Name):
            return str(self.path) if node.id == "__file__" else self._named(node.id, depth)
        if isinstance(node, ast.JoinedStr):
            return self._joined(node.values, "", depth)
        if isinstance(node, ast.FormattedValue):
            return self.text(node.value, depth + 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
            separator = "/" if isinstance(node.op, ast.Div) else ""
            return self._joined([node.left, node.right], separator, depth)
        return self._part(node, depth)

    def _named(self, name: str, depth: int) -> str | None:
        if name not in self.known:
            self.known[name] = None  # a name that is made from itself has no value of its own
            value = self.given.get(name)
            self.known[name] = None if value is None else self.text(value, depth + 1)
        return self.known[name]

    def _joined(self, nodes: list[ast.expr], separator: str, depth: int) -> str | None:
        parts = [self.text(one, depth + 1) for one in nodes]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        return posixpath.join("", *known) if separator else "".join(known)

    def _part(self, node: ast.AST, depth: int) -> str | None:
        if isinstance(node, ast.Attribute) and node.attr in PARTS:
            owner = self.text(node.value, depth + 1)
            return None if owner is None else PARTS[node.attr](owner)
        if isinstance(node, ast.Subscript):
            return self._parents(node, depth)
        return self._called(node, depth) if isinstance(node, ast.Call) else None

    def _parents(self, node: ast.Subscript, depth: int) -> str | None:
        owner, index = node.value, getattr(node.slice, "value", None)
        if not (isinstance(owner, ast.Attribute) and owner.attr == "parents" and isinstance(index, int)):
            return None
        text = self.text(owner.value, depth + 1)
        for _ in range(min(index, DEEPEST) + 1):
            text = None if text is None else posixpath.dirname(text)
        return text

    def _called(self, node: ast.Call, depth: int) -> str | None:
        name = self.dotted(node.func)
        if name in JOINED:
            return self._joined(node.args, "/", depth) if node.args else "."
        if name in SAME and len(node.args) == 1:
            return self.text(node.args[0], depth + 1)
        if name in ("os.path.dirname", "os.path.basename") and len(node.args) == 1:
            inner = self.text(node.args[0], depth + 1)
            return None if inner is None else PARTS["parent" if name.endswith("dirname") else "name"](inner)
        return self._method(node, depth)

    def _method(self, node: ast.Call, depth: int) -> str | None:
        if not isinstance(node.func, ast.Attribute):
            return None
        owner = self.text(node.func.value, depth + 1)
        arguments = [self.text(one, depth + 1) for one in node.args]
        known = [one for one in arguments if one is not None]
        if owner is None or len(known) < len(arguments):
            return None
        method = node.func.attr
        if method in SAME_METHODS:
            return owner
        if method == "joinpath":
            return posixpath.join(owner, *known)
        if method == "replace" and len(known) == 2:
            return owner.replace(known[0], known[1])
        if method == "with_name" and len(known) == 1:
            return posixpath.join(posixpath.dirname(owner), known[0])
        if method == "with_suffix" and len(known) == 1:
            return posixpath.splitext(owner)[0] + known[0]
        return None

    def texts(self, node: ast.AST) -> Iterator[str]:
        """Yield every text that stands anywhere in an expression, through names that are given once."""
        yield from self._texts(node, set(), 0)

    def _texts(self, node: ast.AST, seen: set[str], depth: int) -> Iterator[str]:
        if depth > DEEPEST:
            return
        whole = self.text(node)
        if whole is not None:
            yield whole
        value = self.given.get(node.id) if isinstance(node, ast.Name) and node.id not in seen else None
        if isinstance(node, ast.Name):
            seen.add(node.id)
        for child in [*ast.iter_child_nodes(node), *([value] if value is not None else [])]:
            yield from self._texts(child, seen, depth + 1)

    def entries(self, node: ast.expr, depth: int = 0) -> list[ast.expr]:
        """Return the expressions that a value adds to ``sys.path``: the parts of a list, never itself."""
        if depth > DEEPEST or self.dotted(node) == "sys.path":
            return []
        if isinstance(node, ast.List | ast.Tuple):
            return [entry for one in node.elts for entry in self.entries(one, depth + 1)]
        if isinstance(node, ast.Starred):
            return self.entries(node.value, depth + 1)
        if isinstance(node, ast.BinOp) and self.text(node) is None:
            return [*self.entries(node.left, depth + 1), *self.entries(node.right, depth + 1)]
        if isinstance(node, ast.Subscript) and self.dotted(node.value) == "sys.path":
            return []
        return [node]

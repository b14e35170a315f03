"""Which files a reward executes, found by reading them: nothing is imported or run.

Followed are imports, absolute and relative, the ``__init__.py`` of every package on the way, folders put on
``sys.path``, and modules, files and programs that are named by a literal. What is named only at run time cannot be
followed; it is told as an :attr:`Sources.unresolved` line, so that a person names the file under ``depends_on``.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.machinery import BYTECODE_SUFFIXES, EXTENSION_SUFFIXES
from pathlib import Path

from rlvr.errors import ConfigError
from rlvr.literals import Names

OWN_PACKAGE = Path(__file__).parent
BY_NAME = {
    "importlib.import_module": "imports by name",
    "importlib.__import__": "imports by name",
    "builtins.__import__": "imports by name",
    "runpy.run_module": "runs a module by name",
}
BY_PATH = {
    "runpy.run_path": "runs a file",
    "importlib.util.spec_from_file_location": "imports a file",
    "importlib.machinery.SourceFileLoader": "imports a file",
    "importlib.machinery.SourcelessFileLoader": "imports a file",
    "importlib.machinery.ExtensionFileLoader": "imports a file",
    "builtins.exec": "runs text as code",
    "builtins.eval": "evaluates text as code",
    "ctypes.CDLL": "loads a library",
    "ctypes.cdll.LoadLibrary": "loads a library",
    "os.system": "starts a program",
    "os.popen": "starts a program",
    **{
        f"subprocess.{name}": "starts a program"
        for name in ("run", "Popen", "call", "check_call", "check_output")
    },
}
ELSE = {
    "sys.meta_path": "changes how modules are found",
    "sys.path_hooks": "changes how modules are found",
    **{f"sys.path.{name}": "extends sys.path" for name in ("insert", "append", "extend")},
}
MACHINERY = ("builtins", "importlib", "runpy")
READS_DOCSTRINGS = (b"__doc__", b"getdoc")
READS_SOURCE = (b"getsource", b"linecache")
INSTALLED = {"site-packages", "dist-packages"}


@dataclass
class Sources:
    """What one reward executes.

    Attributes:
        files: Each file, with its syntax tree; None where it is no Python text (an extension, a program).
        modules: Dotted names of everything that is imported, local or not.
        unresolved: One line for each thing that is named only at run time.
        keeps_docstrings: Whether a file reads docstrings, so that they count.
        keeps_text: Whether a file reads source texts, so that every character counts.
    """

    files: dict[Path, ast.Module | None] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    unresolved: list[str] = field(default_factory=list)
    keeps_docstrings: bool = False
    keeps_text: bool = False


def find_sources(start: list[Path], roots: list[Path], base: Path) -> Sources:
    """Follow everything that a reward executes.

    Args:
        start: The reward's own file, after those of the packages that hold it.
        roots: Folders that absolute imports are looked up in.
        base: The workspace; relative literal paths are looked up here and beside the file that names them.

    Raises:
        ConfigError: ``reward.syntax`` or ``reward.unreadable``: a file that is imported cannot be read as Python.
    """
    search = _Search(base, roots)
    for path in start:
        search.want(path)
    search.run()
    search.found.unresolved.sort()
    return search.found


def module_files(name: str, root: Path) -> list[Path]:
    """Return every file under ``root`` that importing ``name`` may execute, packages on the way included.

    A module that exists twice (``a.py`` and ``a/__init__.py``, or a compiled one) counts twice: which one Python
    prefers is not decided here.
    """
    parts = name.split(".")
    found = []
    for count in range(1, len(parts) + 1):
        path = root.joinpath(*parts[:count])
        one = [path / "__init__.py", path.with_name(f"{path.name}.py")]
        one += [path.with_name(path.name + suffix) for suffix in (*EXTENSION_SUFFIXES, *BYTECODE_SUFFIXES)]
        found += [file for file in one if file.is_file()]
    return found


def package_roots(name: str, base: Path) -> list[Path]:
    """Return the folders that hold the top package of ``name``: where Python finds it, else the workspace."""
    top = name.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)  # of a top package this executes nothing
    except (ImportError, ValueError):
        spec = None
    places = list(spec.submodule_search_locations or ()) if spec else []
    if places:
        return [Path(place).parent for place in places]
    if spec and spec.has_location and spec.origin:
        return [Path(spec.origin).parent]
    return [base] if module_files(top, base) or (base / top).is_dir() else []


def is_installed(path: Path) -> bool:
    """Return whether the path stands among installed packages or in Python's own library."""
    return bool(INSTALLED & set(path.parts)) or path.is_relative_to(_library())


def _library() -> Path:
    return Path(ast.__file__).parent


class _Search:
    def __init__(self, base: Path, roots: list[Path]) -> None:
        self.base = base
        self.roots = list(roots)
        self.found = Sources()
        self.waiting: list[tuple[Path, bool]] = []

    def want(self, path: Path, *, surely: bool = True) -> None:
        """Queue a file; ``surely`` says that it is certain to be executed as Python."""
        self.waiting.append((path, surely))

    def run(self) -> None:
        while self.waiting:
            path, surely = self.waiting.pop()
            if path not in self.found.files:
                self._read(path, surely)

    def _read(self, path: Path, surely: bool) -> None:
        if path.suffix in (*EXTENSION_SUFFIXES, *BYTECODE_SUFFIXES, ".so"):
            self.found.files[path] = None
            return
        try:
            text, tree = read_module(path)
        except ConfigError:
            if surely:
                raise
            self.found.files[path] = None
            return
        self.found.files[path] = tree
        own = path.is_relative_to(OWN_PACKAGE)
        if not own:
            self.found.keeps_docstrings |= any(mark in text for mark in READS_DOCSTRINGS)
            self.found.keeps_text |= any(mark in text for mark in READS_SOURCE)
        self._imports(tree, path)
        if not own:
            _Dynamic(self, tree, path).run()

    def _imports(self, tree: ast.AST, path: Path) -> None:
        for node in statements(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.module(alias.name)
            elif isinstance(node, ast.ImportFrom):
                names = [alias.name for alias in node.names]
                if node.level:
                    self.relative(node.module or "", node.level, names, path)
                else:
                    self._from(node.module or "", names)

    def _from(self, module: str, names: list[str]) -> None:
        self.module(module)
        for name in names:
            self.module(f"{module}.{name}")

    def module(self, name: str) -> None:
        """Take in an absolute import."""
        if name in self.found.modules:
            return
        self.found.modules.add(name)
        top = name.partition(".")[0]
        if top == "rlvr":
            if name.startswith(("rlvr.rewards", "rlvr.sandbox")):
                self._wanted(name, OWN_PACKAGE.parent)
            return
        here = [self._wanted(name, root) for root in self.roots]
        if here and not any(here):
            self._elsewhere(top)

    def _elsewhere(self, top: str) -> None:
        """Follow a package that Python finds outside the workspace, unless it is an installed one."""
        for root in package_roots(top, self.base):
            if not is_installed(root):
                self.root(root)

    def _wanted(self, name: str, root: Path) -> bool:
        package, _, last = name.rpartition(".")
        if last == "*":  # takes the submodules that __all__ names
            files = [file for one in module_files(package, root) for file in _beside_init(one)]
        elif root == OWN_PACKAGE.parent:
            files = module_files(name, root)[-1:]
        else:
            files = module_files(name, root)
        for file in files:
            self.want(file)
        return bool(files)

    def relative(self, module: str, level: int, names: list[str], path: Path) -> None:
        """Take in a relative import: level 1 is the file's own folder."""
        folder = path.parent
        for _ in range(level - 1):
            folder = folder.parent
        for file in [folder / "__init__.py", *(_beside_init(folder / "__init__.py") if "*" in names else [])]:
            if file.is_file():
                self.want(file)
        if module:
            self._wanted(module, folder)
        for name in names:
            self._wanted(f"{module}.{name}" if module else name, folder)

    def root(self, folder: Path) -> None:
        """Look up absolute imports in a further folder, those that came before too."""
        if folder in self.roots:
            return
        self.roots.append(folder)
        for name in list(self.found.modules):
            if name.partition(".")[0] != "rlvr":
                self._wanted(name, folder)

    def on_path(self, folder: Path) -> None:
        """Take in a folder that is put on ``sys.path``: with every module directly in it, if it is another one."""
        if is_installed(folder):
            return
        self.root(folder)
        if not self.base.is_relative_to(folder):
            for file in sorted(folder.glob("*.py")):
                self.want(file, surely=False)

    def places(self, text: str, path: Path) -> list[Path]:
        """Return what a literal path may mean: beside the file, or in the workspace."""
        if not text or "\0" in text or len(text) > 1000:
            return []
        return list(dict.fromkeys((folder / text).resolve() for folder in (path.parent, self.base)))


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the tree and every statement in it; expressions are passed over, which is most of the work."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):
                waiting += inner


def _beside_init(path: Path) -> list[Path]:
    return sorted(path.parent.glob("*.py")) if path.name == "__init__.py" else []


class _Dynamic:
    """What one file executes by other means than an import statement."""

    def __init__(self, search: _Search, tree: ast.AST, path: Path, line: int = 0) -> None:
        self.search, self.path, self.line = search, path, line
        self.nodes = list(ast.walk(tree))
        self.names = Names(self.nodes, path)
        self.settled: set[int] = set()

    def run(self) -> None:
        for node in self.nodes:
            if isinstance(node, ast.Call):
                self._call(node)
            elif isinstance(node, ast.Assign | ast.AugAssign):
                self._assignment(node)
        for node in self.nodes:
            if isinstance(node, ast.Attribute | ast.Name) and id(node) not in self.settled:
                self._reference(node)

    def _call(self, node: ast.Call) -> None:
        name = self.names.dotted(node.func)
        if not name.startswith("builtins.") and any(
            self.names.dotted(one) == "sys.path" for one in node.args
        ):
            self._tell(node, "hands sys.path on")
        owner, _, method = name.rpartition(".")
        if owner == "sys.path" and method in ("insert", "append", "extend"):
            self._path_entries(node.args[-1:], node)
            self._settle(node.func)
        elif name == "site.addsitedir":
            self._path_entries(node.args[:1], node)
        elif (name in BY_NAME and self._by_name(node)) or (name in BY_PATH and self._by_path(node)):
            self._settle(node.func)

    def _settle(self, node: ast.AST) -> None:
        self.settled |= {id(part) for part in ast.walk(node)}

    def _by_name(self, node: ast.Call) -> bool:
        named = [word.value for word in node.keywords if word.arg in ("name", "mod_name")]
        text = next((self.names.text(one) for one in [*node.args[:1], *named]), None)
        if text is None:
            return False
        stripped = text.lstrip(".")
        if stripped != text:
            self.search.relative(stripped, len(text) - len(stripped), [], self.path)
        else:
            self.search.module(text)
            listed = [
                one
                for argument in [*node.args[3:], *(word.value for word in node.keywords)]
                for one in self.names.texts(argument)
            ]
            for one in ["__main__", *listed]:  # what runpy runs of a package; what __import__ takes from one
                self.search.module(f"{text}.{one}")
        return True

    def _by_path(self, node: ast.Call) -> bool:
        arguments = [*node.args, *(word.value for word in node.keywords)]
        texts = [text for one in arguments for text in self.names.texts(one)]
        files = [file for text in texts for file in self.search.places(text, self.path) if self._counts(file)]
        for file in files:
            self.search.want(file, surely=False)
        return bool(files) or self._literal_code(node)

    def _counts(self, path: Path) -> bool:
        """Whether a named file is the user's: the interpreter and system programs are not."""
        own = any(path.is_relative_to(root) for root in (self.search.base, self.path.parent))
        return (own or path.suffix == ".py") and not is_installed(path) and _is_file(path)

    def _literal_code(self, node: ast.Call) -> bool:
        """Read code that stands in the file as a text."""
        text = self.names.text(node.args[0]) if node.args else None
        if text is None or self.line:
            return False
        try:
            tree = ast.parse(text.strip())
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        self.search._imports(tree, self.path)
        _Dynamic(self.search, tree, self.path, node.lineno).run()
        return True

    def _assignment(self, node: ast.Assign | ast.AugAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(one, ast.Name) and self.names.given.get(one.id) is node.value for one in targets):
            if self.names.dotted(node.value):
                self._settle(node.value)  # another name, and each use of it is looked at
            return
        bare = [one.value if isinstance(one, ast.Subscript) else one for one in targets]
        if any(self.names.dotted(one) == "sys.path" for one in bare):
            self._path_entries([node.value], node)
        elif self.names.dotted(node.value) == "sys.path":
            self._tell(node, "extends sys.path")

    def _path_entries(self, values: list[ast.expr], node: ast.stmt | ast.expr) -> None:
        for value in values:
            for entry in self.names.entries(value):
                text = self.names.text(entry)
                if text is None:
                    self._tell(node, "extends sys.path")
                for place in self.search.places("." if text == "" else text or "", self.path):
                    if place.is_dir():
                        self.search.on_path(place)

    def _reference(self, node: ast.Attribute | ast.Name) -> None:
        """Tell a mention that was not resolved: a call of unknown arguments, or another name for it."""
        name = self.names.dotted(node) if isinstance(node.ctx, ast.Load) else ""
        what = BY_NAME.get(name) or BY_PATH.get(name) or ELSE.get(name)
        if what:
            self._tell(node, what)
        if isinstance(node, ast.Attribute):
            if what or isinstance(node.value, ast.Name):
                self._settle(node.value)
        elif name in MACHINERY or node.id == "__builtins__":
            self._tell(node, "handles the import machinery")

    def _tell(self, node: ast.stmt | ast.expr, what: str) -> None:
        line = f"{shown(self.path, self.search.base)}:{self.line or node.lineno} {what} at run time"
        told = f"{line}: name the file under depends_on"
        if told not in self.search.found.unresolved:
            self.search.found.unresolved.append(told)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def shown(path: Path, base: Path) -> str:
    """Return a file as a person knows it: relative to the workspace, or to this package."""
    for root, prefix in ((base.absolute(), ""), (base.resolve(), ""), (OWN_PACKAGE, "rlvr/")):
        if path.is_relative_to(root):
            return prefix + path.relative_to(root).as_posix()
    return str(path)


def read_module(path: Path) -> tuple[bytes, ast.Module]:
    """Return a file's text and syntax tree.

    Raises:
        ConfigError: ``reward.syntax`` or ``reward.unreadable``.
    """
    try:
        text = path.read_bytes()
        return text, ast.parse(text, filename=str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        why = getattr(error, "msg", None) or str(error) or type(error).__name__
        raise ConfigError(
            "reward.syntax",
            f"not Python: {why}",
            where=f"{path}:{line}" if line else str(path),
            fix="mend the file; nothing was run",
        ) from None
    except OSError as error:
        raise ConfigError(
            "reward.unreadable",
            f"cannot read it: {error.strerror}",
            where=str(path),
            expected="a file that this user may read",
        ) from None

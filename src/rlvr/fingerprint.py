"""Fingerprints of what a record was made from, so that a change of any of them is seen and named.

The reward closure is compared by syntax tree: comments and formatting do not count. It holds the function's own
file, the local modules that this imports (directly or not), the arguments, the files in ``depends_on``, and the
versions of the verifier libraries that the closure imports.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from rlvr.errors import ConfigError
from rlvr.workspace import content_hash

if TYPE_CHECKING:
    from rlvr.config.schema import Config, Reward
    from rlvr.task.dataset import Row

VERIFIER_LIBRARIES = {
    "math_verify": "math-verify",
    "sympy": "sympy",
    "latex2sympy2_extended": "latex2sympy2_extended",
    "jsonschema": "jsonschema",
    "reasoning_gym": "reasoning-gym",
    "openai": "openai",
}
"""Import name to distribution; a new version of one may judge differently."""

OWN_PACKAGE = Path(__file__).parent


def reward_fingerprint(config: Config, base: Path) -> str:
    """Return the hash of every reward's closure, its weight, role and cut.

    Args:
        config: The configuration.
        base: Folder of the workspace, against which ``path.py:function`` is resolved.

    Raises:
        ConfigError: ``reward.file-missing`` or ``reward.depends-on``.
    """
    return content_hash([_component(reward, base) for reward in config.rewards])


def _component(reward: Reward, base: Path) -> list[object]:
    return [
        reward.use,
        reward.name,
        reward.weight,
        reward.role,
        reward.cut,
        reward.arguments,
        closure(reward.use, base),
        [_file_hash(base / name, reward) for name in reward.depends_on],
    ]


def closure(use: str, base: Path) -> dict[str, str]:
    """Return ``{file or library: hash or version}`` of everything that ``use`` executes and that may change."""
    start = _source_of(use, base)
    if start is None:
        return {}
    found: dict[str, str] = {}
    waiting = [(start, start.parent)]
    while waiting:
        path, root = waiting.pop()
        key = _key(path, base)
        if key in found:
            continue
        tree = _parse(path)
        found[key] = content_hash(ast.dump(_without_docstrings(tree)))
        for name in _imports(tree, path):
            local = _local_module(name, root)
            if local is not None:
                waiting.append((local, root))
            elif name.split(".")[0] in VERIFIER_LIBRARIES:
                found[name.split(".")[0]] = _version(VERIFIER_LIBRARIES[name.split(".")[0]])
    return dict(sorted(found.items()))


def _key(path: Path, base: Path) -> str:
    for root, prefix in ((base, ""), (OWN_PACKAGE, "rlvr/")):
        if path.is_relative_to(root):
            return prefix + path.relative_to(root).as_posix()
    return str(path)


def _source_of(use: str, base: Path) -> Path | None:
    target, separator, _ = use.rpartition(":")
    if not separator:  # a built-in: its own module is its source
        from rlvr.rewards import BUILTINS

        module = BUILTINS.get(use, "").partition(":")[0]
        return _own_module(module) if module else None
    if target.endswith(".py"):
        path = (base / target).absolute()
        if not path.is_file():
            raise ConfigError(
                "reward.file-missing", f"no file {target}", where=f"rewards.use {use!r}", expected=f"{path}"
            )
        return path
    try:
        spec = importlib.util.find_spec(target)
    except (ImportError, ValueError):
        spec = None
    return Path(spec.origin) if spec and spec.origin and spec.origin.endswith(".py") else None


def _own_module(name: str) -> Path | None:
    parts = name.split(".")
    if parts[0] != "rlvr":
        return None
    path = OWN_PACKAGE.joinpath(*parts[1:])
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _local_module(name: str, root: Path) -> Path | None:
    if name.startswith(("rlvr.rewards", "rlvr.sandbox")):
        return _own_module(name)
    if root.is_relative_to(OWN_PACKAGE) or name.split(".")[0] in sys.stdlib_module_names:
        return None
    path = root.joinpath(*name.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _imports(tree: ast.AST, path: Path) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, path)
            if module:
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)
            else:
                yield from (alias.name for alias in node.names)


def _absolute(node: ast.ImportFrom, path: Path) -> str:
    del path  # a relative import of a loose file means its siblings
    return node.module or ""


def _parse(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        raise ConfigError(
            "reward.syntax",
            f"not Python: {error.msg}",
            where=f"{path}:{error.lineno}",
            fix="mend the file; nothing was run",
        ) from None


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                node.body = node.body[1:]
    return tree


def _file_hash(path: Path, reward: Reward) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise ConfigError(
            "reward.depends-on",
            f"cannot read {path.name}: {error.strerror}",
            where=f"rewards.depends_on of {reward.use!r}",
            expected="a file that the reward reads",
        ) from None


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "absent"


def data_fingerprint(rows: Sequence[Row]) -> str:
    """Return the hash over the rows' own hashes, in order."""
    return content_hash([row.row_hash for row in rows])


def changed_share(before: Iterable[str], now: Iterable[str]) -> float:
    """Return the share of rows now that were not there before, in [0, 1]; 1.0 when nothing was there."""
    known, current = set(before), list(now)
    if not current:
        return 1.0
    return sum(row not in known for row in current) / len(current)


def model_fingerprint(config: Config, base: Path) -> str:
    """Return the hash of the model's identity: files' names, sizes and times, or the cached Hub revision."""
    parts = [_model_identity(config.model, base)]
    if config.adapter:
        parts.append(_model_identity(config.adapter, base))
    return content_hash(parts)


def _model_identity(name: str, base: Path) -> list[object]:
    local = (base / name).absolute()
    if local.is_file():
        return [_stat(local)]
    if local.is_dir():
        return [_stat(path) for path in sorted(local.iterdir()) if path.is_file() and _counts(path)]
    return [name, _cached_revision(name)]


def _counts(path: Path) -> bool:
    return path.suffix in {".json", ".safetensors", ".bin", ".jinja", ".model", ".txt", ".gguf"}


def _stat(path: Path) -> list[object]:
    # Content of small files (a re-save that changes nothing is no change), size and time of weights.
    status = path.stat()
    if status.st_size < 4_000_000:
        return [path.name, hashlib.sha256(path.read_bytes()).hexdigest()[:16]]
    return [path.name, status.st_size, status.st_mtime_ns]


def _cached_revision(name: str) -> str:
    cache = Path(os.environ.get("HF_HUB_CACHE") or _home() / "hub")
    reference = cache / f"models--{name.replace('/', '--')}" / "refs" / "main"
    return reference.read_text().strip() if reference.is_file() else "not cached"


def _home() -> Path:
    return Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")


def sampling_fingerprint(config: Config, base: Path) -> str:
    """Return the hash of what decides how completions are sampled, apart from the model."""
    sampling = config.sampling
    template = base / sampling.chat_template if sampling.chat_template else None
    text = template.read_text("utf-8") if template and template.is_file() else ""
    return content_hash(
        [
            sampling.temperature,
            sampling.low_temperature,
            sampling.top_p,
            sampling.max_completion_length,
            sampling.system_prompt,
            text,
        ]
    )


def recipe_fingerprint(config: Config) -> str:
    """Return the hash of method, hardware, overrides, variant and trackers: what only the plan depends on."""
    return content_hash(
        [
            config.method.model_dump(mode="json"),
            config.hardware.model_dump(mode="json", exclude={"min_isolation"}),
            config.recipe.model_dump(mode="json"),
            config.variant.model_dump(mode="json") if config.variant else None,
            config.report_to,
        ]
    )

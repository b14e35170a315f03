"""Fingerprints of what a record was made from, so that a change of any of them is seen and named.

The reward closure is compared by syntax tree: comments and formatting do not count, nor do docstrings unless a
file of it reads them. It holds the function's own file, the local modules that this imports (directly or not), the
arguments, the files in ``depends_on``, and the versions of the verifier libraries that the closure imports.
"""

from __future__ import annotations

import ast
import hashlib
import os
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from rlvr.errors import ConfigError
from rlvr.reward_sources import (
    OWN_PACKAGE,
    Sources,
    find_sources,
    is_installed,
    module_files,
    package_roots,
    shown,
    statements,
)
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


def reward_fingerprint(config: Config, base: Path) -> str:
    """Return the hash of every reward's closure, its weight, role and cut.

    Args:
        config: The configuration.
        base: Folder of the workspace, against which ``path.py:function`` is resolved.

    Raises:
        ConfigError: ``reward.file-missing``, ``reward.depends-on``, ``reward.syntax`` or ``reward.unreadable``.
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
    """Return ``{file or library: hash or version}`` of everything that ``use`` executes and that may change.

    Raises:
        ConfigError: ``reward.file-missing``, ``reward.syntax`` or ``reward.unreadable``.
    """
    start, roots = _start(use, base)
    installed = [path for path in start if is_installed(path) and not path.is_relative_to(OWN_PACKAGE)]
    if installed:
        return _installed(use, installed)
    sources = find_sources(start, roots, base.resolve())
    found = {shown(path, base): _hash_of(path, tree, sources) for path, tree in sources.files.items()}
    used = {name.partition(".")[0] for name in sources.modules}
    found |= {name: _version(VERIFIER_LIBRARIES[name]) for name in used & VERIFIER_LIBRARIES.keys()}
    return dict(sorted(found.items()))


def unresolved(use: str, base: Path) -> list[str]:
    """Return one line for each thing that ``use`` executes but that only running it would name.

    Args:
        use: The reward, as the configuration names it.
        base: The workspace.

    Returns:
        Lines such as ``reward.py:12 imports by name at run time: name the file under depends_on``.

    Raises:
        ConfigError: As :func:`closure`.
    """
    start, roots = _start(use, base)
    if any(is_installed(path) for path in start):
        return []
    return find_sources(start, roots, base.resolve()).unresolved


def _start(use: str, base: Path) -> tuple[list[Path], list[Path]]:
    """Return the reward's own files, and the folders that its imports are looked up in."""
    target, separator, _ = use.rpartition(":")
    if not separator:  # a built-in: its own module is its source
        from rlvr.rewards import BUILTINS

        module = BUILTINS.get(use, "").partition(":")[0]
        return module_files(module, OWN_PACKAGE.parent)[-1:] if module else [], []
    if target.endswith(".py"):
        path = (base / target).resolve()  # as it is loaded: beside the file that a link leads to
        if not path.is_file():
            raise ConfigError(
                "reward.file-missing", f"no file {target}", where=f"rewards.use {use!r}", expected=f"{path}"
            )
        return [path], [path.parent]
    if target.partition(".")[0] == OWN_PACKAGE.name:
        return module_files(target, OWN_PACKAGE.parent)[-1:], []
    roots = package_roots(target, base.resolve())
    return [file for root in roots for file in module_files(target, root)], roots


def _installed(use: str, files: list[Path]) -> dict[str, str]:
    """Return one hash for an installed package, which is not followed file by file."""
    top = files[0].parent if files[0].name == "__init__.py" else None
    parts = sorted(top.rglob("*.py")) if top else files
    digest = hashlib.sha256()
    for path in parts:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return {f"{use.partition('.')[0].partition(':')[0]} (installed)": digest.hexdigest()[:16]}


def _hash_of(path: Path, tree: ast.Module | None, sources: Sources) -> str:
    if tree is not None and not sources.keeps_text:
        try:
            return content_hash(ast.dump(tree if sources.keeps_docstrings else _without_docstrings(tree)))
        except RecursionError:
            pass  # nested too deeply to be told from its formatting: then every character counts
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in statements(tree):
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
    return path.suffix in {
        ".json",
        ".safetensors",
        ".bin",
        ".jinja",
        ".model",
        ".txt",
        ".gguf",
        ".py",
        ".tiktoken",
    }


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

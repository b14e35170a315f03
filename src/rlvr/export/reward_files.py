"""The workspace's rewards as one module of plain TRL functions, with what they are made of beside it.

Built-in rewards that need no sandbox are copied along (``vendor/``), so that TRL alone can import the module. Those
that run code need rlvr installed, since a sandbox must be kept up to date.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlvr.rewards import BUILTINS

if TYPE_CHECKING:
    from rlvr.config.schema import Reward
    from rlvr.export.inputs import ExportInputs

PACKAGE = Path(__file__).parent.parent
ROOTS = ("rlvr.rewards", "rlvr.rewards.loading", "rlvr.rewards.composite", "rlvr.rewards.evaluate")
SANDBOX = "rlvr.sandbox"

MODULE = '''\
"""The rewards of this task as plain TRL functions. Written by rlvr {version}; `rlvr export` writes it anew.

Use them as `reward_funcs=REWARDS` with `reward_weights=WEIGHTS`, or by name: {names}.

All are evaluated once a batch. When one could not judge a completion (a helper process died, a disk was full), every
one returns None for it, and TRL leaves the row out: such a failure is never scored as a wrong answer.
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
{vendor}
from rlvr.rewards import load_reward
from rlvr.rewards.composite import Component, Scorer

AS_JSON = {as_json!r}
"""Columns that the data files hold as JSON text, since Arrow would change them."""

SCORER = Scorer(
    [
{components}
    ]
)
WEIGHTS = {weights!r}


class _Columns:
    """Reads the JSON columns of a batch once, so that all rewards share the same lists."""

    def __init__(self):
        self.raw, self.read = [], {{}}

    def of(self, columns):
        raw = [columns[name] for name in AS_JSON if name in columns]
        if len(raw) != len(self.raw) or any(one is not other for one, other in zip(raw, self.raw)):
            names = [name for name in AS_JSON if name in columns]
            self.read = {{name: [json.loads(text) for text in columns[name]] for name in names}}
            self.raw = raw
        return {{**columns, **self.read}}


_COLUMNS = _Columns()


def _plain(reward):
    def function(prompts, completions, **columns):
        return reward(prompts, completions, **_COLUMNS.of(columns))

    function.__name__ = reward.__name__
    return function


REWARDS = [_plain(reward) for reward in SCORER.reward_functions()]
{assigned} = REWARDS
'''
VENDOR = """
try:
    import rlvr.rewards  # noqa: F401
except ImportError:
    sys.path.insert(0, str(HERE / "vendor"))
"""


def reward_files(inputs: ExportInputs, as_json: Sequence[str]) -> dict[str, bytes]:
    """Return ``rewards.py``, the user's own files under ``task/``, and the copied built-ins under ``vendor/``."""
    files = {f"task/{name}": content for name, content in inputs.local_files.items()}
    if not needs_sandbox(inputs.config.rewards):
        files |= {f"vendor/{name}": content for name, content in vendored(inputs.config.rewards).items()}
    files["rewards.py"] = module_text(inputs, as_json).encode()
    return files


def module_text(inputs: ExportInputs, as_json: Sequence[str]) -> str:
    """Return the text of ``rewards.py``."""
    names = list(inputs.weights)
    identifiers = [identifier(name) for name in names]
    vendor = (
        "# unit_tests needs the sandbox: pip install rlvr\n"
        if needs_sandbox(inputs.config.rewards)
        else VENDOR
    )
    return MODULE.format(
        version=inputs.version,
        names=", ".join(names),
        vendor=vendor,
        as_json=tuple(as_json),
        components="\n".join(
            _component(reward, name, weight, inputs)
            for reward, (name, weight) in zip(inputs.config.rewards, inputs.weights.items(), strict=True)
        ),
        weights=list(inputs.weights.values()),
        assigned=", ".join(identifiers) if len(identifiers) > 1 else f"({identifiers[0]},)",
    )


def identifier(name: str) -> str:
    """Return a component's name as Python writes it."""
    text = re.sub(r"\W", "_", name)
    return text if text.isidentifier() and not keyword.iskeyword(text) else f"reward_{text}"


def needs_sandbox(rewards: Sequence[Reward]) -> bool:
    """Return whether one of the rewards runs model-written code."""
    return any(reward.use == "unit_tests" for reward in rewards)


def vendored(rewards: Sequence[Reward]) -> dict[str, bytes]:
    """Return the sources that the built-in rewards need, by path from the folder that holds ``rlvr/``."""
    used = [BUILTINS[reward.use].partition(":")[0] for reward in rewards if reward.use in BUILTINS]
    waiting, found = [*ROOTS, *used], {"rlvr/__init__.py": (PACKAGE / "__init__.py").read_bytes()}
    while waiting:
        name = waiting.pop()
        path = _module_path(name)
        key = f"rlvr/{path.relative_to(PACKAGE).as_posix()}" if path else ""
        if path is None or key in found or name.startswith(SANDBOX):
            continue
        found[key] = path.read_bytes()
        waiting += _imported(path)
        if name.count(".") > 1:
            waiting.append(name.rpartition(".")[0])
    return dict(sorted(found.items()))


def _component(reward: Reward, name: str, weight: float, inputs: ExportInputs) -> str:
    use = inputs.local_uses.get(reward.use, reward.use)
    role = reward.role or getattr(_builtin_class(reward.use), "role", None) or "correctness"
    base = 'HERE / "task"'
    return (
        f"        Component({name!r}, load_reward({use!r}, {dict(reward.arguments)!r}, {base}), "
        f"{weight!r}, {role!r}, {reward.cut!r}),"
    )


def _builtin_class(use: str) -> object:
    if use not in BUILTINS:
        return None
    import importlib

    module, _, name = BUILTINS[use].partition(":")
    return getattr(importlib.import_module(module), name)


def _module_path(name: str) -> Path | None:
    parts = name.split(".")
    if parts[0] != "rlvr":
        return None
    path = PACKAGE.joinpath(*parts[1:])
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


def _imported(path: Path) -> Iterable[str]:
    """Return the modules of this project that a file imports when it runs; type-checking imports do not run."""
    tree = ast.parse(path.read_text("utf-8"))
    skipped = {id(inner) for node in ast.walk(tree) if _is_type_checking(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rlvr"):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("rlvr"))


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"

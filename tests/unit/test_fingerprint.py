from pathlib import Path

import pytest

from rlvr.config.schema import Config
from rlvr.errors import ConfigError
from rlvr.fingerprint import (
    changed_share,
    closure,
    model_fingerprint,
    recipe_fingerprint,
    reward_fingerprint,
    unresolved,
)

REWARD = '''
"""Docstring."""
from helper import norm

def correct(prompts, completions, answer, **kwargs):
    """Pay equal answers."""
    return [float(norm(c) == a) for c, a in zip(completions, answer)]  # a comment
'''
HELPER = "def norm(text):\n    return text.strip()\n"


def config(**reward) -> Config:
    return Config.model_validate(
        {
            "model": "m",
            "task": {"prompts": "a.jsonl", "signal": "answer"},
            "rewards": [{"use": "reward.py:correct", **reward}],
        }
    )


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "reward.py").write_text(REWARD)
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "words.txt").write_text("a b")
    return tmp_path


def test_comments_formatting_and_docstrings_do_not_count(base: Path):
    before = reward_fingerprint(config(), base)
    mended = (
        REWARD.replace("  # a comment", "")
        .replace("Pay equal answers.", "Other words.")
        .replace("\n\n", "\n\n\n")
    )
    (base / "reward.py").write_text(mended)
    assert reward_fingerprint(config(), base) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda base: (base / "reward.py").write_text(REWARD.replace("==", "!=")),
        lambda base: (base / "helper.py").write_text(HELPER.replace("strip", "lower")),
    ],
)
def test_code_and_local_imports_count(base: Path, change):
    before = reward_fingerprint(config(), base)
    change(base)
    assert reward_fingerprint(config(), base) != before


@pytest.mark.parametrize(
    "other", [{"arguments": {"k": 1}}, {"weight": 2.0}, {"cut": 0.5}, {"role": "format"}]
)
def test_arguments_weight_role_and_cut_count(base: Path, other: dict):
    assert reward_fingerprint(config(), base) != reward_fingerprint(config(**other), base)


def test_named_files_count(base: Path):
    named = config(depends_on=["words.txt"])
    before = reward_fingerprint(named, base)
    (base / "words.txt").write_text("a b c")
    assert reward_fingerprint(named, base) != before


def test_version_of_a_verifier_library_counts(base: Path, monkeypatch: pytest.MonkeyPatch):
    (base / "helper.py").write_text("import math_verify\n" + HELPER)
    before = reward_fingerprint(config(), base)
    monkeypatch.setattr("rlvr.fingerprint._version", lambda name: "99")
    assert reward_fingerprint(config(), base) != before


def test_missing_files_are_named(base: Path):
    with pytest.raises(ConfigError, match="other"):
        reward_fingerprint(config(depends_on=["other.txt"]), base)
    (base / "reward.py").unlink()
    with pytest.raises(ConfigError, match=r"reward\.py"):
        reward_fingerprint(config(), base)


def test_model_folder_is_told_by_content_of_small_files_and_time_of_weights(base: Path):
    folder = base / "m"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    weights = folder / "model.safetensors"
    weights.write_bytes(b"\0" * 4_000_001)
    before = model_fingerprint(config(), base)
    (folder / "config.json").write_text("{}")
    assert model_fingerprint(config(), base) == before
    weights.write_bytes(b"\1" * 4_000_002)
    assert model_fingerprint(config(), base) != before


def test_learning_rate_is_part_of_the_recipe_alone(base: Path):
    plain = config()
    moved = Config.model_validate(
        plain.model_dump()
        | {"recipe": {"overrides": {"learning_rate": {"value": 1e-6, "why": "a reason in words"}}}}
    )
    assert recipe_fingerprint(plain) != recipe_fingerprint(moved)
    assert reward_fingerprint(plain, base) == reward_fingerprint(moved, base)


def test_share_of_changed_rows():
    assert changed_share(["a", "b"], ["a", "b"]) == 0
    assert changed_share(["a", "b"], ["a", "c"]) == 0.5
    assert changed_share([], ["a"]) == 1


FUNCTION = "\ndef f(prompts, completions, **columns):\n    return [ok(one) for one in completions]\n"
OK = "def ok(text):\n    return 0.0\n"
WAYS = {
    "package": ("pkg.rewards:f", "pkg/rewards.py", "from pkg.helper import ok", "pkg/helper.py"),
    "its-init": ("pkg.rewards:f", "pkg/rewards.py", "from pkg.helper import ok", "pkg/__init__.py"),
    "relative": ("pkg.rewards:f", "pkg/rewards.py", "from .helper import ok", "pkg/helper.py"),
    "relative-name": (
        "pkg.rewards:f",
        "pkg/rewards.py",
        "from . import helper; ok = helper.ok",
        "pkg/helper.py",
    ),
    "deep": ("r.py:f", "r.py", "from pkg.sub.x import ok", "pkg/sub/deep.py"),
    "up": ("r.py:f", "r.py", "from pkg.sub.y import ok", "pkg/helper.py"),
    "outer-init": ("r.py:f", "r.py", "from pkg.sub.x import ok", "pkg/__init__.py"),
    "star": ("r.py:f", "r.py", "from pkg import *; ok = helper.ok", "pkg/helper.py"),
    "shadows-the-library": ("r.py:f", "r.py", "from statistics import ok", "statistics.py"),
    "path": ("r.py:f", "r.py", "import sys; sys.path.insert(0, 'lib'); from inner import ok", "lib/inner.py"),
    "path-added": ("r.py:f", "r.py", "import sys; sys.path += ['lib']; from inner import ok", "lib/inner.py"),
    "path-renamed": (
        "r.py:f",
        "r.py",
        "from sys import path as p\nfrom pathlib import Path\nHERE = Path(__file__).resolve().parent\n"
        "p.append(str(HERE / 'lib'))\nfrom inner import ok",
        "lib/inner.py",
    ),
    "path-unnamed": (
        "r.py:f",
        "r.py",
        "import os, sys\nsys.path.append(os.path.join(os.path.dirname(__file__), 'lib'))",
        "lib/inner.py",
    ),
    "by-name": ("r.py:f", "r.py", "import importlib as i; ok = i.import_module('helper').ok", "helper.py"),
    "by-other-name": (
        "r.py:f",
        "r.py",
        "import importlib; load = importlib.import_module; ok = load('helper').ok",
        "helper.py",
    ),
    "builtin": ("r.py:f", "r.py", "ok = __import__('pkg.helper', fromlist=['ok']).ok", "pkg/helper.py"),
    "executed": ("r.py:f", "r.py", "exec(open('helper.py').read())", "helper.py"),
    "executed-text": ("r.py:f", "r.py", "exec('from helper import ok')", "helper.py"),
    "executed-later": (
        "r.py:f",
        "r.py",
        "from pathlib import Path\nwith open(Path(__file__).with_name('helper.py')) as file:\n    exec(file.read())",
        "helper.py",
    ),
    "run": ("r.py:f", "r.py", "import runpy; ok = runpy.run_path('helper.py')['ok']", "helper.py"),
    "from-file": (
        "r.py:f",
        "r.py",
        "from importlib.util import spec_from_file_location as spec\nspec('h', 'helper.py')",
        "helper.py",
    ),
    "program": ("r.py:f", "r.py", "import subprocess\nsubprocess.run(['python', 'helper.py'])", "helper.py"),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("helper.py", "statistics.py", "lib/inner.py", "pkg/helper.py", "pkg/sub/deep.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(OK)
    for name, text in (("", "__all__ = ['helper']\n"), ("sub/", "")):
        (tmp_path / f"pkg/{name}__init__.py").write_text(text)
    (tmp_path / "pkg/sub/x.py").write_text("from .deep import ok\n")
    (tmp_path / "pkg/sub/y.py").write_text("from ..helper import ok\n")
    return tmp_path


@pytest.mark.parametrize("way", WAYS)
def test_code_counts_whichever_way_it_is_reached(tree: Path, way: str):
    use, reward, code, reached = WAYS[way]
    (tree / reward).write_text(code + FUNCTION)
    before = closure(use, tree)
    assert unresolved(use, tree) == []
    (tree / reached).write_text("def ok(text):\n    return 1.0\n")
    assert closure(use, tree) != before
    assert reached in before


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import importlib\nok = importlib.import_module(input()).ok", "r.py:2 imports by name"),
        ("from importlib import import_module as load\nok = load(f'x{load}').ok", "r.py:2 imports by name"),
        ("import os\nok = __import__(os.environ['X']).ok", "r.py:2 imports by name"),
        ("import sys, os\nsys.path.insert(0, os.environ['X'])", "r.py:2 extends sys.path"),
        ("import sys\nfolders = sys.path; folders += [input()]", "r.py:2 extends sys.path"),
        ("run = exec\nrun(input())", "r.py:2 runs text as code"),
        ("import builtins\nrun = getattr(builtins, 'ex' + 'ec')", "r.py:2 handles the import machinery"),
        ("import runpy\nrunpy.run_path(input())", "r.py:2 runs a file"),
        ("import subprocess\nsubprocess.run([input()])", "r.py:2 starts a program"),
        ("import sys\nsys.meta_path.append(None)", "r.py:2 changes how modules are found"),
        ("import sys\nprint(list(map(sys.path.append, input())))", "r.py:2 extends sys.path"),
        ("x = x + x\nexec(x)", "r.py:2 runs text as code"),
    ],
)
def test_what_only_running_tells_is_told(tree: Path, code: str, told: str):
    (tree / "r.py").write_text(code + FUNCTION)
    found = unresolved("r.py:f", tree)
    assert f"{told} at run time: name the file under depends_on" in found


@pytest.mark.parametrize("use", ["math", "unit_tests", "rlvr.rewards.math:Math"])
def test_built_in_rewards_are_followed_and_leave_nothing_open(tmp_path: Path, use: str):
    assert unresolved(use, tmp_path) == []
    assert {"rlvr/rewards/contract.py"} <= closure(use, tmp_path).keys()


def test_an_ordinary_reward_leaves_nothing_open(base: Path):
    assert unresolved("reward.py:correct", base) == []
    assert list(closure("reward.py:correct", base)) == ["helper.py", "reward.py"]


def test_docstrings_count_where_any_file_reads_them(base: Path):
    (base / "helper.py").write_text('def norm(text):\n    "a"\n    return text.strip()\n')
    (base / "reward.py").write_text(REWARD + "\nfrom helper import norm\nWORD = norm.__doc__\n")
    before = reward_fingerprint(config(), base)
    (base / "helper.py").write_text('def norm(text):\n    "b"\n    return text.strip()\n')
    assert reward_fingerprint(config(), base) != before


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"x = (\n", ":1"),
        (b"a\n  b\n", ":2"),
        (b"x = 1\0\n", ""),
        (b"x = '\xff'\n", ""),
        (b"# -*- coding: nonsense -*-\n", ""),
        (b"x = " + b"(" * 5000 + b")" * 5000, ""),
        (b"x = " + b"-" * 100_000 + b"1\n", ""),
    ],
    ids=["open", "indented", "nul", "encoding", "unknown-encoding", "parentheses", "signs"],
)
def test_a_file_that_is_no_python_is_named(base: Path, text: bytes, line: str):
    (base / "helper.py").write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        reward_fingerprint(config(), base)
    assert caught.value.code == "reward.syntax"
    assert f"helper.py{line}" in caught.value.where
    assert "None" not in caught.value.where


def test_code_too_deep_to_compare_by_tree_counts_by_every_character(base: Path):
    deep = HELPER + "LONG = " + " + ".join(["1"] * 1500) + "\n"
    (base / "helper.py").write_text(deep)
    before = reward_fingerprint(config(), base)
    (base / "helper.py").write_text(deep.replace("strip", "lower"))
    assert reward_fingerprint(config(), base) != before


def test_a_linked_reward_is_followed_to_where_it_stands(base: Path, tmp_path_factory: pytest.TempPathFactory):
    other = tmp_path_factory.mktemp("other")
    for name in ("reward.py", "helper.py"):
        (base / name).rename(other / name)
    (base / "reward.py").symlink_to(other / "reward.py")
    before = reward_fingerprint(config(), base)
    (other / "helper.py").write_text(HELPER.replace("strip", "lower"))
    assert reward_fingerprint(config(), base) != before


@pytest.mark.parametrize("name", ["modeling_own.py", "qwen.tiktoken"])
def test_code_and_vocabulary_of_the_model_count(base: Path, name: str):
    (base / "m").mkdir()
    (base / "m" / name).write_text("a = 1\n")
    before = model_fingerprint(config(), base)
    (base / "m" / name).write_text("a = 2\n")
    assert model_fingerprint(config(), base) != before

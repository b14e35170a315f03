from pathlib import Path

import pytest

from rlvr.config.schema import Config
from rlvr.errors import ConfigError
from rlvr.fingerprint import changed_share, model_fingerprint, recipe_fingerprint, reward_fingerprint

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

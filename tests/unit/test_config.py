from pathlib import Path

import pytest

from rlvr.config.file import read_config
from rlvr.errors import ConfigError

GOOD = """\
model: ./model
task:
  prompts: a.jsonl
  signal: answer
rewards:
  - use: exact
"""


def read(tmp_path: Path, text: str):
    path = tmp_path / "rlvr.yaml"
    path.write_text(text)
    return read_config(path)


def test_defaults_are_the_reference(tmp_path: Path):
    config = read(tmp_path, GOOD)
    assert config.method.kind == "full"
    assert config.gates.inspect.samples == 60
    assert config.sampling.temperature == 1.0


@pytest.mark.parametrize(
    ("added", "line", "hint"),
    [
        ("samplng:\n  temperature: 1\n", 7, "did you mean 'sampling'?"),
        ("sampling:\n  temprature: 1\n", 8, "did you mean 'temperature'?"),
        ("gates:\n  probe:\n    wave: no reason at all\n", 9, "did you mean 'waive'?"),
        ("method: lorra\n", 7, "did you mean 'lora'?"),
    ],
)
def test_unknown_keys_have_line_and_suggestion(tmp_path: Path, added: str, line: int, hint: str):
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, GOOD + added)
    assert caught.value.where.endswith(f"rlvr.yaml:{line}")
    assert caught.value.fix == hint


def test_number_without_a_dot_is_a_number(tmp_path: Path):
    text = GOOD + "recipe:\n  overrides:\n    learning_rate: {value: 1e-6, why: a reason in words}\n"
    assert read(tmp_path, text).recipe.overrides["learning_rate"].value == pytest.approx(1e-6)


def test_override_needs_a_reason(tmp_path: Path):
    with pytest.raises(ConfigError, match="why"):
        read(tmp_path, GOOD + "recipe:\n  overrides:\n    learning_rate: {value: 1e-6}\n")


WAITING = 'recipe: {overrides: {learning_rate: {value: 1e-3, why: "%s", before_base_run: true}}}'
OTHER = 'recipe: {overrides: {max_grad_norm: {value: 0.5, why: "%s"}}}'
REASON = "at least 8 characters of reason"


@pytest.mark.parametrize(
    ("added", "fix"),
    [
        ("learning_rate: 1e-3", WAITING % REASON),
        ("lr: 1e-3", WAITING % REASON),
        ("recipe: {learning_rate: 1e-3}", WAITING % REASON),
        ("recipe: {learning_rat: 1e-3}", WAITING % REASON),
        ("recipe: {overrides: {learning_rate: 1e-3}}", WAITING % REASON),
        ("recipe: {overrides: {learning_rate: {value: 1e-3}}}", WAITING % REASON),
        ("recipe: {overrides: {learning_rate: {value: 1e-3, why: short}}}", WAITING % REASON),
        ("recipe: {max_grad_norm: 0.5}", OTHER % REASON),
        ("overrides: {max_grad_norm: {value: 0.5, why: spikes were seen}}", OTHER % "spikes were seen"),
    ],
)
def test_a_misplaced_override_is_written_out_whole_and_the_line_is_accepted(tmp_path: Path, added, fix):
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, GOOD + added + "\n")
    assert caught.value.fix == fix
    assert read(tmp_path, GOOD + fix + "\n").recipe.overrides


def test_a_field_that_stands_elsewhere_is_sent_there(tmp_path: Path):
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, GOOD + "temperature: 0.5\n")
    assert caught.value.fix.startswith("set sampling.temperature")


def test_inspection_cannot_be_waived(tmp_path: Path):
    with pytest.raises(ConfigError, match="nothing trains unread"):
        read(tmp_path, GOOD + "gates:\n  inspect: {waive: we are in a hurry}\n")


@pytest.mark.parametrize("samples", [49, 101])
def test_fewer_than_fifty_readings_are_refused(tmp_path: Path, samples: int):
    with pytest.raises(ConfigError):
        read(tmp_path, GOOD + f"gates:\n  inspect: {{samples: {samples}}}\n")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "config.empty"),
        ("- a\n", "config.empty"),
        ("model: [\n", "config.yaml"),
        ("model: a\n", "config.missing-key"),
        ("a: 1\na: 2\n", "config.yaml"),
        ("a: " + "[" * 3000, "config.yaml"),
        ("a: 2001-99-99\n", "config.yaml"),
    ],
)
def test_broken_files_have_their_own_code(tmp_path: Path, text: str, code: str):
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert caught.value.code == code


def test_file_that_is_not_text(tmp_path: Path):
    path = tmp_path / "rlvr.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError) as caught:
        read_config(path)
    assert caught.value.code == "config.unreadable"


def test_every_mistake_is_listed(tmp_path: Path):
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, GOOD + "one: 1\ntwo: 2\n")
    assert "'one'" in caught.value.found
    assert "'two'" in caught.value.found

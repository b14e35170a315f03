"""``rlvr rewards`` as other programs call it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def run(*arguments: str, folder: Path | None = None, **options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rlvr", "rewards", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, **options)


def test_list_names_every_builtin_with_its_arguments() -> None:
    found = json.loads(run("list", "--json").stdout)["rewards"]
    assert {"exact", "math", "tags", "json_schema", "unit_tests", "judge"} <= {one["name"] for one in found}
    assert all(one["summary"] and one["arguments"] for one in found)
    assert "math" in run("list").stdout


def test_try_says_what_was_read_and_why() -> None:
    done = run("try", "math", "--completion", r"so \boxed{1/2}", "--reference", "0.5", "--json")
    found = json.loads(done.stdout)
    assert (found["outcome"], found["score"], found["extracted"]) == ("right", 1.0, "1/2")
    told = run("try", "math", "--completion", "-", "--reference", "0.5", input=r"\boxed{1/3}").stdout
    assert "wrong" in told and "is not '0.5'" in told


def test_try_takes_arguments_and_a_users_function(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def half(prompts, completions, answer, **kw):\n    return [0.5]\n")
    strict = run(
        "try", "json_schema", "--completion", "so {}", "--reference", "{}", "-a", "strict=true", "--json"
    )
    assert json.loads(strict.stdout)["accepted"] is False
    own = run("try", "mine.py:half", "--completion", "x", "--reference", "y", "--json", folder=tmp_path)
    assert json.loads(own.stdout)["score"] == 0.5


CHAT = """def correct(prompts, completions, solution, **kw):
    texts = [one[0]["content"] for one in completions]
    return [float(text == gold) for text, gold in zip(texts, solution)]
"""


def test_a_reward_for_messages_is_tried_with_messages(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CHAT)
    arguments = ("try", "mine.py:correct", "--completion", "4", "--reference", "4")
    found = json.loads(run(*arguments, "--json", folder=tmp_path).stdout)
    assert (found["score"], found["passed_as"]) == (1.0, "messages")
    assert "mine.py:2" in found["raised_before"] and "TypeError" in found["raised_before"]
    assert "read as a list of messages" in run(*arguments, folder=tmp_path).stdout
    alone = json.loads(run(*arguments, "--chat", "--json", folder=tmp_path).stdout)
    assert (alone["score"], alone["raised_before"]) == (1.0, "")


def test_a_reward_that_raises_is_one_error_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CHAT.replace('"content"', '"text"'))
    done = run("try", "mine.py:correct", "--completion", "4", "--reference", "4", folder=tmp_path)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "reward.raised" in done.stderr and "mine.py:2" in done.stderr
    assert "TypeError" in done.stderr and "KeyError: 'text'" in done.stderr
    assert "on a string, '4'" in done.stderr and "on a list of messages" in done.stderr


def test_a_file_of_mixed_cases(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "kind": "math", "completion": r"\boxed{4}", "reference": "4"},
        {"id": "b", "kind": "format", "completion": "x", "reference": {"format": "think_answer"}},
        {"id": "c", "kind": "math", "completion": r"\boxed{4}", "reference": ""},
        {
            "id": "d",
            "kind": "length_wrapper",
            "completion": "x",
            "reference": {"base_reward": None, "n_tokens": 1, "max_len": 2},
        },
        {"id": "e", "kind": "answer_tag", "completion": "\ud800<answer>4</answer>", "reference": "4"},
    ]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    done = run("try", "--cases", str(path), "--json")
    assert done.returncode == 0, done.stderr
    found = {
        one["id"]: (one["accepted"], one["outcome"], one["score"]) for one in json.loads(done.stdout)["cases"]
    }
    assert found == {
        "a": (True, "right", 1.0),
        "b": (False, "ill-formed", 0.0),
        "c": (False, "infrastructure", None),
        "d": (False, "not-applicable", None),
        "e": (True, "right", 1.0),
    }
    assert "as expected" in run("try", "--cases", str(path)).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("try",), "--cases FILE"),
        (("try", "mth", "--completion", "x", "--reference", "y"), "did you mean 'math'"),
        (("try", "math", "--completion", "x"), "--reference"),
        (
            ("try", "math", "--completion", "x", "--reference", "y", "-a", "toleranse=1"),
            "did you mean 'tolerance'",
        ),
        (("try", "math", "--completion", "x", "--reference", ""), "data.reference"),
        (("try", "--cases", "no.jsonl"), "no file no.jsonl"),
    ],
)
def test_mistakes_are_said_without_a_traceback(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    done = run(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [("{", "cases.jsonl:1"), ('{"id": 1}', "'kind' is missing"),
     ('{"id": "a", "kind": "mat", "completion": ""}', "did you mean 'math'"),
     ('{"id": "a", "kind": "length_wrapper", "completion": "", "reference": {}}', "cannot be used")],
)  # fmt: skip
def test_a_broken_line_is_named(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(line)
    done = run("try", "--cases", "cases.jsonl", folder=tmp_path)
    assert done.returncode == 2 and message in done.stderr

"""Completions of a file: what is read, what is refused, and the same verdict at the command line."""

import json
import random

import pytest
from made import judged

from rlvr.cli import main
from rlvr.errors import DataError
from rlvr.probe.imported import read_completions

ROW = {"prompt": "What is 1 + 1?", "completion": "<answer>2</answer>", "answer": "2"}


def read(*rows, **options):
    return read_completions(rows, "file", **options)


@pytest.mark.parametrize(
    ("extra", "outcome"),
    [
        ({"reward": 1.0}, "right"),
        ({"reward": 0.999}, "wrong"),
        ({"reward": 1.2}, "right"),
        ({"reward": -1}, "wrong"),
        ({"score": "1.0"}, "right"),
        ({"correct": True}, "right"),
        ({"correct": "False"}, "wrong"),
        ({"reward": None}, "not-applicable"),
        ({"outcome": "ill_formed"}, "ill-formed"),
        ({"outcome": "right", "reward": 0.2}, "right"),
        ({"reward": 0.0, "format": 0.0}, "ill-formed"),
        ({"reward": 0.0, "extracted": None}, "ill-formed"),
        ({"reward": 0.0, "completion": " "}, "ill-formed"),
        ({"reward": 0.5, "completion": [{"role": "assistant", "content": "x"}]}, "wrong"),
    ],
)
def test_verdicts_in_the_file(extra, outcome):
    found = read({**ROW, **extra})
    assert [one.outcome for one in found.scores] == [outcome]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"completion": "a", "reward": 1}, "data.no-prompt"),
        ({"prompt": "a", "reward": 1}, "data.no-completion"),
        ({"prompt": "a", "completion": "b"}, "data.no-reward"),
        ({"prompt": None, "completion": "b", "reward": 1}, "data.empty-prompt"),
        ({"prompt": "a", "completion": None, "reward": 1}, "data.completion-type"),
        ({"prompt": "a", "completion": 7, "reward": 1}, "data.completion-type"),
        ({"prompt": "a", "completion": "b", "reward": float("nan")}, "data.not-a-number"),
        ({"prompt": "a", "completion": "b", "reward": "high"}, "data.not-a-number"),
        ({"prompt": "a", "completion": "b", "reward": ""}, "data.not-a-number"),
        ({"prompt": "a", "completion": "b", "outcome": "rihgt"}, "data.outcome"),
        ({"prompt": "a", "completions": ["b", "c"], "rewards": [1]}, "data.damaged"),
    ],
)
def test_rows_that_cannot_be_read_are_named(row, code):
    with pytest.raises(DataError) as caught:
        read({**ROW, "reward": 1}, row)
    assert caught.value.code == code
    assert "row 1" in caught.value.where


def test_lists_give_one_completion_each():
    found = read(
        {
            "prompt": "a",
            "completions": ["b", "c"],
            "rewards": [1.0, 0.0],
            "answer": "b",
            "truncated": [False, True],
        }
    )
    assert [one.text for one in found.samples] == ["b", "c"]
    assert [one.index for one in found.samples] == [0, 1]
    assert [one.truncated for one in found.samples] == [False, True]
    assert [one.outcome for one in found.scores] == ["right", "wrong"]
    assert found.samples[0].columns["answer"] == "b"


def test_two_temperatures_are_told_apart():
    rows = [{**ROW, "reward": 1, "temperature": heat} for heat in (0.2, 1.0, 1.0)]
    assert [one.source for one in read(*rows).samples] == ["low", "import", "import"]
    assert read(*rows).temperatures == (0.2, 1.0)
    alone = read(rows[0])
    assert alone.samples[0].source == "import"
    assert any("only a low temperature" in one for one in alone.remarks)


def test_what_was_noticed():
    same = {**ROW, "reward": 1.0}
    assert any("not stable" in one for one in read(same, {**same, "reward": 0.0}).remarks)
    assert any("--cut" in one for one in read({**ROW, "reward": 0.8}).remarks)
    assert not read({**ROW, "reward": 0.8}, cut=0.5).remarks
    assert any("up to 100" in one for one in read({**ROW, "reward": 100}).remarks)
    assert any("word for word" in one for one in read(*[same] * 20).remarks)


@pytest.mark.parametrize(
    "finish", [{"finish_reason": "length"}, {"truncated": True}, {"stop_reason": "max_tokens"}]
)
def test_the_cap_is_seen_under_its_usual_names(finish):
    assert read({**ROW, "reward": 0, **finish}).samples[0].truncated


def write(path, chance, prompts=60, count=8, **extra):
    rng = random.Random(0)
    with path.open("w") as file:
        for row in range(prompts):
            for _ in range(count):
                right = rng.random() < chance(row)
                text = f"<answer>{2 * row + (not right)}</answer>"
                one = {"prompt": f"{row} + {row}?", "completion": text, "answer": str(2 * row)}
                file.write(json.dumps({**one, "reward": float(right), **extra}) + "\n")
    return path


def run(capsys, *arguments):
    code = main(["probe", "--json", *map(str, arguments)])
    return code, json.loads(capsys.readouterr().out)


def test_the_verdict_needs_no_workspace(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "sampled.jsonl", lambda row: 0.4)
    code, found = run(capsys, "--from", path)
    assert (code, found["verdict"]) == (0, "sweet spot")
    rate = found["success"]["training_temperature"]
    assert rate["low"] < rate["rate"] < rate["high"]
    assert found["success"]["low_temperature"] is None
    assert set(found["informative_groups"]) == {"4", "8", "16"}
    assert found["informative_groups"]["16"] is None
    assert (tmp_path / "sampled.probe.html").read_text().startswith("<!doctype html>")


def test_a_reward_scores_what_the_file_does_not(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "s.jsonl", lambda row: 0.4)
    code, found = run(capsys, "--from", path, "--reward", "exact")
    assert (code, found["verdict"]) == (0, "sweet spot")
    (tmp_path / "mine.py").write_text(
        "def never(prompts, completions, **columns):\n    return [0.0] * len(prompts)\n"
    )
    code, found = run(capsys, "--from", path, "--reward", "mine.py:never")
    assert (code, found["verdict"], found["causes"]["main"]) == (3, "undecided", "grader")
    assert found["causes"]["gold_paid"] == 0 < found["causes"]["gold_checked"]


def bare(path, prompts):
    with path.open("w") as file:
        for row in range(prompts):
            one = {"prompt": f"{row} + {row}?", "completion": str(2 * row), "answer": str(2 * row)}
            file.write(json.dumps(one) + "\n")
    return path


def test_one_missing_form_is_named_and_comes_before_more_samples(tmp_path, capsys):
    path = bare(tmp_path / "s.jsonl", 200)
    code, found = run(capsys, "--from", path, "--reward", "exact")
    assert (code, found["verdict"], found["causes"]["ill_formed"]) == (3, "undecided", 200)
    assert "no <answer>…</answer>" in found["why"] and found["more_samples"] is None
    assert "--argument tag=" in found["next_step"] and "prompt" in found["next_step"]
    _, again = run(capsys, "--from", path, "--reward", "exact", "--argument", "tag=")
    assert again["success"]["training_temperature"]["rate"] == 1.0


def test_one_missing_form_is_named_when_no_support_is_proven(tmp_path, capsys):
    _, found = run(capsys, "--from", bare(tmp_path / "s.jsonl", 320), "--reward", "exact")
    assert found["verdict"] == "no support" and "no <answer>…</answer>" in found["why"]
    assert found["next_step"].startswith("ask for the form")


def kept(folder, scored):
    pairs = judged([0.4] * 80)
    (folder / "completions.jsonl").write_text("\n".join(one.model_dump_json() for one, _ in pairs) + "\n")
    if scored:
        (folder / "scores.jsonl").write_text("\n".join(one.model_dump_json() for _, one in pairs) + "\n")
    return folder / "completions.jsonl", pairs


def test_completions_that_a_probe_kept_are_read_with_their_scores(tmp_path, capsys):
    path, pairs = kept(tmp_path, scored=True)
    _, found = run(capsys, "--from", path)
    rates = found["success"]
    right = sum(one.outcome == "right" for _, one in pairs)
    assert rates["low_temperature"]["right"] + rates["training_temperature"]["right"] == right > 0
    assert (rates["low_temperature"]["temperature"], rates["training_temperature"]["temperature"]) == (
        0.2,
        1.0,
    )


def test_completions_that_a_probe_kept_are_scored_by_their_own_references(tmp_path, capsys):
    path, _ = kept(tmp_path, scored=False)
    code, found = run(capsys, "--from", path, "--reward", "exact")
    assert code == 3 and found["causes"]["gold_paid"] == found["causes"]["gold_checked"] > 0
    assert main(["probe", "--json", "--from", str(path)]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "data.no-reward" and error["fix"].startswith("name a reward: --reward exact")


def test_paid_nothing_although_right_is_the_grader(tmp_path, capsys):
    path = write(tmp_path / "s.jsonl", lambda row: 0.4, prompts=320, count=2, reward=0.0)
    code, found = run(capsys, "--from", path)
    assert (code, found["verdict"], found["causes"]["main"]) == (3, "undecided", "grader")


def test_no_support_shows_ten_zeros(tmp_path, capsys):
    path = write(tmp_path / "s.jsonl", lambda row: 0.0, prompts=320, count=1)
    code, found = run(capsys, "--from", path)
    assert (code, found["verdict"], found["route"]) == (3, "no support", "")
    assert len(found["zeros_to_read"]) == 10
    assert len({one["prompt"] for one in found["zeros_to_read"]}) == 10
    assert main(["probe", "--from", str(path)]) == 3
    assert "unpaid completions, to be read" in capsys.readouterr().out


def test_duplicates_of_a_prompt_are_one_prompt(tmp_path, capsys):
    path = tmp_path / "s.jsonl"
    path.write_text((json.dumps({"prompt": "same?", "completion": "no", "reward": 0}) + "\n") * 500)
    _, found = run(capsys, "--from", path)
    assert (found["verdict"], found["more_samples"]) == ("undecided", 298)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--from", "a.jsonl", "--rescore"],
        ["--reward", "exact"],
        ["--cut", "1"],
        ["--filter", "--rescore"],
        ["--budget", "8"],
        ["--filter", "--band", "0.9", "0.1"],
    ],
)
def test_options_that_do_not_go_together(arguments, capsys):
    assert main(["probe", "--json", *arguments]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "usage"


def test_a_missing_file(tmp_path, capsys):
    assert main(["probe", "--json", "--from", str(tmp_path / "none.jsonl")]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "data.missing"


def test_paid_although_wrong_is_remarked(tmp_path, capsys):
    path = write(tmp_path / "s.jsonl", lambda row: 0.0, reward=1.0)
    _, found = run(capsys, "--from", path)
    assert any("rlvr audit" in one for one in found["remarks"])
    _, sound = run(capsys, "--from", write(tmp_path / "t.jsonl", lambda row: 0.5))
    assert not sound["remarks"]

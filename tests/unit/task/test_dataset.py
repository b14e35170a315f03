"""Reading prompts: every format, every refusal with its place."""

import json

import pyarrow
import pyarrow.parquet
import pytest

from rlvr.errors import ConfigError, DataError
from rlvr.task.dataset import gym_dataset, load_rows


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path.name


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "parquet"])
def test_every_format_gives_the_same_rows(tmp_path, kind):
    rows = [{"prompt": "What is 1 + 1?", "answer": "2"}, {"prompt": "What, then, is 2 + 2?", "answer": "4"}]
    path = tmp_path / f"data.{kind}"
    if kind == "jsonl":
        write(path, *rows)
    elif kind == "json":
        path.write_text(json.dumps(rows))
    elif kind == "csv":
        path.write_text('prompt,answer\nWhat is 1 + 1?,2\n"What, then, is 2 + 2?",4\n')
    else:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    found = load_rows(path.name, tmp_path)
    assert [row.prompt[0].content for row in found] == [row["prompt"] for row in rows]
    assert [row.columns for row in found] == [{"answer": "2"}, {"answer": "4"}]
    assert [row.index for row in found] == [0, 1]
    assert len({row.row_hash for row in found}) == 2
    assert not any(row.is_chat for row in found)


def test_messages_are_kept_and_text_parts_joined(tmp_path):
    name = write(
        tmp_path / "d.jsonl",
        {"prompt": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]},
        {
            "prompt": [
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
            ]
        },
    )
    first, second = load_rows(name, tmp_path)
    assert [message.role for message in first.prompt] == ["system", "user"]
    assert first.is_chat
    assert second.prompt[0].content == "ab"


def test_a_row_hash_depends_on_prompt_and_references_alone(tmp_path):
    name = write(tmp_path / "a.jsonl", {"prompt": "p", "answer": "1"}, {"prompt": "q", "answer": "1"})
    other = write(tmp_path / "b.jsonl", {"prompt": "q", "answer": "1"}, {"prompt": "p", "answer": "2"})
    p, q = load_rows(name, tmp_path)
    q_again, p_changed = load_rows(other, tmp_path)
    assert q.row_hash == q_again.row_hash
    assert p.row_hash != p_changed.row_hash
    assert p.prompt_hash == p_changed.prompt_hash


@pytest.mark.parametrize(
    ("text", "code", "needle"),
    [
        ("", "data.empty", "no rows"),
        ("\n  \n", "data.empty", "no rows"),
        ('{"prompt": "a"}\n{oops\n', "data.not-json", ":2"),
        ('{"prompt": "a"}\n[1]\n', "data.not-an-object", ":2"),
        ('{"question": "a"}\n', "data.no-prompt", "did you mean 'question'"),
        ('{"promt": "a"}\n', "data.no-prompt", "did you mean 'promt'"),
        ('{"prompt": null}\n', "data.empty-prompt", "row 0"),
        ('{"prompt": "a"}\n{"prompt": "  "}\n', "data.empty-prompt", "row 1"),
        ('{"prompt": []}\n', "data.empty-prompt", "row 0"),
        ('{"prompt": 3}\n', "data.prompt-type", "int"),
        ('{"prompt": ["a"]}\n', "data.prompt-type", "role"),
        ('{"prompt": [{"role": "usr", "content": "a"}]}\n', "data.prompt-role", "did you mean 'user'"),
        (
            '{"prompt": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}\n',
            "data.prompt-role",
            "last",
        ),
        ('{"prompt": "a", "chosen": "b", "rejected": "c"}\n', "data.preferences", "DPO"),
        ('{"prompt": "a", "image": "x.png"}\n', "data.images", "docs/vision-language.md"),
        (
            '{"prompt": [{"role": "user", "content": [{"type": "image_url"}]}]}\n',
            "data.images",
            "docs/vision-language.md",
        ),
        ('{"prompt": "a", "tools": [{"name": "f"}]}\n', "data.tools", "single-turn"),
        ('{"prompt": [{"role": "tool", "content": "a"}]}\n', "data.tools", "single-turn"),
        ('{"prompt": "a"}\n{"prompt": "b \\ud83d"}\n', "data.surrogate", "row 1: column 'prompt'"),
        ('{"prompt": "a", "answer": ["\\udc00"]}\n', "data.surrogate", "column 'answer'"),
    ],
)
def test_bad_data_is_named_with_its_place(tmp_path, text, code, needle):
    (tmp_path / "d.jsonl").write_text(text)
    with pytest.raises(DataError) as caught:
        load_rows("d.jsonl", tmp_path)
    assert caught.value.code == code
    assert "d.jsonl" in caught.value.where
    assert needle in caught.value.message()


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("d.json", "[" * 100_000, "data.not-json"),
        ("d.csv", "prompt,answer\na," + "b" * 140_000 + "\n", "data.damaged"),
    ],
)
def test_what_the_formats_own_readers_give_up_on(tmp_path, name, text, code):
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as caught:
        load_rows(name, tmp_path)
    assert caught.value.code == code
    assert name in caught.value.where


def test_the_home_of_nobody(tmp_path):
    with pytest.raises(ConfigError, match="no home folder for '~nobody-of-that-name'") as caught:
        load_rows("~nobody-of-that-name/x.jsonl", tmp_path)
    assert caught.value.code == "config.home"


def test_a_missing_file_names_the_nearest_one(tmp_path):
    write(tmp_path / "prompts.jsonl", {"prompt": "a"})
    with pytest.raises(DataError, match=r"did you mean 'prompts\.jsonl'") as caught:
        load_rows("promts.jsonl", tmp_path)
    assert caught.value.code == "data.missing"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"PAR1 no parquet"])
def test_bytes_that_are_not_the_format(tmp_path, content):
    name = "d.jsonl" if content[:1] == b"\xff" else "d.parquet"
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        load_rows(name, tmp_path)
    assert caught.value.code in ("data.encoding", "data.damaged")


def test_another_prompt_column(tmp_path):
    name = write(tmp_path / "d.jsonl", {"question": "a", "answer": "b"})
    (row,) = load_rows(name, tmp_path, prompt_column="question")
    assert row.prompt[0].content == "a"
    assert row.columns == {"answer": "b"}


def test_reasoning_gym_brings_its_scorer():
    rows = load_rows("reasoning-gym:chain_sum?size=5&seed=3&max_terms=3", None)
    assert len(rows) == 5
    entry = json.loads(rows[0].columns["gym_entry"])
    assert (
        gym_dataset("reasoning-gym:chain_sum").score_answer(answer=rows[0].columns["answer"], entry=entry)
        == 1.0
    )
    again = load_rows("reasoning-gym:chain_sum?size=5&seed=3&max_terms=3", None)
    assert [row.row_hash for row in rows] == [row.row_hash for row in again]


@pytest.mark.parametrize(
    ("source", "needle"),
    [
        ("reasoning-gym:chain_sums", "did you mean 'chain_sum'"),
        ("reasoning-gym:chain_sum?sise=3", "sise"),
        ("reasoning-gym:chain_sum?size=-1", "options"),
    ],
)
def test_reasoning_gym_refusals(source, needle):
    with pytest.raises(ConfigError, match=needle) as caught:
        load_rows(source, None)
    assert caught.value.code == "data.reasoning-gym"


def test_the_gym_scorer_as_a_reward():
    from rlvr.rewards import load_reward

    row = load_rows("reasoning-gym:chain_sum?size=1", None)[0]
    reward = load_reward("reasoning_gym")
    answer = row.columns["answer"]
    texts = [f"<answer>{answer}</answer>", f"<answer>{answer}0</answer>", answer, "<answer></answer>"]
    found = reward.verdicts(texts, gym_entry=[row.columns["gym_entry"]] * 4)
    assert [one.outcome.value for one in found] == ["right", "wrong", "ill-formed", "ill-formed"]
    assert reward.check_reference("{}") is not None

"""The shape of prompts and completions is read from the model's files, without a tokenizer."""

import json

import pytest

from rlvr.audit.trainer_shape import has_template, shape_of


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("chat_template.jinja", "{{ messages }}", True),
        ("tokenizer_config.json", json.dumps({"chat_template": "{{ messages }}"}), True),
        ("tokenizer_config.json", json.dumps({"chat_template": None}), False),
        ("tokenizer_config.json", json.dumps({"eos_token": "<|end|>"}), False),
        ("tokenizer_config.json", "{ chat_template", False),
    ],
)
def test_a_template_is_found_in_the_folder(tmp_path, file, text, expected):
    (tmp_path / file).write_text(text)
    assert has_template(tmp_path) is expected
    shape = shape_of(str(tmp_path), is_local=True, gguf_file=None, has_chat_rows=not expected)
    assert (shape.chat, shape.assumed) == (expected, False)


def test_a_gguf_file_names_its_template(tmp_path):
    (tmp_path / "a.gguf").write_bytes(b"GGUF" + b"tokenizer.chat_template" + b"x" * 9)
    (tmp_path / "b.gguf").write_bytes(b"GGUF" + b"tokenizer.ggml.model" + b"x" * 9)
    assert shape_of(str(tmp_path), is_local=True, gguf_file="a.gguf", has_chat_rows=False).chat
    assert not shape_of(str(tmp_path), is_local=True, gguf_file="b.gguf", has_chat_rows=False).chat


def test_a_cached_hub_model_is_read_and_another_is_assumed(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--some--Base-Chat" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs" / "main").write_text("abc")
    (snapshot / "tokenizer_config.json").write_text("{}")

    def shape(name, has_chat_rows=False):
        found = shape_of(name, is_local=False, gguf_file=None, has_chat_rows=has_chat_rows)
        return found.chat, found.assumed

    assert shape("some/Base-Chat") == (False, False)
    assert shape("other/Model-7B-Instruct") == (True, True)
    assert shape("other/Model-7B") == (False, True)
    assert shape("other/Model-7B", has_chat_rows=True) == (True, True)

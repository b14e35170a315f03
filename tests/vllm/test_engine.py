"""Sampling through vLLM in this process."""

import json

import pytest

from rlvr.cli import main
from rlvr.records.samples import Message


@pytest.fixture(scope="module")
def engine(model):
    from pathlib import Path

    from rlvr.generate.vllm import VllmGenerator

    generator = VllmGenerator(str(model), Path())
    yield generator
    generator.close()


def prompts(questions):
    return [[Message(role="user", content=one.prompt)] for one in questions]


def right_share(questions, found):
    paid = [
        f"<answer>{one.answer}</answer>" == each.text for one, row in zip(questions, found) for each in row
    ]
    return sum(paid) / len(paid)


def test_it_agrees_with_transformers(engine, model, questions):
    from pathlib import Path

    from rlvr.generate.transformers import TransformersGenerator

    asked = questions[:60]
    settings = {"count": 8, "temperature": 1.0, "max_tokens": 16, "seed": 1}
    here = engine.generate(prompts(asked), **settings)
    there = TransformersGenerator(str(model), Path()).generate(prompts(asked), **settings)
    assert all(len(row) == 8 for row in here)
    assert len({one.text for row in here for one in row}) > 60
    # 480 draws each: three standard errors of the difference are under 0.1
    assert abs(right_share(asked, here) - right_share(asked, there)) < 0.1


def test_it_counts_tokens_and_sees_the_cap(engine, questions):
    from pathlib import Path

    asked = prompts(questions[:4])
    cut = engine.generate(asked, count=2, temperature=1.0, max_tokens=2, seed=1)
    assert all(one.truncated and one.tokens == 2 for row in cut for one in row)
    whole = engine.generate(asked, count=2, temperature=1.0, max_tokens=32, seed=1)
    assert all(not one.truncated and 2 < one.tokens < 32 for row in whole for one in row)
    assert engine.count_tokens(asked) == [len("sort 1234") + 3] * 4  # user mark, end mark, assistant mark
    assert engine.has_chat_template and engine.context == 256
    assert Path(engine.name.removeprefix("vllm:")).name == "model"


def test_the_probe_runs_on_it(engine, workspace, capsys, monkeypatch):
    monkeypatch.setattr("rlvr.generate.open_generator", lambda *_, **__: _Open(engine))
    folder = workspace("backend: vllm")
    code = main(["probe", "-w", str(folder), "--json"])
    found = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert (code, found["verdict"]) == (0, "sweet spot")
    assert found["success"]["training_temperature"]["samples"] == 320
    assert (folder / "gates" / "probe.html").is_file()


class _Open:
    """The engine that is loaded already: a second one in this process would not fit beside it."""

    def __init__(self, engine):
        self._engine = engine

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def close(self):
        pass

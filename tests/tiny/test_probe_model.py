"""The probe on real tiny models: sampling with transformers, verdicts, and everything a workspace can get wrong."""

import json
import random
import shutil
from pathlib import Path

import pytest

from rlvr.cli import main
from rlvr.commands.chain import Chain
from rlvr.commands.probing import Store, probe_workspace
from rlvr.records.samples import Message, Sample
from rlvr.workspace import read_lines

pytestmark = pytest.mark.tiny


@pytest.fixture(scope="session")
def taught(tmp_path_factory):
    """The demo's own model: right sometimes."""
    from rlvr.demo.model import build_model, build_tokenizer, save, teach
    from rlvr.demo.task import questions

    tokenizer = build_tokenizer()
    model = build_model(len(tokenizer), seed=0)
    teach(model, tokenizer, questions(0)[0], seed=0)
    return _saved(model, tokenizer, tmp_path_factory.mktemp("taught") / "model", save)


@pytest.fixture(scope="session")
def copier(tmp_path_factory):
    """A model that nearly always copies its four digits."""
    from rlvr.demo.model import build_model, build_tokenizer, save, teach
    from rlvr.demo.task import questions

    tokenizer = build_tokenizer()
    model = build_model(len(tokenizer), seed=1)
    teach(
        model,
        tokenizer,
        questions(1)[0],
        seed=1,
        steps=260,
        demonstrate=lambda question, _: f"<answer>{question.prompt.removeprefix('sort ')}</answer>",
    )
    return _saved(model, tokenizer, tmp_path_factory.mktemp("copier") / "model", save)


def _saved(model, tokenizer, folder, save):
    save(model, tokenizer, folder)
    return folder


@pytest.fixture
def make(tmp_path, taught):
    """Write a workspace on a model, the demo's unless another one is given."""

    def write(
        model=None, *, reference="sorted", rewards="[{use: exact}]", prompts=320, sampling="", gates=""
    ):
        shutil.copytree(model or taught, tmp_path / "model", dirs_exist_ok=True)
        lines = []
        for number in random.Random(0).sample(range(10_000), prompts):
            digits = f"{number:04d}"
            answer = digits if reference == "copied" else "".join(sorted(digits))
            lines.append(json.dumps({"prompt": f"sort {digits}", "answer": answer}) + "\n")
        (tmp_path / "prompts.jsonl").write_text("".join(lines))
        (tmp_path / "rlvr.yaml").write_text(
            "model: ./model\ntask: {prompts: prompts.jsonl, signal: answer}\n"
            f"rewards: {rewards}\n"
            f"sampling: {{max_completion_length: 16, {sampling}}}\n"
            f"gates: {{probe: {{{gates or 'prompts: 320'}}}}}\n"
        )
        return tmp_path

    return write


def edit(folder, old, new):
    path = folder / "rlvr.yaml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def probe(folder, **options):
    return probe_workspace(Chain(folder), quiet=True, **options)


NEVER = "def never(prompts, completions, **columns):\n    return [0.0] * len(prompts)\n"


def check_verdicts(make, copier, seed):
    """The five models of the issue, with their verdicts and named causes."""
    folder = make(sampling=f"seed: {seed}")
    found = probe(folder)
    assert (found.verdict, found.passed) == ("sweet spot", True)
    assert 0.1 < found.success.training_temperature.rate < 0.6
    (folder / "mine.py").write_text(NEVER)
    edit(folder, "use: exact", "use: mine.py:never")
    found = probe(folder, rescore=True)
    assert (found.verdict, found.causes.main) == ("undecided", "grader")
    edit(folder, "use: mine.py:never", "use: exact")
    edit(folder, "max_completion_length: 16", "max_completion_length: 4")
    found = probe(folder)
    assert (found.verdict, found.causes.main) == ("undecided", "truncated")
    shutil.rmtree(folder / "gates")
    found = probe(make(copier, reference="copied", sampling=f"seed: {seed}"))
    assert found.verdict == "saturated"
    shutil.rmtree(folder / "gates")
    never = make(copier, sampling=f"seed: {seed}")
    _drop_solved_by_copying(never)
    found = probe(never)
    assert (found.verdict, found.causes.main, found.route) == ("undecided", "wrong", "")
    assert found.causes.gold_paid == found.causes.gold_checked > 0
    _read_zeros(never, 10)
    found = probe(never, rescore=True)
    assert (found.verdict, found.causes.main) == ("no support", "wrong")
    assert "SFT" in found.route


def _drop_solved_by_copying(folder):
    path = folder / "prompts.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    # far from sorted, so that no slip of a copier sorts them
    kept = [row for row in rows if row["answer"][::-1] == row["prompt"][5:]]
    wanted = [f"{a}{b}{c}{d}" for a in range(9, 3, -1) for b in range(a) for c in range(b) for d in range(c)]
    kept = [{"prompt": f"sort {digits}", "answer": digits[::-1]} for digits in wanted]
    extra = [{"prompt": f"Sort {digits}", "answer": digits[::-1]} for digits in wanted]
    path.write_text("".join(json.dumps(row) + "\n" for row in (kept + extra)[:320]))


def _read_zeros(folder, count):
    samples = read_lines(Store(Chain(folder)).completions, Sample)[:count]
    path = folder / "gates" / "inspect" / "labels.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps({"completion_id": one.completion_id, "verdict": "fail"}) + "\n" for one in samples)
    )


def test_the_verdict_and_the_cause_are_right(make, copier):
    check_verdicts(make, copier, seed=0)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(1, 20))
def test_the_verdict_and_the_cause_are_right_for_every_seed(make, copier, seed):
    check_verdicts(make, copier, seed)


def test_a_seed_gives_the_same_completions_whatever_the_batch(taught):
    from rlvr.generate.transformers import TransformersGenerator

    generator = TransformersGenerator(str(taught), Path())
    asked = [[Message(role="user", content=f"sort {number}")] for number in (4321, 1234, 9182, 7777, 3030)]
    settings = {"temperature": 1.0, "max_tokens": 16, "seed": 5}
    whole = generator.generate(asked, count=6, **settings)
    assert generator.generate(asked, count=6, **settings) == whole
    assert generator.generate(asked[2:4], count=6, **settings) == whole[2:4]
    assert [row[:2] for row in whole] == generator.generate(asked, count=2, **settings)
    generator.batch_size = 3
    assert generator.generate(asked, count=6, **settings) == whole
    assert generator.generate(asked, count=6, **{**settings, "seed": 6}) != whole
    assert len({one.text for row in whole for one in row}) > 10


def test_sampled_frequencies_are_the_models_own(taught):
    """The first token's frequencies over 4,000 draws match the model's probabilities, with and without top_p."""
    import torch

    from rlvr.generate.transformers import TransformersGenerator

    generator = TransformersGenerator(str(taught), Path())
    prompt = [Message(role="user", content="sort 4321")]
    ids = torch.tensor([generator._encode([prompt])[0]])
    with torch.inference_mode():
        logits = generator.network(ids).logits[0, -1].double() / 2.0
    shares = torch.softmax(logits, -1)
    for top_p in (1.0, 0.8):
        generator.top_p = top_p
        (row,) = generator.generate([prompt], count=4000, temperature=2.0, max_tokens=1, seed=3)
        expected = shares if top_p == 1 else _nucleus(shares, top_p)
        texts = [
            generator.tokenizer.decode([token], skip_special_tokens=True) for token in range(len(shares))
        ]
        top = int(expected.argmax())
        seen = sum(one.text == texts[top] for one in row) / len(row)
        alike = sum(float(share) for share, text in zip(expected, texts, strict=True) if text == texts[top])
        assert abs(seen - alike) < 4 * (alike * (1 - alike) / 4000) ** 0.5 + 1e-9
        allowed = {text for share, text in zip(expected, texts, strict=True) if share > 0}
        assert {one.text for one in row} <= allowed


def _nucleus(shares, top_p):
    ordered, places = shares.sort(descending=True)
    kept = ordered * (ordered.cumsum(0) - ordered < top_p)
    return kept.new_zeros(len(kept)).scatter(0, places, kept / kept.sum())


def test_temperature_zero_takes_the_most_likely(taught):
    from rlvr.generate.transformers import TransformersGenerator

    generator = TransformersGenerator(str(taught), Path())
    (row,) = generator.generate(
        [[Message(role="user", content="sort 4321")]], count=5, temperature=0, max_tokens=16, seed=1
    )
    assert len({one.text for one in row}) == 1


def test_another_model_sets_the_earlier_completions_aside(make, copier):
    folder = make(prompts=80, gates="prompts: 80, rollout_prompts: 20")
    probe(folder)
    before = read_lines(Store(Chain(folder)).completions, Sample)
    probe(make(copier, prompts=80, gates="prompts: 80, rollout_prompts: 20"))
    kept = sorted((folder / "gates" / "probe").glob("completions-*.jsonl"))
    assert [read_lines(path, Sample) for path in kept] == [before]
    assert {one.text for one in read_lines(Store(Chain(folder)).completions, Sample)} != {
        one.text for one in before
    }


def test_a_second_probe_samples_nothing_and_a_larger_budget_only_what_is_missing(make):
    folder = make(prompts=80, gates="prompts: 80, rollout_prompts: 20")
    first = probe(folder)
    path = Store(Chain(folder)).completions
    content = path.read_bytes()
    second = probe(folder)
    assert path.read_bytes() == content
    own = {"made_at": first.made_at, "made_from": first.made_from}
    assert second.model_copy(update=own) == first
    edit(folder, "rollout_prompts: 20", "rollout_prompts: 24")
    assert probe(folder).samples_spent == first.samples_spent + 4 * 8
    assert path.read_bytes().startswith(content)


def test_rescoring_needs_completions_of_this_model(make, capsys):
    folder = make(prompts=80, gates="prompts: 80, rollout_prompts: 20")
    assert main(["probe", "-w", str(folder), "--rescore", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "probe.nothing-kept"
    probe(folder)
    edit(folder, "max_completion_length: 16", "max_completion_length: 12")
    assert main(["probe", "-w", str(folder), "--rescore", "--json"]) == 2
    assert "another sampling" in json.loads(capsys.readouterr().out)["error"]["found"]


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda f: shutil.rmtree(f / "model"), "model.missing"),
        (lambda f: [one.unlink() for one in (f / "model").glob("*.safetensors")], "model.not-a-model"),
        (lambda f: (f / "model" / "config.json").unlink(), "model.not-a-model"),
        (lambda f: (f / "model" / "config.json").write_text("{}"), "model.damaged"),
        (lambda f: (f / "model" / "tokenizer.json").write_text("{}"), "model.damaged"),
        (lambda f: next((f / "model").glob("*.safetensors")).write_bytes(b"x" * 64), "model.damaged"),
        (lambda f: edit(f, "./model", "no-such/model"), "model.unreachable"),
        (
            lambda f: edit(f, "max_completion_length: 16", "max_completion_length: 250"),
            "data.prompt-too-long",
        ),
        (lambda f: (f / "prompts.jsonl").write_text(""), "data.empty"),
        (
            lambda f: (f / "model" / "chat_template.jinja").write_text("{{ 10 ** 400 * 1.0 }}"),
            "data.chat-template",
        ),
        (lambda f: edit(f, "backend: transformers", "backend: vllm"), "generate.vllm-missing"),
        (
            lambda f: edit(
                f, "backend: transformers", "backend: endpoint, endpoint: 'http://127.0.0.1:9/v1'"
            ),
            "endpoint.unreachable",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_message(make, spoil, code, capsys, monkeypatch):
    monkeypatch.setattr("rlvr.generate.endpoint.RETRIES", 0)
    folder = make(prompts=40, sampling="backend: transformers", gates="prompts: 40, rollout_prompts: 8")
    spoil(folder)
    exit_code = main(["probe", "-w", str(folder), "--json"])
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == code
    assert exit_code == error["exit_code"] == (4 if code.endswith("unreachable") else 2)
    assert not (folder / "gates" / "probe.json").exists()


def test_chat_prompts_need_a_template_and_one_can_be_given(make, capsys):
    folder = make(prompts=40, gates="prompts: 40, rollout_prompts: 8")
    (folder / "model" / "chat_template.jinja").unlink()
    template = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>"
    rows = [{"prompt": [{"role": "user", "content": f"sort {n}"}], "answer": "1"} for n in range(1000, 1040)]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["probe", "-w", str(folder), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "data.no-chat-template"
    (folder / "chat.jinja").write_text(template)
    edit(folder, "max_completion_length: 16", "chat_template: chat.jinja, max_completion_length: 16")
    assert main(["probe", "-w", str(folder), "--json"]) in (0, 3)
    assert "verdict" in json.loads(capsys.readouterr().out)


def test_the_filter_keeps_what_is_not_surely_outside(make, copier):
    from rlvr.commands.filtering import filter_workspace

    folder = make(copier, reference="copied", prompts=24)
    with (folder / "prompts.jsonl").open("a") as file:
        file.writelines(
            json.dumps({"prompt": f"sort {n}", "answer": "never"}) + "\n" for n in range(9870, 9880)
        )
    found = filter_workspace(Chain(folder), most=34 * 128, quiet=True)
    assert found.places["too hard"] == 10
    assert found.places["too easy"] >= 5
    assert found.samples_spent <= 34 * 128
    kept = [json.loads(line) for line in (folder / found.path).read_text().splitlines()]
    assert len(kept) == found.kept_rows == found.places["inside"] + found.places["unknown"]
    assert all(row["answer"] != "never" for row in kept)

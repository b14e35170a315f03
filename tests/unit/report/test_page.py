import html.parser
import re

import pytest

from rlvr.gates import ChainStatus, GateReport
from rlvr.records.watch import Finding, Findings, Proof
from rlvr.report.compare import compare, differences, write_comparison
from rlvr.report.report import duration, red_flags, write_report
from rlvr.report.samples import pairs, pass_at_k, safe_text, shown
from rlvr.report.timeline import timeline

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u202egnp\x00{{ 7*7 }}"


class Elements(html.parser.HTMLParser):
    """Collects element names, attributes and text."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements, self.text, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def parsed(page):
    parser = Elements()
    parser.feed(page)
    return parser


def test_the_page_loads_nothing_and_runs_one_script(made):
    page = write_report(made.inputs())
    found = parsed(page)
    assert [tag for tag, _ in found.elements].count("script") == 1
    for tag, attributes in found.elements:
        assert not {"src", "srcset"} & set(attributes), tag
        assert attributes.get("href", "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    assert "url(" not in page
    assert "@import" not in page
    policy = next(attributes["content"] for tag, attributes in found.elements if "http-equiv" in attributes)
    assert policy.startswith("default-src 'none'")


def test_hostile_text_stays_text(made):
    hostile = [
        one.model_copy(update={"prompt": HOSTILE, "completion": HOSTILE, "outcome": HOSTILE})
        for one in made.results(1, 9)
    ]
    moved = made.results(9, 1)
    rollouts = [
        {
            "step": 0,
            "prompt": HOSTILE,
            "completion": [{"role": "assistant", "content": HOSTILE}],
            "outcome": HOSTILE,
        }
    ]
    run = made.manifest(
        model=HOSTILE, waivers={"probe": HOSTILE}, settings={HOSTILE: {"value": HOSTILE, "why": HOSTILE}}
    )
    log = [
        {"step": step, f"rewards/{HOSTILE}/mean": 1.0, "rewards/b/mean": 1.0, "reward": 1.0}
        for step in (1, 2)
    ]
    before = made.evaluation(hostile)
    page = write_report(
        made.inputs(
            name=HOSTILE,
            manifest=run,
            before=before,
            after=made.evaluation(moved),
            rollouts=rollouts,
            log=log,
            missing=[HOSTILE],
        )
    )
    found = parsed(page)
    assert [tag for tag, _ in found.elements].count("script") == 1
    assert not [tag for tag, _ in found.elements if tag == "img"]
    assert "{{ 7*7 }}" in "".join(found.text)
    samples = page[page.index('id="samples"') :]
    assert "\u202e" not in samples.split("</section>")[0]
    assert "⟨U+202E⟩" in samples


def test_no_samples_leaves_every_text_of_the_model_out(made):
    secret = "SECRET-COMPLETION"
    before = made.evaluation(made.results(20, 80, text=secret))
    proof = Proof(step=1, prompt="SECRET-PROMPT", completion=secret, note="")
    finding = Finding(
        name="truncation", level="warning", since_step=3, evidence="e", action="a", proofs=[proof]
    )
    rollouts = [{"step": 0, "prompt": "SECRET-PROMPT", "completion": secret}]
    page = write_report(
        made.inputs(before=before, findings=Findings(symptoms=[finding]), rollouts=rollouts, samples=False)
    )
    assert "SECRET" not in page
    assert "left out on request: 0 broken, 50 mended" in re.sub(r"\s+", " ", page)
    assert "SECRET-PROMPT" in write_report(
        made.inputs(before=before, findings=Findings(symptoms=[finding]), rollouts=rollouts)
    )


def test_waivers_and_early_overrides_stand_in_red(made):
    run = made.manifest(
        waivers={"probe": "we know this task"},
        settings={
            "learning_rate": {
                "value": 1e-3,
                "why": "tiny model",
                "source": "override",
                "before_base_run": True,
            }
        },
        isolation="E rlimits only",
    )
    flags = red_flags(made.inputs(manifest=run))
    assert [what for what, _ in flags] == [
        "gate probe waived",
        "learning_rate moved before a base run",
        "no isolation",
    ]
    page = write_report(made.inputs(manifest=run))
    assert '<section class="red">' in page
    assert '<tr class="moved">' in page
    assert '<section class="red">' not in write_report(made.inputs())


def test_the_demo_says_what_it_is(made):
    page = write_report(made.inputs(manifest=made.manifest(is_demo=True)))
    assert "half-hidden skill" in page
    assert "simulated by a program" in page
    assert "half-hidden skill" not in write_report(made.inputs())


def test_a_page_of_nothing_still_says_why(made):
    page = write_report(
        made.inputs(
            manifest=None, log=(), before=None, after=None, reading=None, missing=["No manifest.json."]
        )
    )
    assert "not measured" in page
    assert "No manifest.json." in page


@pytest.mark.parametrize("part", ["manifest", "log", "before", "after", "reading"])
def test_every_part_may_be_missing(made, part):
    page = write_report(made.inputs(**{part: () if part == "log" else None}))
    assert parsed(page).elements[-1][0] == "script"


def test_symptoms_are_marked_on_their_curves_and_listed(made):
    finding = Finding(
        name="entropy-collapse",
        level="critical",
        since_step=40,
        evidence="entropy fell",
        action="read",
        metrics=["entropy", "reward"],
    )
    page = write_report(made.inputs(findings=Findings(symptoms=[finding], last_step=100)))
    entropy = page[
        page.index('id="curve-entropy"') : page.index("</figure>", page.index('id="curve-entropy"'))
    ]
    reward = page[page.index('id="curve-reward"') : page.index("</figure>", page.index('id="curve-reward"'))]
    assert 'class="band critical"' in entropy
    assert "band" not in reward
    assert "since step 40" in page


def test_timeline_says_who_read_what_and_when(made):
    gate = GateReport(
        name="audit",
        state="passed",
        why="no finding",
        evidence={"made_at": "2026-01-01T08:00:00Z", "made_from": {"reward": "r1", "labels": "x"}},
    )
    waived = GateReport(
        name="probe",
        state="passed",
        why="waived: known",
        waived="known",
        evidence={"made_at": "2026-01-01T08:30:00Z"},
    )
    events = timeline(made.inputs(status=ChainStatus(passed=True, next="", gates=[waived, gate])))
    assert [event.name for event in events] == [
        "audit",
        "probe",
        "train",
        "held-out before",
        "on-policy reading",
        "held-out after",
    ]
    assert events[0].hashes == {"reward": "r1"}
    assert events[1].state == "waived"
    assert events[4].who == "Kim"
    assert ("read", "20 (20 needed)") in events[4].facts


def test_without_a_workspace_the_gates_of_the_run_are_shown(made):
    run = made.manifest(gates=[{"name": "audit", "state": "passed", "why": "no finding"}])
    events = timeline(made.inputs(manifest=run))
    assert events[0].why == "no finding (as the run began)"


def test_pairs_show_what_broke_first_and_keep_every_kind(made):
    before, after = made.results(50, 50), made.results(0, 100)[:10] + made.results(90, 0, start=10)
    found = pairs(before, after)
    assert [one.kind for one in found[:11]] == ["broken"] * 10 + ["mended"]
    few = shown(found, 8)
    assert len(few) == 8
    assert {one.kind for one in few} == {"broken", "mended", "still right"}


def test_pass_at_k_is_the_unbiased_estimate(made):
    results = [
        one.model_copy(update={"correct": correct, "judged": 4})
        for one, correct in zip(made.results(2, 0), (1, 2))
    ]
    curve = pass_at_k(results, "after", 1).points
    assert [round(y, 4) for _, y in curve] == [
        0.375,
        round((0.5 + 5 / 6) / 2, 4),
        round((0.75 + 1) / 2, 4),
        1.0,
    ]


def test_pass_at_k_is_drawn_when_there_are_several_completions(made):
    before, after = (
        made.evaluation(made.results(20, 80, rollouts=4)),
        made.evaluation(made.results(70, 30, rollouts=4)),
    )
    assert "share of prompts with a right completion among k" in write_report(
        made.inputs(before=before, after=after)
    )
    assert "set <code>evaluation.rollouts</code> to 8" in write_report(made.inputs())


def test_safe_text_names_what_hides():
    assert safe_text("a\u200bb\x1b[31m\n\t") == "a⟨U+200B⟩b⟨U+001B⟩[31m\n\t"
    assert safe_text("x" * 10, longest=4) == "xxxx\n… 6 more characters"
    assert safe_text("\ud800") == "⟨U+D800⟩"


def test_two_runs_are_compared_by_prompt(made):
    first = made.inputs(after=made.evaluation(made.results(30, 70)))
    second = made.inputs(name="base-2", manifest=made.manifest(name="base-2", seed=7))
    found = compare(first, second)
    assert found.word == "better"
    assert found.sentence.startswith("base-2 against base-1: better. 30.0% and 70.0% (+40.0 points")
    assert found.statement.startswith("30.0% and 70.0%")
    assert compare(second, first).word == "worse"
    assert compare(first, first).word == "no difference shown"
    assert differences(first.manifest, second.manifest) == [("seed", "0", "7", "")]
    page = write_comparison(first, second)
    assert "base-2 against base-1" in page
    assert parsed(page).elements[-1][0] == "script"


def test_runs_judged_differently_are_not_compared(made):
    other = made.inputs(name="base-2", after=made.evaluation(made.results(70, 30), check="another"))
    assert compare(made.inputs(), other).sentence == "Not comparable: the check differs."


@pytest.mark.parametrize(
    ("seconds", "text"), [(4.2, "4.2 s"), (48, "48 s"), (725, "12 min 05 s"), (12000, "3 h 20 min")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_rewards_stand_with_the_weights_that_were_trained_with(made):
    run = made.manifest(
        rewards=[{"use": "reward.py:right", "weight": None}, {"use": "tags", "name": "tidy", "weight": None}],
        settings={"reward_weights": {"value": [1.0, 0.2], "why": "as configured", "source": "derived"}},
    )
    assert "<code>right</code> × 1, <code>tidy</code> × 0.2." in write_report(made.inputs(manifest=run))

from dataclasses import replace

from plan_cases import inputs

from rlvr.plan.build import build_plan
from rlvr.plan.devices import DEVICES
from rlvr.plan.inputs import DataFacts, Sampling
from rlvr.plan.memory.architecture import read_architecture
from rlvr.plan.memory.shape import RunShape
from rlvr.plan.models import named_config
from rlvr.plan.throughput import bytes_read, token_seconds

ORDER = {"fits": 0, "tight": 1, "does-not-fit": 2}


def test_none_when_it_fits():
    assert build_plan(inputs("0.5b", "1xH200")).remedies == []


def test_ranked_and_recomputed():
    plan = build_plan(inputs("7b", "1xH100", "full"))
    assert plan.memory.verdict == "does-not-fit" and not plan.passed
    names = [remedy.name for remedy in plan.remedies]
    assert {"lora", "qlora", "8-bit-optimizer", "fsdp2", "micro-batch-4"} <= set(names)
    verdicts = [ORDER[remedy.verdict] for remedy in plan.remedies]
    assert verdicts == sorted(verdicts)
    for remedy in plan.remedies:
        assert remedy.peak_bytes + remedy.saves_bytes == plan.memory.peak_bytes and remedy.saves_bytes > 0
        assert remedy.change and remedy.cost


def test_a_remedy_holds_what_it_promises():
    plan = build_plan(inputs("7b", "1xH100", "full"))
    promised = next(remedy for remedy in plan.remedies if remedy.name == "lora")
    applied = build_plan(inputs("7b", "1xH100", "lora"))
    assert abs(applied.memory.peak_bytes / promised.peak_bytes - 1) < 0.01


def test_bf16_weights_are_never_a_remedy():
    for remedy in build_plan(inputs("7b", "1xH100", "full")).remedies:
        assert "dtype" not in str(remedy.change)


def test_long_contexts_hear_of_unsloth():
    made = replace(
        inputs("14b", "1xL40S", "lora"),
        data=DataFacts(prompts=1000, prompt_max=1000),
        sampling=Sampling(max_completion_length=8000),
    )
    remedy = next(r for r in build_plan(made).remedies if r.name == "unsloth-long-context")
    assert remedy.change["environment"] == {"UNSLOTH_VLLM_STANDBY": "1"}


def test_one_stream_of_8b_on_spark():
    shape = RunShape(read_architecture(named_config("8b")), method="lora", rollouts=1)
    device = replace(DEVICES["dgx-spark"], bandwidth=273e9 / 0.7)
    seconds, bound = token_seconds(shape, device, 0)
    assert bound == "bandwidth" and 16 < 1 / seconds < 19


def test_many_streams_read_all_experts():
    a = read_architecture(named_config("30b-a3b"))
    one, many = (bytes_read(RunShape(a, rollouts=n)) for n in (1, 512))
    assert one < 0.15 * 2 * a.parameters and many > 0.9 * 2 * (a.parameters - a.embedding_parameters)


def test_estimate_says_that_it_is_one():
    rate = build_plan(inputs()).throughput
    assert rate is not None and "estimate" in rate.note and rate.hours > 0
    assert build_plan(inputs(device="48GB")).throughput is None

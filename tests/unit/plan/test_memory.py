import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlvr.errors import ConfigError
from rlvr.plan.devices import DEVICES, GIB
from rlvr.plan.memory.architecture import read_architecture
from rlvr.plan.memory.closed_form import closed_form, optimizer_bytes, stored_weights, training_parts
from rlvr.plan.memory.engine import engine_weights
from rlvr.plan.memory.moments import kind_of_run, largest_moment
from rlvr.plan.memory.shape import RunShape
from rlvr.plan.models import SIZES, named_config, named_models

PUBLISHED_COUNTS = {
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "smollm2-135m": 134_515_008,
    "mistral-7b-v0.3": 7_248_023_552,
    "mixtral-8x7b": 46_702_792_704,
}


def shape(size="8b", **changes):
    return RunShape(read_architecture(named_config(size)), **changes)


@pytest.mark.parametrize(("name", "count"), PUBLISHED_COUNTS.items())
def test_parameter_counts_are_the_published_ones(name, count):
    assert read_architecture(named_config(name)).parameters == count


@pytest.mark.parametrize(
    "name", ["Qwen/Qwen2.5-7B-Instruct", "meta-llama/Llama-3.1-8B-Instruct", "Qwen3-8B", "7B"]
)
def test_names_with_owner_and_suffix(name):
    assert named_config(name) is not None


def test_all_names_are_read():
    for name in named_models():
        assert read_architecture(named_config(name)).known
    assert named_config("gpt-9") is None


def test_full_tuning_takes_sixteen_bytes_a_parameter():
    run = shape("7b", beta=0.0, engine="server")
    parts = {part.name: part.bytes for part in training_parts(run)}
    state = parts["weights"] + parts["gradients"] + parts["optimizer"]
    assert state == 16 * run.architecture.parameters


def test_reference_exists_only_with_beta_and_without_an_adapter():
    def reference(**changes):
        return {part.name: part.bytes for part in training_parts(shape(**changes))}.get("reference", 0)

    assert reference(beta=0.01) == stored_weights(shape())
    assert reference(beta=0.0) == 0
    assert reference(beta=0.01, method="lora", weight_bytes=2) == 0
    assert reference(beta=0.01, method="lora", weight_bytes=2, reference_adapter=True) > 0


def test_quantized_weights():
    a = shape("8b", method="qlora", weight_bytes=2)
    assert 0.35 < stored_weights(a) / (2 * a.architecture.parameters) < 0.40


def test_bitsandbytes_leaves_experts_alone():
    a = shape("30b-a3b", method="qlora", weight_bytes=2)
    assert stored_weights(a) > 0.9 * 2 * a.architecture.parameters


def test_optimizers_in_order():
    sizes = [optimizer_bytes(shape(optimizer=name)) for name in ("adamw_torch", "adamw_8bit", "adafactor")]
    assert sizes == sorted(sizes, reverse=True)
    assert optimizer_bytes(shape(optimizer="paged_adamw_8bit")) == 0
    assert optimizer_bytes(shape(optimizer="paged_adamw_8bit", unified=True)) > 0


sizes = st.sampled_from(sorted(SIZES))
methods = st.sampled_from(["full", "lora", "qlora"])


@given(sizes, methods, st.integers(1, 8), st.integers(64, 4096), st.booleans())
def test_more_tokens_never_need_less(size, method, micro, completion, checkpointing):
    run = shape(
        size,
        method=method,
        weight_bytes=4 if method == "full" else 2,
        micro_batch=micro,
        completion=completion,
        checkpointing=checkpointing,
    )
    device = DEVICES["h100"]
    peak = closed_form(run, device).peak_bytes
    assert closed_form(replace(run, micro_batch=micro + 1), device).peak_bytes >= peak
    assert closed_form(replace(run, completion=completion + 64), device).peak_bytes >= peak
    assert closed_form(replace(run, checkpointing=True), device).peak_bytes <= peak


@given(sizes, methods)
def test_parts_add_up(size, method):
    run = shape(size, method=method, weight_bytes=4 if method == "full" else 2)
    memory = closed_form(run, DEVICES["h100"])
    always = sum(part.bytes for part in memory.parts if part.phase == "always")
    for phase in ("update", "rollout"):
        assert memory.phases[phase] == always + sum(p.bytes for p in memory.parts if p.phase == phase)
    assert memory.peak_bytes == max(memory.phases.values())
    assert memory.band_bytes[0] <= memory.peak_bytes <= memory.band_bytes[1]
    assert memory.margin_bytes == memory.capacity_bytes - memory.band_bytes[1]


def test_verdicts():
    run = shape("0.5b", engine="server")
    memory = closed_form(run, DEVICES["h100"])
    assert memory.verdict == "fits"
    between = replace(DEVICES["h100"], memory_bytes=memory.peak_bytes + 1)
    assert closed_form(run, between).verdict == "tight"
    assert closed_form(run, replace(between, memory_bytes=memory.peak_bytes - 1)).verdict == "does-not-fit"


def test_sleep_gives_the_engines_memory_to_the_update():
    awake, asleep = (
        closed_form(shape("7b", method="lora", weight_bytes=2, sleep=s), DEVICES["h100"]) for s in (0, 1)
    )
    assert asleep.phases["update"] < awake.phases["update"]
    assert asleep.phases["rollout"] == awake.phases["rollout"]
    assert asleep.phases["sync"] >= engine_weights(shape("7b"))


def test_sharding_shares_out_the_state():
    whole = closed_form(shape("7b", trainers=4, engine="server"), DEVICES["h100"]).peak_bytes
    for sharding in ("zero2", "fsdp2", "zero3"):
        part = closed_form(
            shape("7b", trainers=4, engine="server", sharding=sharding), DEVICES["h100"]
        ).peak_bytes
        assert part < 0.7 * whole, sharding


def test_generation_by_transformers_keeps_its_cache():
    run = shape("8b", engine="transformers", rollouts=32)
    cache = next(part for part in closed_form(run, DEVICES["h100"]).parts if part.name == "kv-cache")
    assert cache.bytes == 32 * 1024 * 147_456  # 36 layers x 2 x 8 heads x 128 x 2 bytes


def test_llama_8b_takes_131_kb_a_token():
    assert shape("llama-3.1-8b").architecture.kv_bytes_per_token() == 131_072


def test_eager_attention_is_quadratic():
    def scores(completion):
        memory = closed_form(shape(attention="eager", completion=completion), DEVICES["h100"])
        return next(part.bytes for part in memory.parts if part.name == "attention-scores")

    assert scores(1536) == 4 * scores(512)


def test_every_kind_of_run_has_moments():
    for device, method, compute in (
        ("cuda", "full", "bf16"),
        ("cuda", "lora", "fp16"),
        ("cuda", "qlora", "bf16"),
        ("cuda", "full", "fp32"),
        ("cpu", "full", "fp32"),
        ("cpu", "lora", "bf16"),
    ):
        for accumulation in (1, 4):
            for size in ("0.5b", "8b"):
                run = shape(size, device=device, method=method, compute=compute, accumulation=accumulation)
                assert largest_moment(run).total > 0, kind_of_run(run)


PUBLISHED_RUNS = {
    "qwen3-8b": {96: 7.850, 160: 9.155, 224: 10.465, 288: 11.773},
    "qwen3-14b": {96: 11.638, 160: 13.001, 288: 15.730},
}


@pytest.mark.parametrize("model", PUBLISHED_RUNS)
def test_published_qlora_runs_before_the_fused_head(model):
    for completion, gib in PUBLISHED_RUNS[model].items():
        run = shape(
            model,
            method="qlora",
            weight_bytes=2,
            accumulation=1,
            prompt=64,
            completion=completion,
            rollouts=8,
            beta=0.0,
            chunked_loss=False,
            optimizer="paged_adamw_8bit",
            engine="server",
        )
        total = sum(part.bytes for part in training_parts(run)) / GIB
        assert abs(total / gib - 1) < 0.02, completion


def test_closed_form_is_instant():
    run = shape("70b")
    closed_form(run, DEVICES["h100"])
    start = time.perf_counter()
    closed_form(run, DEVICES["h100"])
    assert time.perf_counter() - start < 0.05


BROKEN = {
    "no sizes": {"model_type": "llama"},
    "text": {"hidden_size": "4096"},
    "negative": {"hidden_size": -1},
    "absurd": {"num_hidden_layers": 10**6},
    "boolean": {"hidden_size": True},
    "heads": {"num_attention_heads": 30, "num_key_value_heads": 7},
    "encoder": {"is_encoder_decoder": True},
    "no feed-forward": {"intermediate_size": None},
}


@pytest.mark.parametrize("changes", BROKEN.values(), ids=BROKEN)
def test_broken_configurations_get_a_clear_answer(changes):
    config = changes if changes == {"model_type": "llama"} else named_config("8b") | changes
    with pytest.raises(ConfigError) as caught:
        read_architecture(config)
    assert caught.value.code == "plan.model-config" and caught.value.fix


def test_more_experts_than_memory_do_not_fit():
    config = named_config("30b-a3b") | {"num_experts": 4096}
    memory = closed_form(RunShape(read_architecture(config)), DEVICES["h200"])
    assert memory.verdict == "does-not-fit"


def test_unknown_family_is_taken_as_a_usual_decoder_and_said():
    assert not read_architecture(named_config("8b") | {"model_type": "novel"}).known


def test_vision_tower_is_counted():
    config = {
        "model_type": "qwen2_5_vl",
        "text_config": named_config("7b"),
        "vision_config": {"hidden_size": 1280, "depth": 32, "intermediate_size": 3420},
    }
    tower = read_architecture(config).vision_parameters
    assert 0.5e9 < tower < 0.8e9

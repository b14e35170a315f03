import json
from dataclasses import replace

import pytest
from plan_cases import demo_inputs, inputs, with_overrides

from rlvr.errors import ConfigError, GateRefused
from rlvr.plan.build import build_plan
from rlvr.plan.inputs import CompletionLengths, DataFacts, Method, Sampling
from rlvr.plan.trl_schema import installed_schema
from rlvr.records.plan import PlanRecord


def test_reference_values_of_the_base_recipe():
    config = build_plan(inputs(method="full", model="0.5b")).config()
    expected = {
        "use_vllm": True,
        "vllm_mode": "colocate",
        "num_generations": 8,
        "learning_rate": 5e-7,
        "beta": 0.01,
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 4,
        "bf16": True,
        "logging_steps": 10,
        "seed": 3407,
        "loss_type": "grpo",
        "vllm_importance_sampling_mode": "token_truncate",
        "vllm_importance_sampling_clip_max": 2.0,
    }
    assert {name: config[name] for name in expected} == expected
    assert config["model_init_kwargs"]["dtype"] == "float32"


def test_every_setting_is_a_field_with_a_reason_and_an_accepted_value():
    fields = installed_schema().fields
    for method in ("full", "lora", "qlora"):
        for name, setting in build_plan(inputs(model="0.5b", method=method)).settings.items():
            assert len(setting.why) > 10, name
            assert fields[name].accepts(setting.value), name
            assert not fields[name].allowed or setting.value in fields[name].allowed, name


@pytest.mark.parametrize(("method", "rate"), [("full", 5e-7), ("lora", 5e-6), ("qlora", 5e-6)])
def test_each_method_has_its_own_rate(method, rate):
    setting = build_plan(inputs(model="0.5b", method=method)).settings["learning_rate"]
    assert (setting.value, setting.source) == (rate, "reference")


def test_demo_overrides_pass_and_stand_out():
    plan = build_plan(demo_inputs())
    config = plan.config()
    assert plan.passed and plan.memory.verdict == "fits"
    assert (config["use_vllm"], config["use_cpu"], config["bf16"], config["max_steps"]) == (
        False,
        True,
        False,
        150,
    )
    assert config["steps_per_generation"] == 1
    assert plan.settings["use_vllm"].source == "fallback"
    assert plan.moved_before_base_run == ["learning_rate", "beta"]


def test_record_survives_json():
    plan = build_plan(demo_inputs())
    assert PlanRecord.model_validate(json.loads(plan.model_dump_json())) == plan


def test_is_pure():
    assert build_plan(inputs()) == build_plan(inputs())


def test_card_without_bf16_falls_back_to_fp16():
    plan = build_plan(inputs(model="0.5b", device="1xT4"))
    assert plan.config()["fp16"] is True and plan.config()["bf16"] is False
    assert plan.settings["fp16"].source == "fallback"
    assert plan.config()["model_init_kwargs"]["dtype"] == "float16"


def test_several_devices_get_a_server():
    plan = build_plan(inputs(device="4xH100"))
    assert plan.config()["vllm_mode"] == "server" and plan.run_defaults == "server"
    assert "vllm_gpu_memory_utilization" not in plan.config()
    server = next(launch for launch in plan.launch if launch.name == "server")
    assert server.commands[0].startswith("CUDA_VISIBLE_DEVICES=3 VLLM_SERVER_DEV_MODE=1 vllm serve")
    assert server.commands[1].startswith("CUDA_VISIBLE_DEVICES=0,1,2 accelerate launch")


def test_weights_that_do_not_fit_one_server_device_get_two():
    plan = build_plan(inputs("70b", "8xH100", "lora"))
    assert "--tensor-parallel-size 2" in next(x for x in plan.launch if x.name == "server").commands[0]


def test_experts_get_gspo_without_a_symptom():
    plan = build_plan(inputs("30b-a3b", "1xH200"))
    config = plan.config()
    assert plan.variant == "gspo" and config["importance_sampling_level"] == "sequence"
    assert config["steps_per_generation"] == 16 and config["use_bias_correction_kl"] is False
    assert plan.settings["epsilon"].source == "variant"
    assert not [remark for remark in plan.remarks if remark.code.startswith("plan.sequence")]


def test_a_variant_comes_with_its_reason():
    made = replace(inputs(), variant="dapo", variant_reason="entropy-collapse in base-1")
    plan = build_plan(with_overrides(made, gradient_accumulation_steps=2))
    assert plan.config()["steps_per_generation"] == 8 and plan.config()["beta"] == 0.0
    assert "entropy-collapse in base-1" in plan.settings["epsilon_high"].why


def test_unknown_variant_is_refused():
    with pytest.raises(ConfigError, match="no variant"):
        build_plan(replace(inputs(), variant="ppo"))


def test_completion_cap_follows_the_probe():
    lengths = CompletionLengths(p50=200, p95=400, longest=600, cap=1024)
    assert build_plan(replace(inputs(), completions=lengths)).config()["max_completion_length"] == 512
    cut = replace(lengths, cap=256, p95=256, truncated_share=0.4)
    assert build_plan(replace(inputs(), completions=cut)).config()["max_completion_length"] == 512


def test_users_cap_wins_and_is_remarked_when_short():
    lengths = CompletionLengths(p50=200, p95=400, longest=600, cap=1024)
    plan = build_plan(replace(inputs(), completions=lengths, sampling=Sampling(max_completion_length=128)))
    assert plan.config()["max_completion_length"] == 128
    assert "plan.cap-under-p95" in {remark.code for remark in plan.remarks}


def test_prompt_and_completion_over_the_context_are_refused():
    data = DataFacts(prompts=100, prompt_max=40_000)
    with pytest.raises(ConfigError, match=r"40512 together"):
        build_plan(replace(inputs(), data=data))


@pytest.mark.parametrize(
    ("method", "code"),
    [
        (Method("lora", dropout=0.1), "plan.adapter-dropout"),
        (Method("lora", rank=0), "plan.adapter-rank"),
        (Method("lora", target_modules=("q_proj", "lm_head")), "plan.adapter-on-head"),
    ],
)
def test_adapters(method, code):
    with pytest.raises(ConfigError) as caught:
        build_plan(replace(inputs(), method=method))
    assert caught.value.code == code


def test_qlora_needs_a_cuda_device():
    with pytest.raises(ConfigError, match="4-bit"):
        build_plan(inputs("0.5b", "cpu", "qlora"))


def test_rate_waits_for_a_base_run():
    made = with_overrides(inputs(), learning_rate=1e-5)
    moved = {"learning_rate": replace(made.overrides["learning_rate"], before_base_run=False, after="base-1")}
    with pytest.raises(GateRefused):
        build_plan(replace(made, overrides=moved))
    plan = build_plan(replace(made, overrides=moved, stable_base_runs=("base-1",)))
    assert plan.settings["learning_rate"].after == "base-1" and not plan.moved_before_base_run


def test_bf16_weights_are_refused_at_the_reference_rate():
    made = with_overrides(inputs(model="0.5b", method="full"), model_init_kwargs={"dtype": "bfloat16"})
    with pytest.raises(ConfigError, match="half a unit"):
        build_plan(made)


def test_batch_of_several_processes_must_hold_whole_groups():
    with pytest.raises(ConfigError, match="3 device"):
        build_plan(
            with_overrides(
                inputs(device="4xH100"), per_device_train_batch_size=1, gradient_accumulation_steps=1
            )
        )


def test_spark_does_not_sleep():
    plan = build_plan(inputs(device="dgx-spark"))
    assert plan.config()["vllm_enable_sleep_mode"] is False
    assert {part.phase for part in plan.memory.parts if part.name.startswith("vllm")} == {"always"}


def test_output_names_the_versions():
    assert set(build_plan(inputs()).memory.keyed_to) >= {"trl", "transformers"}


@pytest.mark.parametrize("method", [Method("qlora"), Method("full", optimizer="paged_adamw_8bit")])
def test_bitsandbytes_is_asked_for_before_training(method):
    made = inputs("0.5b")
    machine = replace(made.machine, bitsandbytes_installed=False)
    with pytest.raises(ConfigError, match="bitsandbytes"):
        build_plan(replace(made, method=method, machine=machine))


def test_adapters_on_experts_are_remarked():
    codes = {remark.code for remark in build_plan(inputs("30b-a3b", "1xH200", "qlora")).remarks}
    assert {"plan.adapted-router", "plan.experts-not-quantized"} <= codes


def test_weight_files_tell_the_size_of_a_vision_tower():
    config = {
        "model_type": "qwen2_5_vl",
        "text_config": inputs().model.config,
        "vision_config": {"hidden_size": 1280},
    }
    made = replace(inputs(), model=replace(inputs().model, config=config, parameters=8_292_166_656))
    parts = {part.name: part.bytes for part in build_plan(made).memory.parts}
    assert parts["weights"] > 2 * 8_292_166_656

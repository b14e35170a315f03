"""What may stand in ``rlvr.yaml``: frozen, and unknown keys are refused."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

Signal = Literal[
    "unit_tests",
    "answer",
    "json_schema",
    "tool_call",
    "parser",
    "grader",
    "preference",
    "demonstration",
    "judgement",
]
Role = Literal["correctness", "format", "length"]
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)[eE][+-]?\d+")


def _number(value: object) -> object:
    # YAML 1.1 reads 1e-6 (no dot) as a string; a person means the number.
    return float(value) if isinstance(value, str) and NUMBER.fullmatch(value.strip()) else value


Value = Annotated[Any, BeforeValidator(_number)]
Reason = Annotated[str, Field(min_length=8, description="a reason, in words; it goes into the record")]


class Section(BaseModel):
    """Base of every section: frozen, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class Routing(Section):
    """The decision that brought the user here; checked against the data and handed on in the brief."""

    method: str = Field(description="method that was chosen, e.g. grpo")
    signal: str = Field(description="what decides success, as the decision says")
    by: str = Field(default="", description="who decided")
    why: str = Field(default="", description="why")


class Task(Section):
    """Prompts, held-out prompts, and what decides success."""

    prompts: str = Field(description="JSONL or Parquet file, Hub id, or reasoning-gym:NAME")
    held_out: str | None = Field(default=None, description="the same, for prompts that are never trained on")
    signal: Signal = Field(description="what decides success")
    prompt_column: str = Field(default="prompt", description="column that holds the prompt")
    routing: Routing | None = None


class Reward(Section):
    """One component of the reward."""

    use: str = Field(description="a built-in name, path.py:function or package.module:function")
    name: str | None = Field(default=None, description="name in logs; default: the last part of use")
    weight: float | None = Field(default=None, description="default 1.0 for correctness, 0.2 for the others")
    role: Role | None = Field(default=None, description="default: what the built-in says, else correctness")
    cut: float | None = Field(default=None, description="a score at or above it counts as right")
    depends_on: list[str] = Field(default=[], description="files that the reward reads; part of its closure")
    arguments: dict[str, Value] = Field(default={}, description="keyword arguments of the built-in")

    @field_validator("weight")
    @classmethod
    def _finite(cls, weight: float | None) -> float | None:
        if weight is not None and not -1e6 < weight < 1e6:
            raise ValueError("a weight is a finite number")
        return weight


class Sampling(Section):
    """How completions are sampled, in the probe and in training."""

    temperature: float = Field(default=1.0, gt=0, le=5, description="training temperature")
    low_temperature: float = Field(default=0.2, gt=0, le=5, description="probe's low temperature")
    top_p: float = Field(default=1.0, gt=0, le=1)
    max_completion_length: int | None = Field(
        default=None, ge=1, description="tokens; default: 512 in the probe, then what the probe's lengths say"
    )
    system_prompt: str | None = None
    chat_template: str | None = Field(default=None, description="file with a Jinja chat template")
    seed: int = Field(default=3407, ge=0)
    backend: Literal["transformers", "vllm", "endpoint"] = "transformers"
    endpoint: str | None = Field(default=None, description="base URL of an OpenAI-compatible server")
    endpoint_model: str | None = Field(default=None, description="model name at the endpoint; default: model")
    api_key_variable: str = Field(default="OPENAI_API_KEY", description="environment variable with the key")
    batch_size: int = Field(default=64, ge=1, description="completions sampled at once by transformers")

    @model_validator(mode="after")
    def _endpoint_named(self) -> Sampling:
        if self.backend == "endpoint" and not self.endpoint:
            raise ValueError("backend endpoint needs sampling.endpoint, the server's base URL")
        return self


class Method(Section):
    """Which weights are trained."""

    kind: Literal["full", "lora", "qlora"] = "full"
    rank: int = Field(default=16, ge=1, le=1024)
    alpha: int | None = Field(default=None, ge=1, description="default: twice the rank")
    target_modules: str | list[str] = Field(default="all-linear")
    optimizer: str | None = Field(default=None, description="TRL's optim; default adamw_torch_fused on CUDA")
    merge: bool = Field(default=False, description="also save the merged model")


class Hardware(Section):
    """Where training runs; ``detect`` looks at this machine."""

    device: str = Field(default="detect", description='"detect", "cpu", "1xH200", "4xL4", "dgx-spark"')
    processes: int = Field(default=1, ge=1, description="training processes, one a device")
    nodes: int = Field(default=1, ge=1)
    vllm: Literal["auto", "colocate", "server", "off"] = "auto"
    sharding: Literal["none", "fsdp2", "zero2", "zero3"] = "none"
    min_isolation: Literal["A", "B", "C", "D", "E"] | None = Field(
        default=None, description="refuse to run model-written code below this rung"
    )


class Override(Section):
    """One GRPOConfig field that leaves the reference recipe, with its reason."""

    value: Value
    why: Reason
    after: str | None = Field(default=None, description="the inspected, stable base run that it follows")
    before_base_run: bool = Field(default=False, description="taken before any base run; shown in red")


class Recipe(Section):
    """Departures from the reference recipe."""

    overrides: dict[str, Override] = {}


class AuditGate(Section):
    """Options of the audit."""

    baseline: str | None = Field(default=None, description="file with known findings and their reasons")


class ProbeGate(Section):
    """Budget of the probe, and its waiver."""

    prompts: int = Field(default=400, ge=1, description="distinct prompts at the low temperature")
    rollouts: int = Field(default=8, ge=1, description="completions a prompt at the training temperature")
    rollout_prompts: int = Field(default=64, ge=1, description="prompts sampled at the training temperature")
    decide_by: Literal["both", "low", "training"] = Field(
        default="both",
        description="temperature whose success must show support; signal is the training one's",
    )
    waive: Reason | None = None


class InspectGate(Section):
    """Options of the inspection; it can never be waived."""

    samples: int = Field(default=60, ge=50, le=100, description="samples to read")


class PlanGate(Section):
    """Waiver of the memory verdict."""

    waive: Reason | None = None


class Gates(Section):
    """Options of the gates."""

    audit: AuditGate = AuditGate()
    probe: ProbeGate = ProbeGate()
    inspect: InspectGate = InspectGate()
    plan: PlanGate = PlanGate()

    @model_validator(mode="before")
    @classmethod
    def _never_waived(cls, data: Any) -> Any:
        section = data.get("inspect") if isinstance(data, dict) else None
        if isinstance(section, dict) and "waive" in section:
            raise ValueError("gates.inspect cannot be waived: nothing trains unread")
        return data


class Evaluation(Section):
    """The check that measures held-out accuracy, apart from the reward."""

    use: str | None = Field(default=None, description="as in rewards; default: the correctness reward")
    arguments: dict[str, Value] = {}
    rollouts: int = Field(default=1, ge=1, description="completions a held-out prompt")
    temperature: float | None = Field(default=None, gt=0, description="default: the training temperature")
    max_prompts: int = Field(default=500, ge=1)
    every: int | None = Field(default=None, ge=1, description="optimizer steps between evaluations")


class Watch(Section):
    """What live symptoms do to a run."""

    on_critical: Literal["warn", "pause", "stop"] = "warn"
    reinspect_every: int | None = Field(default=None, ge=1, description="steps between on-policy readings")
    on_reinspect: Literal["warn", "pause"] = "warn"


class Variant(Section):
    """A variant that ``variant --apply`` wrote, with its evidence."""

    name: Literal["dapo", "dr_grpo", "gspo"]
    run: str = Field(description="run whose symptom called for it")
    symptom: str
    evidence: str = Field(description="what the run showed")
    at: str = Field(default="", description="time of the decision")


class Config(Section):
    """The whole of ``rlvr.yaml``."""

    model: str = Field(description="a Hub id, a local folder, or a GGUF file")
    adapter: str | None = Field(default=None, description="adapter folder from SFT, loaded on top of model")
    task: Task
    rewards: list[Reward] = Field(min_length=1)
    sampling: Sampling = Sampling()
    method: Method = Method()
    hardware: Hardware = Hardware()
    recipe: Recipe = Recipe()
    gates: Gates = Gates()
    evaluation: Evaluation = Evaluation()
    watch: Watch = Watch()
    variant: Variant | None = None
    report_to: list[Literal["none", "tensorboard", "wandb", "trackio"]] = []

    @field_validator("method", mode="before")
    @classmethod
    def _method_by_name(cls, value: Any) -> Any:
        return {"kind": value} if isinstance(value, str) else value

    @field_validator("hardware", mode="before")
    @classmethod
    def _device_by_name(cls, value: Any) -> Any:
        return {"device": value} if isinstance(value, str) else value

    @field_validator("report_to", mode="before")
    @classmethod
    def _one_tracker(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

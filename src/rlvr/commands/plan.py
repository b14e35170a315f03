"""``rlvr plan``: will it fit, and exactly which settings; with a workspace, or for a model and a device by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import emit_json, json_option, workspace_option

if TYPE_CHECKING:
    from rlvr.commands.chain import Chain
    from rlvr.plan.inputs import PlanInputs
    from rlvr.records.plan import PlanRecord


@click.command(
    "plan",
    epilog="Examples: rlvr plan -w my-task | rlvr plan --model 7b --method lora --device 1xH200 --json",
)
@workspace_option
@json_option
@click.option("--model", help="Plan without a workspace: a folder, GGUF file, Hub id, or size such as 7b.")
@click.option("--method", type=click.Choice(["full", "lora", "qlora"]), default="full", show_default=True)
@click.option(
    "--rank", type=click.IntRange(1, 1024), default=16, show_default=True, help="Rank of the adapter."
)
@click.option(
    "--device", default="detect", show_default=True, help="Such as 1xH200, 4xL4, dgx-spark, 48GB, cpu."
)
@click.option("--batch", type=click.IntRange(1), help="per_device_train_batch_size.")
@click.option("--accumulation", type=click.IntRange(1), help="gradient_accumulation_steps.")
@click.option("--max-prompt-length", type=click.IntRange(1), default=512, show_default=True, help="Tokens.")
@click.option("--max-completion-length", type=click.IntRange(1), help="Tokens.")
@click.option("--beta", type=click.FloatRange(0), help="Weight of the KL term; 0 needs no reference model.")
@click.option("--optimizer", help="TRL's optim, such as paged_adamw_8bit.")
@click.option("--no-checkpointing", is_flag=True, help="Keep all activations.")
@click.option(
    "--vllm", type=click.Choice(["auto", "colocate", "server", "off"]), default="auto", show_default=True
)
@click.option("--sharding", type=click.Choice(["auto", "none", "fsdp2", "zero2", "zero3"]), default="auto")
@click.option("--nodes", type=click.IntRange(1), default=1, show_default=True)
@click.option(
    "--trace", is_flag=True, help="Trace the real model code instead of the closed form (imports torch)."
)
@click.option("--fields", is_flag=True, help="List the fields of the installed GRPOConfig and stop.")
def command(folder: Path, as_json: bool, fields: bool, **options: Any) -> int:
    """Size memory and write the exact settings, each with its reason.

    With a workspace the plan is written to gates/plan.json. With --model nothing is written, and the batch, lengths
    and method are those of the options.
    """
    if fields:
        _print_fields(as_json)
        return 0
    trace = options["trace"]
    record = _by_name(options) if options["model"] else plan_workspace(_chain(folder), trace=trace)
    if as_json:
        emit_json(as_object(record))
    else:
        from rlvr.commands.plan_print import print_plan

        print_plan(record, sizing=bool(options["model"]))
    return 0 if record.passed or options["model"] else 3


def as_object(record: PlanRecord) -> dict[str, Any]:
    """Return the object that ``--json`` prints."""
    body = record.model_dump(mode="json")
    memory = body.pop("memory")
    memory["sizing"] = memory.pop("method")  # the record's own method says what is trained
    first = ("verdict", "peak_bytes", "band_bytes", "parts")
    return {
        **{name: memory.pop(name) for name in first},
        "config": record.config(),
        **memory,
        **body,
    }


def _by_name(options: dict[str, Any]) -> PlanRecord:
    from rlvr.commands.plan_inputs import inputs_by_name
    from rlvr.plan.build import build_plan

    inputs = inputs_by_name(options)
    return _with_assumptions(_traced(build_plan(inputs), inputs, options["trace"]), inputs)


def _with_assumptions(record: PlanRecord, inputs: PlanInputs) -> PlanRecord:
    """Say which figures no data stand behind: without a workspace, the number of prompts and the temperature."""
    from rlvr.records.plan import Remark

    prompts, temperature = inputs.data.prompts, inputs.sampling.temperature
    settings = dict(record.settings)
    for name, why in (
        ("max_steps", f"assumed {prompts} prompts: {settings['max_steps'].why}"),
        ("temperature", f"assumed: sampling.temperature of a workspace is {temperature:g} unless it is set"),
    ):
        settings[name] = settings[name].model_copy(update={"why": why})
    found = f"{prompts} prompts and temperature {temperature:g} are assumed; max_steps and the hours follow from them"
    remark = Remark(code="plan.data-assumed", level="information", where="task.prompts", found=found)
    return record.model_copy(update={"settings": settings, "remarks": [*record.remarks, remark]})


def _chain(folder: Path) -> Chain:
    from rlvr.commands.chain import Chain

    return Chain(folder)


def _traced(record: PlanRecord, inputs: PlanInputs, trace: bool) -> PlanRecord:
    from rlvr.plan.build import with_trace

    return with_trace(record, inputs) if trace else record


def plan_workspace(chain: Chain, *, trace: bool = False) -> PlanRecord:
    """Plan a workspace; write the record of the gate, and the files that its commands read."""
    from rlvr.commands.plan_inputs import inputs_of_workspace
    from rlvr.plan.build import build_plan
    from rlvr.records.base import Fingerprints
    from rlvr.workspace import stamp

    inputs = inputs_of_workspace(chain)
    record = _traced(build_plan(inputs), inputs, trace)
    now = chain.fingerprints
    made_from = Fingerprints(model=now.model, recipe=now.recipe, lengths=now.lengths)
    record = record.model_copy(update=stamp(made_from))
    with chain.workspace.lock("plan"):
        _write_files(chain, record)
        chain.workspace.write_record("plan", record)
    return record


def _write_files(chain: Chain, record: PlanRecord) -> None:
    from rlvr.workspace import write_atomic

    for launch in record.launch:
        for name, text in launch.files.items():
            write_atomic(chain.base / name, text.encode())


def _print_fields(as_json: bool) -> None:
    from rlvr.plan.trl_schema import MISSING, installed_schema

    schema = installed_schema()
    if as_json:
        emit_json(
            {name: {"type": spec.annotation, "allowed": spec.allowed} for name, spec in schema.fields.items()}
        )
        return
    for name, spec in sorted(schema.fields.items()):
        default = "computed" if spec.default is MISSING else repr(spec.default)
        click.echo(f"{name}: {spec.annotation} = {default}")

"""``rlvr export``: writes the task for plain TRL or for verl, with a brief that says what stands behind it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option
from rlvr.errors import ConfigError, DataError, UsageError

if TYPE_CHECKING:
    from rlvr.commands.chain import Chain
    from rlvr.export.brief import Brief
    from rlvr.export.inputs import ExportInputs, ExportRow
    from rlvr.gates import ChainStatus
    from rlvr.task.dataset import Row

BRIEF = "brief.json"
TARGETS = ("trl", "verl")


@click.command(
    "export", epilog="Examples: rlvr export handover | rlvr export cluster --for verl --require-passed"
)
@click.argument("target_folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--for", "target", type=click.Choice(TARGETS), default="trl", show_default=True, help="Who trains."
)
@click.option("--require-passed", is_flag=True, help="Refuse (exit 3) unless every gate is passed and fresh.")
@click.option("--no-samples", is_flag=True, help="Leave completions out of the brief.")
@workspace_option
@json_option
def command(
    target_folder: Path, target: str, require_passed: bool, no_samples: bool, folder: Path, as_json: bool
) -> None:
    """Write DIR: configuration, a plain script, the rewards, the data, and brief.json with the evidence.

    A gate that is stale or not passed is written into the brief, unless --require-passed refuses.
    """
    from rlvr.commands.renewal import renewed_chain

    chain, status = renewed_chain(folder)
    if require_passed:
        from rlvr.gates import require_passed as require

        require(status)
    inputs = gather(chain, status, samples=not no_samples)
    brief = write_export(target_folder, inputs, target)
    if as_json:
        emit_json({"folder": str(target_folder), "for": target, **brief.model_dump(mode="json")})
    else:
        _print(target_folder, brief)


def write_export(folder: Path, inputs: ExportInputs, target: str = "trl") -> Brief:
    """Write every file of an export and return its brief.

    Raises:
        UsageError: ``export.exists`` when the folder holds something that no export wrote.
    """
    from rlvr.export.brief import make_brief, schema_text
    from rlvr.workspace import write_atomic

    _make_room(folder)
    files, launch = _files(inputs, target)
    files["brief.schema.json"] = schema_text().encode()
    brief = make_brief(inputs, files, launch)
    for name, content in files.items():
        write_atomic(folder / name, content)
    write_atomic(folder / BRIEF, (brief.model_dump_json(indent=2) + "\n").encode())
    return brief


def _files(inputs: ExportInputs, target: str) -> tuple[dict[str, bytes], dict[str, list[str]]]:
    if target == "verl":
        from rlvr.export.verl import verl_files

        return verl_files(inputs), {"verl": ["bash launch.sh"]}
    from rlvr.export.trl import trl_files

    launch = {"trl": ["trl grpo --config grpo_config.yaml"], "python": ["python train.py"]}
    files = trl_files(inputs)
    for one in inputs.plan.launch:
        if one.name == "accelerate":
            copied = {
                f"launch/{Path(name).name}": text.replace("gates/launch/", "launch/").encode()
                for name, text in one.files.items()
            }
            files |= copied
            config = next(name for name in copied if name.endswith(("yaml", "yml")))
            launch["accelerate"] = [f"accelerate launch --config_file {config} train.py"]
        elif one.name not in ("single", "trl"):
            launch[f"workspace-{one.name}"] = one.commands  # through `rlvr train`, in the workspace itself
    return files, launch


def _make_room(folder: Path) -> None:
    if not folder.exists() or (folder / BRIEF).is_file() or not any(folder.iterdir()):
        return
    raise UsageError(
        "export.exists",
        "the folder holds files that no export wrote",
        where=str(folder),
        expected="a new or empty folder, or an earlier export",
        fix="name another folder",
    )


def gather(chain: Chain, status: ChainStatus, *, samples: bool = True) -> ExportInputs:
    """Read a workspace for its export.

    Raises:
        DataError: ``plan.missing``.
        ConfigError: ``export.model`` for a model that plain TRL cannot load by name.
    """
    from rlvr import __version__
    from rlvr.export.inputs import ExportInputs
    from rlvr.records.plan import PlanRecord
    from rlvr.workspace import now

    plan = chain.workspace.read_record("plan", PlanRecord)
    if plan is None:
        raise DataError("plan.missing", "no plan yet, so there is nothing to hand over", fix="`rlvr plan`")
    files, uses = _local_files(chain)
    has_template = _has_template(chain)
    return ExportInputs(
        config=chain.config,
        plan=plan,
        status=status,
        fingerprints=chain.fingerprints,
        training=[_row(chain, row, has_template) for row in chain.rows],
        held_out=[_row(chain, row, has_template) for row in chain.held_out],
        model=_model(chain),
        weights={one.name: one.weight for one in chain.scorer.components},
        local_files=files,
        local_uses=uses,
        chat_template=_chat_template(chain),
        runs=_runs(chain),
        samples=samples,
        name=chain.base.name,
        made_at=now(),
        version=__version__,
    )


def _row(chain: Chain, row: Row, has_template: bool) -> ExportRow:
    from rlvr.commands.evaluate import prompt_of
    from rlvr.export.inputs import ExportRow
    from rlvr.task.prompt import for_trainer

    return ExportRow(for_trainer(prompt_of(chain, row), row.is_chat, has_template), row.columns)


def _has_template(chain: Chain) -> bool:
    """Return whether the model has a chat template, from its files; a Hub model is taken to have one."""
    import json

    folder = (chain.base / chain.config.model).absolute()
    if chain.config.sampling.chat_template or not folder.is_dir():
        return True
    if (folder / "chat_template.jinja").is_file():
        return True
    try:
        return bool(json.loads((folder / "tokenizer_config.json").read_text("utf-8")).get("chat_template"))
    except (OSError, ValueError):
        return False


def _chat_template(chain: Chain) -> str:
    name = chain.config.sampling.chat_template
    return (chain.base / name).read_text("utf-8") if name else ""


def _model(chain: Chain) -> str:
    from rlvr.generate.location import locate

    found = locate(chain.config.model, chain.base, chain.config.adapter)
    if found.gguf_file or found.adapter:
        kind = "a GGUF file" if found.gguf_file else "an adapter on top of a model"
        raise ConfigError(
            "export.model",
            f"the model is {kind}, which plain TRL does not load by name",
            where="model",
            expected="an ordinary checkpoint folder or a Hub id",
            fix="save it once as a checkpoint (load it, merge_and_unload() an adapter, save_pretrained) and name "
            "that folder as `model`",
        )
    return found.name


def _runs(chain: Chain) -> list[Any]:
    from rlvr.errors import RlvrError
    from rlvr.records.run import Manifest
    from rlvr.workspace import read_record

    found = []
    for path in sorted(chain.workspace.runs.glob("*/manifest.json")):
        try:
            record = read_record(path, Manifest)
        except RlvrError:
            continue  # a damaged run says nothing; `rlvr report` names it
        found += [record] if record else []
    return found


def _local_files(chain: Chain) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return the user's files that the rewards are made of, by their path under ``task/``, and each renamed use."""
    from rlvr.fingerprint import closure

    files: dict[str, bytes] = {}
    uses: dict[str, str] = {}
    for reward in chain.config.rewards:
        place, _, name = reward.use.rpartition(":")
        if place.endswith(".py"):
            uses[reward.use] = f"{_inside(place)}:{name}"
            keys = [key for key in closure(reward.use, chain.base) if (chain.base / key).is_file()]
            for key in {place, *keys}:
                files[_inside(key)] = (chain.base / key).read_bytes()
        for key in [*reward.depends_on, *(v for v in reward.arguments.values() if isinstance(v, str))]:
            if (chain.base / key).is_file():
                files[_inside(key)] = (chain.base / key).read_bytes()
    return files, uses


def _inside(place: str) -> str:
    """Return a path that stays under ``task/``: a file from elsewhere keeps its name alone."""
    path = Path(place)
    return path.name if path.is_absolute() or ".." in path.parts else path.as_posix()


def _print(folder: Path, brief: Brief) -> None:
    from rich.markup import escape

    out = console()
    state = "[green]ready: every gate is passed[/]" if brief.ready else "[red]not ready[/]"
    out.print(f"{escape(str(folder))}: {len(brief.files) + 1} files, {state}")
    for line in brief.red:
        out.print(f"  [red]{escape(line)}[/]")
    for name, commands in brief.launch.items():
        out.print(f"  {name}: [bold]{escape(' && '.join(commands))}[/]")
    if brief.next:
        out.print(f"next: [bold]{escape(brief.next)}[/]")

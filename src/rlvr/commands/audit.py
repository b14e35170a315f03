"""``rlvr audit``: attack the rewards of a workspace, or any TRL-style function, by program."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option
from rlvr.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlvr.audit.chain import Label
    from rlvr.audit.rows import AuditRow
    from rlvr.audit.trainer_shape import Shape
    from rlvr.commands.chain import Chain
    from rlvr.records.audit import AuditRecord, Finding

COLOURS = {"critical": "bold red", "high": "red", "medium": "yellow", "low": "cyan", "info": "dim"}
ROWS_ATTACKED = 60


@click.command(
    "audit",
    epilog="Examples: rlvr audit -w my-task | rlvr audit rewards.py:accuracy --dataset data.jsonl --json",
)
@click.argument("target", required=False)
@workspace_option
@json_option
@click.option(
    "--dataset", type=click.Path(path_type=Path), help="JSONL, JSON, CSV or Parquet rows for TARGET."
)
@click.option(
    "--role",
    type=click.Choice(["correctness", "format", "length", "composite"]),
    help="What TARGET is for; default: read from its source and behaviour.",
)
@click.option("--baseline", type=click.Path(path_type=Path), help="YAML file: known findings with reasons.")
@click.option("--sarif", type=click.Path(path_type=Path), help="Also write the findings as SARIF 2.1.0.")
@click.option(
    "--budget", type=click.FloatRange(1, 600), default=13.0, show_default=True, help="Seconds a reward."
)
@click.option("--selftest", is_flag=True, help="Audit the built-in zoo; print recall and false alarms.")
def command(
    target: str | None,
    folder: Path,
    as_json: bool,
    dataset: Path | None,
    role: str | None,
    baseline: Path | None,
    sarif: Path | None,
    budget: float,
    selftest: bool,
) -> int:
    """Attack the reward functions by program.

    Without TARGET all rewards of the workspace are audited and gates/audit.json is written. TARGET is
    FILE.py:FUNCTION, any function that TRL could call; it runs in a process of its own. Exit code 3 means that a
    finding of high or critical severity is open.
    """
    if selftest:
        return _selftest(as_json)
    if target is None:
        record = audit_workspace(
            _chain(folder), baseline=baseline, budget_s=budget, progress=_progress(as_json)
        )
    else:
        record = audit_function(target, dataset, role=role, baseline=baseline, budget_s=budget)
    if sarif is not None:
        from rlvr.audit.sarif import write_sarif

        write_sarif(sarif, record.findings)
    if as_json:
        emit_json(record.as_output())
    else:
        print_record(record)
        if not record.passed:
            _print_next_step(
                record, f"rlvr audit {target or _workspace(folder)}", in_workspace=target is None
            )
    return 0 if record.passed else 3


def audit_workspace(
    chain: Chain,
    *,
    baseline: Path | None = None,
    budget_s: float = 13.0,
    progress: Callable[[str], None] | None = None,
) -> AuditRecord:
    """Audit every reward of a workspace and write the record of the gate.

    Args:
        chain: The opened workspace.
        baseline: Known findings with reasons; default: the file that ``gates.audit.baseline`` names.
        budget_s: Seconds for each reward.
        progress: Told the name of each reward before it is audited.
    """
    from rlvr.audit.chain import audit_rewards
    from rlvr.workspace import stamp

    named = chain.config.gates.audit.baseline
    path = baseline or (chain.base / named if named else None)
    shape = trainer_shape(chain)
    record = audit_rewards(
        chain.scorer,
        _rows(chain, shape.chat),
        stamp=stamp(chain.fingerprints),
        baseline=path,
        labels=_labels(chain),
        budget_s=budget_s,
        progress=progress,
    )
    if shape.assumed:
        record = _with_assumption(record, shape)
    chain.workspace.write_record("audit", record)
    return record


def trainer_shape(chain: Chain) -> Shape:
    """Return whether the trainer passes messages or strings, from the configured template or the model's files."""
    from rlvr.audit.trainer_shape import Shape, shape_of
    from rlvr.generate.location import locate

    config, has_chat_rows = chain.config, any(row.is_chat for row in chain.rows)
    if config.sampling.chat_template:
        return Shape(True, "sampling.chat_template is set")
    try:
        place = locate(config.model, chain.base, config.adapter)
    except ConfigError as error:
        return Shape(has_chat_rows, f"{error.found} at model {config.model}", assumed=True)
    if place.adapter and (Path(place.adapter) / "tokenizer_config.json").is_file():
        return shape_of(place.adapter, is_local=True, gguf_file=None, has_chat_rows=has_chat_rows)
    return shape_of(
        place.name, is_local=place.is_local, gguf_file=place.gguf_file, has_chat_rows=has_chat_rows
    )


def _rows(chain: Chain, has_template: bool) -> list[AuditRow]:
    """Return the rows to attack, their prompts as the trainer passes them."""
    from rlvr.audit.rows import AuditRow
    from rlvr.task.prompt import for_trainer, with_system

    system = chain.config.sampling.system_prompt
    return [
        AuditRow(
            place,
            for_trainer(with_system(row.prompt, system), row.is_chat, has_template or row.is_chat),
            dict(row.columns),
        )
        for place, row in enumerate(chain.rows[:ROWS_ATTACKED])
    ]


def _with_assumption(record: AuditRecord, shape: Shape) -> AuditRecord:
    from rlvr.records.audit import NotChecked

    passed = "chat messages" if shape.chat else "strings"
    entry = NotChecked(
        what="shape of completions", why=f"{shape.because}: assumed that the trainer passes {passed}"
    )
    first, *others = record.rewards
    first = first.model_copy(update={"not_checked": [*first.not_checked, entry]})
    return record.model_copy(update={"rewards": [first, *others]})


def audit_function(
    target: str,
    dataset: Path | None,
    *,
    role: str | None = None,
    baseline: Path | None = None,
    budget_s: float = 13.0,
) -> AuditRecord:
    """Audit ``FILE.py:FUNCTION`` on the rows of a file; needs no workspace.

    Raises:
        ConfigError: The target or the data set is not named rightly, or the file cannot be loaded.
        DataError: The data set cannot be read.
    """
    from rlvr.audit.chain import record_of
    from rlvr.audit.engine import audit_target
    from rlvr.audit.findings import read_baseline, unused_entries, with_baseline
    from rlvr.audit.rows import as_rows
    from rlvr.audit.runner import FileTarget
    from rlvr.records.audit import NotChecked
    from rlvr.task.dataset import read_file

    path, function = _place(target)
    if dataset is None:
        raise ConfigError(
            "audit.dataset",
            "no data set is named",
            where=target,
            expected="the rows that the reward will be trained on",
            fix=f"rlvr audit {target} --dataset DATA.jsonl",
        )
    reasons = read_baseline(baseline) if baseline else {}
    rows = as_rows(read_file(dataset), str(dataset))
    found = audit_target(FileTarget(path, function), rows, role=role, budget_s=budget_s)
    left = [NotChecked(what="baseline", why=line) for line in unused_entries(found.findings, reasons)]
    found = found.model_copy(
        update={
            "findings": with_baseline(found.findings, reasons),
            "not_checked": [*found.not_checked, *left],
        }
    )
    return record_of([found], {})


def _place(target: str) -> tuple[Path, str]:
    name, separator, function = target.rpartition(":")
    if not separator or not name.endswith(".py") or not function:
        raise ConfigError(
            "audit.target",
            f"{target!r} names no function",
            expected="FILE.py:FUNCTION, such as rewards.py:accuracy",
        )
    path = Path(name)
    if not path.is_file():
        from rlvr.errors import did_you_mean

        near = [one.name for one in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise ConfigError("audit.target", f"no file {name}", where=target, fix=did_you_mean(path.name, near))
    return path.resolve(), function


def _chain(folder: Path) -> Chain:
    from rlvr.commands.chain import Chain

    return Chain(folder)


def _labels(chain: Chain) -> list[Label]:
    """Replay every completion that a person has judged under the reward as it stands."""
    from rlvr.audit.chain import Label
    from rlvr.commands.probing import Store, score_samples
    from rlvr.inspection.folder import InspectionFolder
    from rlvr.inspection.select import JUDGEABLE

    cases = InspectionFolder.of_gates(chain.workspace.gates).cases()
    chat = bool(Store(chain).made.get("chat", True))
    scores = score_samples(chain.scorer, [sample for sample, _ in cases], chat=chat) if cases else []
    return [
        Label(
            completion_id=sample.completion_id,
            row=sample.row,
            text=sample.text,
            passed=judgement.verdict == "pass",
            paid=score.outcome == "right",
            score=score.total,
        )
        for (sample, judgement), score in zip(cases, scores, strict=True)
        if score.outcome in JUDGEABLE
    ]


def _progress(as_json: bool) -> Callable[[str], None] | None:
    if as_json:
        return None
    out = console(to_stderr=True)
    return lambda name: out.print(f"[dim]auditing {name} …[/]")


def _selftest(as_json: bool) -> int:
    from rlvr.audit.selftest import run_selftest

    result = run_selftest()
    if as_json:
        emit_json(result.as_output())
    else:
        click.echo(result.table())
    return 0 if result.passed else 3


def print_record(record: AuditRecord) -> None:
    """Print what was found, the gravest first, for a person."""
    out = console()
    for audit in record.rewards:
        out.print(f"\n[bold]{audit.reward}[/] ({audit.role}, {audit.calls} calls in {audit.seconds:.1f} s)")
        out.print(f"  called as: {audit.convention}", markup=False)
        out.print(f"  paid form: {audit.form or 'none found'}", markup=False)
        _print_findings(out, audit.findings)
        for remark in audit.remarks:
            out.print(f"  remark: {remark.message}", style="dim", markup=False)
        for entry in audit.not_checked:
            out.print(f"  not checked: {entry.what} ({entry.why})", style="dim", markup=False)
    colour, mark = ("green", "✓") if record.passed else ("red", "✗")
    out.print(f"\n[{colour}]{mark}[/] {record.why}")


def _workspace(folder: Path) -> str:
    return "" if folder == Path() else f"-w {folder}"


def _print_next_step(record: AuditRecord, again: str, *, in_workspace: bool) -> None:
    """Print what to do about open findings, and how one that the task asks for can stand."""
    out = console()
    first = next(finding.id for finding in record.findings if finding.blocks)
    again = again.strip()
    named = ", or under gates.audit.baseline in rlvr.yaml" if in_workspace else ""
    out.print(f"next: mend what `do:` says, then {again}", markup=False)
    out.print(
        f"A finding that the task asks for can stand with a reason: write known.yaml and name it with\n"
        f"`{again} --baseline known.yaml`{named}:\n"
        f"  accepted:\n    - id: {first}\n      reason: why it is no defect of this task",
        style="dim",
        markup=False,
    )


def _print_findings(out: Any, findings: Sequence[Finding]) -> None:
    """Print one block a category, the gravest first; further attacks of a category are named on one line."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.category, []).append(finding)
    for found in groups.values():
        _print_finding(out, found[0])
        if len(found) > 1:
            others = ", ".join(f"{one.attack} [{one.id}]" for one in found[1:])
            out.print(f"           also: {others}", style="dim", markup=False)


def _print_finding(out: Any, finding: Finding) -> None:
    state = f" accepted: {finding.accepted_because}" if finding.accepted_because else ""
    place = f" (line {finding.line})" if finding.line else ""
    head = f"  {finding.severity:8} {finding.category}{place}{state}"
    out.print(head, style=COLOURS[finding.severity], markup=False)
    out.print(f"           {finding.message}", markup=False)
    if finding.completion:
        out.print(f"           completion: {_visible(finding.completion)}", markup=False)
    out.print(f"           do: {finding.fix}   [{finding.id}]", markup=False)


def _visible(text: str) -> str:
    shown = ascii(text) if any(not (one.isprintable() or one == "\n") for one in text) else repr(text)
    return shown if len(shown) <= 160 else f"{shown[:120]} … ({len(text)} characters)"

"""``rlvr rewards``: which rewards there are, and how one reads a completion."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option
from rlvr.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlvr.commands.chain import Chain
    from rlvr.records.samples import Sample
    from rlvr.rewards.cases import Case
    from rlvr.rewards.contract import Verdict
    from rlvr.rewards.judge import Judge
    from rlvr.rewards.trying import Tried


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    r"""List the built-in rewards, or see how one reads a completion.

    Without a subcommand it lists them. Example: rlvr rewards try math --completion 'so \boxed{1/2}' --reference 0.5
    """
    if context.invoked_subcommand is None:
        _list(as_json)


@command.command("list")
@json_option
def list_rewards(as_json: bool) -> None:
    """List the built-in rewards: what each accepts, its role, and its arguments.

    Example: rlvr rewards list
    """
    _list(as_json)


def _list(as_json: bool) -> None:
    from rlvr.rewards.reference import describe_all

    found = describe_all()
    if as_json:
        emit_json({"rewards": [one.as_dict() for one in found]})
        return
    out = console()
    for one in found:
        out.print(f"[bold]{one.name}[/bold]  {one.summary}", markup=True)
        out.print(f"    role {one.role}; arguments: {', '.join(one.arguments) or 'none'}", markup=False)
    out.print("\nYour own: path.py:function or package.module:function, with TRL's signature.", markup=False)


@command.command("try")
@click.argument("name", required=False)
@click.option("--completion", help="The completion; - reads standard input.")
@click.option("--reference", help="The reference; JSON where it parses as an object or a list.")
@click.option(
    "--argument", "-a", "arguments", multiple=True, metavar="KEY=VALUE", help="An argument of the reward."
)
@click.option(
    "--cases", "file", type=click.Path(path_type=Path, dir_okay=False), help="A file of cases instead."
)
@click.option("--chat", is_flag=True, help="Pass the completion as a list of messages alone.")
@workspace_option
@json_option
def try_reward(
    name: str | None,
    completion: str | None,
    reference: str | None,
    arguments: tuple[str, ...],
    file: Path | None,
    chat: bool,
    folder: Path,
    as_json: bool,
) -> None:
    r"""Show how one reward reads a completion: what was extracted, and why it is right or wrong.

    The completion is passed as a string; where the reward raises on it, as a list of messages.

    Example: rlvr rewards try math --completion 'so \boxed{1/2}' --reference 0.5
    """
    if file is not None:
        _try_file(file, as_json)
        return
    if name is None or completion is None:
        raise UsageError(
            "usage",
            "no reward and completion, and no file of cases",
            expected="NAME with --completion, or --cases FILE",
            fix="rlvr rewards try math --completion 'so \\boxed{1/2}' --reference 0.5",
        )
    _try_one(name, _text(completion), reference, parsed_arguments(arguments), folder, chat, as_json)


def _text(completion: str) -> str:
    return sys.stdin.read() if completion == "-" else completion


def parsed_arguments(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments of a reward that stand on the command line as KEY=VALUE, JSON where it parses.

    Raises:
        UsageError: One is no KEY=VALUE.
    """
    found = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not sign:
            raise UsageError("usage", f"--argument {pair!r} is no KEY=VALUE", fix="--argument strict=true")
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _reference(text: str | None) -> Any:
    """Return a reference as data holds it: objects and lists as such, everything else as text."""
    value = _value(text) if text is not None else None
    return value if isinstance(value, dict | list) else text


def _try_one(
    name: str,
    completion: str,
    reference: str | None,
    arguments: Mapping[str, Any],
    folder: Path,
    chat: bool,
    as_json: bool,
) -> None:
    from rlvr.rewards import load_reward
    from rlvr.rewards.contract import as_verifier
    from rlvr.rewards.trying import try_completion

    reward: Any = load_reward(name, arguments, folder)
    verifier = as_verifier(reward)
    if verifier is not None and verifier.reference_column is not None and reference is None:
        raise UsageError(
            "usage",
            f"{name} needs a reference",
            fix=f"add --reference; it stands for the column {verifier.reference_column!r}",
        )
    tried = try_completion(name, reward, completion, _reference(reference), chat=chat)
    if tried.verdict is None:
        _show_score(name, tried, as_json)
    else:
        _show(name, tried.verdict, tried, as_json)


def _show(name: str, verdict: Verdict, tried: Tried, as_json: bool) -> None:
    if as_json:
        emit_json(
            {
                "reward": name,
                "accepted": verdict.accepted,
                "outcome": verdict.outcome.value,
                "score": verdict.score,
                "extracted": _printable(verdict.extracted),
                "why": _printable(verdict.why),
                "details": dict(verdict.details),
                **_passed(tried),
            }
        )
        return
    out = console()
    out.print(f"{verdict.outcome.value}, score {verdict.score}", markup=False)
    out.print(f"extracted: {_printable(verdict.extracted)}", markup=False)
    out.print(f"why: {_printable(verdict.why)}", markup=False)
    _show_shape(tried)


def _show_score(name: str, tried: Tried, as_json: bool) -> None:
    if as_json:
        emit_json({"reward": name, "score": tried.score, **_passed(tried)})
        return
    console().print(f"score {tried.score}; a plain function does not say what it read", markup=False)
    _show_shape(tried)


def _passed(tried: Tried) -> dict[str, str]:
    return {"passed_as": tried.shape, "raised_before": tried.other}


def _show_shape(tried: Tried) -> None:
    from rlvr.rewards.trying import WORDS

    if tried.other:
        text = f"read as {WORDS[tried.shape]}, as TRL passes it where prompts are messages; it raised {tried.other}"
        console().print(text, markup=False)


def _printable(text: str | None) -> str | None:
    """Return text that any terminal and any JSON reader takes: lone surrogates are shown as escapes."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


def _try_file(path: Path, as_json: bool) -> None:
    from rlvr.rewards.cases import judge_cases, read_cases

    if not path.is_file():
        raise UsageError("cases.file", f"no file {path}", expected="a file of cases, one JSON object a line")
    cases = read_cases(path)
    verdicts = judge_cases(cases)
    if as_json:
        rows = [
            {
                "id": case.id,
                "accepted": verdict.accepted,
                "outcome": verdict.outcome.value,
                "score": verdict.score,
            }
            for case, verdict in zip(cases, verdicts, strict=True)
        ]
        emit_json({"cases": rows})
        return
    _print_cases(cases, verdicts)


def _print_cases(cases: list[Case], verdicts: list[Verdict]) -> None:
    out = console()
    pairs = list(zip(cases, verdicts, strict=True))
    for case, verdict in pairs:
        agrees = case.expected is None or case.expected == verdict.accepted
        mark = "" if agrees else f"   EXPECTED {'accepted' if case.expected else 'refused'}: {case.why}"
        out.print(f"{case.id:8} {verdict.outcome.value:14} {_printable(verdict.why)}{mark}", markup=False)
    judged = [(case, verdict) for case, verdict in pairs if case.expected is not None]
    wrong = [case.id for case, verdict in judged if case.expected != verdict.accepted]
    out.print(
        f"\n{len(judged) - len(wrong)} of {len(judged)} as expected {' '.join(wrong)}".rstrip(), markup=False
    )


@command.command("calibrate")
@click.argument("name", required=False)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("calibration.json"),
    show_default=True,
    help="Where the record goes, relative to the workspace.",
)
@workspace_option
@json_option
def calibrate(name: str | None, output: Path, folder: Path, as_json: bool) -> None:
    """Compare a judge with people's labels of this workspace, and write its calibration record.

    The judge judges every completion that a person labelled in an inspection; the simulated reader does not count.

    Example: rlvr rewards calibrate judge --output calibration.json
    """
    from rlvr.commands.chain import Chain
    from rlvr.inspection.folder import InspectionFolder
    from rlvr.rewards.judge import calibration_of
    from rlvr.workspace import write_atomic

    chain = Chain(folder)
    judge, configured = _configured_judge(chain, name)
    labelled = InspectionFolder.of_gates(chain.workspace.gates).cases()
    if not labelled:
        raise UsageError(
            "judge.no-labels",
            "no person has labelled a completion here",
            where=str(chain.base),
            fix="rlvr inspect, with a reward beside the judge",
        )
    verdicts = _judged(judge, [sample for sample, _ in labelled])
    pairs = [
        (verdict.accepted, judgement.verdict == "pass")
        for verdict, (_, judgement) in zip(verdicts, labelled, strict=True)
        if verdict.score is not None
    ]
    record = calibration_of(configured, [one for one, _ in pairs], [other for _, other in pairs])
    record["not_judged"] = len(verdicts) - len(pairs)
    write_atomic(chain.base / output, (json.dumps(record, indent=2) + "\n").encode())
    if as_json:
        emit_json({**record, "path": str(chain.base / output)})
        return
    console().print(
        f"{record['labels']} labels, agreement {record['agreement']:.1%} (at least {record['agreement_low']:.1%}); "
        f"written to {chain.base / output}. Name it as the judge's argument `calibration`.",
        markup=False,
    )


def _configured_judge(chain: Chain, name: str | None) -> tuple[Judge, str]:
    """Return the judge of the configuration, by its name or the only one, and its model."""
    from rlvr.rewards import load_reward
    from rlvr.rewards.judge import Judge

    for reward in chain.config.rewards:
        if reward.use == "judge" and name in (None, reward.name or reward.use):
            found = load_reward(reward.use, reward.arguments, chain.base)
            assert isinstance(found, Judge)
            return found, found.model
    raise UsageError(
        "judge.none",
        f"no reward {name or 'judge'!r} of the configuration is a judge",
        where=str(chain.workspace.config_path),
        expected="an entry with `use: judge`",
    )


def _judged(judge: Judge, samples: list[Sample]) -> list[Verdict]:
    columns: dict[str, list[Any]] = {}
    if judge.reference_column is not None:
        columns[judge.reference_column] = [sample.columns.get(judge.reference_column) for sample in samples]
    return judge.verdicts([[one.model_dump() for one in sample.completion] for sample in samples], **columns)

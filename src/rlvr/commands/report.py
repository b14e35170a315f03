"""``rlvr report``: gathers what a run left behind and writes its page; composition of records, no judgement."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option

if TYPE_CHECKING:
    from rlvr.commands.chain import Chain
    from rlvr.report.inputs import ReportInputs

PAGE = "report.html"


@click.command(
    "report",
    epilog="Examples: rlvr report base-1 | rlvr report base-1 base-2 | rlvr report outputs/ -o page.html",
)
@click.argument("run", required=False)
@click.argument("other", required=False)
@click.option("--no-samples", is_flag=True, help="Leave prompts and completions out of the page.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where the page goes.  [RUN/report.html]",
)
@workspace_option
@json_option
def command(
    run: str | None, other: str | None, no_samples: bool, output: Path | None, folder: Path, as_json: bool
) -> None:
    """Write one self-contained page: the verdict on RUN, its evidence, and the record of every gate.

    RUN is a run of the workspace (the latest without RUN), or any folder that TRL wrote. With OTHER the two are
    compared. The page opens from disk and loads nothing.
    """
    from rlvr.commands.report_inputs import open_place

    if run is not None and other is not None:
        _compare(open_place(run, folder), open_place(other, folder), not no_samples, output, as_json)
        return
    place, chain = open_place(run, folder)
    page, inputs = write_page(place, chain, samples=not no_samples, output=output)
    if as_json:
        emit_json(as_object(page, inputs))
    else:
        _print(page, inputs)


def report_run(chain: Chain, run_folder: Path, *, samples: bool = True) -> Path:
    """Write the page of a run of this workspace and return its path, ``runs/NAME/report.html``."""
    return write_page(run_folder, chain, samples=samples)[0]


def write_page(
    place: Path, chain: Chain | None, *, samples: bool = True, output: Path | None = None
) -> tuple[Path, ReportInputs]:
    """Gather, write, and return the page's path with what it was made from."""
    from rlvr.commands.report_inputs import gather
    from rlvr.report.report import write_report
    from rlvr.workspace import write_atomic

    inputs = gather(place, chain, samples=samples)
    page = output or place / PAGE
    write_atomic(page, write_report(inputs).encode("utf-8", "backslashreplace"))
    return page, inputs


def _compare(
    first: tuple[Path, Chain | None],
    second: tuple[Path, Chain | None],
    samples: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    from rlvr.commands.report_inputs import gather
    from rlvr.report.compare import compare, differences, write_comparison
    from rlvr.workspace import write_atomic

    one, two = gather(*first, samples=samples), gather(*second, samples=samples)
    page = output or second[0] / f"against-{one.name}.html"
    write_atomic(page, write_comparison(one, two).encode("utf-8", "backslashreplace"))
    found = compare(one, two)
    if not as_json:
        console().print(f"{found.sentence}\npage: [bold]{page}[/]")
        return
    emit_json(
        {
            "report": str(page),
            "verdict": found.word,
            "sentence": found.sentence,
            "change": found.change._asdict() if found.change else None,
            "differences": [
                {"field": field, "first": old, "second": new, "why": why}
                for field, old, new, why in differences(one.manifest, two.manifest)
            ],
        }
    )


def as_object(page: Path, inputs: ReportInputs) -> dict[str, Any]:
    """Return the object that ``--json`` prints."""
    from rlvr.report.report import red_flags
    from rlvr.report.verdict import judge

    verdict = judge(inputs.manifest, inputs.before, inputs.after, inputs.reading)
    change = verdict.change
    return {
        "run": inputs.name,
        "report": str(page),
        "verdict": verdict.word,
        "sentence": verdict.sentence,
        "notes": list(verdict.notes),
        "next": verdict.next,
        "before": _accuracy(inputs.before),
        "after": _accuracy(inputs.after),
        "change": change._asdict() if change else None,
        "red": [{"what": what, "why": why} for what, why in red_flags(inputs)],
        "missing": list(inputs.missing),
        "samples": inputs.samples,
    }


def _accuracy(found: Any) -> dict[str, float] | None:
    return {"accuracy": found.accuracy, "low": found.low, "high": found.high} if found else None


def _print(page: Path, inputs: ReportInputs) -> None:
    from rich.markup import escape

    from rlvr.report.report import red_flags
    from rlvr.report.verdict import judge

    verdict = judge(inputs.manifest, inputs.before, inputs.after, inputs.reading)
    colour = {"good": "green", "warning": "yellow", "bad": "red", "neutral": "default"}[verdict.tone]
    out = console()
    out.print(f"[{colour}]{escape(verdict.sentence)}[/]")
    for note in verdict.notes:
        out.print(f"  {escape(note)}")
    for what, why in red_flags(inputs):
        out.print(f"  [red]{escape(what)}[/]: {escape(why)}")
    for line in inputs.missing:
        out.print(f"  [yellow]missing[/] {escape(line)}")
    out.print(f"page: [bold]{escape(str(page))}[/]")
    if verdict.next:
        out.print(f"next: [bold]{escape(verdict.next)}[/]")

"""``rlvr probe``: does the model already succeed sometimes, and would groups hold both outcomes?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option

if TYPE_CHECKING:
    from rlvr.records.probe import ProbeRecord, Rate

STYLES = {
    "sweet spot": "bold green",
    "saturated": "bold yellow",
    "rare": "bold yellow",
    "undecided": "bold blue",
    "no support": "bold red",
}
BAR_WIDTH = 40


@click.command(
    "probe",
    epilog="Examples: `rlvr probe`; `rlvr probe --rescore` after a change of the reward; "
    "`rlvr probe --from completions.jsonl` without a model.",
)
@workspace_option
@click.option("--rescore", is_flag=True, help="Score kept completions anew; no model is loaded.")
@click.option(
    "--filter", "filters", is_flag=True, help="Keep the prompts that can teach, with a budget of its own."
)
@click.option("--budget", type=click.IntRange(min=8), help="With --filter: completions in all.")
@click.option(
    "--band",
    type=(float, float),
    help="With --filter: drop prompts that are surely outside this success; default 0.05 0.95.",
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Judge completions of this JSONL, JSON, CSV or Parquet file; needs no workspace and no model.",
)
@click.option("--reward", help="With --from: score by this built-in or path.py:function.")
@click.option(
    "--argument",
    "-a",
    "arguments",
    multiple=True,
    metavar="KEY=VALUE",
    help="With --reward: an argument of the reward, such as tag= for the whole text.",
)
@click.option("--cut", type=float, help="With --from: a score at or above it is right; default 1.")
@click.option("--page", type=click.Path(path_type=Path), help="With --from: where the page goes.")
@json_option
def command(
    folder: Path,
    rescore: bool,
    filters: bool,
    budget: int | None,
    band: tuple[float, float] | None,
    source: Path | None,
    reward: str | None,
    arguments: tuple[str, ...],
    cut: float | None,
    page: Path | None,
    as_json: bool,
) -> int:
    """Sample the untrained model on distinct prompts and say whether there is anything to learn."""
    _check_options(source, rescore, filters, {"--reward": reward, "--cut": cut, "--page": page})
    _check_filter(filters, budget, band)
    if arguments and reward is None:
        raise click.UsageError("--argument goes with --from and --reward")
    if filters:
        return _filter(folder, budget, band, as_json)
    if source is not None:
        from rlvr.commands.probe_file import probe_file, write_page
        from rlvr.commands.rewards import parsed_arguments

        record = probe_file(source, reward=reward, arguments=parsed_arguments(arguments), cut=cut)
        written = write_page(record, source, page)
    else:
        record, written = _probe(folder, rescore, as_json)
    if as_json:
        emit_json(as_object(record, written))
    else:
        print_record(record, written)
    return 0 if record.passed else 3


def _check_options(source: Path | None, rescore: bool, filters: bool, with_file: dict[str, Any]) -> None:
    if sum((source is not None, rescore, filters)) > 1:
        raise click.UsageError("--from, --rescore and --filter are three different things: give one of them")
    given = [name for name, value in with_file.items() if value is not None]
    if source is None and given:
        raise click.UsageError(f"{given[0]} goes with --from; a workspace has its rewards in rlvr.yaml")


def _check_filter(filters: bool, budget: int | None, band: tuple[float, float] | None) -> None:
    if not filters and (budget is not None or band is not None):
        raise click.UsageError("--budget and --band go with --filter")
    if band is not None and not 0 <= band[0] < band[1] <= 1:
        raise click.UsageError(f"--band {band[0]} {band[1]}: two shares from 0 to 1, the smaller one first")


def _filter(folder: Path, budget: int | None, band: tuple[float, float] | None, as_json: bool) -> int:
    from rlvr.commands.chain import Chain
    from rlvr.commands.filtering import filter_workspace
    from rlvr.probe.estimate import BAND

    found = filter_workspace(Chain(folder), most=budget, band=band or BAND, quiet=as_json)
    if as_json:
        emit_json(found.model_dump(mode="json", exclude={"prompts"}))
        return 0
    out, places = console(), found.places
    out.print(
        f"kept {found.kept_rows} of {found.rows} rows: {places['inside']} prompts surely between "
        f"{found.band[0]:.0%} and {found.band[1]:.0%}, {places['unknown']} unknown"
    )
    out.print(f"dropped {places['too hard']} prompts as too hard and {places['too easy']} as too easy")
    out.print(f"{found.samples_spent} of {found.budget} completions spent")
    out.print(f"next: set task.prompts to {found.path}, then `rlvr probe`")
    return 0


def _probe(folder: Path, rescore: bool, quiet: bool) -> tuple[ProbeRecord, Path]:
    from rlvr.commands.chain import Chain
    from rlvr.commands.probing import Store, probe_workspace

    chain = Chain(folder)
    err = console(to_stderr=True)
    record = probe_workspace(chain, rescore=rescore, quiet=quiet, say=err.print)
    return record, Store(chain).page


def as_object(record: ProbeRecord, page: Path | None) -> dict[str, Any]:
    """Return the object that ``--json`` prints."""
    from rlvr.commands.probe_file import zeros_of

    plain = record.model_dump(mode="json", exclude={"examples"})
    return {**plain, "zeros_to_read": zeros_of(record), "page": str(page) if page else None}


def print_record(record: ProbeRecord, page: Path | None) -> None:
    """Print the summary for a person."""
    from rich.markup import escape

    from rlvr.probe.page import MEANINGS

    out = console()
    out.print(f"[{STYLES[record.verdict]}]{record.verdict}[/]  {escape(record.why.partition(': ')[2])}")
    out.print(f"  [dim]{MEANINGS[record.verdict]}[/]")
    for name, rate in (
        ("low temperature", record.success.low_temperature),
        ("training temperature", record.success.training_temperature),
    ):
        if rate is not None:
            out.print(f"  right at {name:<21} {_rate(rate)}")
    _print_groups(record)
    _print_histogram(record)
    _print_causes(record)
    for remark in record.remarks:
        out.print(f"  [yellow]note[/] {escape(remark)}")
    _print_zeros(record)
    if record.next_step:
        out.print(f"next: {escape(record.next_step)}")
    if page is not None:
        out.print(f"page: {escape(str(page))}")


def _rate(rate: Rate) -> str:
    from rlvr.probe.page import percent

    return (
        f"{percent(rate.rate, 1):>6}  ({percent(rate.low, 1)} to {percent(rate.high, 1)}; "
        f"{rate.right} of {rate.samples} completions, {rate.prompts} prompts)"
    )


def _print_groups(record: ProbeRecord) -> None:
    from rlvr.probe.page import percent

    parts = [f"of {size}: {percent(share)}" for size, share in record.informative_groups.items()]
    advice = f"; take groups of {record.group_size}" if record.group_size else ""
    console().print(f"  groups with both outcomes     {', '.join(parts)}{advice}")


def _print_histogram(record: ProbeRecord) -> None:
    from rlvr.probe.page import bars

    found = bars(record.histogram)
    if not found:
        return
    out = console()
    out.print(f"  prompts by right completions out of {len(found) - 1}:")
    for bar in found:
        width = round(bar["height"] / 100 * BAR_WIDTH)
        style = "green" if bar["trains"] else "dim"
        block = "█" * width or ("▏" if bar["count"] else "")
        out.print(f"  {bar['label']:>4} [{style}]{block}[/] {bar['count']}")


def _print_zeros(record: ProbeRecord) -> None:
    """Show the ten zeros that are read before anybody is sent to SFT."""
    from rich.text import Text

    from rlvr.commands.probe_file import zeros_of

    found = zeros_of(record)
    if not found:
        return
    out = console()
    out.print("  unpaid completions, to be read:")
    for one in found:
        reference = f"  (reference {_short(one['reference'], 40)})" if one["reference"] else ""
        out.print(
            Text(f"    {_short(one['prompt'], 60, tail=36)}  ->  {_short(one['completion'], 80)}{reference}")
        )


def _short(text: str, size: int, tail: int = 0) -> str:
    """Return text on one line, cut in the middle so that its last ``tail`` characters stay: the question is there."""
    line = "".join(one if one.isprintable() else " " for one in " ".join(text.split()))
    if len(line) <= size:
        return repr(line)
    return repr(line[: size - tail - 1] + "…" + (line[-tail:] if tail else ""))


def _print_causes(record: ProbeRecord) -> None:
    causes = record.causes
    if not causes.zeros:
        return
    parts = [f"{causes.wrong} wrong", f"{causes.ill_formed} ill-formed", f"{causes.truncated} cut off"]
    if causes.infrastructure:
        parts.append(f"{causes.infrastructure} not judged")
    if causes.gold_checked:
        parts.append(f"the reward pays {causes.gold_paid} of {causes.gold_checked} references")
    console().print(f"  not paid: {', '.join(parts)}")

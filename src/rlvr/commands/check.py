"""``rlvr check``: configuration, data, references and admission, in a second and without a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option
from rlvr.errors import DataError, RlvrError

if TYPE_CHECKING:
    from rlvr.commands.chain import Chain
    from rlvr.records.admit import AdmitRecord


@click.command("check", epilog="Example: rlvr check -w my-task --json")
@workspace_option
@json_option
def command(folder: Path, as_json: bool) -> int:
    """Check configuration, data and rewards, and whether the task belongs here; no model is loaded."""
    from rlvr.commands.chain import Chain

    chain = Chain(folder)
    found = check_workspace(chain)
    admitted = found["admit"]
    if as_json:
        emit_json({**found, "admit": admitted.model_dump(mode="json")})
    else:
        _print(found, admitted)
    return 0 if admitted.passed else 3


def check_workspace(chain: Chain) -> dict[str, Any]:
    """Check everything that needs no model, write the admission, and return what was found.

    Raises:
        RlvrError: The first thing that must be mended: configuration, data, reward, reference or model folder.
    """
    from rlvr.workspace import stamp

    _check_references(chain)
    _check_overrides(chain)
    admitted = chain.admitted()
    if isinstance(admitted, RlvrError):
        raise admitted
    admitted = admitted.model_copy(update=stamp(chain.fingerprints))
    chain.workspace.write_record("admit", admitted)
    return {
        "passed": admitted.passed,
        "prompts": len(chain.rows),
        "held_out": len(chain.held_out),
        "rewards": [
            {"name": one.name, "role": one.role, "weight": one.weight} for one in chain.scorer.components
        ],
        "notes": _unresolved(chain),
        "admit": admitted,
    }


def _unresolved(chain: Chain) -> list[str]:
    """Return what the rewards execute but no record can notice a change of."""
    from rlvr.fingerprint import unresolved

    found = [line for reward in chain.config.rewards for line in unresolved(reward.use, chain.base)]
    return list(dict.fromkeys(found))


def _check_references(chain: Chain) -> None:
    for title, rows in (("task.prompts", chain.rows), ("task.held_out", chain.held_out)):
        bad = chain.scorer.check_references([row.columns for row in rows])
        if bad:
            raise _bad_reference(title, bad)


def _bad_reference(title: str, bad: list[Any]) -> DataError:
    first = bad[0]
    more = f" (and {len(bad) - 1} more rows)" if len(bad) > 1 else ""
    return DataError(
        "data.reference",
        f"row {first.row}: column {first.column!r} holds {str(first.value)[:60]!r}: {first.why}{more}",
        where=f"{title}, reward {first.component}",
        expected="a reference that the reward can read, on every row",
        fix="mend or remove these rows: an unreadable reference scores every completion as wrong",
    )


def _check_overrides(chain: Chain) -> None:
    from rlvr.plan.checks import check_overrides
    from rlvr.plan.trl_schema import installed_schema

    overrides = chain.config.recipe.overrides
    if overrides:
        from rlvr.commands.plan_inputs import plan_overrides, stable_base_runs

        check_overrides(plan_overrides(overrides), installed_schema(), stable_base_runs(chain))


def _print(found: dict[str, Any], admitted: AdmitRecord) -> None:
    out = console()
    colour, mark = ("green", "✓") if admitted.passed else ("red", "✗")
    rewards = ", ".join(f"{one['name']} × {one['weight']:g}" for one in found["rewards"])
    out.print(f"[green]✓[/] {found['prompts']} prompts, {found['held_out']} held out")
    out.print(f"[green]✓[/] rewards: {rewards}")
    out.print(f"[{colour}]{mark}[/] admit: {admitted.why}")
    for remark in [*admitted.remarks, *found["notes"]]:
        out.print(f"  [yellow]note[/] {remark}")
    if admitted.passed:
        out.print("next: [bold]rlvr audit[/]")

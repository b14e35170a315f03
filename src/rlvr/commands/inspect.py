"""``rlvr inspect``: a person reads scored samples, blind; nothing trains unread."""

from __future__ import annotations

import getpass
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlvr.commands.output import console, emit_json, json_option, workspace_option

if TYPE_CHECKING:
    from rich.console import Console

    from rlvr.inspection.server import PageServer
    from rlvr.inspection.session import Sitting
    from rlvr.records.inspection import Attestation


@click.command(
    "inspect",
    epilog="Examples: rlvr inspect | rlvr inspect --terminal | rlvr inspect --rescore, after mending the reward "
    "| rlvr inspect --run base-1 | rlvr inspect --reader bob",
)
@workspace_option
@click.option("--reader", default=None, help="Who reads.  [default: your login name]")
@click.option("--run", default=None, help="Read the newest completions of this run, 20 of them.")
@click.option("--rescore", is_flag=True, help="Score kept completions again first; no model is loaded.")
@click.option("--terminal", is_flag=True, help="Read in the terminal instead of the browser; works over SSH.")
@click.option("--start-over", is_flag=True, help="Put earlier labels aside and read a new draw.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default="any free one")
@click.option("--no-browser", is_flag=True, help="Print the link, open nothing.")
@json_option
def command(
    folder: Path,
    reader: str | None,
    run: str | None,
    rescore: bool,
    terminal: bool,
    start_over: bool,
    port: int,
    no_browser: bool,
    as_json: bool,
) -> int:
    """Read scored samples, blind, and judge each: right or not.

    Training stays shut until you have read at least 50 and no disagreement with the reward is open. Every key is
    on disk at once: stop and go on whenever you like. Exit code 3 means that the gate is not passed.
    """
    from rlvr.commands.inspecting import opened

    out = console(to_stderr=True)
    name = reader or _login()
    with opened(folder, name, run=run, start_over=start_over, rescore=rescore, say=out.print) as sitting:
        if sitting.mended_before or rescore:
            _say_rescored(out, sitting)
        if rescore and (as_json or _nothing_left(sitting)):
            found = sitting.close()
        elif terminal:
            _require_terminal()
            from rlvr.inspection.terminal import read_in_terminal

            found = read_in_terminal(sitting, _rewards(folder))
        else:
            found = _read_in_browser(sitting, _rewards(folder), port, not no_browser, out)
    _after_run(folder, run, found)
    return _report(found, as_json)


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "reader"


def _require_terminal() -> None:
    from rlvr.errors import UsageError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "inspect.no-terminal",
            "standard input or output is no terminal",
            fix="run it in a terminal (over SSH: ssh -t), or leave --terminal out to read in the browser",
        )


def _rewards(folder: Path) -> list[str]:
    from rlvr.workspace import Workspace

    return [reward.use for reward in Workspace(folder).config.rewards]


def _nothing_left(sitting: Sitting) -> bool:
    return not sitting.queue() and not sitting.attestation().open_disagreements


def _say_rescored(out: Console, sitting: Sitting) -> None:
    changed = len(sitting.mended_before)
    if not changed:
        out.print("scored again: every score is as it was")
        return
    found = sitting.attestation()
    fresh = max(found.fresh.needed - found.fresh.read, 0) if found.fresh else 0
    out.print(
        f"scored again: {changed} scores changed, {len(found.open_disagreements)} disagreements open, "
        f"{fresh} fresh samples to read"
    )


def _read_in_browser(
    sitting: Sitting, mend_at: list[str], port: int, may_open: bool, out: Console
) -> Attestation:
    from rlvr.inspection.server import PageServer

    server = PageServer(sitting, mend_at, port)
    link = server.new_link()
    out.print(f"[bold]{sitting.reader}[/], read here: [bold]{link}[/]", highlight=False)
    out.print(
        "[dim]The link works once; press Enter here for another. Ctrl-C stops; every key is on disk.[/]"
    )
    if may_open and _has_screen():
        import webbrowser

        webbrowser.open(link)
    if sys.stdin.isatty():
        threading.Thread(target=_offer_links, args=(server, out), daemon=True).start()
    try:
        return server.run()
    except KeyboardInterrupt:
        return _stopped(sitting)


def _stopped(sitting: Sitting) -> Attestation:
    found = sitting.close()
    if found.passed:
        return found
    raise KeyboardInterrupt


def _has_screen() -> bool:
    on_desktop = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return on_desktop and not os.environ.get("SSH_CONNECTION")


def _offer_links(server: PageServer, out: Console) -> None:
    for _ in sys.stdin:
        out.print(server.new_link(), highlight=False)


def _after_run(folder: Path, run: str | None, found: Attestation) -> None:
    """A run's completions were read and agreed on: that answers what the run had closed the gate for."""
    from rlvr.inspection.folder import InspectionFolder
    from rlvr.workspace import Workspace

    if run is not None and found.passed and not found.simulated:
        workspace = Workspace(folder)
        with workspace.lock("inspect"):
            InspectionFolder.of_gates(workspace.gates).answer_reopenings(run)


def _report(found: Attestation, as_json: bool) -> int:
    if as_json:
        emit_json(as_object(found))
    else:
        print_attestation(found)
    return 0 if found.passed else 3


def as_object(found: Attestation) -> dict[str, Any]:
    """Return the object that ``--json`` prints: the attestation."""
    return found.model_dump(mode="json")


def print_attestation(found: Attestation) -> None:
    """Print what was read, for a person."""
    from rich.markup import escape

    out = console()
    out.print(f"[bold green]passed[/]  {escape(found.why)}" if found.passed else "[bold red]not passed[/]")
    for refusal in found.refusals:
        out.print(f"  [red]·[/] {escape(refusal)}")
    if found.read:
        kappa = f"{found.kappa:.2f}" if found.kappa is not None else found.kappa_note
        out.print(f"  read {found.read}, agreement {found.agreement:.1%}, kappa {kappa}")
    on_policy = "" if found.source == "probe" else f" --run {found.source}"
    after = f"rlvr report {found.source}" if on_policy else "rlvr plan"
    out.print(f"next: [bold]{escape(after if found.passed else f'rlvr inspect{on_policy}')}[/]")

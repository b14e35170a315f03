"""The command line: one table of commands, each loaded only when it is called.

Every command lives in ``rlvr/commands/NAME.py`` as a click command named ``command``. The commands are the only
place where stages meet: each reads records, calls one stage, and writes that stage's record.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from typing import TYPE_CHECKING

import click

from rlvr import streams
from rlvr.errors import InfrastructureError, RlvrError, UsageError, did_you_mean, in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "Run the whole chain on a tiny embedded model, in about a minute."),
    "init": ("init", "Write a workspace that runs as it stands."),
    "check": ("check", "Check configuration, data and rewards; no model is loaded."),
    "status": ("status", "Show every gate, why it stands so, and the next command."),
    "gate": ("gate", "Answer for other programs: may this workspace train?"),
    "rewards": ("rewards", "List the built-in rewards, or see how one reads a completion."),
    "audit": ("audit", "Attack the reward functions by program."),
    "probe": ("probe", "Measure whether the model already succeeds sometimes."),
    "inspect": ("inspect", "Let a person read scored samples; nothing trains unread."),
    "plan": ("plan", "Size memory and write the exact settings, each with its reason."),
    "train": ("train", "Train by TRL's GRPO, once every gate has passed."),
    "watch": ("watch", "Name the symptoms in a run's own numbers."),
    "variant": ("variant", "Show the one change that the evidence supports."),
    "compare": ("compare", "Compare two runs, with intervals."),
    "eval": ("eval", "Measure held-out accuracy of a model or a run."),
    "report": ("report", "Write the page that says what changed, with the record of every gate."),
    "export": ("export", "Write a plain TRL script, its configuration and a brief."),
    "doctor": ("doctor", "Say what this machine can do: devices, isolation, versions."),
}
"""Command name: module under ``rlvr.commands``, and the line that ``--help`` shows."""


class LazyGroup(click.Group):
    """A click group that lists commands from :data:`COMMANDS` and imports one only when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the chain."""
        return [name for name in COMMANDS if _available(name)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        if cmd_name not in COMMANDS or not _available(cmd_name):
            return None
        module = importlib.import_module(f"rlvr.commands.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command list without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)] or [("", "")])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command, with a suggestion for a misspelt one."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self.list_commands(ctx):
            hint = did_you_mean(name, self.list_commands(ctx))
            ctx.fail(f"no command {name!r}. {hint}".rstrip())
        return super().resolve_command(ctx, args)


def _available(name: str) -> bool:
    from importlib.resources import files

    return (files("rlvr.commands") / f"{COMMANDS[name][0]}.py").is_file()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `rlvr demo`, or with `rlvr init my-task` and `rlvr status`.",
)
@click.version_option(package_name="rlvr", message="%(version)s")
def root() -> None:
    """From a verifier to a trained policy, with gates.

    admit, audit, probe, inspect, plan, train, watch, report: cheap checks come first, and nothing trains past a
    gate that has not passed.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 2, 3, 4 or 130.

    With ``--json`` standard output holds one object and nothing else, whatever the user's code prints.
    """
    args = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in args and not {"-h", "--help"} & set(args)
    streams.prepare()
    with streams.result_alone(as_json):
        return _run(args, as_json)


def _run(args: list[str], as_json: bool) -> int:
    try:
        result = root.main(args=args, prog_name="rlvr", standalone_mode=False)
        if sys.stdout is not None and not as_json:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _interrupted(as_json)
    except SystemExit as error:
        return _ended(error, as_json)
    except BaseException as error:  # a traceback is never what a user is told
        return _failed(error, as_json)
    return result if isinstance(result, int) else 0


def _failed(error: BaseException, as_json: bool) -> int:
    if isinstance(error, RlvrError):
        return _report(error, as_json)
    # An interrupt in the body of a class arrives as the cause of a RuntimeError in Python 3.11.
    if isinstance(error, click.exceptions.Abort) or isinstance(error.__cause__, KeyboardInterrupt):
        return _interrupted(as_json)
    if isinstance(error, click.ClickException):
        return _usage(error, as_json)
    if isinstance(error, MemoryError):
        return _report(_infrastructure("infrastructure.memory", "out of memory"), as_json)
    if isinstance(error, OSError):
        return _report(_infrastructure("infrastructure.os", _os_error(error)), as_json)
    return _report(_internal(error), as_json)


def _ended(error: SystemExit, as_json: bool) -> int:
    """Refuse an end that no command asked for; shell completion and a pipe whose reader left are click's own."""
    if "_RLVR_COMPLETE" in os.environ:
        raise error
    if "Pacify" in type(sys.stdout).__name__:  # how click marks a pipe whose reader left; no one to say it to
        return 4
    found = (
        f"something called exit({'' if error.code is None else repr(error.code)}); the command did not finish"
    )
    fix = "remove the call to exit() from the reward or from what it imports"
    return _report(UsageError("command.ended", found, where=_raised_at(error), fix=fix), as_json)


def _infrastructure(code: str, found: str) -> RlvrError:
    return InfrastructureError(
        code, found, fix="free the resource and run the same command again; what was done is kept"
    )


def _internal(error: BaseException) -> RlvrError:
    """Return what nobody foresaw as one message with its place; the whole traceback only where it is asked for."""
    if os.environ.get("RLVR_TRACEBACK") == "1":
        import traceback

        traceback.print_exception(error)
    fix = "set RLVR_TRACEBACK=1 and run the command again for the whole traceback, and report it with that"
    return InfrastructureError("internal", in_words(error), where=_raised_at(error), fix=fix)


def _raised_at(error: BaseException) -> str:
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return f"{last.tb_frame.f_code.co_filename}:{last.tb_lineno}" if last else ""


def _os_error(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}"


def _report(error: RlvrError, as_json: bool) -> int:
    from rlvr.visible import visible

    _error_object(error.as_dict(), as_json)
    head, *rest = visible(error.message()).split("\n")
    with contextlib.suppress(OSError):  # standard error is full or gone; the exit code still tells
        click.secho(f"error [{error.code}] {head}", fg="red", err=True)
        for line in rest:
            click.echo(f"  {line}", err=True)
    return error.exit_code


def _usage(error: click.ClickException, as_json: bool) -> int:
    from rlvr.visible import visible

    _error_object({"code": "usage", "found": error.format_message(), "exit_code": 2}, as_json)
    shown = io.StringIO()
    error.show(file=shown)
    click.echo(visible(shown.getvalue()), nl=False, err=True)
    return 2


def _interrupted(as_json: bool) -> int:
    _error_object({"code": "interrupted", "exit_code": 130}, as_json)
    click.echo("interrupted; what was done is kept, the same command goes on from here", err=True)
    return 130


def _error_object(found: Mapping[str, str | int], as_json: bool) -> None:
    if as_json and not streams.result_is_written():
        with contextlib.suppress(OSError):
            streams.write_result({"error": found})

"""The command line: one table of commands, each loaded only when it is called.

Every command lives in ``rlvr/commands/NAME.py`` as a click command named ``command``. The commands are the only
place where stages meet: each reads records, calls one stage, and writes that stage's record.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import TYPE_CHECKING

import click

from rlvr.errors import RlvrError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """Run the command line and return its exit code: 0, 2, 3, 4 or 130."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in args
    try:
        result = root.main(args=args, prog_name="rlvr", standalone_mode=False)
    except RlvrError as error:
        return _report(error, as_json)
    except click.exceptions.Abort:
        return _interrupted(as_json)
    except KeyboardInterrupt:
        return _interrupted(as_json)
    except click.ClickException as error:
        return _usage(error, as_json)
    except MemoryError:
        return _report(_infrastructure("infrastructure.memory", "out of memory"), as_json)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe left; nothing to say and no one to say it to
        return 0
    except OSError as error:
        return _report(_infrastructure("infrastructure.os", _os_error(error)), as_json)
    return result if isinstance(result, int) else 0


def _infrastructure(code: str, found: str) -> RlvrError:
    from rlvr.errors import InfrastructureError

    return InfrastructureError(
        code, found, fix="free the resource and run the same command again; what was done is kept"
    )


def _os_error(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}"


def _report(error: RlvrError, as_json: bool) -> int:
    if as_json:
        click.echo(json.dumps({"error": error.as_dict()}))
    head, *rest = error.message().splitlines()
    click.secho(f"error [{error.code}] {head}", fg="red", err=True)
    for line in rest:
        click.echo(f"  {line}", err=True)
    return error.exit_code


def _usage(error: click.ClickException, as_json: bool) -> int:
    if as_json:
        found = {"code": "usage", "found": error.format_message(), "exit_code": 2}
        click.echo(json.dumps({"error": found}))
    error.show()
    return 2


def _interrupted(as_json: bool) -> int:
    if as_json:
        click.echo(json.dumps({"error": {"code": "interrupted", "exit_code": 130}}))
    click.echo("interrupted; what was done is kept, the same command goes on from here", err=True)
    return 130

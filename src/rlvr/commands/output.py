"""Output shared by the commands: one JSON object on standard output, or text for a person."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rlvr.streams import write_result

if TYPE_CHECKING:
    from rich.console import Console

F = TypeVar("F", bound=Callable[..., Any])


def json_option(function: F) -> F:
    """Add ``--json``: one object on standard output, everything else on standard error."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")(
        function
    )


def workspace_option(function: F) -> F:
    """Add ``-w/--workspace``: the folder that holds rlvr.yaml."""
    return click.option(
        "-w",
        "--workspace",
        "folder",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path(),
        show_default="here",
        help="Folder that holds rlvr.yaml.",
    )(function)


def emit_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object, strictly: no NaN, no infinity."""
    write_result(value)


def console(*, to_stderr: bool = False) -> Console:
    """Return a rich console; progress and remarks go to standard error.

    Texts of the user's data and of records are printed through it, so that none of them can steer the terminal:
    escape sequences and characters that hide or turn text are shown by name.
    """
    from rich.console import Console
    from rich.segment import Segment

    from rlvr.visible import visible

    class Harmless(Console):
        def render(self, renderable: Any, options: Any = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                plain = segment.control is None
                yield Segment(visible(segment.text), segment.style) if plain else segment

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(errno.EPIPE, "the reader left")  # rich would end the process by itself

    return Harmless(stderr=to_stderr, highlight=False, soft_wrap=True)

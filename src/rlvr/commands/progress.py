"""Progress bars of the commands, on standard error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def counting(title: str, total: int, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Show a bar that a stage advances by the number of things done.

    Args:
        title: What is counted.
        total: How many there are.
        quiet: Draw nothing, as with ``--json``; nothing is drawn without a terminal either.
    """
    from rlvr.commands.output import console

    if quiet or not console(to_stderr=True).is_terminal:
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(to_stderr=True), transient=True) as bars:
        bar = bars.add_task(title, total=total)
        yield lambda done: bars.update(bar, advance=done)

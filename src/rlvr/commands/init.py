"""``rlvr init``: writes a workspace that runs as it stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rlvr.commands.output import console, emit_json, json_option
from rlvr.errors import UsageError
from rlvr.templates import TEMPLATES
from rlvr.workspace import path_from

if TYPE_CHECKING:
    from rlvr.templates.base import Template


@click.command("init", epilog="Examples: rlvr init my-task | rlvr init try-out --template code --model tiny")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--template",
    "name",
    type=click.Choice(list(TEMPLATES)),
    default="math",
    show_default=True,
    help="Kind of task.",
)
@click.option(
    "--model",
    default=None,
    help="A Hub id, a model folder or a .gguf file; `tiny` builds the embedded model, which needs no network.  "
    "[default: a small public model]",
)
@json_option
def command(folder: Path, name: str, model: str | None, as_json: bool) -> None:
    """Write a workspace into FOLDER: rlvr.yaml with comments, prompts, held-out prompts and rewards.

    Nothing that exists is overwritten.
    """
    from rlvr.templates import load_template
    from rlvr.templates.base import DEFAULT_MODEL, TINY

    template = load_template(name)
    chosen = _model_name(model or DEFAULT_MODEL, folder)
    files = write_workspace(folder, template, chosen)
    if chosen == TINY:
        files.append(build_tiny(folder, template, quiet=as_json))
    if as_json:
        emit_json(
            {"folder": str(folder), "template": name, "model": chosen, "files": files, "next": _next(folder)}
        )
    else:
        _print(folder, template, files)


def write_workspace(folder: Path, template: Template, model: str) -> list[str]:
    """Write the files of a template and return their names.

    Raises:
        UsageError: ``init.exists`` when one of them stands there already; nothing was written.
    """
    from rlvr.templates.base import TINY, TINY_FOLDER
    from rlvr.workspace import write_atomic

    files = template.workspace_files(model)
    wanted = [*files, *([TINY_FOLDER] if model == TINY else [])]
    there = [name for name in wanted if (folder / name).exists()]
    if there:
        raise UsageError(
            "init.exists",
            f"{', '.join(there)} exists",
            where=str(folder),
            expected="a folder without these files: nothing is overwritten",
            fix="name another folder, or move them away",
        )
    for name, content in files.items():
        write_atomic(folder / name, content)
    return list(files)


def build_tiny(folder: Path, template: Template, *, quiet: bool = False, steps: int | None = None) -> str:
    """Build the embedded model, teach it the template's task by halves, and return the folder's name.

    Args:
        folder: The workspace.
        template: What it is taught.
        quiet: Draw no progress bar.
        steps: Optimizer steps of teaching; the demo's number unless given.
    """
    from rlvr.commands.progress import counting
    from rlvr.demo import model as tiny
    from rlvr.demo.task import Question
    from rlvr.templates.base import SEED, TINY_FOLDER, demonstration

    tokenizer = tiny.build_tokenizer()
    network = tiny.build_model(len(tokenizer), SEED)
    items = {item.prompt: item for item in template.items()[0]}
    count = steps or tiny.STEPS
    with counting("teach the tiny model", count, quiet=quiet) as advance:
        tiny.teach(
            network,
            tokenizer,
            [Question(prompt, item.right) for prompt, item in items.items()],
            SEED,
            steps=count,
            progress=lambda done, every: advance(1),
            demonstrate=lambda question, rng: demonstration(items[question.prompt], rng),
        )
    tiny.save(network, tokenizer, folder / TINY_FOLDER)
    return TINY_FOLDER


def _model_name(model: str, folder: Path) -> str:
    """Return a path as it must stand in the workspace's configuration; anything else as it is."""
    from rlvr.templates.base import TINY

    path = path_from(Path(), model)
    if model == TINY or not path.exists():
        return model
    return str(path.absolute()) if not path.absolute().is_relative_to(folder.absolute()) else model


def _next(folder: Path) -> str:
    return f"rlvr check -w {folder}"


def _print(folder: Path, template: Template, files: list[str]) -> None:
    from rich.markup import escape

    out = console()
    out.print(f"[green]✓[/] {escape(str(folder))}: {template.summary}")
    for name in files:
        out.print(f"  {escape(name)}")
    out.print(
        f"next: [bold]{escape(_next(folder))}[/], then `rlvr status -w {escape(str(folder))}` says the rest"
    )

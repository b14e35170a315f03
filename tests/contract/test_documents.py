"""The documentation: generated pages are up to date, links lead somewhere, and shown commands exist and run."""

import re
import shlex
from pathlib import Path

import click
import pytest
from tests.conftest import run_rlvr

from rlvr.cli import COMMANDS, root
from rlvr.documents import PAGES, error_codes

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def shown_commands(text):
    """Return the rlvr commands in the fenced blocks of a page, without prompt, comment and output."""
    found = []
    for language, body in FENCE.findall(text):
        for line in body.splitlines():
            plain = line.removeprefix("$ ").strip()
            if plain.startswith("rlvr ") and (language != "console" or line.startswith("$ ")):
                found.append(re.split(r"\s+#\s|\s{3,}", plain)[0])
    return found


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_what_the_code_writes(name):
    assert (ROOT / name).read_text(encoding="utf-8") == PAGES[name](), "run python -m rlvr.documents"


def test_errors_are_found_in_the_sources():
    found = {one.code: one.kind.exit_code for one in error_codes()}
    assert found["gate.closed"] == 3
    assert found["workspace.write"] == 4
    assert found["init.exists"] == 2


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if "://" not in link:
            assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_shown_commands_and_options_exist(page):
    for line in shown_commands(page.read_text(encoding="utf-8")):
        words = shlex.split(line)
        command = root.get_command(click.Context(root), words[1])
        assert words[1] in COMMANDS and command is not None, line
        options = {one for parameter in command.params for one in parameter.opts + parameter.secondary_opts}
        if isinstance(command, click.Group):
            options |= {
                one for name in command.commands for p in command.commands[name].params for one in p.opts
            }
        assert not [
            word for word in words[2:] if word.startswith("--") and word not in options | {"--help"}
        ], line


@pytest.mark.tiny
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_tutorial_runs_as_shown(tmp_path):
    """Up to the reading, which a person does; the commands after it run on the demo (see test_skill.py)."""
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    commands = [
        line[2:] for _, body in FENCE.findall(text) for line in body.splitlines() if line.startswith("$ ")
    ]
    assert commands[0].startswith("rlvr init first")
    folder = tmp_path
    for command in commands:
        done = run_rlvr(*shlex.split(command)[1:], folder=folder, timeout=600)
        assert done.returncode == (3 if command == "rlvr train" else 0), (command, done.stdout, done.stderr)
        folder = tmp_path / "first"

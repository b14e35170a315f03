"""The skill for agents: generated, complete, and every command of it runs in order on the demo."""

import json
import re
import shlex
from pathlib import Path

import click
import pytest
from tests.conftest import run_rlvr

from rlvr.cli import COMMANDS, root
from rlvr.gates import CHAIN
from rlvr.skill import PAGE, commands, skill_text
from rlvr.variants import VARIANTS

ROOT = Path(__file__).parents[2]
FOLDER = (ROOT / PAGE).parent


def test_the_file_is_what_the_code_writes():
    assert (ROOT / PAGE).read_text(encoding="utf-8") == skill_text(), "run python -m rlvr.skill"


def test_every_gate_and_variant_is_in_it():
    text = skill_text()
    for name in CHAIN:
        assert f"| {name} | " in text
    for variant in VARIANTS.values():
        assert variant.title in text


def test_its_frontmatter_is_what_agents_look_for():
    head = skill_text().split("---")[1]
    assert re.search(r"^name: grpo-rlvr-training$", head, re.MULTILINE)
    assert 100 < len(re.search(r"^description: (.*)$", head, re.MULTILINE).group(1)) < 1024


@pytest.mark.parametrize("command", commands())
def test_every_command_and_option_exists(command):
    _, name, *rest = shlex.split(command)
    found = root.get_command(click.Context(root), name)
    assert name in COMMANDS and found is not None
    known = {option for parameter in found.params for option in parameter.opts + parameter.secondary_opts}
    assert not [word for word in rest if word.startswith("-") and word not in known]


def test_its_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)", skill_text()):
        assert (FOLDER / link).is_file(), link


@pytest.mark.tiny
@pytest.mark.slow
def test_the_commands_run_in_order_on_the_demo(demo_workspace):
    answers = {}
    for command in commands():
        done = run_rlvr(*shlex.split(command)[1:], folder=demo_workspace)
        assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])
        answers[command.split()[1]] = json.loads(done.stdout)
    assert answers["export"]["ready"] is True
    assert answers["report"]["verdict"] == "improved, unread"
    assert answers["gate"]["gates"][0]["evidence"]["reader"]

"""Every template of `rlvr init` goes through the chain as it stands, on the tiny model taught its task by halves."""

import json

import pytest
from tests.conftest import run_rlvr

from rlvr.templates import TEMPLATES, load_template

pytestmark = pytest.mark.tiny


def run(*arguments, folder):
    done = run_rlvr(*arguments, "--json", folder=folder, timeout=600)
    assert done.returncode == 0, (arguments, done.stdout[-2000:], done.stderr[-2000:])
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_runs_as_it_stands(name, tmp_path):
    made = run("init", "task", "--template", name, "--model", "tiny", folder=tmp_path)
    assert made["next"] == "rlvr check -w task"
    folder = tmp_path / "task"
    assert run("check", folder=folder)["passed"]
    audited = run("audit", folder=folder)
    assert not [one for one in audited["findings"] if one["severity"] in ("high", "critical")]
    assert run("probe", folder=folder)["verdict"] == "sweet spot"
    assert run("plan", folder=folder)["verdict"] == "fits"
    assert run("train", "--rehearse", folder=folder)
    status = run("status", folder=folder)
    assert {gate["name"]: gate["state"] for gate in status["gates"]} == {
        "admit": "passed",
        "audit": "passed",
        "probe": "passed",
        "inspect": "missing",
        "plan": "passed",
    }
    assert status["next"] == "rlvr inspect"


def test_the_tiny_model_can_write_every_demonstration():
    from rlvr.demo.model import CHARACTERS, TAGS

    for name in TEMPLATES:
        for item in load_template(name).items()[0]:
            for text in (item.prompt, item.right, *item.wrong, *item.broken):
                plain = text
                for tag in TAGS:
                    plain = plain.replace(tag, "")
                assert set(plain) <= set(CHARACTERS), (name, text)

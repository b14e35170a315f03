"""Sampling through vLLM's OpenAI-compatible server."""

import json

import pytest

from rlvr.cli import main
from rlvr.errors import ConfigError
from rlvr.generate.endpoint import EndpointGenerator
from rlvr.records.samples import Message


def test_the_probe_runs_on_the_server(server, workspace, capsys):
    folder = workspace(f"backend: endpoint, endpoint: '{server}', endpoint_model: tiny")
    code = main(["probe", "-w", str(folder), "--json"])
    found = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    assert (code, found["verdict"]) == (0, "sweet spot")
    assert found["lengths"]["completion"]["longest"] > 2


def test_the_cap_is_seen(server):
    generator = EndpointGenerator(server, "tiny", concurrency=4)
    asked = [[Message(role="user", content="sort 4321")]]
    (row,) = generator.generate(asked, count=3, temperature=1.0, max_tokens=2, seed=1)
    assert [(one.truncated, one.tokens) for one in row] == [(True, 2)] * 3


def test_an_unknown_model_is_named(server):
    generator = EndpointGenerator(server, "large", concurrency=1)
    with pytest.raises(ConfigError, match="404") as caught:
        generator.generate(
            [[Message(role="user", content="x")]], count=1, temperature=1.0, max_tokens=2, seed=1
        )
    assert caught.value.code == "endpoint.request"

"""The page's server is killed at any moment; no answered key is ever lost, and the reading goes on where it was."""

import http.client
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rlvr.inspection.folder import InspectionFolder

pytestmark = pytest.mark.chaos


def _load(name):
    place = Path(__file__).parent.parent / "contract" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = _load("inspect_made")


class Running:
    """`rlvr inspect` as its own process, and a session on its page."""

    def __init__(self, folder):
        command = [
            sys.executable,
            "-m",
            "rlvr",
            "inspect",
            "-w",
            str(folder),
            "--no-browser",
            "--reader",
            "ada",
        ]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        link = None
        while link is None:
            line = self.process.stderr.readline()
            assert line, "the server did not start"
            link = re.search(r"http://127\.0\.0\.1:(\d+)(/\S+)", line)
        self.port = int(link[1])
        answer = self.ask("GET", link[2])
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    def ask(self, method, path, values=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {
            "Origin": f"http://127.0.0.1:{self.port}",
            "Content-Type": "application/json",
            "X-Rlvr": "1",
        }
        if getattr(self, "cookie", None):
            headers["Cookie"] = self.cookie
        connection.request(method, path, None if values is None else json.dumps(values), headers)
        answer = connection.getresponse()
        answer.body = answer.read()
        connection.close()
        return answer

    def state(self):
        return json.loads(self.ask("GET", "/api/state").body)

    def judge(self, current, verdict):
        values = {"id": current["id"], "verdict": verdict, "revision": current["revision"]}
        return self.ask("POST", "/api/judge", values)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)
        self.process.stderr.close()


@pytest.fixture
def folder(tmp_path):
    return made.workspace(tmp_path / "task")


def test_a_kill_after_any_key_loses_nothing(folder):
    answered = {}
    for keys in (1, 3, 2):
        running = Running(folder)
        try:
            assert running.state()["progress"]["done"] == len(answered)
            for _ in range(keys):
                current = running.state()["current"]
                assert running.judge(current, "unsure").status == 200
                answered[current["id"]] = "unsure"
        finally:
            running.kill()
        labels = InspectionFolder.of_gates(folder / "gates").labels()
        assert {one.completion_id: one.verdict for one in labels.by_reader["ada"].values()} == answered


def test_a_kill_before_the_answer_loses_at_most_that_key(folder):
    running = Running(folder)
    current = running.state()["current"]
    os.kill(running.process.pid, signal.SIGSTOP)  # the key is pressed, the server never gets to answer
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    headers = {
        "Origin": f"http://127.0.0.1:{running.port}",
        "Content-Type": "application/json",
        "X-Rlvr": "1",
        "Cookie": running.cookie,
    }
    values = {"id": current["id"], "verdict": "pass", "revision": 0}
    connection.request("POST", "/api/judge", json.dumps(values), headers)
    running.kill()
    connection.close()
    again = Running(folder)
    try:
        assert again.state()["current"]["id"] == current["id"]
    finally:
        again.kill()


@pytest.mark.slow
@pytest.mark.parametrize("at", range(0, 240, 20))
def test_a_file_torn_at_any_byte_is_read_up_to_there(folder, at):
    running = Running(folder)
    for _ in range(3):
        running.judge(running.state()["current"], "unsure")
    running.kill()
    path = folder / "gates" / "inspect" / "labels.jsonl"
    whole = path.read_bytes()
    third = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    path.write_bytes(whole[: third + at])
    again = Running(folder)
    try:
        assert again.state()["progress"]["done"] == 2
        assert again.judge(again.state()["current"], "unsure").status == 200
    finally:
        again.kill()
    assert InspectionFolder.of_gates(folder / "gates").labels().events == 3


def test_two_servers_do_not_write_the_same_labels(folder):
    running = Running(folder)
    try:
        command = [sys.executable, "-m", "rlvr", "inspect", "-w", str(folder), "--no-browser"]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        assert second.returncode == 4
        assert "another process" in second.stderr
    finally:
        running.kill()


def test_a_stop_by_the_keyboard_says_where_the_reader_is(folder):
    running = Running(folder)
    running.judge(running.state()["current"], "unsure")
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait(20) == 130
    running.process.stderr.close()
    assert InspectionFolder.of_gates(folder / "gates").attestation().read == 0

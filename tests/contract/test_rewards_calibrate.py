"""``rlvr rewards calibrate``: a judge against people's labels."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from rlvr.commands.rewards import command
from rlvr.errors import ConfigError, UsageError
from rlvr.inspection.folder import InspectionFolder, LabelBook
from rlvr.records.inspection import SIMULATED_READER
from rlvr.records.samples import Message, Sample
from rlvr.rewards import load_reward
from rlvr.rewards.composite import Component, Scorer
from rlvr.workspace import write_lines

LABELS = 80


class Handler(BaseHTTPRequestHandler):
    """Passes every response that says *river*."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verdict = "pass" if "is a river" in body["messages"][1]["content"] else "fail"
        message = {"role": "assistant", "content": json.dumps({"reason": "r", "verdict": verdict})}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        payload = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def folder(tmp_path: Path, url: str) -> Path:
    rewards = [
        {"use": "exact"},
        {"use": "judge", "arguments": {"model": "m", "base_url": url, "rubric": "It names a river."}},
    ]
    config = {
        "model": "./model",
        "task": {"prompts": "prompts.jsonl", "signal": "answer"},
        "rewards": rewards,
    }
    (tmp_path / "rlvr.yaml").write_text(json.dumps(config))
    (tmp_path / "prompts.jsonl").write_text(json.dumps({"prompt": "Name a river.", "answer": "Otra"}) + "\n")
    return tmp_path


def label(folder: Path, reader: str, count: int = LABELS) -> None:
    inspection = InspectionFolder.of_gates(folder / "gates")
    samples = []
    for number in range(count):
        text = f"Number {number} is a {'river' if number % 2 else 'lake'}."
        samples.append(
            Sample(
                completion_id=f"c{number}",
                row=0,
                row_hash="h",
                prompt=[Message(role="user", content="Name a river.")],
                completion=[Message(role="assistant", content=text)],
                source="low",
                columns={"answer": "Otra"},
            )
        )
    inspection.root.mkdir(parents=True, exist_ok=True)
    write_lines(inspection.samples_path, samples)
    book = LabelBook(inspection)
    for number, sample in enumerate(samples):
        book.judge(reader, sample, "fail" if number in (0, 1) or number % 2 == 0 else "pass", seconds=5.0)


def run(folder: Path, *arguments: str) -> dict:
    done = CliRunner().invoke(
        command, ["calibrate", "-w", str(folder), "--json", *arguments], catch_exceptions=False
    )
    return json.loads(done.stdout)


def test_a_record_of_peoples_labels_lets_the_judge_stand_alone(folder: Path, url: str) -> None:
    label(folder, "Ada")
    found = run(folder)
    assert (found["labels"], found["false_positives"], found["false_negatives"]) == (LABELS, 1, 0)
    assert found["judge"] == "m" and found["agreement_low"] > 0.9
    arguments = {"model": "m", "base_url": url, "rubric": "It names a river."}
    with pytest.raises(ConfigError, match="without a calibration record"):
        Scorer([Component("judge", load_reward("judge", arguments, folder))])
    Scorer(
        [Component("judge", load_reward("judge", {**arguments, "calibration": "calibration.json"}, folder))]
    )


def test_the_simulated_reader_is_no_person(folder: Path) -> None:
    label(folder, SIMULATED_READER, 4)
    with pytest.raises(UsageError, match="no person"):
        run(folder)


def test_a_name_that_is_no_judge_is_said(folder: Path) -> None:
    with pytest.raises(UsageError, match="is a judge"):
        run(folder, "exact")

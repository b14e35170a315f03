"""The child process that holds a reward: it is killed when it hangs, and leaves nothing behind."""

import os
import time
from pathlib import Path

import pytest

from rlvr.audit.rows import AuditRow
from rlvr.audit.runner import FileTarget, Runner
from rlvr.audit.session import Session, convention_of
from rlvr.errors import ConfigError

REWARD = """
import os, time
calls = 0

def reward(prompts, completions, answer, completion_ids, trainer_state, log_extra, log_metric, **kwargs):
    global calls
    calls += 1
    log_extra("x", completions); log_metric("m", 1.0)
    assert trainer_state.global_step >= 0 and all(isinstance(i, int) for ids in completion_ids for i in ids)
    text = completions[0]
    if text == "hang":
        while True: pass
    if text == "sleep": time.sleep(60)
    if text == "end": os._exit(3)
    if text == "exit": raise SystemExit(2)
    if text == "raise": raise ValueError("odd")
    if text == "print": print("noise" * 1000)
    if text == "nan": return [float("nan")]
    if text == "text": return ["0.5"]
    if text == "scalar": return 1.0
    if text == "calls": return [calls]
    return [1.0 if text == a else 0.0 for a in answer]

async def awaited(prompts, completions, **kwargs):
    return [float(len(one)) for one in completions]

class Callable:
    def __call__(self, completions, **kwargs):
        return [0.5 for _ in completions]

def per_sample(solution_str, ground_truth, data_source=None, extra_info=None):
    return {"score": 1.0 if solution_str == ground_truth else 0.0}
"""
ROWS = [AuditRow(0, "q", {"answer": "42"})]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rewards.py"
    path.write_text(REWARD)
    return path


@pytest.fixture
def session(file):
    with Runner(FileTarget(file, "reward")) as runner:
        yield Session(runner, ROWS, convention_of(runner.facts, ROWS, ["answer"]), 60.0)


def one(session, text, clock=1.0):
    return session.singles([(0, text)], clock)[0]


def test_scores_and_failures_come_back_as_what_they_are(session):
    assert one(session, "42").score == 1.0
    assert one(session, "43").score == 0.0
    assert one(session, "print").kind == "scores"
    assert one(session, "nan").bad == {0: "nan"}
    assert "0.5" in one(session, "text").bad[0]
    assert one(session, "scalar").kind == "shape"
    raised = one(session, "raise")
    assert raised.kind == "exception" and raised.message == "ValueError: odd"
    assert REWARD.splitlines()[raised.line - 1].strip().startswith('if text == "raise"')
    assert one(session, "exit").kind == "exit"


def test_results_before_and_after_a_hang_are_kept(session):
    results = session.singles([(0, "42"), (0, "hang"), (0, "43")], 0.5)
    assert [result.kind for result in results] == ["scores", "hang", "scores"]
    assert REWARD.splitlines()[results[1].line - 1].strip() == "while True: pass"


def test_sleep_and_a_process_that_ends_are_told_apart(session):
    assert one(session, "sleep", 0.5).kind == "hang"
    assert one(session, "end").kind == "crash"
    assert one(session, "42").score == 1.0


def test_a_fresh_worker_remembers_nothing(session):
    batch = ([0], ["calls"])
    assert [result.score for result in session.sequence([batch, batch])] == [1.0, 2.0]
    assert session.sequence([batch])[0].score == 1.0


def test_after_two_hangs_the_rest_is_skipped(session):
    kinds = [result.kind for result in session.singles([(0, "hang"), (0, "sleep"), (0, "x")], 0.3)]
    assert kinds == ["hang", "hang", "skipped"]


@pytest.mark.parametrize(("name", "score"), [("awaited", 2.0), ("Callable", 0.5), ("per_sample", 1.0)])
def test_other_conventions_are_found(file, name, score):
    with Runner(FileTarget(file, name)) as runner:
        session = Session(runner, ROWS, convention_of(runner.facts, ROWS, ["answer"]), 60.0)
        assert one(session, "42").score == score


def test_nothing_is_left_behind(file):
    with Runner(FileTarget(file, "reward")) as runner:
        worker = runner.worker()
        pids = [runner._process.pid, worker.pid]
        folder = runner.folder
    assert not folder.exists()
    assert _wait_until(lambda: not any(_runs(pid) for pid in pids))
    assert not [name for name in os.listdir(file.parent) if name != "rewards.py"]


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait_until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize(
    ("text", "attribute", "words"),
    [
        (REWARD, "rewrd", "did you mean 'reward'"),
        ("def f(:", "f", "SyntaxError"),
        ("import nothing_of_that_name", "f", "ModuleNotFoundError"),
        ("raise SystemExit(1)", "f", "SystemExit"),
        ("import os; os._exit(1)", "f", "ended the process"),
        ("f = 3", "f", "not callable"),
    ],
)
def test_what_cannot_be_loaded_is_named(tmp_path, text, attribute, words):
    path = tmp_path / "broken.py"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        Runner(FileTarget(path, attribute))
    assert caught.value.code == "audit.load"
    assert words in caught.value.message()


def test_a_file_named_like_a_standard_module_does_not_hide_it(tmp_path):
    path = tmp_path / "json.py"
    path.write_text("def reward(completions, **kwargs):\n    return [1.0 for _ in completions]\n")
    with Runner(FileTarget(path, "reward")) as runner:
        session = Session(runner, ROWS, convention_of(runner.facts, ROWS, ["answer"]), 60.0)
        assert one(session, "x").score == 1.0

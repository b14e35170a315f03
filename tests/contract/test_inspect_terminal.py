"""The terminal reader, driven by its keys."""

import asyncio
import importlib.util
from pathlib import Path

import pytest
from textual.widgets import Input

from rlvr.inspection.folder import InspectionFolder
from rlvr.inspection.session import Pool, Rules, Sitting
from rlvr.inspection.terminal import Reader, completion_text
from rlvr.records.base import Fingerprints


def _load(name):
    place = Path(__file__).parent.parent / "browser" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made = _load("made_page")


@pytest.fixture
def sitting(tmp_path):
    samples = [made.sample(row) for row in range(120)]
    path = tmp_path / "rewards.py"
    path.write_text(made.STRICT)

    def pool():
        print_ = Fingerprints(reward=str(hash(path.read_text())), data="d", model="m", sampling="s")
        return Pool(samples, made.scored(path, samples), print_)

    found = Sitting(
        InspectionFolder.of_gates(tmp_path / "gates"),
        pool(),
        "ada",
        Rules(count=60),
        clock=made.Clock(),
        rescore=pool,
    )
    found.path = path
    return found


def drive(sitting, script):
    async def run():
        app = Reader(sitting, ["rewards.py:last_number"])
        async with app.run_test(size=(120, 40)) as pilot:
            await script(app, pilot)

    asyncio.run(run())


def shown(app):
    return app.export_screenshot()


def key_for(app):
    return "p" if made.accepted(app.item.row, app.item.text) else "f"


async def read_all(app, pilot):
    for _ in range(200):
        if app.mode == "summary":
            return
        if app.mode == "reveal":
            await pilot.press("enter")
        else:
            await pilot.press(key_for(app))


def test_sixty_by_keyboard_a_mend_and_fresh_ones(sitting):
    async def script(app, pilot):
        await read_all(app, pilot)
        assert len(sitting.folder.labels().standing()) == 60
        assert len(sitting.attestation().open_disagreements) >= 3
        sitting.path.write_text(made.MENDED)
        await pilot.press("r")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert len(sitting.queue()) == 20
        await pilot.press("enter")
        await read_all(app, pilot)
        assert sitting.close().passed

    drive(sitting, script)


def test_note_unsure_back_and_change(sitting):
    async def script(app, pilot):
        first = app.item
        await pilot.press("n", *"pfu")
        assert app.query_one(Input).value == "pfu", "keys go into the note, not to the sample"
        await pilot.press("enter")
        assert sitting.labels.of("ada", first.completion_id).note == "pfu"
        await pilot.press("u")
        assert sitting.labels.unsure() == [first.completion_id]

        second = app.item
        wrong = "f" if sitting._accepted(second.completion_id) else "p"
        await pilot.press(wrong)
        assert app.mode == "reveal"
        await pilot.press("p", "f")
        assert sitting.labels.of("ada", second.completion_id).revision == 1, "no verdict during the reveal"
        await pilot.press("c", *"misread", "enter")
        held = sitting.labels.of("ada", second.completion_id)
        assert (held.reversals, held.reasons) == (1, ["misread"])
        await pilot.press("b")
        assert app.item.completion_id == first.completion_id
        await pilot.press(key_for(app))
        assert sitting.labels.of("ada", first.completion_id).readings == 2

    drive(sitting, script)


def test_escapes_and_overrides_reach_no_terminal(tmp_path):
    attack = "\x1b]0;owned\x07 \x1b[2J \u202egnp [bold]not markup[/bold] \x9b31m"
    samples = [made.sample(row, f"{row} {attack}") for row in range(60)]
    path = tmp_path / "rewards.py"
    path.write_text(made.STRICT)
    pool = Pool(samples, made.scored(path, samples), Fingerprints(reward="r"))
    sitting = Sitting(InspectionFolder.of_gates(tmp_path / "gates"), pool, "ada", clock=made.Clock())

    async def script(app, pilot):
        screen = shown(app)
        assert "ESC" in screen
        assert "U+202E" in screen
        assert "[bold]" in screen.replace("&#x27;", "'")
        for steering in ("\x1b", "\x07", "\u202e", "\x9b"):
            assert steering not in screen

    drive(sitting, script)


def test_a_long_completion_is_folded_and_marks_the_answer():
    text = "line\n" * 4000 + "so 42"
    folded = completion_text(text, "42")
    assert "characters folded" in folded.plain
    assert any(span.style == "black on yellow" for span in folded.spans)
    whole = completion_text(text, None, is_unfolded=True)
    assert whole.plain.count("line") == 4000
    assert completion_text("", None).plain.startswith("(empty")

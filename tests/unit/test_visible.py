"""Text of the user's data on its way to a terminal: nothing in it steers, hides or turns around."""

import io
import json

import pytest

from rlvr.commands.output import console, emit_json

STEERS = "\x1b]0;title\x07 \x1b[2J \u202eright to left \x9b31m \u200b"
RAW = set("\x1b\x07\u202e\x9b\u200b")


def test_the_console_shows_it_by_name_in_text_and_tables():
    from rich.markup import escape
    from rich.table import Table

    table = Table("why")
    table.add_row(escape(STEERS))
    out = console()
    out.file = io.StringIO()
    out.print(escape(STEERS))
    out.print(table)
    shown = out.file.getvalue()
    assert not RAW & set(shown)
    assert shown.count("⟦U+202E⟧") == 2 and "⟦ESC⟧[2J" in shown


def test_the_console_still_has_its_own_colours():
    out = console()
    out.file, out._force_terminal, out._color_system = io.StringIO(), True, 1
    out.print("[red]a[/]", STEERS)
    assert "\x1b[31ma" in out.file.getvalue()
    assert "\u202e" not in out.file.getvalue()


def test_the_object_says_the_same_without_the_raw_characters(capsys: pytest.CaptureFixture[str]):
    emit_json({"why": STEERS, "half": "\ud83d", "tag": "\U000e0041", "é": "ü"})
    out = capsys.readouterr().out
    assert not (RAW | {"\U000e0041"}) & set(out)
    assert json.loads(out) == {"why": STEERS, "half": "\ud83d", "tag": "\U000e0041", "é": "ü"}
    assert "ü" in out

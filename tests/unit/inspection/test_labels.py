import pytest

from rlvr.errors import DataError
from rlvr.inspection.folder import InspectionFolder, LabelBook
from rlvr.inspection.labels import check_chain, fold, labels_fingerprint
from rlvr.inspection.pace import least_seconds, pace


def book_of(made, tmp_path, count=5):
    folder = InspectionFolder.of_gates(tmp_path)
    book = LabelBook(folder)
    for number in range(count):
        book.judge("ada", made.sample(number), "pass", seconds=2.0)
    return folder, book


def test_what_was_written_folds_back(made, tmp_path):
    folder, book = book_of(made, tmp_path)
    book.add("noted", reader="ada", completion_id="c0001", text="odd sign")
    again = folder.labels()
    assert again == book.labels
    assert again.of("ada", "c0001").note == "odd sign"
    assert folder.labels_fingerprint() == book.fingerprint


def test_a_torn_last_line_loses_only_what_was_not_answered(made, tmp_path):
    folder, _ = book_of(made, tmp_path)
    whole = folder.labels_path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for cut in (1, 20, len(lines[-1]) - 1):
        folder.labels_path.write_bytes(b"".join(lines[:-1]) + lines[-1][:cut])
        assert folder.labels().events == 4 if cut < len(lines[-1]) - 1 else folder.labels().events == 5
        LabelBook(folder).judge("ada", made.sample(9), "fail", seconds=2.0)
        assert folder.labels().of("ada", "c0009").verdict == "fail"
        folder.labels_path.write_bytes(whole)


def test_every_edit_is_noticed(made, tmp_path):
    folder, _ = book_of(made, tmp_path)
    whole = folder.labels_path.read_text()
    lines = whole.splitlines(keepends=True)
    edits = {
        "verdict": whole.replace('"pass"', '"fail"', 1),
        "pace": whole.replace("2.0", "9.0", 1),
        "dropped": "".join(lines[:1] + lines[2:]),
        "swapped": "".join([lines[1], lines[0], *lines[2:]]),
        "doubled": "".join([*lines, lines[-1]]),
        "no event": whole + "{}\n",
    }
    good = folder.labels_fingerprint()
    for name, text in edits.items():
        folder.labels_path.write_text(text)
        with pytest.raises(DataError, match=r"event|label"):
            folder.events()
        assert folder.labels_fingerprint() != good, name


def test_a_shorter_file_has_another_fingerprint(made, tmp_path):
    _, book = book_of(made, tmp_path)
    check_chain(book.events[:-1])
    assert labels_fingerprint(book.events[:-1]) != book.fingerprint


def test_unsure_then_decided_is_no_reversal(made):
    labels = made.Reading().judge(1, "unsure").judge(1, "fail").labels
    one = labels.of("ada", "c0001")
    assert (one.verdict, one.readings, one.reversals) == ("fail", 2, 0)


def test_each_turn_is_counted(made):
    labels = made.Reading().judge(1, "fail").change(1, "pass").change(1, "fail").labels
    assert labels.reversals() == 2
    assert labels.reversed_ids() == ["c0001"]


def test_an_empty_rescore_opens_no_epoch(made):
    assert made.Reading().rescored().labels.epoch == 0
    assert made.Reading().rescored(1).rescored(2).labels.epoch == 2


def test_the_first_reading_decides_the_epoch(made):
    labels = made.Reading().judge(1, "pass").rescored(1).change(1, "fail").labels
    assert labels.first_epoch("c0001") == 0


def test_nothing_folds_to_nothing():
    assert fold([]).readers == []
    assert labels_fingerprint([]) == ""


def test_starting_over_keeps_what_was_read(made, tmp_path):
    folder, _ = book_of(made, tmp_path)
    aside = folder.start_over()
    assert folder.events() == []
    assert (aside / "labels.jsonl").is_file()
    assert folder.start_over() is None


def test_draws_never_repeat(made, tmp_path):
    from rlvr.records.base import Fingerprints

    samples, scores = made.pool()
    folder = InspectionFolder.of_gates(tmp_path)
    prints = Fingerprints(reward="r1")
    folder.draw(samples, scores, 60, 0, reason="first", made_from=prints, rows=["a", "b"])
    found = folder.draw(samples, scores, 20, 0, reason="mended", made_from=prints)
    assert len(set(found.completion_ids)) == 80
    assert [one.completion_id for one in folder.samples()] and len(folder.samples()) == 80
    assert folder.seen_rows() == ["a", "b"]
    assert folder.selection() == found


def test_the_pace_is_the_median_of_time_over_least_time():
    assert least_seconds(0) == 1.0
    assert least_seconds(30_000) == 3.0
    assert pace([(0.2, 0)] * 30 + [(9.0, 0)] * 31).possible
    assert not pace([(0.2, 0)] * 31 + [(9.0, 0)] * 30).possible
    assert pace([]).possible

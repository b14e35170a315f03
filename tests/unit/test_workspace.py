import json
import os
from pathlib import Path

import pytest

from rlvr.errors import ConfigError, DataError, InfrastructureError
from rlvr.records.base import Fingerprints, Record
from rlvr.records.samples import Message
from rlvr.workspace import (
    Workspace,
    append_lines,
    content_hash,
    read_lines,
    read_objects,
    read_record,
    write_atomic,
    write_record,
)


def test_record_comes_back_as_written(tmp_path: Path):
    record = Record(made_at="2026-01-01T00:00:00Z", made_from=Fingerprints(reward="a"), passed=True, why="ok")
    write_record(tmp_path / "a.json", record)
    assert read_record(tmp_path / "a.json", Record) == record


def test_missing_record_is_none(tmp_path: Path):
    assert read_record(tmp_path / "a.json", Record) is None


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"kind": "Record"}', '{"kind":"Record","checksum":"x","record":{}}']
)
def test_damaged_record_is_named_not_a_traceback(tmp_path: Path, text: str):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_record(path, Record)
    assert caught.value.code == "record.damaged"
    assert str(path) in caught.value.message()


def test_edited_record_is_noticed(tmp_path: Path):
    path = write_record(tmp_path / "a.json", Record(passed=False))
    path.write_text(path.read_text().replace('"passed": false', '"passed": true'))
    with pytest.raises(DataError, match="checksum"):
        read_record(path, Record)


def test_newer_schema_is_refused(tmp_path: Path):
    path = tmp_path / "a.json"
    body = Record().model_dump(mode="json") | {"schema_number": 99}
    path.write_text(json.dumps({"kind": "Record", "checksum": content_hash(body), "record": body}))
    with pytest.raises(DataError) as caught:
        read_record(path, Record)
    assert caught.value.code == "record.newer"


@pytest.mark.parametrize("number", ["two", None, [1]])
def test_a_schema_number_that_is_none_is_damage(tmp_path: Path, number: object):
    path = tmp_path / "a.json"
    body = Record().model_dump(mode="json") | {"schema_number": number}
    path.write_text(json.dumps({"kind": "Record", "checksum": content_hash(body), "record": body}))
    with pytest.raises(DataError, match="schema_number is a") as caught:
        read_record(path, Record)
    assert caught.value.code == "record.damaged"


def test_a_record_that_is_no_object_or_nested_without_end(tmp_path: Path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"kind": "Record", "checksum": content_hash([1]), "record": [1]}))
    with pytest.raises(DataError, match="a list, not an object"):
        read_record(path, Record)
    path.write_text('{"record": ' + "[" * 100_000)
    with pytest.raises(DataError, match="nested too deeply"):
        read_record(path, Record)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("[1]", "line 2 is a list, not an object"),
        ("[" * 100_000, "line 2 is nested too deeply"),
        ('{"role": 3}', "line 2 is not a valid Message"),
    ],
)
def test_lines_that_are_something_else_are_named(tmp_path: Path, line: str, found: str):
    path = tmp_path / "a.jsonl"
    path.write_text('{"role": "user", "content": "a"}\n' + line + "\n")
    with pytest.raises(DataError, match=found) as caught:
        read_lines(path, Message)
    assert (caught.value.code, caught.value.where) == ("record.damaged", str(path))


def test_torn_last_line_is_dropped_and_the_next_append_starts_a_line(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    append_lines(path, [{"n": 1}, {"n": 2}])
    with path.open("ab") as file:
        file.write(b'{"n": 3, "tex')
    assert read_objects(path) == [{"n": 1}, {"n": 2}]
    append_lines(path, [{"n": 4}])
    assert read_objects(path) == [{"n": 1}, {"n": 2}, {"n": 4}]


def test_damaged_middle_line_is_an_error_with_its_number(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"n": 1}\n{"n": }\n{"n": 3}\n')
    with pytest.raises(DataError, match="line 2"):
        read_objects(path)


def test_lines_come_back_as_models(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    found = [Message(role="user", content="a\nb"), Message(role="assistant", content="\u2028 \ud7ff é")]
    append_lines(path, found)
    assert read_lines(path, Message) == found


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_atomic(tmp_path / "a", b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InfrastructureError) as caught:
        write_atomic(path, b"new")
    assert caught.value.exit_code == 4
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_folder_without_configuration_is_no_workspace(tmp_path: Path):
    with pytest.raises(ConfigError) as caught:
        Workspace(tmp_path)
    assert "rlvr init" in caught.value.fix


def test_second_writer_is_refused(tmp_path: Path):
    (tmp_path / "rlvr.yaml").write_text("model: a\n")
    one, two = Workspace(tmp_path), Workspace(tmp_path)
    with one.lock("probe"), pytest.raises(InfrastructureError, match="another process"), two.lock("probe"):
        pass
    with two.lock("probe"):
        pass

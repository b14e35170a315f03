"""Every format that a log may have, one and the same run in each."""

import csv
import gzip
import io
import json
import random
import sqlite3
import struct
from pathlib import Path

import pytest

from rlvr.errors import DataError, UsageError
from rlvr.watch.ingest import read_source

ROWS = [
    {
        "step": step,
        "loss": 0.0,
        "grad_norm": round(0.5 + 0.01 * step, 4),
        "reward": round(0.2 + 0.02 * step, 4),
        "reward_std": 0.31,
        "entropy": round(0.9 - 0.01 * step, 4),
        "completions/mean_length": 50.0 + step,
        "frac_reward_zero_std": 0.25,
    }
    for step in range(1, 21)
]


def check(path: Path, **keywords: object) -> None:
    history = read_source(path, **keywords).history  # type: ignore[arg-type]
    assert history.steps.tolist() == [row["step"] for row in ROWS]
    assert history.columns["reward"].tolist() == pytest.approx([row["reward"] for row in ROWS], rel=1e-5)
    assert history.columns["entropy"].tolist() == pytest.approx([row["entropy"] for row in ROWS], rel=1e-5)
    assert history.columns["length"].tolist() == pytest.approx(
        [row["completions/mean_length"] for row in ROWS]
    )


def test_trainer_state(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text(
        json.dumps({"global_step": 20, "log_history": [*ROWS, {"step": 20, "train_runtime": 3.0}]}, indent=2)
    )
    check(path)
    assert read_source(path).format == "trainer_state.json"


@pytest.mark.parametrize("zipped", [False, True])
def test_jsonl(tmp_path: Path, zipped: bool) -> None:
    text = "".join(json.dumps(row) + "\n" for row in ROWS)
    path = tmp_path / ("log.jsonl.gz" if zipped else "log.jsonl")
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    check(path)


def test_jsonl_of_verl_with_its_data_level(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    renamed = {
        "reward": "critic/score/mean",
        "entropy": "actor/entropy",
        "completions/mean_length": "response_length/mean",
    }
    lines = [
        {"step": r["step"], "data": {renamed.get(k, k): v for k, v in r.items() if k != "step"}} for r in ROWS
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    check(path)


def test_a_json_array_and_a_table_by_columns(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    path.write_text(json.dumps(ROWS))
    check(path)
    path.write_text(json.dumps({name: [row[name] for row in ROWS] for name in ROWS[0]}))
    check(path)


def test_a_cut_off_trainer_state_gives_what_stands_before_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    text = json.dumps({"log_history": ROWS}, indent=2)
    path.write_text(text[: text.index('"step": 16')])
    source = read_source(path)
    assert len(source.history) >= 14
    assert any("broken or cut off" in r for r in source.remarks)


def test_broken_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    lines = [json.dumps(row) for row in ROWS]
    path.write_text("\n".join([*lines[:5], '{"step": 6, "rew', *lines[5:]]))
    check(path)
    assert any("1 lines are no JSON object" in r and "line 6" in r for r in read_source(path).remarks)


def printed(row: dict, as_strings: bool) -> str:
    values = {k: (str(v) if as_strings else v) for k, v in row.items() if k != "step"}
    return str({**values, "epoch": "0.1" if as_strings else 0.1})


@pytest.mark.parametrize("as_strings", [False, True])
def test_standard_output_of_trl(tmp_path: Path, as_strings: bool) -> None:
    path = tmp_path / "train.log"
    bar = "\r  {p}%|█▎        | {n}/150 [00:{n:02d}<08:31,  3.45s/it]"
    noise = "Loading checkpoint shards: 100%|██████████| 2/2 [00:01<00:00,  1.8it/s]\nINFO: started {x}\n"
    lines = [
        bar.format(p=row["step"], n=row["step"]) + "\n" + printed(row, as_strings) + "\n" for row in ROWS
    ]
    path.write_text(noise + "".join(lines))
    check(path)
    assert read_source(path).format == "text output"


def test_printed_dicts_without_a_bar_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("".join(printed(row, True) + "\n" for row in ROWS))
    check(path)


def test_dicts_printed_over_several_lines_and_nan(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    body = "\n".join("{" + ",\n ".join(f"'{k}': {v}" for k, v in row.items()) + "}" for row in ROWS)
    path.write_text(body.replace("'loss': 0.0", "'loss': nan"))
    check(path)
    assert len(read_source(path).history.not_finite["loss"]) == 20


def test_a_notebook_with_a_table_and_with_prints(tmp_path: Path) -> None:
    names = list(ROWS[0])
    cells = "".join("<tr>" + "".join(f"<td>{row[n]}</td>" for n in names) + "</tr>" for row in ROWS)
    head = "<tr>" + "".join(f"<th>{'Step' if n == 'step' else n}</th>" for n in names) + "</tr>"
    html = {
        "output_type": "display_data",
        "data": {"text/html": [f"<table>{head}{cells}</table>"], "text/plain": ["x"]},
    }
    path = tmp_path / "run.ipynb"
    path.write_text(json.dumps({"cells": [{"outputs": [html]}]}))
    check(path)
    stream = {"output_type": "stream", "text": [printed(row, True) + "\n" for row in ROWS]}
    path.write_text(json.dumps({"cells": [{"outputs": [stream]}]}))
    check(path)


def test_console_lines_of_verl(tmp_path: Path) -> None:
    path = tmp_path / "verl.log"
    line = "\x1b[36m(TaskRunner pid=12)\x1b[0m step:{step} - global_seqlen/min:10 - "
    line += "actor/entropy:np.float64({entropy}) - "
    line += "critic/score/mean:{reward} - response_length/mean:{length} - timing_s/gen:3.5\n"
    path.write_text("".join(line.format(**row, length=row["completions/mean_length"]) for row in ROWS))
    check(path)


def test_lines_of_key_and_value(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    line = (
        "[10:22:01] step={step} | reward: {reward}, entropy={entropy}, completion_length={length} lr=1e-06\n"
    )
    path.write_text(
        "starting\n" + "".join(line.format(**row, length=row["completions/mean_length"]) for row in ROWS)
    )
    check(path)


def test_tables_copied_from_a_notebook_or_a_model_card(tmp_path: Path) -> None:
    names = list(ROWS[0])
    path = tmp_path / "table.txt"
    head = ["Step" if n == "step" else n for n in names]
    for mark in ("\t", " | "):
        rule = [mark.join("---" for _ in names)] if mark != "\t" else []
        body = [mark.join(str(row[n]) for n in names) for row in ROWS]
        path.write_text("some words\n" + "\n".join([mark.join(head), *rule, *body]))
        check(path)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_csv(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "log.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(ROWS[0]), delimiter=mark)
        writer.writeheader()
        writer.writerows(ROWS)
    check(path)
    path.write_text(path.read_text() + f"21{mark}cut\n")
    check(path)
    assert any("another number of cells" in r for r in read_source(path).remarks)


def test_the_csv_that_wandb_exports(tmp_path: Path) -> None:
    path = tmp_path / "wandb.csv"
    metrics = ["reward", "entropy", "completions/mean_length"]
    head = ["Step"] + [f"r1 - train/{m}{end}" for m in metrics for end in ("", "__MIN", "__MAX")]
    rows = [[row["step"]] + [row[m] for m in metrics for _ in range(3)] for row in ROWS]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    check(path)


def test_parquet_and_trackio(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "metrics.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    check(path)
    base = sqlite3.connect(tmp_path / "project.db")
    base.execute(
        "CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT)"
    )
    for name in ("a", "b"):
        for row in ROWS:
            text = json.dumps({f"train/{k}": v for k, v in row.items() if k != "step"})
            base.execute(
                "INSERT INTO metrics (run_name, step, metrics) VALUES (?, ?, ?)", (name, row["step"], text)
            )
    base.commit()
    base.close()
    check(tmp_path / "project.db", run="a")


def varint(value: int) -> bytes:
    out = b""
    while True:
        value, low = value >> 7, value & 0x7F
        out += bytes([low | (0x80 if value else 0)])
        if not value:
            return out


def block(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def event(step: int, values: dict[str, float]) -> bytes:
    summary = b"".join(
        block(1, block(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value))
        for tag, value in values.items()
    )
    body = varint(1 << 3 | 1) + struct.pack("<d", 1.0) + varint(2 << 3) + varint(step) + block(5, summary)
    return struct.pack("<Q", len(body)) + b"0000" + body + b"0000"


def test_tensorboard_written_here(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "events.out.tfevents.1.host"
    path.parent.mkdir()
    data = b"".join(
        event(row["step"], {f"train/{k}": v for k, v in row.items() if k != "step"}) for row in ROWS
    )
    path.write_bytes(data)
    check(path)
    check(tmp_path)
    path.write_bytes(data[:-7])
    source = read_source(path)
    assert len(source.history) == 19
    assert any("cut off" in r for r in source.remarks)


def test_tensorboard_written_by_tensorboard(tmp_path: Path) -> None:
    writer_module = pytest.importorskip("tensorboard.summary.writer.event_file_writer")
    summary_module = pytest.importorskip("tensorboard.compat.proto.summary_pb2")
    event_module = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    writer = writer_module.EventFileWriter(str(tmp_path))
    for row in ROWS:
        values = [
            summary_module.Summary.Value(tag=f"train/{k}", simple_value=v)
            for k, v in row.items()
            if k != "step"
        ]
        writer.add_event(event_module.Event(step=row["step"], summary=summary_module.Summary(value=values)))
    writer.close()
    check(tmp_path)


def wandb_bytes(rows: list[dict]) -> bytes:
    """Write a .wandb file as its data store does: records in blocks of 32 KiB."""
    out = io.BytesIO()
    out.write(b":W&B\xe1\xbe\x00")
    for row in rows:
        items = b"".join(
            block(1, block(2, f"train/{k}".encode()) + block(16, json.dumps(v).encode()))
            for k, v in row.items()
        )
        record = block(2, items)
        first = True
        while record or first:
            left = 32 * 1024 - out.tell() % (32 * 1024)
            if left < 7:
                out.write(b"\0" * left)
                continue
            piece, record = record[: left - 7], record[left - 7 :]
            kind = (1 if not record else 2) if first else (3 if record else 4)
            out.write(b"0000" + struct.pack("<HB", len(piece), kind) + piece)
            first = False
    return out.getvalue()


def test_the_file_of_an_offline_wandb_run(tmp_path: Path) -> None:
    rows = [
        {**{("global_step" if k == "step" else k): v for k, v in row.items()}, "padding": "x" * 5000}
        for row in ROWS
    ]
    path = tmp_path / "run-1.wandb"
    path.write_bytes(wandb_bytes(rows))
    check(path)
    path.write_bytes(wandb_bytes(rows)[:-300])
    assert len(read_source(path).history) == 19


def test_folders_of_trl(tmp_path: Path) -> None:
    for step in (10, 20):
        place = tmp_path / f"checkpoint-{step}"
        place.mkdir()
        (place / "trainer_state.json").write_text(json.dumps({"log_history": ROWS[:step]}))
        (place / "config.json").write_text(json.dumps({"model_type": "qwen3_moe", "num_experts": 64}))
    check(tmp_path)
    assert read_source(tmp_path).facts.experts is True


def test_a_run_folder_of_ours_with_completions(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    texts = [
        {"step": s, "group": 0, "prompt": "p", "completion": f"answer {i}", "correct": float(i % 2), "advantage": 0.1,
         "outcome": "right" if i % 2 else "wrong", "tokens": 3 + i, "truncated": False}
        for s in range(3) for i in range(8)
    ]  # fmt: skip
    body = "".join(json.dumps(row) + "\n" for row in texts)
    (tmp_path / "completions.jsonl.gz").write_bytes(gzip.compress(body.encode()))
    (tmp_path / "manifest.json").write_text(
        json.dumps(
            {
                "record": {
                    "rewards": [{"name": "correct", "weight": 1.0}],
                    "settings": {"beta": {"value": 0.0}},
                }
            }
        )
    )
    check(tmp_path)
    source = read_source(tmp_path)
    assert source.completions is not None
    assert len(source.completions) == 24
    assert source.completions.right.mean() == 0.5
    assert source.completions.length_unit == "tokens"
    assert source.facts.settings == {"beta": 0.0}


def run_of_two_rewards(place: Path, settings: dict, rewards: list[dict]) -> Path:
    """Ten steps of two groups: correct and tags cancel in the first when both count once; the second is all wrong."""
    scores = [[(1.0, 0.0), (0.0, 1.0)] * 4, [(0.0, 1.0)] * 8]
    texts = [
        {"step": s, "group": g, "prompt": f"p{g}", "completion": f"answer {i}", "correct": c, "tags": t,
         "advantage": 0.1, "outcome": "right" if c else "wrong", "tokens": 3, "truncated": False}
        for s in range(10) for g, group in enumerate(scores) for i, (c, t) in enumerate(group)
    ]  # fmt: skip
    body = "".join(json.dumps(row) + "\n" for row in texts)
    (place / "completions.jsonl.gz").write_bytes(gzip.compress(body.encode()))
    rows = [
        {"step": s, "reward": 1.0 * (0.3 + 0.01 * s) + 0.2 * (0.7 + 0.02 * (s % 3)),
         "rewards/correct/mean": 0.3 + 0.01 * s, "rewards/tags/mean": 0.7 + 0.02 * (s % 3)}
        for s in range(1, 11)
    ]  # fmt: skip
    (place / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "manifest.json").write_text(json.dumps({"record": {"settings": settings, "rewards": rewards}}))
    return place


UNNAMED = [
    {"use": "reward.py:correct", "name": None, "weight": None},
    {"use": "tags", "name": None, "weight": None},
]


@pytest.mark.parametrize(
    ("settings", "rewards"),
    [
        ({"reward_weights": {"value": [1.0, 0.2]}}, UNNAMED),
        ({}, [UNNAMED[0] | {"weight": 1.0}, UNNAMED[1] | {"weight": 0.2}]),
        ({}, UNNAMED),  # solved from the log
        ({}, []),
    ],
)
def test_groups_are_counted_by_the_weighted_total(
    tmp_path: Path, settings: dict, rewards: list[dict]
) -> None:
    source = read_source(run_of_two_rewards(tmp_path, settings, rewards))
    found = source.completions
    assert found is not None
    assert set(found.components) == {"correct", "tags"}
    assert sorted(set(found.rewards.tolist())) == pytest.approx([0.2, 1.0])
    assert found.zero_variance.mean() == 0.5
    assert found.remarks == ()


def test_a_reward_without_its_column_does_not_leave_the_others_alone(tmp_path: Path) -> None:
    rewards = [{"name": "renamed", "weight": 1.0}, {"name": "tags", "weight": 0.2}]
    place = run_of_two_rewards(tmp_path, {}, rewards)
    found = read_source(place).completions
    assert found is not None
    assert set(found.components) == {"correct", "tags"}
    assert found.remarks == ("weights of correct are unknown: each was counted once",)


def test_a_file_of_completions_alone(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    rng = random.Random(1)
    rows = [
        {"step": s, "prompt": f"p{p}", "completion": "word " * rng.randint(1, 9),
         "accuracy_reward": float(rng.random() < 0.4),
         "advantage": 0.0}
        for s in range(1, 11) for p in range(4) for _ in range(8)
    ]  # fmt: skip
    path = tmp_path / "completions_00010.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    found = read_source(path).completions
    assert found is not None
    assert found.group_count == 40
    assert found.right_by == "accuracy_reward at its full score"
    assert found.length_unit == "characters"


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("empty.jsonl", b"", "watch.nothing-read"),
        ("words.txt", b"hello\nworld\n", "watch.nothing-read"),
        ("other.json", b'{"a": 1}', "watch.nothing-read"),
        ("image.bin", b"\x89PNG\x00\x00\x01", "watch.binary"),
        ("broken.parquet", b"PAR1 and nothing", "watch.damaged"),
        ("other.db", b"SQLite format 3\x00 and nothing", "watch.not-trackio"),
    ],
)
def test_what_cannot_be_read_is_said_with_what_to_do(
    tmp_path: Path, name: str, content: bytes, code: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_source(path)
    assert caught.value.code == code
    assert caught.value.fix


def test_missing_files_and_unclear_folders(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_source(tmp_path / "none.json")
    with pytest.raises(DataError, match="no log"):
        read_source(tmp_path)
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    with pytest.raises(DataError, match="several logs"):
        read_source(tmp_path)

"""Recall, false alarms, delay and speed of `rlvr watch`, beside its peers on the same files.

    python benchmarks/watch.py --out benchmarks/results/watch.md [--real /tmp/runs] [--peers VENV/bin] [--quick]

Simulated runs come from rlvr.watch.simulate (seeds 0 and up, settings drawn per seed), real ones from
benchmarks/watch_runs.py. Peers (PyPI: rldoctor, rlprobe, rlwatch) are called through their own command lines in
their own environment; a log that a peer cannot take is converted to what it reads.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rlvr.watch.ingest import read_source
from rlvr.watch.judge import judge_source
from rlvr.watch.live import LiveWatch
from rlvr.watch.simulate import ILLNESSES, Setting, Simulated, draw_setting, simulate
from rlvr.watch.symptoms import judge_history

NEEDS_COMPLETIONS = {"reward-pays-length", "wrong-answers-lengthen", "answer-collapse"}
NEEDS_CHECK = {"reward-hacking"}
EXPECTED = {
    "rate-high": {"reward-crash", "no-signal"},
    "rate-double": {"reward-crash", "no-signal"},
    "length-leak": {"reward-pays-length"},
    "format-only": {"reward-hacking"},
    "sorted-only": {"reward-hacking"},
    "sharp": {"no-signal"},
    "hot": {"reward-crash", "no-signal"},
    "tiny-cap": {"truncation"},
    "unreachable": {"no-signal"},
    "unreachable-format": {"no-signal"},
}
"""Kind of a real failure to the names of which any is right."""


def setting_of(seed: int, illness: str | None) -> Setting:
    """Draw a setting; keep what the symptom cannot be judged without."""
    setting = draw_setting(seed, illness)  # type: ignore[arg-type]
    if illness is not None:
        setting = dataclasses.replace(
            setting, prompts=min(8, setting.prompts), group=8, steps=min(300, setting.steps)
        )
    if illness in NEEDS_COMPLETIONS:
        setting = dataclasses.replace(setting, keep=True, steps=min(setting.steps, 150))
    if illness in NEEDS_CHECK:
        setting = dataclasses.replace(setting, evaluate_every=10)
    return setting


def judged(run: Simulated) -> Any:
    return judge_history(run.history(), run.completions(), run.facts)


def healthy(count: int) -> dict[str, Any]:
    alarms: collections.Counter[str] = collections.Counter()
    loud = 0
    for seed in range(count):
        found = judged(simulate(setting_of(seed, None), seed)).alarms
        loud += bool(found)
        alarms.update(a.name for a in found)
    return {"runs": count, "with_alarm": loud, "alarms": dict(alarms)}


def live(count: int) -> dict[str, Any]:
    loud = 0
    names: collections.Counter[str] = collections.Counter()
    for seed in range(count):
        told = told_live(simulate(dataclasses.replace(setting_of(seed, None), keep=False), seed))
        loud += bool(told)
        names.update(name for _, name in told)
    return {"runs": count, "with_alarm": loud, "alarms": dict(names)}


def told_live(run: Simulated) -> list[tuple[int, str]]:
    watch = LiveWatch(run.facts)
    texts = collections.defaultdict(list)
    for row in run.completion_rows:
        texts[row["step"]].append(row)
    told, last = [], 0
    for row in run.rows:
        for step in range(last + 1, int(row["step"]) + 1):
            watch.add_completions(texts.get(step, ()))
        last = int(row["step"])
        told += [(last, finding.name) for finding in watch.add(row)]
    return told


def failures(count: int) -> list[dict[str, Any]]:
    rows = []
    for illness in ILLNESSES:
        named = loud = 0
        since, delay = [], []
        others: collections.Counter[str] = collections.Counter()
        for seed in range(count):
            run = simulate(setting_of(50_000 + seed, illness), seed)
            result = judged(run)
            found = result.named(illness)
            named += found is not None
            if found is not None and found.level != "information":
                loud += 1
                since.append((found.since_step or 0) - run.onset_step)
            others.update(a.name for a in result.alarms if a.name != illness)
            if seed < max(3, count // 7):
                heard = [step for step, name in told_live(run) if name == illness]
                if heard:
                    delay.append(heard[0] - run.onset_step)
        rows.append({
            "symptom": illness, "runs": count, "found": loud, "named": named,
            "since_error": statistics.median(since) if since else None,
            "live_delay": statistics.median(delay) if delay else None,
            "live_heard": len(delay), "live_runs": max(3, count // 7), "beside": dict(others.most_common(3)),
        })  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def real(folder: Path) -> list[dict[str, Any]]:
    rows = []
    for manifest in sorted(folder.glob("*/manifest.json")):
        kind = json.loads(manifest.read_text())["kind"]
        found = judge_source(read_source(manifest.parent))
        alarms = [a.name for a in found.alarms]
        right = not alarms if kind.startswith("healthy") else bool(EXPECTED.get(kind, set()) & set(alarms))
        rows.append({"run": manifest.parent.name, "kind": kind, "right": right, "alarms": alarms})
    return rows


def long_log(path: Path, steps: int = 5000) -> Path:
    """Write a log of 5,000 steps, one row a step."""
    setting = Setting(
        steps=steps, prompts=4, log_every=1, rate=1.5 * 150 / steps, keep=False, evaluate_every=50
    )
    with path.open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in simulate(setting, 1).rows)
    return path


def timed(command: list[str], **keywords: Any) -> tuple[float, str]:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, **keywords)
    return time.perf_counter() - start, done.stdout + (done.stderr if done.returncode not in (0, 1) else "")


def cpu_of(command: list[str], repeats: int = 1, **keywords: Any) -> tuple[float, float, str]:
    """Return wall and processor seconds, the best of ``repeats``: the machine is shared."""
    best: tuple[float, float, str] | None = None
    for _ in range(repeats):
        before = os.times()
        wall, out = timed(command, **keywords)
        after = os.times()
        cpu = after.children_user + after.children_system - before.children_user - before.children_system
        if best is None or cpu < best[1]:
            best = (wall, cpu, out)
    assert best is not None
    return best


class Peers:
    """The peers, each with what it needs to read a JSONL log of TRL's names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        return [n for n in ("rl-doctor", "rlprobe", "rlwatch") if (self.folder / n).is_file()]

    def run(self, name: str, log: Path, work: Path) -> tuple[float, float, list[str]]:
        """Return wall and processor seconds, and what it called warning or worse."""
        if name == "rl-doctor":
            wall, cpu, out = cpu_of([str(self.folder / name), "diagnose", str(log), "-f", "json"])
            found = json.loads(out).get("findings", []) if out.strip().startswith("{") else []
            return (
                wall,
                cpu,
                [f["detector"] for f in found if str(f["severity"]).upper() in ("WARNING", "CRITICAL")],
            )
        script = _RLPROBE if name == "rlprobe" else _RLWATCH
        place = work / f"{name}-{log.stem}"
        converted, problem = timed(
            [str(self.folder / "python"), "-c", script, str(log), str(place)], cwd=work
        )
        del converted
        if name == "rlprobe":
            wall, cpu, out = cpu_of([str(self.folder / name), "doctor", "--json", str(place)])
            data = (
                json.loads(out[out.index("[") :])
                if "[" in out
                else [{"signature_id": problem, "severity": "warning"}]
            )
            return wall, cpu, [str(f["signature_id"]) for f in data if str(f["severity"]).lower() != "info"]
        wall, cpu, out = cpu_of(
            [str(self.folder / name), "diagnose", "--log-dir", str(place), "--format", "json"]
        )
        data = json.loads(out[out.index("{") :]) if "{" in out else {}
        alerts = data.get("alerts", [])
        return wall, cpu, sorted({str(a.get("detector")) for a in alerts})


_RLPROBE = """
import json, sys, time
from rlprobe.schemas import RunManifest, StepRecord
from rlprobe.storage import RunWriter
names = {"reward": "reward_mean", "reward_std": "reward_std", "entropy": "entropy_mean", "kl": "kl_mean",
         "grad_norm": "grad_norm", "loss": "loss", "learning_rate": "lr",
         "completions/mean_length": "completion_len_mean",
         "completions/clipped_ratio": "truncation_rate", "frac_reward_zero_std": "zero_variance_group_frac",
         "clip_ratio/region_mean": "clip_fraction"}
manifest = RunManifest(run_id="x", created_at="2026-01-01T00:00:00", algorithm="grpo", model_name="m",
                       trainer_config={"group_size": 8, "max_new_tokens": 512}, environment={})
with RunWriter(sys.argv[2], manifest) as writer:
    for line in open(sys.argv[1]):
        row = json.loads(line)
        if "reward" in row:
            parts = {k.split("/")[1]: v for k, v in row.items() if k.startswith("rewards/") and k.endswith("/mean")}
            writer.add_step(StepRecord(step=row["step"], timestamp=float(row["step"]), reward_components=parts,
                                       **{names[k]: v for k, v in row.items() if k in names}))
"""
_RLWATCH = """
import json, sys
import rlwatch
from rlwatch.config import load_config
config = load_config(None)
config.storage.log_dir, config.framework, config.run_id = sys.argv[2], "manual", "x"
monitor = rlwatch.core.RLWatch(config)
monitor.start()
names = {"reward": "reward_mean", "reward_std": "reward_std", "entropy": "entropy", "kl": "kl_divergence",
         "grad_norm": "grad_norm", "loss": "loss", "learning_rate": "learning_rate",
         "clip_ratio/region_mean": "clip_fraction"}
for line in open(sys.argv[1]):
    row = json.loads(line)
    if "reward" in row:
        monitor.log_step(row["step"], **{names[k]: v for k, v in row.items() if k in names})
monitor.stop()
"""


def render(result: dict[str, Any]) -> str:
    lines = [
        "# Watch: recall, false alarms, delay, speed",
        "",
        f"Made by `{result['command']}` on 2 cores (shared).",
        "",
    ]
    h, lv = result["healthy"], result["live"]
    lines += [
        "## False alarms",
        "",
        "| runs | with an alarm above information | which |",
        "|---|---|---|",
        f"| {h['runs']} healthy simulated, read at the end | {h['with_alarm']} | {h['alarms'] or ''} |",
        f"| {lv['runs']} healthy simulated, watched live | {lv['with_alarm']} | {lv['alarms'] or ''} |",
    ]
    good = [r for r in result["real"] if r["kind"].startswith("healthy")]
    bad = [r for r in result["real"] if not r["kind"].startswith("healthy")]
    if good:
        loud = [r["run"] for r in good if not r["right"]]
        lines.append(f"| {len(good)} healthy real (demo model) | {len(loud)} | {', '.join(loud)} |")
    lines += ["", "## Failures, simulated at full strength", "",
              "Found: named at warning or above. Since: median of the reported first step minus the step at which "
              "the "
              "cause begins. Live delay: median steps from that to the first confirmed alarm.", "",
              "| symptom | found | named at all | since | live delay | heard live | beside it |",
              "|---|---|---|---|---|---|---|"]  # fmt: skip
    for row in result["failures"]:
        lines.append(
            f"| {row['symptom']} | {row['found']}/{row['runs']} | {row['named']}/{row['runs']} | "
            f"{_n(row['since_error'])} | "
            f"{_n(row['live_delay'])} | {row['live_heard']}/{row['live_runs']} | "
            f"{', '.join(f'{k} {v}' for k, v in row['beside'].items())} |"
        )
    if bad:
        lines += [
            "",
            "## Failures, real runs of the demo model",
            "",
            "| run | right | alarms |",
            "|---|---|---|",
        ]
        lines += [f"| {r['run']} | {'yes' if r['right'] else 'no'} | {', '.join(r['alarms'])} |" for r in bad]
    lines += [
        "",
        "## 5,000 steps, one process from start to end",
        "",
        "| tool | wall s | processor s | said |",
        "|---|---|---|---|",
    ]
    lines += [f"| {r['tool']} | {r['wall']:.2f} | {r['cpu']:.2f} | {r['said']} |" for r in result["speed"]]
    if result["race"]:
        lines += ["", "## The same files, beside the peers", "",
                  "Healthy: files with any finding at warning or above. Failures: files with any finding at all that "
                  "is "
                  "warning or above, whatever its name (the most generous reading).", "",
                  "| tool | healthy files with an alarm | failing files with an alarm |",
                  "|---|---|---|"]  # fmt: skip
        lines += [f"| {r['tool']} | {r['healthy']} | {r['failing']} |" for r in result["race"]]
    return "\n".join(lines) + "\n"


def _n(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--real", type=Path, help="folder of runs made by watch_runs.py")
    parser.add_argument("--peers", type=Path, help="bin folder of an environment with the peers")
    parser.add_argument("--parts", default="real,race,healthy,live,failures", help="which parts to run")
    parser.add_argument("--keep", type=Path, help="JSON file that holds the parts run so far")
    parser.add_argument("--each", type=int, default=40, help="runs of each failure")
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    given = parser.parse_args()
    count, each = (20, 5) if given.quick else (200, given.each)
    parts = given.parts.split(",")
    result: dict[str, Any] = json.loads(given.keep.read_text()) if given.keep and given.keep.is_file() else {}
    result["command"] = "python benchmarks/watch.py --real RUNS --peers VENV/bin" + f" --each {each}"
    if "real" in parts:
        result["real"] = real(given.real) if given.real else []
    if "race" in parts:
        with tempfile.TemporaryDirectory() as work:
            result["speed"], result["race"] = race(given.peers, Path(work), given.quick)
    if "healthy" in parts:
        result["healthy"] = healthy(count)
    if "live" in parts:
        result["live"] = live(count)
    if "failures" in parts:
        result["failures"] = failures(each)
    if given.keep:
        given.keep.write_text(json.dumps(result))
    if not {"real", "race", "healthy", "live", "failures"} <= set(result):
        return 0
    text = render(result)
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        given.out.write_text(text)
    print(text)
    return 0


def race(folder: Path | None, work: Path, quick: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Time everybody on 5,000 steps, and run everybody on the same healthy and failing files."""
    log = long_log(work / "long.jsonl")
    ours = [sys.executable, "-m", "rlvr", "watch", str(log), "--json"]
    wall, cpu, out = cpu_of(ours, 3)
    said = ", ".join(f"{s['name']} ({s['level']})" for s in json.loads(out)["symptoms"]) or "nothing"
    speed = [{"tool": "rlvr watch", "wall": wall, "cpu": cpu, "said": said}]
    if folder is None:
        return speed, []
    peers = Peers(folder)
    files = {kind: list(race_files(kind, work, 3 if quick else 8)) for kind in ("healthy", "failing")}
    table = [
        {
            "tool": "rlvr watch",
            **{k: _hits([bool(judge_source(read_source(p)).alarms) for p in f]) for k, f in files.items()},
        }
    ]
    for name in peers.names():
        wall, cpu, found = peers.run(name, log, work)
        speed.append({"tool": name, "wall": wall, "cpu": cpu, "said": ", ".join(found) or "nothing"})
        table.append(
            {
                "tool": name,
                **{k: _hits([bool(peers.run(name, p, work)[2]) for p in f]) for k, f in files.items()},
            }
        )
    return speed, table


def race_files(kind: str, work: Path, count: int) -> Any:
    illnesses = [i for i in ILLNESSES if i not in NEEDS_COMPLETIONS | {"moe-instability", "engine-mismatch"}]
    for seed in range(count):
        illness = None if kind == "healthy" else illnesses[seed % len(illnesses)]
        setting = dataclasses.replace(setting_of(seed, illness), keep=False, evaluate_every=10)
        path = work / f"{kind}-{seed}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in simulate(setting, seed).rows))
        yield path


def _hits(found: list[bool]) -> str:
    return f"{sum(found)}/{len(found)}"


if __name__ == "__main__":
    sys.exit(main())

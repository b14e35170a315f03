"""Writes the page: one self-contained HTML text, readable from disk and on paper.

Only one script runs on it, named by its hash in the content policy, so that even unescaped text could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rlvr.report import samples as sampling
from rlvr.report.curves import curves, is_number
from rlvr.report.figures import Interval, interval_chart, line_chart, short
from rlvr.report.timeline import timeline
from rlvr.report.verdict import RunVerdict, judge, points

if TYPE_CHECKING:
    from jinja2 import Environment

    from rlvr.records.run import Evaluation, Manifest
    from rlvr.report.inputs import ReportInputs

GIB = 1024**3
TABLE_ROWS = 40
"""Rows of the table of logged numbers; longer logs are thinned."""
OPEN_PAIRS = {"broken": 8, "mended": 8, "still wrong": 4, "still right": 2}
"""Pairs of one kind that stand open; the rest is folded."""
TABLE_COLUMNS = (
    "reward",
    "rlvr/right_share",
    "held_out/accuracy",
    "rlvr/informative_groups",
    "completions/mean_length",
    "completions/clipped_ratio",
    "entropy",
    "kl",
    "grad_norm",
    "learning_rate",
)
SOURCES = {
    "reference": "the project's base recipe",
    "override": "changed by the user",
    "fallback": "what this machine or software allows",
    "variant": "of the applied variant",
    "derived": "computed from task, model and device",
}


def write_report(inputs: ReportInputs) -> str:
    """Return the page of one run as HTML."""
    verdict = judge(inputs.manifest, inputs.before, inputs.after, inputs.reading)
    return render(
        "report.html",
        inputs=inputs,
        verdict=verdict,
        red=red_flags(inputs),
        facts=_facts(inputs),
        held_out=_held_out(inputs, verdict),
        curves=curves(inputs.log, inputs.rollouts, inputs.findings),
        table=_log_table(inputs.log),
        findings=inputs.findings,
        pairs=_pairs(inputs),
        rollouts=_rollouts(inputs),
        timeline=timeline(inputs),
        settings=_settings(inputs.manifest),
        sources=SOURCES,
        rewards=_rewards(inputs.manifest),
        cost=_cost(inputs),
        next=verdict.next,
    )


def red_flags(inputs: ReportInputs) -> list[tuple[str, str]]:
    """Return what stands in red: waivers, settings moved before a base run, a sandbox that is none."""
    manifest = inputs.manifest
    if manifest is None:
        return []
    flags = [(f"gate {name} waived", reason) for name, reason in manifest.waivers.items()]
    flags += [
        (f"{name} moved before a base run", f"{json.dumps(setting.get('value'))}: {setting.get('why', '')}")
        for name, setting in manifest.settings.items()
        if isinstance(setting, Mapping) and setting.get("before_base_run")
    ]
    if manifest.isolation.startswith("E"):
        flags.append(("no isolation", "model-written code ran with resource limits alone"))
    return flags


def render(template: str, **context: Any) -> str:
    """Return a template of this folder filled in, with the page's style and script."""
    style, script = _asset("style.css"), _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template(template)
        .render(style=style, script=script, script_hash=f"sha256-{digest}", **context)
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        finalize=_finalized,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["safe_text"] = sampling.safe_text
    environment.filters["short"] = short
    environment.filters["when"] = lambda text: text.replace("T", " ").replace("Z", " UTC")
    environment.filters["plain"] = plain_value
    # The style and the script are files of this package, never a user's text.
    environment.filters["ours"] = Markup
    return environment


def _finalized(value: Any) -> Any:
    """Make every character that hides or reorders text visible, wherever the text came from."""
    from markupsafe import Markup

    return sampling.visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _asset(name: str) -> str:
    return (files("rlvr.report") / "page" / name).read_text("utf-8")


def plain_value(value: Any) -> str:
    """Return text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _facts(inputs: ReportInputs) -> list[tuple[str, str]]:
    manifest = inputs.manifest
    if manifest is None:
        return [("folder", inputs.source)] if inputs.source else []
    of = f" of {manifest.total_steps}" if manifest.total_steps else ""
    facts = [
        ("model", manifest.model),
        ("method", str(manifest.method.get("kind", "full"))),
        ("state", manifest.state),
        ("steps", f"{manifest.steps or _last_step(inputs.log)}{of}"),
        ("began", manifest.made_at.replace("T", " ").replace("Z", " UTC")),
    ]
    if manifest.variant:
        facts.append(("variant", manifest.variant))
    if manifest.resumed:
        facts.append(("resumed", f"{manifest.resumed} ×"))
    return facts


def _last_step(log: Sequence[Mapping[str, Any]]) -> int:
    return int(log[-1]["step"]) if log and is_number(log[-1].get("step")) else 0


def _held_out(inputs: ReportInputs, verdict: RunVerdict) -> dict[str, Any] | None:
    both = [("before", inputs.before, 2), ("after", inputs.after, 1)]
    known = [(name, one, tone) for name, one, tone in both if one is not None]
    if not known:
        return None
    rows = [Interval(name, one.accuracy, one.low, one.high, tone) for name, one, tone in known]
    passed = [sampling.pass_at_k(one.results, name, tone) for name, one, tone in known]
    several = [series for series in passed if len(series.points) > 1]
    last: Evaluation = known[-1][1]
    return {
        "svg": interval_chart(rows, title="Held-out accuracy"),
        "evaluation": last,
        "change": verdict.change,
        "points": points,
        "pass_svg": line_chart(several, title="pass@k", percent=True, x_name="k"),
        "pass_legend": [(one.name, one.tone, f"{one.points[-1][1]:.0%}") for one in several],
        "rollouts": last.rollouts,
    }


def _pairs(inputs: ReportInputs) -> dict[str, Any] | None:
    if inputs.before is None or inputs.after is None:
        return None
    found = sampling.pairs(inputs.before.results, inputs.after.results)
    if not found:
        return None
    shown = sampling.shown(found) if inputs.samples else []
    groups = {kind: [pair for pair in shown if pair.kind == kind] for kind in sampling.KINDS}
    return {
        "all": len(found),
        "counts": sampling.counts(found),
        "shown": shown,
        "groups": {kind: group for kind, group in groups.items() if group},
        "open": OPEN_PAIRS,
    }


def _rollouts(inputs: ReportInputs) -> list[dict[str, Any]]:
    """Return a few on-policy completions of the beginning, the middle and the end."""
    if not inputs.samples or not inputs.rollouts:
        return []
    chosen = sampling.telling_steps(row.get("step") for row in inputs.rollouts)
    return [
        {"step": step, "rows": [_rollout(row) for row in _distinct(inputs.rollouts, step)]} for step in chosen
    ]


def _distinct(rollouts: Iterable[Mapping[str, Any]], step: int, most: int = 4) -> list[Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for row in rollouts:
        if row.get("step") == step:
            found.setdefault(_content(row.get("prompt")), row)
        if len(found) == most:
            break
    return list(found.values())


def _rollout(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "prompt": sampling.safe_text(_content(row.get("prompt"), last=True)),
        "completion": sampling.safe_text(_content(row.get("completion"))),
        "outcome": str(row.get("outcome") or ""),
        "advantage": f"{row['advantage']:+.2f}" if is_number(row.get("advantage")) else "",
    }


def _content(value: Any, *, last: bool = False) -> str:
    """Return the text of a string or of chat messages."""
    if isinstance(value, list):
        texts = [str(message.get("content", "")) for message in value if isinstance(message, Mapping)]
        return texts[-1] if last and texts else "\n".join(texts)
    return str(value) if value is not None else ""


def _log_table(log: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    columns = [name for name in TABLE_COLUMNS if any(is_number(row.get(name)) for row in log)]
    if not columns:
        return None
    every = max(1, -(-len(log) // TABLE_ROWS))
    kept = [row for number, row in enumerate(log) if number % every == 0 or number == len(log) - 1]
    rows = [
        [short(row[name]) if is_number(row.get(name)) else "–" for name in ("step", *columns)] for row in kept
    ]
    return {"columns": ["step", *columns], "rows": rows, "every": every, "all": len(log)}


def _settings(manifest: Manifest | None) -> list[dict[str, Any]]:
    if manifest is None:
        return []
    found = []
    for name, setting in manifest.settings.items():
        known = setting if isinstance(setting, Mapping) else {"value": setting}
        found.append(
            {
                "name": name,
                "value": plain_value(known.get("value")),
                "why": known.get("why", ""),
                "source": known.get("source", ""),
                "origin": known.get("origin", ""),
                "red": bool(known.get("before_base_run")),
                "after": known.get("after", ""),
            }
        )
    order = ("override", "variant", "fallback", "derived", "reference")
    return sorted(found, key=lambda one: order.index(one["source"]) if one["source"] in order else len(order))


def _rewards(manifest: Manifest | None) -> list[tuple[str, str]]:
    """Return the rewards by name, each with the weight that was trained with."""
    if manifest is None:
        return []
    setting = manifest.settings.get("reward_weights")
    weights = setting.get("value") if isinstance(setting, Mapping) else None
    if not isinstance(weights, list) or len(weights) != len(manifest.rewards):
        weights = [one.get("weight") for one in manifest.rewards]
    names = [str(one.get("name") or str(one.get("use", "")).rpartition(":")[2]) for one in manifest.rewards]
    return [
        (name, f" × {weight:g}" if is_number(weight) else "")
        for name, weight in zip(names, weights, strict=True)
    ]


def _cost(inputs: ReportInputs) -> list[tuple[str, str, str]]:
    manifest = inputs.manifest
    seconds = manifest.seconds if manifest else 0.0
    tokens = manifest.tokens if manifest else 0
    if not seconds and inputs.log and is_number(inputs.log[-1].get("seconds")):
        seconds = float(inputs.log[-1]["seconds"])
    cost = []
    if seconds:
        cost.append(("time", duration(seconds), "wall clock of training"))
    if tokens:
        cost.append(("tokens sampled", short(tokens), "completion tokens"))
    if seconds and tokens:
        cost.append(("speed", f"{tokens / seconds:,.0f}", "tokens a second, updates included"))
    if manifest is not None and manifest.peak_bytes:
        cost.append(("peak memory", f"{manifest.peak_bytes / GIB:.2f} GiB", _planned_memory(inputs)))
    if inputs.rollouts:
        cost.append(("completions kept", f"{len(inputs.rollouts):,}", "in completions.jsonl.gz"))
    return cost


def _planned_memory(inputs: ReportInputs) -> str:
    plan = (
        next((gate for gate in inputs.status.gates if gate.name == "plan"), None) if inputs.status else None
    )
    memory = plan.evidence.get("memory") if plan else None
    if not memory:
        return "of the process or the device"
    low, high = memory["band_bytes"]
    return f"planned {low / GIB:.2f} to {high / GIB:.2f} GiB"


def duration(seconds: float) -> str:
    """Return a time as people say it: 48 s, 12 min 05 s, 3 h 20 min."""
    whole = round(seconds)
    if whole < 90:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 5400:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"

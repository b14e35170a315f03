"""Numbers of the optimizer and the engines: KL, gradients, mixture of experts, engine mismatch."""

from __future__ import annotations

from typing import Final

import numpy as np

from rlvr.records.watch import Finding, Level, SymptomName
from rlvr.watch.completions import Ints
from rlvr.watch.history import Floats
from rlvr.watch.statistics import Series, moving_average
from rlvr.watch.symptoms.case import Case, Verdict, clear, early_and_late, needs

KL_LARGE: Final = 2.0
"""KL in nats a token from which the policy has left its reference: the average token is e^2 times less likely."""
KL_JUMP: Final = 10.0
"""KL over its level in the middle of the run."""
SPIKE: Final = 10.0
"""A gradient norm over this many times its level is a spike."""

SILENT_PART: Final = 0.02
"""In a run without signal, gradients under this share of the largest are no gradients."""

ENGINE_LIMITS: Final[dict[str, tuple[float, float, str]]] = {
    "probability_difference": (
        0.01,
        0.05,
        "probabilities: verl's documentation calls under .005 normal and over .01 a fault",
    ),
    "logp_difference": (
        0.05,
        0.2,
        "log-probabilities: about .02 between healthy engines in bf16; .05 masks one 1,000-token sequence in three "
        "or "
        "more under TRL's sequence_mask",
    ),
    "engine_kl": (0.01, 0.1, "KL between engines: under .001 is usual in bf16"),
}
"""Metric to the means from which engines are apart, warning and critical, with the source."""


def judge_stability(case: Case) -> list[Verdict]:
    """Judge the four symptoms of the optimizer and the engines."""
    return [_kl(case), _gradient(case), _experts(case), _engines(case)]


# --- KL -------------------------------------------------------------------------------------------------------


def _kl(case: Case) -> Verdict:
    series = case.series("kl")
    if series is None:
        return needs("kl-blow-up", "kl (TRL logs it only with beta above 0), at least 8 rows")
    middle = float(
        np.median(series.values[len(series) // 4 : max(len(series) // 4 + 3, 3 * len(series) // 4)])
    )
    learns = _learns_at(case, series)
    falls = case.training_progress is not None and case.training_progress.trend == "falling"
    late = series.late
    jumped = (
        late.value > KL_JUMP * max(middle, 1e-3) and late.value > 0.5 and late.low > 3 * max(middle, 1e-3)
    )
    large = late.value > KL_LARGE and late.low > 0.5 * KL_LARGE
    negative = late.value < -0.1 and late.high < -0.05
    spikes = _spikes(series, 20.0, at_least=1.0)
    if jumped or negative or (large and (not learns or late.value > 5 * KL_LARGE)):
        level: Level = "critical" if falls or late.value > 2.5 * KL_LARGE else "warning"
        return _kl_finding(series, middle, level, negative=negative)
    if spikes.size >= 3:
        return _kl_spiked(series, spikes, "warning")
    if large or spikes.size:
        return (
            _kl_spiked(series, spikes, "information")
            if spikes.size
            else _kl_finding(series, middle, "information")
        )
    return clear("kl-blow-up", f"KL ends at {late.value:.3g} nats a token",
                 f"a level of {KL_LARGE} nats, or {KL_JUMP:.0f} times the middle of the run")  # fmt: skip


def _learns_at(case: Case, kl: Series) -> bool:
    """Whether the run still gains while KL is large (over its whole length, when it is not or too short for that)."""
    trained = case.training_progress
    witness = case.training_witness
    since = kl.last_stretch(np.asarray(kl.smooth > KL_LARGE))
    if trained is None or witness is None:
        return False
    if trained.saturated or since is None:
        return trained.trend == "rising" or trained.saturated
    rest = witness[0].after(int(np.searchsorted(witness[0].steps, kl.steps[since])))
    return trained.trend == "rising" if len(rest) < 12 else rest.change.value > 0.04


def _kl_finding(series: Series, middle: float, level: Level, *, negative: bool = False) -> Finding:
    limit = -0.05 if negative else min(KL_LARGE, max(0.5, KL_JUMP * max(middle, 1e-3)))
    beyond = series.smooth < limit if negative else series.smooth > limit
    since = series.last_stretch(np.asarray(beyond))
    words = "negative, which no KL is (its estimator is unsound here)" if negative else "far above"
    return Finding(
        name="kl-blow-up",
        level=level,
        since_step=series.step(since) if since is not None else series.step(len(series) - series.edge),
        evidence=f"KL to the reference ends at {series.late.value:.3g} nats a token (95% interval "
        f"{series.late.low:.3g} "
        f"to {series.late.high:.3g}), {words} its level in the middle of the run ({middle:.3g})",
        measures=early_and_late(series, "kl"),
        confidence="high" if level == "critical" else "medium",
        refuted_by="reward and held-out accuracy that rise at this KL, and completions that read well",
        action="nothing to do while accuracy rises; read 20 completions"
        if level == "information"
        else "restart from a checkpoint before the stretch with a third of the learning rate, or a larger beta; read "
        "20 "
        "completions of the stretch first",
        source="2 nats: the average token is seven times less likely than under the reference; the run's own middle",
        metrics=["kl", "reward"],
    )


def _kl_spiked(series: Series, spikes: Ints, level: Level) -> Finding:
    return Finding(
        name="kl-blow-up",
        level=level,
        since_step=series.step(int(spikes[0])),
        until_step=series.step(int(spikes[-1])),
        evidence=f"{spikes.size} rows of KL stand over 20 times their surroundings, the largest "
        f"{series.values[spikes].max():.3g} "
        f"nats a token at step {series.step(int(spikes[np.argmax(series.values[spikes])]))}",
        measures=early_and_late(series, "kl"),
        confidence="medium",
        refuted_by="one odd batch: spikes that do not come back",
        action="look at the completions of these steps; a token that became nearly impossible makes the estimator "
        "jump",
        source="the run's own neighbouring rows",
        metrics=["kl"],
    )


# --- gradients ------------------------------------------------------------------------------------------------


def _gradient(case: Case) -> Verdict:
    broken = _not_finite(case)
    if broken is not None and broken.level != "information":
        return broken
    series = case.series("grad_norm")
    if series is None:
        return broken or needs("gradient-spike", "grad_norm, at least 8 rows")
    spikes, heights = _gradient_spikes(case, series)
    level = _spike_level(case, series, spikes, heights)
    if level is None:
        if broken:
            return broken
        typical = float(np.median(series.values))
        return clear("gradient-spike", f"the gradient norm stays within "
        f"{series.values.max() / max(typical, 1e-12):.1f} times "
                     f"its median ({typical:.3g})", f"a value above {SPIKE:.0f} times its level")  # fmt: skip
    return _spike_finding(series, spikes, level)


def _not_finite(case: Case) -> Finding | None:
    """NaN or infinity in what the optimizer works with."""
    steps = {
        name: found for name, found in case.history.not_finite.items()
        if name in ("grad_norm", "loss", "kl", "entropy", "reward", "policy_step_kl")
    }  # fmt: skip
    if not steps or not len(case.history):
        return None
    count = len(sorted({s for found in steps.values() for s in found}))
    first, last = min(min(f) for f in steps.values()), max(max(f) for f in steps.values())
    end = float(case.history.steps[-1])
    lasting = last >= end and count >= max(2, 0.05 * len(case.history))
    names = ", ".join(sorted(steps))
    early_only = (
        count <= 3
        and set(steps) == {"grad_norm"}
        and last <= case.history.steps[0] + 0.1 * (end - case.history.steps[0])
    )
    level: Level = (
        "critical"
        if lasting or count > 0.1 * len(case.history)
        else "information"
        if early_only
        else "warning"
    )
    return Finding(
        name="gradient-spike",
        level=level,
        since_step=int(first),
        until_step=None if lasting else int(last),
        evidence=f"{names}: NaN or infinity in {count} rows from step {first}"
        + (" to the end" if lasting else f" to {last}"),
        confidence="high",
        refuted_by="fp16 loss scaling, which skips a few steps with infinite gradients at the start",
        action="restart from the last checkpoint before it; bf16 or fp32 instead of fp16, a lower learning rate, and "
        "a "
        "look for empty completions or infinite rewards at that step",
        source="no finite update follows from a value that is not finite",
        metrics=["grad_norm", "loss"],
    )


def _gradient_spikes(case: Case, series: Series) -> tuple[Ints, Floats]:
    """Return the rows whose gradient norm stands far above its surroundings, and every row's height over them.

    Gradients fall as a run learns and are zero where no group has signal, so the level is a local median of the
    positive values, but never under a quarter of the run's own.
    """
    least = SILENT_PART * float(series.values.max()) if _mostly_silent(case) else 1e-12
    positive = np.asarray(series.values > least)
    if positive.sum() < 8:
        return np.empty(0, dtype=np.int64), np.ones(len(series))
    values = series.values[positive]
    usual = np.minimum(_local_median(values), _median_before(values))
    level = np.maximum(usual, 0.25 * float(np.median(values)))
    logs = np.log(values / level)
    spread = float(np.median(logs) - np.quantile(logs, 0.16))  # the lower side, which spikes do not widen
    heights = np.zeros(len(series))
    heights[positive] = values / level
    limit = max(SPIKE, min(3 * SPIKE, float(np.exp(5 * min(spread, 1.0)))))
    return np.flatnonzero(heights > limit), heights


def _mostly_silent(case: Case) -> bool:
    """Whether most batches carry no signal, so that a gradient at all stands out and is no spike."""
    share, spread = case.series("zero_variance_share"), case.series("reward_std")
    found = case.completions
    if spread is not None and float((spread.values < 1e-6).mean()) > 0.5:
        return True
    if found is not None and np.isfinite(found.zero_variance).any():
        return float(np.nanmean(found.zero_variance)) > 0.8
    return share is not None and float(share.values.mean()) > 0.8


def _local_median(values: Floats) -> Floats:
    """Return the median of 31 neighbours of each value (fewer at the ends)."""
    half = min(15, values.size // 2)
    padded = np.pad(values, half, mode="reflect") if half else values
    found: Floats = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1), axis=1)
    return found


def _median_before(values: Floats) -> Floats:
    """Return the median of the 31 values up to each one (of the first eight at the beginning)."""
    padded = np.concatenate([np.full(30, float(np.median(values[:8]))), values])
    found: Floats = np.median(np.lib.stride_tricks.sliding_window_view(padded, 31), axis=1)
    return found


def _spike_level(case: Case, series: Series, spikes: Ints, heights: Floats) -> Level | None:
    ratio, low, _ = series.ratio()
    trained = case.training_progress
    falls = trained is not None and trained.trend == "falling"
    learns = trained is not None and (trained.trend == "rising" or trained.saturated)
    if spikes.size:
        height = float(heights[spikes].max())
        many = spikes.size >= 3
        if many and (height > 1.5 * SPIKE or not learns):
            return "critical" if falls else "warning"
        lonely = 10 * SPIKE if spikes.size == 1 else 5 * SPIKE
        return "warning" if falls or height > lonely else "information"
    if ratio > SPIKE and low > 4:
        return "critical" if falls else "information" if learns else "warning"
    return None


def _spike_finding(series: Series, spikes: Ints, level: Level) -> Finding:
    typical = float(np.median(series.values))
    if spikes.size:
        top = int(spikes[np.argmax(series.values[spikes])])
        words = (
            f"{spikes.size} of {len(series)} rows of the gradient norm stand above {SPIKE:.0f} times their "
            f"surroundings (median {typical:.3g}), the largest {series.values[top]:.3g} at step {series.step(top)}"
        )
        first, last = series.step(int(spikes[0])), series.step(int(spikes[-1]))
    else:
        words = f"the gradient norm grew from {series.early.value:.3g} to {series.late.value:.3g}"
        grown = series.last_stretch(np.asarray(series.smooth > 0.5 * SPIKE * series.early.value))
        first, last = series.step(grown if grown is not None else 0), None
    return Finding(
        name="gradient-spike",
        level=level,
        since_step=first,
        until_step=last,
        evidence=words,
        measures=early_and_late(series, "grad_norm"),
        confidence="medium",
        refuted_by="reward and entropy that go on as before after each spike (max_grad_norm cut it)",
        action="keep max_grad_norm (1.0 or below); look at the batches of these steps, and lower the learning rate "
        "if the "
        "reward falls after them",
        source="ten times the neighbouring rows, and five deviations of the logarithm",
        metrics=["grad_norm", "reward"],
    )


def _spikes(series: Series, factor: float, *, at_least: float) -> Ints:
    """Return rows that stand over their surroundings by a factor."""
    around = np.maximum(moving_average(np.minimum(series.values, np.quantile(series.values, 0.9)), 21), 1e-9)
    return np.flatnonzero((series.values > factor * around) & (series.values > at_least))


# --- engines and experts --------------------------------------------------------------------------------------


def _apart(case: Case) -> list[tuple[str, Series, Level, int, str]]:
    """Return each metric by which engine and trainer are apart: series, level, first row, source."""
    found: list[tuple[str, Series, Level, int, str]] = []
    for metric, (warn, critical, source) in ENGINE_LIMITS.items():
        series = case.series(metric, rows=4)
        if series is None:
            continue
        since = series.last_stretch(np.asarray(series.smooth > warn))
        if since is not None and series.late.low > 0.8 * warn and series.late.value > warn:
            level: Level = "critical" if series.late.low > critical else "warning"
            found.append((metric, series, level, since, source))
    ratio = case.series("ratio_mean", rows=4)
    if ratio is not None:
        off = np.abs(ratio.smooth - 1) > 0.1
        since = ratio.last_stretch(np.asarray(off))
        if (
            since is not None
            and abs(ratio.late.value - 1) > 0.1
            and abs(ratio.late.value - 1) > 4 * ratio.late.error
        ):
            found.append(
                (
                    "ratio_mean",
                    ratio,
                    "warning",
                    since,
                    "a mean ratio of engine to trainer is 1 when they agree",
                )
            )
    return found


def _engines(case: Case) -> Verdict:
    name: SymptomName = "engine-mismatch"
    seen = [m for m in (*ENGINE_LIMITS, "ratio_mean") if case.series(m, rows=4)]
    if not seen:
        return needs(
            name,
            "sampling/sampling_logp_difference (TRL with vLLM) or training/rollout_probs_diff_mean (verl)",
        )
    apart = _apart(case)
    if not apart:
        ends = ", ".join(f"{m} {case.series(m, rows=4).late.value:.3g}" for m in seen)  # type: ignore[union-attr]
        return clear(
            name,
            f"engine and trainer agree: {ends}",
            "the limits of the table: .01 in probability, .05 in nats",
        )
    metric, series, level, since, source = max(apart, key=lambda a: (a[2] == "critical", -a[3]))
    return Finding(
        name=name,
        level=level,
        since_step=series.step(since),
        evidence="; ".join(
            f"{case.history.names.get(m, m)} went from {s.early.value:.3g} to {s.late.value:.3g} (95% interval "
            f"{s.late.low:.3g} "
            f"to {s.late.high:.3g})" for m, s, _, _, _ in apart
        ),
        measures=[m for metric_, s, _, _, _ in apart for m in early_and_late(s, metric_)],
        confidence="high",
        refuted_by="the same prompts scored by both engines in fp32 agree",
        action="bring engine and trainer together: same dtype and attention, vLLM's processed_logprobs, no fp8 "
        "rollouts; "
        "keep the importance correction (token_truncate, 2.0) and watch its masked share",
        source=source,
        metrics=[metric, "ratio_max"],
    )  # fmt: skip


def _experts(case: Case) -> Verdict:
    name: SymptomName = "moe-instability"
    router = case.series("router_loss") or case.series("router_drift")
    if case.facts.experts is False and router is None:
        return clear(name, "the model has no experts")
    if case.facts.experts is None and router is None:
        return needs(
            name, "whether the model has experts: config.json beside the log, --experts, or a router metric"
        )
    signs = _expert_signs(case)
    if not signs:
        if not any(
            case.series(m)
            for m in (
                "ratio_max",
                "logp_difference",
                "probability_difference",
                "router_loss",
                "router_drift",
                "clipped_token_share",
            )
        ):
            return needs(name, "importance ratios, engine differences, or router metrics")
        return clear(name, "ratios, engines and router keep their early level")
    series = signs[0][1]
    return Finding(
        name=name,
        level="critical" if len(signs) >= 3 else "warning",
        since_step=min(s for _, _, s in signs),
        evidence="the model routes between experts; " + "; ".join(words for words, _, _ in signs),
        measures=early_and_late(series, "ratio_max", "first sign"),
        confidence="high" if len(signs) >= 2 else "medium",
        refuted_by="sequence-level ratios that stay near 1 on the same batches",
        action="GSPO (`rlvr variant RUN`): one ratio a sequence, required for mixture-of-experts models and not left "
        "again",
        source="arXiv 2507.18071, section 5.3: about 10% of expert activations change after one update",
        metrics=["ratio_max", "logp_difference", "router_loss", "grad_norm"],
    )


def _expert_signs(case: Case) -> list[tuple[str, Series, int]]:
    """Return signs of unstable routing: words, series, first step."""
    signs = [
        (f"{case.history.names.get(m, m)} ends at {s.late.value:.3g}", s, s.step(i))
        for m, s, _, i, _ in _apart(case)
    ]
    for metric, factor, least in (
        ("ratio_max", 3.0, 5.0),
        ("router_loss", 1.5, 0.0),
        ("router_drift", 2.0, 0.1),
        ("clipped_token_share", 3.0, 0.1),
        ("grad_norm", 5.0, 0.0),
    ):
        series = case.series(metric)
        if series is None:
            continue
        ratio, low, _ = series.ratio()
        grown = series.last_stretch(np.asarray(series.smooth > factor * max(series.early.value, 1e-9)))
        if grown is not None and ratio > factor and low > 0.7 * factor and series.late.value > least:
            name = case.history.names.get(metric, metric)
            signs.append(
                (
                    f"{name} went from {series.early.value:.3g} to {series.late.value:.3g}",
                    series,
                    series.step(grown),
                )
            )
    alone = [s for s in signs if "grad_norm" in s[0]]
    return [] if len(signs) == len(alone) else signs

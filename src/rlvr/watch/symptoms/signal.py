"""Groups without signal, and one answer that takes everything."""

from __future__ import annotations

from typing import Final

import numpy as np

from rlvr.records.watch import Finding, Proof
from rlvr.watch.statistics import Estimate, Mask, Series, share_interval
from rlvr.watch.symptoms.case import Case, Verdict, clear, measure, needs, proofs

SILENT: Final = 0.5
"""Share of groups without reward variance from which a run is short of signal."""
HOPELESS: Final = 0.35
"""Share of all-wrong groups that is a warning even when more groups are all right."""
TAKEN: Final = 0.5
"""Share of completions from which one answer takes the batch."""


def judge_signal(case: Case) -> list[Verdict]:
    """Judge the groups' variance and the answers' variety."""
    return [_no_signal(case), _answer_collapse(case)]


def _zero_variance(case: Case) -> tuple[Series, str] | None:
    """Return the share of groups without variance, from completions where there are any, else from the log."""
    found = case.completions
    if found is not None and np.isfinite(found.zero_variance).any():
        steps, values = found.by_step(found.zero_variance)
        if values.size >= 8:
            return Series(steps, values, case.widen, unit="steps"), "computed from the groups"
    logged = case.series("zero_variance_share")
    usable = logged is not None and case.facts.settings.get("scale_rewards") != "batch"
    spread = case.series("reward_std")
    if spread is not None and not (usable and _says_something(logged)):
        silent = np.asarray(spread.values < 1e-6, dtype=float)
        if silent[-spread.edge :].mean() > 0.5:
            return Series(spread.steps, silent, case.widen), "rows whose reward_std is 0"
    if logged is None or not usable or not (_says_something(logged) or _may_be_zero(case)):
        return None
    if spread is not None and len(spread) == len(logged):
        # A batch without any spread has no group with one, whatever the rounded share says.
        share = np.where(spread.values < 1e-6, 1.0, logged.values)
        logged = Series(logged.steps, share, case.widen)
    return logged, f"logged as {case.history.names.get('zero_variance_share', 'zero_variance_share')}"


def _says_something(logged: Series | None) -> bool:
    return logged is not None and float(logged.values.max()) > 0


def _may_be_zero(case: Case) -> bool:
    """Whether no silent group at all is credible: not when nearly every completion is right, or wrong."""
    witness = case.training_witness
    return witness is None or 0.2 < witness[0].late.value < 0.8


def _no_signal(case: Case) -> Verdict:
    found = _zero_variance(case)
    if found is None:
        what = "completions with rewards, rlvr/informative_groups or frac_reward_zero_std"
        if case.series("zero_variance_share") is not None:
            what = (
                "completions or rlvr/informative_groups: frac_reward_zero_std is wrong here (TRL compares a rounded "
                "spread with zero, and under scale_rewards=batch it has one spread for all groups)"
            )
        return needs("no-signal", what)
    share, how = found
    since = share.last_stretch(np.asarray(share.smooth > SILENT))
    if since is None or share.late.value <= SILENT or share.late.high <= SILENT:
        return clear(
            "no-signal",
            f"{share.late.value:.0%} of groups have no reward variance in the last {share.edge} {share.unit} ({how})",
            f"a share above {max(SILENT, share.late.high):.0%}",
        )
    wrong, right, measured = _sides(case, share)
    return _silent(case, share, share.step(since), how, (wrong, right, measured))


def _sides(case: Case, share: Series) -> tuple[float, float, str]:
    """Return shares of all-wrong and all-right groups in the last rows, and how they were found."""
    wrong, right = case.series("all_wrong_share"), case.series("all_right_share")
    if wrong and right:
        return wrong.late.value, right.late.value, "logged"
    groups = case.completions
    if groups is not None and groups.knows_right:
        late = (groups.zero_variance == 1) & (groups.group_steps >= share.steps[-share.edge])
        if late.any():
            solved = float(np.nanmean(groups.group_right_share[late] > 0.5))
            return share.late.value * (1 - solved), share.late.value * solved, "counted in the groups"
    witness = case.training_witness
    if witness is None:
        return 0.0, 0.0, ""
    z, m = share.late.value, min(1.0, max(0.0, witness[0].late.value))
    low, high = max(0.0, m - (1 - z)), min(m, z)
    right_share = min(z, max(0.0, (low + high) / 2))
    return z - right_share, right_share, f"estimated from {witness[2]} of {m:.2f}"


def _silent(case: Case, share: Series, since: int, how: str, sides: tuple[float, float, str]) -> Finding:
    wrong, right, measured = sides
    known = bool(measured)
    mostly_wrong = known and (wrong > 0.6 * (wrong + right) or wrong >= HOPELESS)
    mostly_right = known and right > wrong
    share_text = (
        f"{share.late.value:.0%} of groups have no reward variance in the last {share.late.count} {share.unit} (95% "
        f"interval {max(0, share.late.low):.0%} to {min(1, share.late.high):.0%}, {how})"
    )
    split = (
        f"; about {wrong:.0%} of groups are all wrong and {right:.0%} all right ({measured})" if known else ""
    )
    never = mostly_wrong and share.late.value > 0.95 and share.early.value > 0.9
    return Finding(
        name="no-signal",
        level="critical" if never else "warning" if mostly_wrong else "information",
        since_step=since,
        evidence=share_text + split,
        measures=[
            measure(f"groups without variance, last {share.edge} {share.unit} (share)", share.late),
            measure("all-wrong groups (share)", Estimate(wrong, float("inf"), 1)),
            measure("all-right groups (share)", Estimate(right, float("inf"), 1)),
        ],
        confidence="high"
        if measured in ("logged", "counted in the groups")
        else "medium"
        if known
        else "low",
        refuted_by="groups counted from completions: a share of zero variance below 50%",
        action=_silent_action(mostly_wrong, mostly_right),
        source="half the batch without gradient; healthy demo runs end at 58 to 77%, mostly all right",
        metrics=["zero_variance_share", "all_wrong_share", "all_right_share"],
        proofs=_silent_proofs(case) if mostly_wrong else [],
    )


def _silent_action(mostly_wrong: bool, mostly_right: bool) -> str:
    if mostly_wrong:
        return (
            "too hard as it stands: drop prompts that are never solved (`rlvr probe --filter`), larger groups, or "
            "SFT "
            "first; read ten of the zeros before (`rlvr inspect --run RUN`), since a broken reward looks the same"
        )
    if mostly_right:
        return "solved prompts teach nothing more: stop here, or bring harder prompts"
    return "log rlvr/all_right_groups and rlvr/all_wrong_groups (or keep completions) to tell solved from hopeless"


def _silent_proofs(case: Case) -> list[Proof]:
    found = case.completions
    if found is None:
        return []
    late = found.steps >= np.quantile(found.steps, 0.8)
    silent = found.zero_variance[found.groups] == 1
    return proofs(case, np.asarray(late & silent & ~found.right), found.steps)


def _answer_collapse(case: Case) -> Verdict:
    found = case.completions
    if found is None:
        return needs("answer-collapse", "completions")
    late = found.steps >= np.quantile(found.steps, 0.85)
    early = found.steps <= np.quantile(found.steps, 0.15)
    prompts = np.unique(found.prompt_ids[late]).size
    if prompts < 4 or late.sum() < 24 or np.unique(found.steps).size < 4:
        return needs("answer-collapse", "at least 4 prompts and 24 completions in the last sixth of the run")
    counts = np.bincount(found.answers[late])
    top = int(counts.argmax())
    hits, total = int(counts[top]), int(late.sum())
    share, independent = hits / total, min(total, prompts * 4)
    low, high = share_interval(share * independent, independent)
    before = float((found.answers[early] == top).mean())
    deserved = _deserved(case, late, top)
    right = float(found.right[late & (found.answers == top)].mean()) if found.knows_right else 0.0
    name = found.answer_names[top]
    taken = (
        low > 0.35 and share >= TAKEN and share > before + 0.25 and share > deserved + 0.25 and right < 0.6
    )
    if not taken:
        return clear(
            "answer-collapse",
            f"the commonest answer ({name[:40]!r}) takes {share:.0%} of the last completions over {prompts} prompts",
            f"one answer taking {TAKEN:.0%}",
        )
    return Finding(
        name="answer-collapse",
        level="critical" if share > 0.8 and right < 0.3 else "warning",
        since_step=_taken_since(case, top),
        evidence=f"the answer {name[:60]!r} takes {share:.0%} of the last {total} completions over {prompts} prompts "
        f"(95% interval {low:.0%} to {high:.0%}), {before:.0%} at first; {right:.0%} of them are right"
        + (f", and it is the reference of {deserved:.0%}" if deserved else ""),
        measures=[measure("share of the commonest answer", Estimate(share, (high - low) / 3.92, total))],
        confidence="high",
        refuted_by="references that really are mostly this answer",
        action="read these completions; check the reward against this answer (`rlvr audit`) and balance the prompts' "
        "answers; restart from a checkpoint before the stretch",
        source="one answer for half of all prompts, against the run's own beginning",
        suspects_reward=right > 0.05 or _paid(case, late, top),
        metrics=["entropy", "top_answer_share"],
        proofs=proofs(case, np.asarray(late & (found.answers == top)), found.steps),
    )


def _deserved(case: Case, late: Mask, top: int) -> float:
    """Return the share of the last prompts whose reference is the commonest answer."""
    found = case.completions
    if found is None or not (found.references[late] >= 0).any():
        return 0.0
    return float((found.references[late] == top).mean())


def _paid(case: Case, late: Mask, top: int) -> bool:
    """Whether the commonest answer earns more than the others."""
    found = case.completions
    if found is None:
        return False
    mine = found.rewards[late & (found.answers == top)]
    others = found.rewards[late & (found.answers != top)]
    return bool(
        np.isfinite(mine).any() and np.nanmean(mine) > (np.nanmean(others) if others.size else 0.0) + 0.1
    )


def _taken_since(case: Case, top: int) -> int | None:
    found = case.completions
    if found is None:
        return None
    steps, index = np.unique(found.steps, return_inverse=True)
    share = np.bincount(index, weights=(found.answers == top).astype(float)) / np.bincount(index)
    since = Series(steps, share).last_stretch(np.asarray(share > 0.4))
    return int(steps[since]) if since is not None else None

"""What the probe measured: base success, the share of groups that would teach something, and the verdict."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rlvr.records.base import Frozen, Record
from rlvr.records.samples import Message, ScoredSample

Verdict = Literal["no support", "rare", "sweet spot", "saturated", "undecided"]
"""The five verdicts; only ``sweet spot`` opens the gate."""

Cause = Literal["grader", "truncated", "ill-formed", "wrong", "infrastructure", "right"]
"""Why a completion was paid or not: no answer is ever paid, the cap ended it, no answer was found, it is wrong."""

Band = Literal["too hard", "hard", "middle", "easy", "too easy", "unknown"]
"""Difficulty of a prompt at the training temperature."""


class Rate(Frozen):
    """Success over distinct prompts at one temperature.

    Attributes:
        rate: Mean over prompts of each prompt's share of right completions.
        low: Lower bound, valid at every sample size at once, one-sided 95%.
        high: Upper bound, likewise.
        temperature: Sampling temperature; None when a file did not say.
        prompts: Distinct prompts.
        samples: Completions judged.
        right: Completions judged right.
        prompts_with_success: Prompts with at least one right completion.
    """

    rate: float
    low: float
    high: float
    temperature: float | None = None
    prompts: int
    samples: int
    right: int
    prompts_with_success: int


class Success(Frozen):
    """Success by temperature; None where nothing was sampled."""

    low_temperature: Rate | None = None
    training_temperature: Rate | None = None


class Causes(Frozen):
    """Why completions were not paid, as counts of completions.

    Attributes:
        zeros: Completions that were judged and not right.
        truncated: Of these, ended by the length cap.
        ill_formed: Of these (not truncated), without a readable answer.
        wrong: Of these, read and not right.
        infrastructure: Completions that could not be judged; they count as nothing.
        gold_checked: References put to the reward as if the model had written them.
        gold_paid: Of these, paid as right in at least one usual form.
        unpaid_matches: Zeros whose text holds the reference as its last answer all the same.
        main: The main cause of the zeros; None without zeros.
    """

    zeros: int = 0
    truncated: int = 0
    ill_formed: int = 0
    wrong: int = 0
    infrastructure: int = 0
    gold_checked: int = 0
    gold_paid: int = 0
    unpaid_matches: int = 0
    main: Cause | None = None


class Informative(Frozen):
    """Share of groups of one size whose completions would differ in correctness.

    Attributes:
        share: Unbiased estimate over prompts with at least as many completions as the group; None: not judged.
        low: Lower bound over prompts, one-sided 95%, valid at every sample size at once.
        high: Upper bound, likewise.
        prompts: Prompts that it rests on.
    """

    share: float | None = None
    low: float | None = None
    high: float | None = None
    prompts: int = 0


class PromptResult(Frozen):
    """One distinct prompt.

    Attributes:
        row: Its first row in the data.
        row_hash: Hash of that row.
        preview: Beginning of its last user message.
        low_samples: Completions judged at the low temperature.
        low_right: Of these, right.
        samples: Completions judged at the training temperature.
        right: Of these, right.
        truncated: Completions at either temperature that the cap ended.
        band: Difficulty.
    """

    row: int
    row_hash: str
    preview: str
    low_samples: int = 0
    low_right: int = 0
    samples: int = 0
    right: int = 0
    truncated: int = 0
    band: Band = "unknown"


class Quantiles(Frozen):
    """Lengths in tokens; all -1 when unknown."""

    p50: int = -1
    p90: int = -1
    p95: int = -1
    p99: int = -1
    longest: int = -1


class Lengths(Frozen):
    """What ``plan`` needs to know of lengths.

    Attributes:
        prompt: Of the prompts, as the model reads them.
        completion: Of the completions at the training temperature (else at the low one).
        right: Of the right ones among these.
        cap: ``max_completion_length`` of the sampling, tokens; -1 when unknown.
        truncated_share: Share of completions that the cap ended, in [0, 1].
    """

    prompt: Quantiles = Quantiles()
    completion: Quantiles = Quantiles()
    right: Quantiles = Quantiles()
    cap: int = -1
    truncated_share: float = 0.0


class Example(Frozen):
    """One completion to show, with what the reward said of it."""

    row: int
    prompt: list[Message]
    completion: str
    reference: str = ""
    temperature: float | None = None
    score: ScoredSample
    cause: Cause


class ProbeRecord(Record):
    """The probe's verdict and what it rests on.

    Attributes:
        verdict: See :data:`Verdict`; ``passed`` is True for ``sweet spot`` alone.
        decided_by: Temperature whose samples decided.
        next_step: What to do now.
        route: Where to go instead of training; empty when nowhere, or before ten zeros have been read.
        more_samples: How many more distinct prompts would decide, if success went on as it is; None: not undecided,
            or more samples would not help.
        success: By temperature.
        informative_groups: Group size (``"4"``, ``"8"``, ``"16"``) to the expected share of groups with a signal.
        informative: The same with bounds.
        group_size: Smallest of 8 and 16 (32 beyond) that is expected to give a signal in a fifth of groups; None:
            none does.
        pass_at: k to unbiased pass@k at the training temperature.
        split: Prompts always or never succeed: the mean says nothing about what can be learnt.
        prompts_with_success: Share of distinct prompts with any success at any temperature.
        histogram: Right completions of a prompt (0 to n, training temperature) to number of prompts.
        bands: Difficulty band to number of prompts.
        causes: Why completions were not paid.
        prompts: One entry a distinct prompt.
        lengths: For ``plan``.
        samples_spent: Completions sampled in all.
        zeros_read: Zeros that a reader has labelled.
        duplicates: Rows left out because their prompt stands elsewhere.
        remarks: Facts worth knowing that change no verdict.
        examples: Up to five completions of each kind.
        method: How the bounds were made, with sources.
    """

    verdict: Verdict
    decided_by: Literal["low", "training", "both", "none"] = "none"
    next_step: str = ""
    route: str = ""
    more_samples: int | None = None
    success: Success = Success()
    informative_groups: dict[str, float | None] = Field(default_factory=dict)
    informative: dict[str, Informative] = Field(default_factory=dict)
    group_size: int | None = None
    pass_at: dict[str, float] = Field(default_factory=dict)
    split: bool = False
    prompts_with_success: float = 0.0
    histogram: list[int] = []
    bands: dict[str, int] = Field(default_factory=dict)
    causes: Causes = Causes()
    prompts: list[PromptResult] = []
    lengths: Lengths = Lengths()
    samples_spent: int = 0
    zeros_read: int | None = None
    duplicates: int = 0
    remarks: list[str] = []
    examples: list[Example] = []
    method: str = ""


class FilterRecord(Record):
    """Which prompts ``probe --filter`` kept.

    Attributes:
        band: Success between which a prompt is worth training on.
        budget: Completions that it was allowed.
        samples_spent: Completions that it took.
        places: ``inside``, ``unknown`` (both kept), ``too hard`` and ``too easy`` (dropped) to distinct prompts.
        kept_rows: Rows of the data that were kept.
        rows: Rows of the data.
        path: File with the kept rows, relative to the workspace.
        prompts: Row hash of each distinct prompt to [right, judged, place].
    """

    band: tuple[float, float]
    budget: int
    samples_spent: int
    places: dict[str, int]
    kept_rows: int
    rows: int
    path: str
    prompts: dict[str, tuple[int, int, str]] = Field(default_factory=dict)

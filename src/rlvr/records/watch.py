"""What watching a run found: symptoms with their evidence, what was clear, and what could not be judged."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from rlvr.records.base import Frozen, Record

Level = Literal["information", "warning", "critical"]
"""How loud a finding is: something to know, something to act on soon, something that spoils the run."""

Confidence = Literal["low", "medium", "high"]

SymptomName = Literal[
    "entropy-collapse",
    "entropy-explosion",
    "reward-pays-length",
    "wrong-answers-lengthen",
    "length-collapse",
    "truncation",
    "no-signal",
    "reward-hacking",
    "answer-collapse",
    "moe-instability",
    "engine-mismatch",
    "kl-blow-up",
    "gradient-spike",
    "reward-crash",
    "plateau",
]

LEVELS: Final[tuple[Level, ...]] = ("information", "warning", "critical")
"""The levels, quietest first."""


class Measure(Frozen):
    """One number of the evidence.

    Attributes:
        what: What was measured, with its unit, such as ``entropy, last 15 rows (nats a token)``.
        value: The estimate.
        low: Lower end of the 95% interval; None when no interval makes sense (a count, a first step).
        high: Upper end.
    """

    what: str
    value: float | None
    low: float | None = None
    high: float | None = None


class Proof(Frozen):
    """A completion that shows the symptom.

    Attributes:
        step: Step at which it was sampled.
        prompt: The prompt's text, cut to what a page can show.
        completion: The completion's text, cut likewise.
        note: Why it was picked, such as ``reward 1.4, wrong, 212 tokens``.
    """

    step: int
    prompt: str
    completion: str
    note: str


class Finding(Frozen):
    """One symptom that a run shows.

    Attributes:
        name: The symptom.
        level: See :data:`Level`.
        since_step: First step of the stretch; None when it holds for the whole run.
        until_step: Last step of the stretch; None while it lasts.
        evidence: The numbers in sentences.
        measures: The same numbers for programs.
        confidence: How sure the data at hand make it.
        refuted_by: What would show that this finding is wrong.
        action: The next thing to do.
        source: Where the threshold comes from.
        suspects_reward: Whether the reward itself is under suspicion, which reopens the inspection gate.
        metrics: Metrics whose curves show it, for the figure.
        proofs: Completions that show it.
    """

    name: SymptomName
    level: Level
    since_step: int | None
    until_step: int | None = None
    evidence: str
    measures: list[Measure] = Field(default_factory=list)
    confidence: Confidence = "medium"
    refuted_by: str = ""
    action: str
    source: str = ""
    suspects_reward: bool = False
    metrics: list[str] = Field(default_factory=list)
    proofs: list[Proof] = Field(default_factory=list)


class NotJudged(Frozen):
    """A symptom that the data at hand cannot show.

    Attributes:
        name: The symptom.
        needs: Columns, completions or rows that are missing.
        smallest_effect: The smallest effect that could have been seen, where the data are too few.
    """

    name: SymptomName
    needs: str
    smallest_effect: str = ""


class Clear(Frozen):
    """A symptom that was judged and not found.

    Attributes:
        name: The symptom.
        why: What was seen instead.
        smallest_effect: The smallest effect that could have been seen.
    """

    name: SymptomName
    why: str
    smallest_effect: str = ""


class Answer(Frozen):
    """A usual misunderstanding, answered with the run's own numbers."""

    question: str
    answer: str


class Findings(Record):
    """All that watching found in one run.

    Attributes:
        symptoms: What was found, loudest first.
        not_judged: What could not be judged and why.
        clear: What was judged and not found.
        answers: Usual misunderstandings answered.
        remarks: What could not be read, or was read in a way the reader should know.
        source: File, folder or run that was read.
        format: Which kind of log it was.
        rows: Logged rows judged.
        first_step: First step judged.
        last_step: Last step judged.
        completions: Completions judged.
        columns: Metric of this project to the name the log has for it.
        unmapped: Names in the log that nothing here reads.
    """

    symptoms: list[Finding] = Field(default_factory=list)
    not_judged: list[NotJudged] = Field(default_factory=list)
    clear: list[Clear] = Field(default_factory=list)
    answers: list[Answer] = Field(default_factory=list)
    remarks: list[str] = Field(default_factory=list)
    source: str = ""
    format: str = ""
    rows: int = 0
    first_step: int = 0
    last_step: int = 0
    completions: int = 0
    columns: dict[str, str] = Field(default_factory=dict)
    unmapped: list[str] = Field(default_factory=list)

    @property
    def loudest(self) -> Level | None:
        """The loudest level among the symptoms; None when there are none."""
        return max((s.level for s in self.symptoms), key=LEVELS.index, default=None)

    def named(self, name: str) -> Finding | None:
        """Return the finding of one name, or None."""
        return next((s for s in self.symptoms if s.name == name), None)

    @property
    def alarms(self) -> list[Finding]:
        """Findings above information."""
        return [s for s in self.symptoms if s.level != "information"]

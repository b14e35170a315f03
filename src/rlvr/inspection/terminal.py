"""The same reading in a terminal, with the same keys: for SSH, and for people who stay there.

Every text passes through :func:`rlvr.visible.visible` first, so that no completion can send an escape
sequence to the terminal, turn the reading order or hide a character.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

from rich.console import Group, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text
from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Input, Static

from rlvr.errors import RlvrError
from rlvr.inspection.segments import Segment, answer_place, folded
from rlvr.inspection.session import Reveal, Sitting
from rlvr.inspection.view import reference
from rlvr.records.inspection import Attestation, Verdict
from rlvr.records.samples import Sample
from rlvr.visible import visible

Mode = Literal["read", "reveal", "summary"]


class Reader(App[None]):
    """One sitting in the terminal.

    Args:
        sitting: The reader's sitting.
        mend_at: Where the rewards stand.
    """

    ENABLE_COMMAND_PALETTE = False
    TITLE = "rlvr inspect"
    CSS = """
    #head { height: 1; background: $boost; padding: 0 1; }
    #scroll { padding: 0 1; }
    #entry { display: none; }
    #entry.open { display: block; }
    #keys { height: 1; background: $boost; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "judge('pass')"),
        Binding("f", "judge('fail')"),
        Binding("u", "judge('unsure')"),
        Binding("n", "note"),
        Binding("b", "previous"),
        Binding("c", "change"),
        Binding("e", "unfold"),
        Binding("s", "summary"),
        Binding("r", "rescore"),
        Binding("enter", "go_on"),
        Binding("space", "space"),
        Binding("escape", "leave"),
        Binding("q", "quit"),
    ]

    def __init__(self, sitting: Sitting, mend_at: list[str]) -> None:
        super().__init__()
        self.sitting, self.mend_at = sitting, mend_at
        self.mode: Mode = "read"
        self.item: Sample | None = None
        self.last = Text()
        self.is_unfolded = False
        self.submit: Callable[[str], None] | None = None

    def compose(self) -> ComposeResult:
        """Lay out head, text, entry and keys."""
        yield Static(id="head")
        with VerticalScroll(id="scroll"):
            yield Static(id="body")
        yield Input(id="entry")
        yield Static(id="keys")

    def on_mount(self) -> None:
        """Show the first sample."""
        self.query_one("#scroll").focus()
        self.show_next()

    # What is shown

    def show_next(self) -> None:
        """Show the sample to read now, or the summary when all are read."""
        turn = self.sitting.turn()
        if turn is None:
            self.show_summary()
            return
        self.mode, self.item, self.is_unfolded = "read", turn.sample, False
        again = "second reading · " if turn.reading > 1 else ""
        self._draw(
            self._blind(turn.sample),
            f"{again}Is it right?  [P]ass  [F]ail  [U]nsure  [N]ote  [B]ack  [S]ummary",
        )

    def show_reveal(self, found: Reveal) -> None:
        """Show a decided sample beside the reward's verdict."""
        self.mode, self.item, self.is_unfolded = "reveal", found.sample, False
        other = "fail" if found.judgement.verdict == "pass" else "pass"
        self._draw(
            Group(_sides(found, self.mend_at), self._sample(found.sample, found.score.extracted)),
            f"[Enter] go on  [C]hange to {other}  [N]ote  [B]ack",
        )

    def show_summary(self) -> None:
        """Show agreement, bounds and the open disagreements."""
        self.mode, self.item = "summary", None
        found = self.sitting.attestation()
        left = len(self.sitting.queue())
        go_on = f"[Enter] read on ({left} left)" if left else "[Q] finish"
        self._draw(summary_of(found, self.sitting), f"{go_on}  [R]escore after a mend  [B]ack  [Q]uit")

    def _draw(self, body: RenderableType, keys: str) -> None:
        sitting = self.sitting
        done, left = len(sitting.history()), len(sitting.queue())
        self.query_one("#head", Static).update(
            Text.assemble(("rlvr inspect ", "bold"), visible(sitting.reader), f"   {done} of {done + left}")
        )
        self.query_one("#body", Static).update(Group(self.last, body) if self.last else body)
        self.query_one("#keys", Static).update(Text(keys))
        self.query_one("#scroll", VerticalScroll).scroll_home(animate=False)

    def _blind(self, sample: Sample) -> RenderableType:
        return self._sample(sample, None)

    def _sample(self, sample: Sample, extracted: str | None) -> RenderableType:
        parts: list[RenderableType] = []
        for message in sample.prompt:
            parts += [
                Rule("prompt" if message.role == "user" else message.role, align="left", style="dim"),
                Text(visible(message.content)),
            ]
        for name, value in reference(sample):
            parts += [
                Rule(f"reference · {visible(name)}", align="left", style="blue"),
                Text(visible(value), "bold"),
            ]
        note = self.sitting.labels.of(self.sitting.reader, sample.completion_id)
        if note is not None and note.note:
            parts += [Rule("your note", align="left", style="dim"), Text(visible(note.note), "italic")]
        size = f"completion · {len(sample.text):,} characters"
        cut = " · cut off by the length limit" if sample.truncated else ""
        parts += [
            Rule(size + cut, align="left", style="dim"),
            completion_text(sample.text, extracted, self.is_unfolded),
        ]
        return Group(*parts)

    # Keys

    def action_judge(self, verdict: Verdict) -> None:
        """Pass, fail or unsure."""
        if self.mode != "read" or self.item is None:
            return
        identifier = self.item.completion_id
        try:
            found = self.sitting.judge(identifier, verdict, self.sitting.revision(identifier))
        except RlvrError as error:
            self._say(error)
            return
        self.last = _strip(found) if found else Text("unsure: it comes back at the end", "dim")
        if found is not None and found.agrees is False:
            self.last = Text()
            self.show_reveal(found)
        else:
            self.show_next()

    def action_go_on(self) -> None:
        """Go on after a reveal or from the summary."""
        if self.mode != "read" and (self.mode == "reveal" or self.sitting.queue()):
            self.show_next()

    def action_space(self) -> None:
        """Go on where that is what comes next; scroll while reading."""
        if self.mode == "read":
            self.query_one("#scroll", VerticalScroll).scroll_page_down(animate=False)
        else:
            self.action_go_on()

    def action_previous(self) -> None:
        """Show the sample read before."""
        history = self.sitting.history()
        here = self.item.completion_id if self.mode == "reveal" and self.item else None
        place = history.index(here) if here in history else len(history)
        if place == 0:
            self.notify("This is the first one you read.")
            return
        self.last = Text()
        identifier = history[place - 1]
        found = self.sitting.labels.of(self.sitting.reader, identifier)
        if found is not None and found.decided:
            self.show_reveal(self.sitting.reveal(identifier))
            return
        self.sitting.begin_again(identifier)
        self.mode, self.item = "read", self.sitting.sample(identifier)
        self._draw(self._blind(self.item), "Read it again: [P]ass  [F]ail  [U]nsure  [N]ote")

    def action_unfold(self) -> None:
        """Show the folded middle."""
        if self.item is None:
            return
        self.is_unfolded = True
        extracted = (
            self.sitting.reveal(self.item.completion_id).score.extracted if self.mode == "reveal" else None
        )
        self.query_one("#body", Static).update(self._sample(self.item, extracted))

    def action_note(self) -> None:
        """Write a note."""
        if self.item is None:
            return
        identifier = self.item.completion_id
        known = self.sitting.labels.of(self.sitting.reader, identifier)

        def keep(text: str) -> None:
            self.sitting.note(identifier, text)
            if self.mode == "reveal":
                self.show_reveal(self.sitting.reveal(identifier))
            else:
                self.query_one("#body", Static).update(self._blind(self.sitting.sample(identifier)))

        self._ask("note", known.note if known else "", keep)

    def action_change(self) -> None:
        """Change the judgement, with a reason."""
        if self.mode != "reveal" or self.item is None:
            return
        identifier = self.item.completion_id
        found = self.sitting.reveal(identifier)
        other: Verdict = "fail" if found.judgement.verdict == "pass" else "pass"
        revision = self.sitting.revision(identifier)
        self._ask(
            f"change to {other}: what had you missed? (goes on record)",
            "",
            lambda reason: self.show_reveal(self.sitting.change(identifier, other, reason, revision)),
        )

    def action_summary(self) -> None:
        """Show the summary."""
        self.show_summary()

    def action_leave(self) -> None:
        """Close the entry without keeping it."""
        self._close_entry()

    def action_rescore(self) -> None:
        """Score everything again after a mend of the reward."""
        if self.mode == "summary":
            self.notify("Scoring every kept completion again …")
            self._rescore()

    @work(thread=True, exclusive=True)
    def _rescore(self) -> None:
        try:
            found = self.sitting.mend()
        except RlvrError as error:
            self.call_from_thread(self._say, error)
            return
        text = (
            "The reward is as it was: nothing changed."
            if found.same_reward
            else f"{len(found.changed)} scores changed, {found.closed} disagreements closed, "
            f"{found.fresh_needed} fresh samples to read."
        )
        self.call_from_thread(self.notify, text)
        self.call_from_thread(self.show_summary)

    # The entry line

    def _ask(self, label: str, value: str, submit: Callable[[str], None]) -> None:
        entry = self.query_one("#entry", Input)
        entry.placeholder, entry.value = label, value
        entry.add_class("open")
        entry.focus()
        self.submit = submit

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take what was written."""
        submit, text = self.submit, event.value
        self._close_entry()
        if submit is None:
            return
        try:
            submit(text)
        except RlvrError as error:
            self._say(error)
            return
        self.notify("On record.")

    def _close_entry(self) -> None:
        self.submit = None
        self.query_one("#entry", Input).remove_class("open")
        self.query_one("#scroll").focus()

    def _say(self, error: RlvrError) -> None:
        self.notify(error.message(), severity="warning", markup=False)


def completion_text(text: str, extracted: str | None, is_unfolded: bool = False) -> Text:
    """Return a completion as text, its middle folded, and the answer that the reward read marked."""
    mark = answer_place(text, extracted)
    if not text:
        return Text("(empty: the model wrote nothing)", "italic dim")
    parts = folded(text, [Segment("prose", 0, len(text))], mark[0] if mark else None)
    out = Text()
    for segment in parts.head:
        _append(out, text, segment, mark)
    if parts.hidden and not is_unfolded:
        out.append(f"\n … {parts.hidden:,} characters folded, E shows them …\n\n", "dim")
    for segment in [*(parts.middle if is_unfolded else []), *parts.tail]:
        _append(out, text, segment, mark)
    return out


def _append(out: Text, text: str, segment: Segment, mark: tuple[int, int] | None) -> None:
    first, last = (segment.end, segment.end) if mark is None else mark
    first, last = max(segment.start, min(first, segment.end)), max(segment.start, min(last, segment.end))
    out.append(visible(text[segment.start : first]))
    out.append(visible(text[first:last]), "black on yellow")
    out.append(visible(text[last : segment.end]))


def _strip(found: Reveal) -> Text:
    mark = "✓" if found.agrees else "·" if found.agrees is None else "≠"
    said = f"{mark} last one: you said {found.judgement.verdict}, the reward {found.score.outcome}"
    read = f", read {visible(found.score.extracted[:60])}" if found.score.extracted else ""
    return Text(said + read, "green" if found.agrees else "yellow")


def _sides(found: Reveal, mend_at: list[str]) -> RenderableType:
    title = {
        True: "You and the reward agree",
        False: "You and the reward differ",
        None: "The reward did not judge it",
    }
    table = Table(box=None, show_header=True, padding=(0, 3, 0, 0))
    table.add_column("you")
    table.add_column("the reward")
    score = found.score
    total = "" if score.total is None else f", score {score.total:g}"
    table.add_row(Text(str(found.judgement.verdict), "bold"), Text(f"{score.outcome}{total}", "bold"))
    read = "it read no answer" if score.extracted is None else f"it read {visible(score.extracted[:400])}"
    table.add_row(Text(visible(found.judgement.note)), Text(read))
    table.add_row(Text(), Text(visible(score.why)))
    parts: list[RenderableType] = [
        Text(title[found.agrees], "bold green" if found.agrees else "bold red"),
        table,
    ]
    if found.agrees is False:
        place = ", ".join(mend_at) or "the reward"
        parts.append(
            Text(f"Kept for the end: then mend {place} and rescore, or change your judgement.", "dim")
        )
    return Group(*parts)


def summary_of(found: Attestation, sitting: Sitting) -> RenderableType:
    """Return the summary: the verdict, each figure, and the open disagreements."""
    parts: list[RenderableType] = [
        Text("Passed", "bold green") if found.passed else Text("Not passed yet", "bold yellow")
    ]
    parts += [Text(f"· {refusal}") for refusal in found.refusals]
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in figures(found):
        table.add_row(Text(name, "dim"), Text(value))
    parts.append(table)
    for identifier in found.open_disagreements:
        sample = sitting.sample(identifier)
        prompt = visible(sample.prompt[-1].content[:100]) if sample.prompt else ""
        parts += [Rule(style="red"), Text(prompt, "bold"), Text(f"… {visible(sample.text[-200:])}")]
        own = sitting.labels.of(sitting.reader, identifier)
        if own is not None and own.decided:
            reveal = sitting.reveal(identifier)
            read = "no answer" if reveal.score.extracted is None else visible(reveal.score.extracted[:100])
            why = visible(reveal.score.why)
            parts.append(
                Text(f"you: {own.verdict}   reward: {reveal.score.outcome}, read {read}. {why}", "yellow")
            )
    return Group(*parts)


def figures(found: Attestation) -> list[tuple[str, str]]:
    """Return the attestation's figures as names and sentences."""
    if not found.read:
        return [("read", "nothing yet")]
    rows = [
        ("read", f"{found.read} of at least {found.needed}"),
        (
            "agreement",
            f"{found.agreement:.1%} (95% interval {found.agreement_low:.1%} to {found.agreement_high:.1%})",
        ),
        ("kappa", f"{found.kappa:.2f}" if found.kappa is not None else found.kappa_note),
        ("disagreement", f"at most {found.disagreement_upper:.1%} at 95%, of samples drawn like these"),
    ]
    for name, side in (("paid but wrong", found.false_positives), ("right, not paid", found.false_negatives)):
        bound = f"at most {side.upper:.1%} at 95%" if side.upper is not None else "not judged: under 15 read"
        rows.append((name, f"{side.errors} of {side.read} ({bound})"))
    if found.fresh is not None:
        rows.append(("fresh since the mend", f"{found.fresh.read} of {found.fresh.needed}"))
    if found.reversals:
        rows.append(("changed judgements", str(found.reversals)))
    if found.inter_reader is not None:
        both = found.inter_reader
        rows.append(("two readers", f"{both.agreed} of {both.both_read} alike"))
    return rows


def read_in_terminal(sitting: Sitting, mend_at: list[str]) -> Attestation:
    """Read until the reader quits; returns the attestation."""
    Reader(sitting, mend_at).run()
    return sitting.close()

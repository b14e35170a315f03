"""Attacks on what is read as the answer: nothing, everything, several, nearly, denied, or hidden in another text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rlvr.audit.forms import REASONING, Form
from rlvr.audit.profile import Profile
from rlvr.audit.references import near_misses, number_of, plain_number
from rlvr.audit.session import Session
from rlvr.audit.trials import Trial
from rlvr.records.audit import Severity

_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOOK_ALIKE = str.maketrans("aeopcxyAEOPCTHKMB", "аеорсхуАЕОРСТНКМВ")


def answer_trials(profile: Profile, session: Session, rows: Sequence[int]) -> Iterator[Trial]:
    """Yield every attack on the answers of ``rows``; programs have attacks of their own."""
    for row in rows:
        yield from _empty(profile, row)
        if profile.kind == "code":
            continue
        yield from _echo(profile, session, row)
        yield from _several(profile, row)
        yield from _enumerated(profile, row)
        yield from _denied(profile, row)
        yield from _near(profile, row)
        yield from _hidden(profile, row)
        yield from _unicode(profile, row)


def blank_trials(profile: Profile, session: Session, rows: Sequence[int]) -> Iterator[Trial]:
    """Yield the attacks that need no answer: nothing at all, empty marks, and the prompt itself."""
    for row in rows:
        yield from _empty(profile, row)
        yield from _echo(profile, session, row)


def _empty(profile: Profile, row: int) -> Iterator[Trial]:
    fix = "return the lowest score when nothing was answered, before any comparison"
    for name, text in (("empty", ""), ("blank", "   "), ("line-breaks", "\n\n\n")):
        yield Trial(
            "empty_completion",
            "empty",
            row,
            text,
            f"a completion without an answer ({name}) is paid in full",
            fix,
            "critical",
        )
    form = profile.form
    if form is None or not form.structured:
        return
    for name, answer in (("nothing", ""), ("a blank", " ")):
        text = form(answer)
        why = f"the marks of the answer with {name} inside are paid in full"
        yield Trial("empty_completion", "empty-answer", row, text, why, fix, "critical")
        yield Trial("format_without_content", "empty-answer", row, text, why, fix, "critical")
    yield Trial(
        "format_without_content",
        "marks-only",
        row,
        form("", ""),
        "the bare marks of the format, with nothing inside, are paid in full",
        fix,
        "critical",
    )


def _echo(profile: Profile, session: Session, row: int) -> Iterator[Trial]:
    entry = session.rows[row]
    fix = "read the answer only from its marked place, and refuse text that is copied from the prompt"
    texts = {entry.prompt_text, entry.question, f"{entry.question}\n{REASONING}"}
    if profile.form is not None:
        texts.add(profile.form(entry.question))
    for text in sorted(texts):
        if profile.answers.get(row, "").strip() != text.strip():
            yield Trial(
                "prompt_echo",
                "echo",
                row,
                text,
                "the prompt's own text, copied, is paid in full",
                fix,
                "high",
                share=0.34,
            )


def _several(profile: Profile, row: int) -> Iterator[Trial]:
    form, gold, wrong = profile.form, profile.answers.get(row), profile.wrongs.get(row, [])
    if form is None or gold is None or not wrong or not form.structured:
        return
    first, last = wrong[0], wrong[-1]
    fix = "let one place decide: the last complete mark, and refuse several different answers"
    parts = [_short(form, first), _short(form, gold), _short(form, last)]
    control = "\n".join([parts[0], parts[2], parts[0]])
    why = "the right answer among several marked ones is paid in full, although the last one is wrong"
    yield Trial("multiple_answer_tags", "middle", row, "\n".join(parts), why, fix, "high", control=control)
    inline = " ".join(parts)
    yield Trial(
        "multiple_answer_tags",
        "middle",
        row,
        inline,
        why,
        fix,
        "high",
        control=" ".join([parts[0], parts[2]]),
    )
    yield Trial(
        "multiple_answer_tags",
        "first-decides",
        row,
        f"{form(gold)}\n{_short(form, first)}",
        "the first marked answer decides; a later, different one is ignored",
        fix,
        "info",
        remark=True,
    )
    many = "\n".join(_short(form, answer) for answer in [*wrong, gold, *wrong] * 2)
    yield Trial("multiple_answer_tags", "shotgun", row, f"{many}\n{_short(form, last)}", why, fix, "high")


def _short(form: Form, answer: str) -> str:
    return form(answer, "Let me see.")


def _enumerated(profile: Profile, row: int) -> Iterator[Trial]:
    gold, wrong = profile.answers.get(row), profile.wrongs.get(row, [])
    if gold is None or not wrong:
        return
    fix = "accept exactly one answer: compare the whole extracted text, do not search in it"
    why = "a list of every candidate answer is paid in full"
    before, after = _neighbours(profile, row, gold, wrong)
    for joint in (", ", " or ", " ", "\n", "; "):
        text = joint.join([*before, gold, *after])
        control = joint.join([*before, *after])
        yield Trial("answer_enumeration", "list", row, text, why, fix, "high", control=control)
        if profile.form is not None:
            yield Trial(
                "answer_enumeration",
                "list-in-form",
                row,
                profile.form(text),
                why,
                fix,
                "high",
                control=profile.form(control),
            )
    said = f"It could be {before[0]}, or {gold}, or perhaps {after[-1]}."
    yield Trial(
        "answer_enumeration", "hedged", row, said, why, fix, "high", control=said.replace(gold, after[-1])
    )


def _neighbours(profile: Profile, row: int, gold: str, wrong: Sequence[str]) -> tuple[list[str], list[str]]:
    number = number_of(gold)
    if number is not None:
        steps = [plain_number(number + step) for step in (-2, -1, 1, 2)]
        return [wrong[0], *steps[:2]], [*steps[2:], wrong[-1]]
    others = [text for other, text in profile.answers.items() if other != row and text != gold]
    others = list(dict.fromkeys([*wrong, *others]))
    half = max(1, len(others) // 2)
    return others[:half][:6], (others[half:] or others[:1])[:6]


def _denied(profile: Profile, row: int) -> Iterator[Trial]:
    gold, wrong = profile.answers.get(row), profile.wrongs.get(row, [])
    if gold is None or not wrong or profile.kind in ("json", "code"):
        return
    fix = "compare the whole answer, not a word or number found somewhere in it"
    severity: Severity = "info" if profile.kind in ("fraction", "latex") else "high"
    if profile.kind == "number":
        severity = "info" if profile.form is not None and profile.form.structured else "medium"
    why = "a completion that denies the right answer is paid in full"
    denials = (
        "The answer is not {}.",
        "It is definitely not {}, that much is clear.",
        "Anything but {} would do.",
        "{} is wrong.",
    )
    for text in denials:
        yield Trial(
            "negation",
            "denied",
            row,
            text.format(gold),
            why,
            fix,
            severity,
            control=text.format(wrong[0]),
        )
    if profile.form is not None and profile.form.structured:
        for text in ("not {}", "anything but {}", "{} is wrong"):
            yield Trial(
                "negation",
                "denied-in-form",
                row,
                profile.form(text.format(gold)),
                why,
                fix,
                "high" if profile.kind in ("text", "boolean", "choice", "list") else "medium",
                control=profile.form(text.format(wrong[0])),
            )


def _near(profile: Profile, row: int) -> Iterator[Trial]:
    form, gold = profile.form, profile.golds[row]
    if form is None or row not in profile.answers:
        return
    fix = "compare values exactly, or with a tolerance far below the difference between neighbouring answers"
    accepted = {text.strip().lower() for text in gold.candidates}
    for text, label, weight in near_misses(gold):
        if text.strip().lower() in accepted:
            continue
        severity: Severity = "high" if weight == "high" else "medium"
        attack = "other-sign" if label == "other sign" else "near-value"
        why = f"{text!r} ({label}) is paid in full for {gold.text!r}"
        yield Trial("near_miss", attack, row, form(text), why, fix, severity, closeness=0.995)
    for text, label in _contains(gold.text, gold.kind):
        why = f"{text!r} ({label}) is paid in full for {gold.text!r}"
        fix_part = "compare the whole answer, not a part of it"
        yield Trial(
            "wrong_accepted", "part-of-another", row, form(text), why, fix_part, "high", closeness=0.995
        )
    if gold.kind == "number" and (number := number_of(gold.text)):
        text = plain_number(-number)
        yield Trial(
            "wrong_accepted",
            "other-sign",
            row,
            form(text),
            f"{text!r} is paid in full for {gold.text!r}: the sign is lost",
            "keep the sign when the number is read and compared",
            "high",
            closeness=0.995,
        )


def _contains(text: str, kind: str) -> list[tuple[str, str]]:
    if kind == "number":
        digits = text.replace(",", "").lstrip("+-$")
        if "." in digits:
            return [(f"9{digits}", "a digit in front")] if text.startswith(digits) else []
        head = text[: len(text) - len(digits)] if text.endswith(digits) else ""
        found = [
            (f"{head}9{digits}", "a digit in front"),
            (f"{head}{digits}7", "more digits"),
        ]
        if len(digits) > 1 and digits.isdigit():
            found.append((f"{digits[0]} and {digits[1:]}", "its digits apart"))
            if digits[1:].strip("0"):
                found.append((digits[1:], "its last digits"))
            found.append((digits[:-1], "its first digits"))
        return [(one, label) for one, label in found if number_of(one) != number_of(text)]
    if kind == "text":
        return [(f"{text}zanzibar", "a longer word"), (f"anti{text}", "a longer word")]
    if kind == "choice":
        letter = text.strip("().")
        return [
            (f"{letter}nything", "a word that begins with the letter"),
            (f"the w{letter.lower()}y", "a word"),
        ]
    return []


def _hidden(profile: Profile, row: int) -> Iterator[Trial]:
    form, gold, wrong = profile.form, profile.answers.get(row), profile.wrongs.get(row, [])
    if form is None or gold is None or not wrong:
        return
    fix = "read the answer from its marked place alone; never search the reasoning for it"
    why = "the final answer is wrong, yet the completion is paid because the right one occurs before it"
    control = form(wrong[0])
    for reasoning in (f"At first I thought it was {gold}, but that cannot be.", f"Is it {gold}? No."):
        if profile.form is not None and "@R" in form("@A", "@R"):
            text = form(wrong[0], f"{REASONING} {reasoning}")
        else:
            text = f"{reasoning}\n{form(wrong[0])}"
        yield Trial("wrong_accepted", "right-one-in-reasoning", row, text, why, fix, "high", control=control)
    thought = f"<think>It is {form(gold, '')} perhaps.</think>\n{_short(form, wrong[0])}"
    weight: Severity = "info" if form.structured else "high"  # marked twice: which mark decides is a policy
    yield Trial(
        "wrong_accepted", "right-one-in-thinking", row, thought, why, fix, weight, remark=form.structured
    )
    unfinished = f"<think>Maybe {form(gold, '')}, that fits"
    yield Trial(
        "wrong_accepted",
        "unfinished-thinking",
        row,
        unfinished,
        "an answer inside thinking that never ends is paid",
        "strip the thinking first; without its end there is no answer",
        "info",
        remark=True,
    )
    for text in profile.wrongs[row]:
        yield Trial(
            "wrong_accepted",
            "plainly-wrong",
            row,
            form(text),
            f"{text!r} is paid in full for {gold!r}",
            "compare with the reference of the row",
            "critical",
        )


def _unicode(profile: Profile, row: int) -> Iterator[Trial]:
    form, gold = profile.form, profile.golds[row]
    if form is None or row not in profile.answers:
        return
    text = gold.text
    fix = "refuse characters outside the expected alphabet instead of dropping or folding them"
    for other, label, severity in _unicode_variants(text, gold.kind):
        why = f"{other!r} ({label}) is paid in full for {text!r}"
        yield Trial(
            "unicode_trick", label.replace(" ", "-"), row, form(other), why, fix, severity, closeness=0.995
        )


def _unicode_variants(text: str, kind: str) -> list[tuple[str, str, Severity]]:
    found: list[tuple[str, str, Severity]] = []
    if kind == "number" and text.isdigit() and len(text) > 1:
        found.append((text[:-1] + text[-1].translate(_SUPERSCRIPT), "a power read as a digit", "high"))
        found.append((f"{text[0]}你{text[1:]}", "foreign letters dropped", "high"))
        found.append((f"−{text}", "a typographic minus dropped", "low"))
    if kind in ("text", "boolean") and text.isascii() and len(text) > 2:
        found.append((f"{text[:2]}你{text[2:]}", "foreign letters dropped", "high"))
        swapped = text.translate(_LOOK_ALIKE)
        if swapped != text:
            found.append((swapped, "look-alike letters", "medium"))
    return found

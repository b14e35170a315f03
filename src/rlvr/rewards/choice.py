"""Multiple choice: exactly one letter is given, as the answer and not in passing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rlvr.rewards.builtin import Builtin
from rlvr.rewards.contract import Outcome, Verdict
from rlvr.rewards.mathematics.extract import find_answer
from rlvr.rewards.reading import clean_spaces, outside_thinking, without_end_tokens

_WRAPPER = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boldsymbol)\s*\{([^{}]*)\}")
_LETTER = re.compile(
    r"(?:the\s+)?(?:(?:correct|right|best)\s+)?(?:option|choice|answer)?\s*(?:is\s+)?[(\[]?\s*(?P<letter>[A-Za-z])\s*[)\]]?"
    r"(?:\s*[.:,)]?\s*|\s*[.:)\]]\s*(?P<rest>.+)|\)\s+(?P<more>.+))",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Choice(Builtin):
    r"""Accept the one letter of a multiple choice, however it is dressed: ``B``, ``(B)``, ``\text{B}``, ``B. Paris``.

    The letter is read where ``math`` reads an answer: last box, answer tag, or a sentence that names the answer.
    Two letters are no answer. The reference is the letter, or its number counted from ``first``.

    Attributes:
        letters: The letters that may be chosen.
        first: Number of the first letter where references are numbers (0 or 1).
        tag: Name of the answer tag; empty for none.
        think_prefilled: The chat template opens ``<think>``, so the completion starts inside it.
    """

    letters: str = "ABCDEFGHIJ"
    first: int = 0
    tag: str = "answer"
    think_prefilled: bool = False

    def verdict(self, completion: str, reference: Any) -> Verdict:
        """Read one completion."""
        gold = self._gold(reference)
        if gold is None:
            raise self.bad_reference(reference, self.check_reference(reference) or "no letter")
        visible = without_end_tokens(outside_thinking(completion, prefilled=self.think_prefilled))
        answer, how = find_answer(visible, self.tag)
        letter = self.letter(answer) if answer else None
        if letter is None:
            why = f"no single letter of {self.letters} in {answer!r}" if answer else how
            return Verdict(Outcome.ILL_FORMED, 0.0, answer, why)
        right = letter == gold
        why = f"{letter} ({how}) {'is' if right else 'is not'} {gold}"
        return Verdict(Outcome.RIGHT if right else Outcome.WRONG, float(right), letter, why)

    def letter(self, answer: str) -> str | None:
        """Return the one letter that an answer gives, or None."""
        text = answer
        for _ in range(3):
            text = _WRAPPER.sub(lambda found: found.group(1), text)
        text = clean_spaces(
            text.replace("$", " ").replace("\\ ", " ").replace("\\(", " ").replace("\\)", " ")
        )
        found = _LETTER.fullmatch(text.strip("*`\"' "))
        if not found:
            return None
        rest = found["rest"] or found["more"] or ""
        letter = found["letter"].upper()
        return letter if letter in self.letters and not self._names_another(rest) else None

    def _names_another(self, rest: str) -> bool:
        """Return whether what follows the letter chooses a second one: ``A or B``, ``A, B``."""
        return bool(
            re.search(rf"(?:^|\bor\b|\band\b|[,/&])\s*\(?[{re.escape(self.letters)}]\)?(?:$|[\s.,)/])", rest)
        )

    def check_reference(self, reference: Any) -> str | None:
        """Return why ``reference`` is no letter of this choice, or None."""
        return None if self._gold(reference) else f"no letter of {self.letters} and no number of one"

    def _gold(self, reference: Any) -> str | None:
        if isinstance(reference, bool) or reference is None:
            return None
        if isinstance(reference, int):
            place = reference - self.first
            return self.letters[place] if 0 <= place < len(self.letters) else None
        return self.letter(reference) if isinstance(reference, str) else None

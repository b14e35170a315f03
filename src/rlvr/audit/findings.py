"""Findings: stable ids, reproduction scripts, and a baseline file that lets known ones stand with a reason."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlvr.audit.runner import FileTarget, Target
from rlvr.audit.session import Convention
from rlvr.errors import ConfigError, did_you_mean
from rlvr.records.audit import SEVERITIES, Finding, Severity, direction_of


class FindingFactory:
    """Builds the findings of one reward.

    Args:
        target: The reward.
        name: Its name in findings.
        file: The user's file; empty for a built-in.
        convention: How it is called.
    """

    def __init__(self, target: Target, name: str, file: str, convention: Convention) -> None:
        self.target = target
        self.name = name
        self.file = file
        self.convention = convention

    def make(
        self,
        category: str,
        attack: str,
        message: str,
        *,
        fix: str,
        severity: Severity,
        row: int = -1,
        completion: str = "",
        score: float | None = None,
        full_score: float | None = None,
        expected: str = "",
        rows: tuple[int, int] = (1, 1),
        line: int | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> Finding:
        """Return one finding; ``request`` is the call that the reproduction script repeats."""
        return Finding(
            id=stable_id(self.name, category, attack),
            category=category,
            direction=direction_of(category),
            severity=severity,
            reward=self.name,
            attack=attack,
            row=row,
            completion=completion,
            score=score,
            full_score=full_score,
            expected=expected,
            rows_hit=rows[0],
            rows_tried=rows[1],
            message=message,
            fix=fix,
            file=self.file,
            line=line,
            reproduction=self.reproduction(request, expected) if request is not None else "",
        )

    def reproduction(self, request: Mapping[str, Any], expected: str) -> str:
        """Return five lines that repeat a call, importing only the user's file."""
        if not isinstance(self.target, FileTarget):
            return ""
        name = self.target.attribute
        head = (
            "from importlib.util import module_from_spec as new, spec_from_file_location as at\n"
            f"spec = at('reward', {str(self.target.path)!r})\n"
            "module = new(spec); spec.loader.exec_module(module)\n"
        )
        return f"{head}{self._call_line(name, request)}\nprint(scores)  # expected: {expected or 'see the finding'}\n"

    def _call_line(self, name: str, request: Mapping[str, Any]) -> str:
        call = f"module.{name}"
        if request.get("mode") == "sample":
            arguments = ", ".join(f"{key}={literal(value)}" for key, value in request["arguments"][0].items())
            call = f"{call}({arguments})"
        else:
            keywords = {
                "prompts": request["prompts"],
                "completions": request["completions"],
                **request["columns"],
            }
            allowed = request.get("allowed")
            shown = {key: value for key, value in keywords.items() if allowed is None or key in allowed}
            call = f"{call}({', '.join(f'{key}={literal(value)}' for key, value in shown.items())})"
        if self.convention.is_async:
            call = f"__import__('asyncio').run({call})"
        return f"scores = {call}"


def literal(value: Any) -> str:
    """Return a value as Python source on one line; long repetitions are written as products."""
    if isinstance(value, str) and len(value) > 400:
        return _repeated(value) or repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(literal(one) for one in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {literal(one)}" for key, one in value.items()) + "}"
    return repr(value)


def _repeated(text: str) -> str:
    """Return ``head + unit * n + tail`` for a text that mostly repeats; empty for any other."""
    middle = text[len(text) // 3 : len(text) // 3 * 2]
    match = re.match(r"(.{1,80}?)\1{5,}", middle, re.DOTALL)
    if match is None:
        return ""
    unit = match[1]
    start = text.find(unit * 3)
    count = 0
    while text.startswith(unit, start + count * len(unit)):
        count += 1
    head, tail = text[:start], text[start + count * len(unit) :]
    if len(head) + len(tail) > 400:
        return ""
    parts = [repr(head)] if head else []
    parts.append(f"{unit!r} * {count}")
    parts += [repr(tail)] if tail else []
    return " + ".join(parts)


def stable_id(reward: str, category: str, attack: str) -> str:
    """Return the finding's id: the category and a hash over reward, category and attack."""
    digest = hashlib.sha256(f"{reward}\0{category}\0{attack}".encode()).hexdigest()[:8]
    return f"{category}-{digest}"


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with the gravest first, otherwise in their order."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def read_baseline(path: Path) -> dict[str, str]:
    """Return finding id to reason.

    Raises:
        ConfigError: ``audit.baseline`` when the file is missing, malformed, or an entry has no reason.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    example = "accepted:\n  - id: near_miss-1a2b3c4d\n    reason: a tolerance of 1% is what the task asks"
    try:
        data = YAML(typ="safe").load(path.read_text("utf-8"))
    except OSError as error:
        raise _baseline_error(path, error.strerror or "unreadable", example) from None
    except (YAMLError, UnicodeDecodeError) as error:
        raise _baseline_error(path, f"not YAML: {str(error).splitlines()[0]}", example) from None
    entries = data.get("accepted") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        raise _baseline_error(path, "no list under `accepted`", example)
    return dict(_entry(path, entry, example) for entry in entries)


def _entry(path: Path, entry: Any, example: str) -> tuple[str, str]:
    if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
        raise _baseline_error(path, f"an entry without an id: {entry!r}", example)
    reason = entry.get("reason")
    if not isinstance(reason, str) or len(reason.strip()) < 8:
        raise _baseline_error(path, f"no reason for {entry['id']}", example)
    return entry["id"], reason.strip()


def _baseline_error(path: Path, found: str, example: str) -> ConfigError:
    return ConfigError("audit.baseline", found, where=str(path), expected=example, fix="write it so")


def with_baseline(findings: Sequence[Finding], reasons: Mapping[str, str]) -> list[Finding]:
    """Return the findings, those named in the baseline marked with its reason."""
    return [
        finding.model_copy(update={"accepted_because": reasons[finding.id]})
        if finding.id in reasons
        else finding
        for finding in findings
    ]


def unused_entries(findings: Sequence[Finding], reasons: Mapping[str, str]) -> list[str]:
    """Return a line for each baseline entry that matches no finding any more."""
    known = [finding.id for finding in findings]
    return [
        f"{one}: no such finding now. {did_you_mean(one, known)}".strip()
        for one in reasons
        if one not in known
    ]

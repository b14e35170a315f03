"""Regular expressions that may run away: simple ones are matched here, others in a child with a wall clock.

The engine of ``re`` cannot be interrupted, so a pattern that can backtrack (a repeated part inside a repeated part,
or alternatives inside one) is matched in a killable child.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rlvr.errors import InfrastructureError

_PROGRAM = """
import json, re, sys
job = json.loads(sys.stdin.readline())
pattern = re.compile(job["pattern"], job["flags"])
for text in job["texts"]:
    match = None
    for match in [pattern.fullmatch(text)] if job["whole"] else pattern.finditer(text):
        pass
    found = None
    if match:
        groups = match.groupdict()
        found = groups["answer"] if "answer" in groups else match.group(1) if pattern.groups else match.group()
    print(json.dumps(found), flush=True)
"""

Found = str | None | TimeoutError


def search_all(pattern: str, flags: int, whole: bool, texts: Sequence[str], limit: float) -> list[Found]:
    """Return what the last match of each text captured, None without one, TimeoutError past ``limit`` seconds.

    Raises:
        InfrastructureError: ``reward.regex-child`` when no child can be started.
    """
    if may_run_away(pattern):
        return _in_child(pattern, flags, whole, texts, limit)
    compiled = re.compile(pattern, flags)
    return [_captured(compiled, whole, text) for text in texts]


def _captured(pattern: re.Pattern[str], whole: bool, text: str) -> str | None:
    match = pattern.fullmatch(text) if whole else _last(pattern, text)
    if match is None:
        return None
    if "answer" in pattern.groupindex:
        return match["answer"]
    return match[1] if pattern.groups else match[0]


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = None
    for match in pattern.finditer(text):
        found = match
    return found


@lru_cache(maxsize=256)
def may_run_away(pattern: str) -> bool:
    """Return whether a pattern repeats a part that itself holds repetitions or alternatives, or two in a row."""
    import re._parser as parser  # type: ignore[import-not-found]

    return _nested(parser.parse(pattern), inside=False) or pattern.count("*") + pattern.count("+") > 2


def _nested(parsed: Any, *, inside: bool) -> bool:
    for kind, argument in parsed:
        name = str(kind)
        repeats = name in ("MAX_REPEAT", "MIN_REPEAT") and argument[1] > 1
        if inside and (repeats or name == "BRANCH"):
            return True
        for part in _parts(name, argument):
            if _nested(part, inside=inside or repeats):
                return True
    return False


def _parts(name: str, argument: Any) -> list[Any]:
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        return [argument[2]]
    if name == "SUBPATTERN":
        return [argument[3]]
    if name == "BRANCH":
        return list(argument[1])
    return [argument[1]] if name in ("ASSERT", "ASSERT_NOT") else []


def _in_child(pattern: str, flags: int, whole: bool, texts: Sequence[str], limit: float) -> list[Found]:
    found: list[Found] = []
    while len(found) < len(texts):
        rest = texts[len(found) :]
        found += _answers(pattern, flags, whole, rest, limit)
        if len(found) < len(texts):
            found.append(TimeoutError())
    return found


def _answers(pattern: str, flags: int, whole: bool, texts: Sequence[str], limit: float) -> list[Found]:
    """Return the answers of one child, up to the text on which it was killed."""
    import selectors
    import time

    job = json.dumps({"pattern": pattern, "flags": int(flags), "whole": whole, "texts": list(texts)})
    found: list[Found] = []
    try:
        child = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PROGRAM], stdin=-1, stdout=-1, stderr=-3, text=True
        )
    except OSError as error:
        raise InfrastructureError("reward.regex-child", f"no child can be started: {error}") from error
    assert child.stdin is not None and child.stdout is not None
    with child, selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        try:
            child.stdin.write(job + "\n")
            child.stdin.close()
            wait = limit + 10.0  # the first answer waits for the interpreter to start
            while len(found) < len(texts):
                until = time.monotonic() + wait
                if not selector.select(max(0.0, until - time.monotonic())):
                    break
                line = child.stdout.readline()
                if not line:
                    break
                found.append(json.loads(line))
                wait = limit
        except BrokenPipeError as error:
            raise InfrastructureError("reward.regex-child", "the child ended while starting") from error
        finally:
            child.kill()
    return found

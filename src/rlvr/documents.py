"""Pages of the documentation that are generated from the code, so that they cannot fall behind it.

``python -m rlvr.documents`` writes ``docs/configuration.md`` and ``docs/errors.md``; a test fails when they differ.
"""

# ruff: noqa: E501  # the lines of a page, not of code
from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rlvr import errors
from rlvr.config import schema

PACKAGE = Path(__file__).parent


@dataclass(frozen=True)
class ErrorCode:
    """One error as the code raises it.

    Attributes:
        code: Stable name.
        kind: Its class.
        found: What was found; ``…`` stands for what differs from case to case.
        fix: What to do, likewise; empty when it depends on the case.
    """

    code: str
    kind: type[errors.RlvrError]
    found: str
    fix: str


def configuration_page() -> str:
    """Return the page on ``rlvr.yaml``: every field with its default, bounds and meaning."""
    lines = [
        "# Configuration: `rlvr.yaml`",
        "",
        "This page is generated from the schema by `python -m rlvr.documents`. Unknown keys are refused with their line "
        "and the nearest name. Options of training live here, not in flags.",
        "",
    ]
    for title, section in _sections("", schema.Config):
        summary = (section.__doc__ or "").strip().splitlines()[0].replace("``", "`")
        lines += [
            f"## {title or 'top level'}",
            "",
            summary,
            "",
            "| key | default | meaning |",
            "|---|---|---|",
        ]
        for name, field in section.model_fields.items():
            inner = _section_of(field.annotation)
            meaning = (inner.__doc__ or "").strip().splitlines()[0] if inner else _meaning(field)
            lines.append(f"| `{name}` | {_default(field)} | {meaning.replace('``', '`')} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _sections(title: str, section: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    yield title, section
    for name, field in section.model_fields.items():
        inner = _section_of(field.annotation)
        if inner is not None:
            yield from _sections(f"{title}.{name}" if title else name, inner)


def _section_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) is None:
        return None
    return next((found for one in get_args(annotation) if (found := _section_of(one)) is not None), None)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True)
    if value is None or isinstance(value, BaseModel) or value in ({}, [], ""):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _meaning(field: FieldInfo) -> str:
    parts = [(field.description or "").replace("|", "\\|")]
    bounds = [
        f"{sign} {getattr(one, name):g}"
        for one in field.metadata
        for name, sign in _SIGNS
        if hasattr(one, name)
    ]
    choices = _choices(field.annotation)
    parts += [", ".join(f"`{one}`" for one in choices)] if choices else []
    parts += [" and ".join(bounds)] if bounds else []
    return "; ".join(part for part in parts if part)


_SIGNS = (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))


def _choices(annotation: Any) -> list[str]:
    arguments = get_args(annotation)
    if arguments and all(isinstance(one, str) for one in arguments):
        return list(arguments)
    return next((found for one in arguments if (found := _choices(one))), [])


def errors_page() -> str:
    """Return the page on errors: every code with its class, its exit code, and what to do."""
    lines = [
        "# Errors",
        "",
        "This page is generated from the code by `python -m rlvr.documents`. Every error has a stable code; with `--json` "
        "it is printed as `{error: {code, where, found, expected, fix, exit_code}}`. `…` stands for what differs from "
        "case to case.",
        "",
    ]
    found = error_codes()
    for area in dict.fromkeys(one.code.partition(".")[0] for one in found):
        lines += [f"## {area}", "", "| code | exit | found | do |", "|---|---|---|---|"]
        lines += [
            f"| `{one.code}` | {one.kind.exit_code} | {_cell(one.found)} | {_cell(one.fix)} |"
            for one in found
            if one.code.partition(".")[0] == area
        ]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def error_codes() -> list[ErrorCode]:
    """Return every error that the sources raise under a literal code, sorted; one entry a code."""
    known: dict[str, ErrorCode] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            one = _raised(node)
            if one is not None and (one.code not in known or len(one.fix) > len(known[one.code].fix)):
                known[one.code] = one
    return [known[code] for code in sorted(known)]


def _raised(node: ast.AST) -> ErrorCode | None:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) >= 2):
        return None
    kind = getattr(errors, node.func.id, None)
    code = _text(node.args[0])
    if not (isinstance(kind, type) and issubclass(kind, errors.RlvrError)) or "." not in code or "…" in code:
        return None
    fix = next((_text(word.value) for word in node.keywords if word.arg == "fix"), "")
    return ErrorCode(code, kind, _text(node.args[1]), fix)


def _text(node: ast.AST) -> str:
    """Return a literal text, with an ellipsis for every part that is computed."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return "…"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|") or "–"


PAGES: dict[str, Callable[[], str]] = {
    "docs/configuration.md": configuration_page,
    "docs/errors.md": errors_page,
}
"""File, relative to the repository, to what writes it."""


def write(root: Path) -> list[Path]:
    """Write every generated page into a repository and return the paths."""
    for name, page in PAGES.items():
        (root / name).write_text(page(), encoding="utf-8")
    return [root / name for name in PAGES]


if __name__ == "__main__":
    sys.stdout.writelines(f"{path}\n" for path in write(Path.cwd()))

"""Workspaces that run as they stand: one module a kind of task, read from top to bottom.

Each template is data made by code from a fixed seed, a commented ``rlvr.yaml``, and a reward or check of the user's
own where that teaches something. :data:`TEMPLATES` is a literal table; a module is imported only when it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from rlvr.templates.base import Template

TEMPLATES: dict[str, str] = {
    "math": "rlvr.templates.math",
    "json": "rlvr.templates.json_object",
    "tool-call": "rlvr.templates.tool_call",
    "code": "rlvr.templates.code",
    "text": "rlvr.templates.text",
}
"""Template name: the module that holds it."""


def load_template(name: str) -> Template:
    """Return a template by name; ``KeyError`` for one that is not in :data:`TEMPLATES`."""
    return cast("Template", importlib.import_module(TEMPLATES[name]).TEMPLATE)

"""From untrusted text to a tree of plain nodes that the page builds element by element; no HTML is ever parsed.

A node is a string (text), or one of

- ``["chip", label, title]``: a steering character, shown by name;
- ``["mark", nodes]``: what the reward read as the answer;
- ``["tok", kind, nodes]``: a piece of highlighted code;
- ``["math", tree, source, is_display]``: a formula as MathML, ``tree = [tag, attributes, children]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rlvr.inspection.segments import Segment, answer_place, folded, reindent_json, segments
from rlvr.visible import CLOSE, OPEN, label, pieces, title, visible

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

Node = Any
Block = dict[str, Any]
Span = tuple[int, int]

MOST_CHIPS = 300
"""Steering characters shown as elements in one block; further ones are written out as text."""
LONGEST_HIGHLIGHT = 10_000
"""Characters of code up to which it is highlighted."""
BLOCK_CHARACTERS = 1_500
"""Characters from which prose is cut into a further block, at the next line end."""
LANGUAGES = {
    "python": "python", "py": "python", "python3": "python", "json": "json", "bash": "bash", "sh": "bash",
    "shell": "bash", "c": "c", "cpp": "cpp", "c++": "cpp", "java": "java", "javascript": "javascript",
    "js": "javascript", "typescript": "typescript", "ts": "typescript", "rust": "rust", "go": "go",
    "sql": "sql", "html": "html", "xml": "xml", "yaml": "yaml", "latex": "latex", "tex": "latex",
}  # fmt: skip
"""Names after a code fence that are highlighted, and the lexer for each."""
MATH_TAGS = frozenset(
    (
        "math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup",
        "msubsup", "munder", "mover", "munderover", "mtable", "mtr", "mtd", "mstyle", "menclose", "mpadded",
        "mphantom", "mmultiscripts", "mprescripts", "none", "semantics",
    )
)  # fmt: skip
MATH_ATTRIBUTES = frozenset(
    (
        "display", "mathvariant", "stretchy", "fence", "separator", "form", "lspace", "rspace", "minsize",
        "maxsize", "movablelimits", "accent", "accentunder", "linethickness", "columnalign", "rowspacing",
        "columnspacing", "displaystyle", "scriptlevel", "notation", "width", "height", "depth", "symmetric",
        "largeop",
    )
)  # fmt: skip


def render_completion(
    text: str, extracted: str | None = None, *, raw: bool = False, unfolded: bool = False
) -> dict[str, Any]:
    """Return a completion in three parts, the middle folded where it is long.

    Args:
        text: The completion.
        extracted: What the reward read, marked where it stands; None before the reader has judged.
        raw: Show the text as it is, without formulas and highlighting.
        unfolded: Render the middle too, which takes longer than one key may.

    Returns:
        ``head``, ``middle`` and ``tail`` as blocks (``middle`` empty unless ``unfolded``), and the number of
        characters ``hidden`` in the middle.
    """
    mark = answer_place(text, extracted)
    found = [Segment("prose", 0, len(text))] if raw else segments(text)
    parts = folded(text, found, mark[0] if mark else None)
    return {
        "head": blocks(text, parts.head, mark),
        "middle": blocks(text, parts.middle, mark) if unfolded else [],
        "tail": blocks(text, parts.tail, mark),
        "hidden": parts.hidden,
    }


def render_text(text: str, *, raw: bool = False) -> list[Block]:
    """Return a prompt, a reference or a reason as blocks, unfolded."""
    return blocks(text, [Segment("prose", 0, len(text))] if raw else segments(text), None)


def blocks(text: str, found: Sequence[Segment], mark: Span | None) -> list[Block]:
    """Group segments into blocks: runs of prose with their formulas, and code."""
    out: list[Block] = []
    size = 0
    for segment in _at_line_ends(text, found):
        if segment.kind in ("code", "json"):
            out.append(_code_block(text, segment, mark))
            continue
        kind = "think" if segment.kind == "think" else "prose"
        if segment.kind in ("math", "display") and out and out[-1]["kind"] in ("prose", "think"):
            kind = out[-1]["kind"]
        if (
            not out
            or out[-1]["kind"] != kind
            or (size > BLOCK_CHARACTERS and text[segment.start - 1] == "\n")
        ):
            out.append({"kind": kind, "nodes": []})
            size = 0
        size += segment.end - segment.start
        out[-1]["nodes"] += _inline(text, segment, mark)
    return [block for block in out if block["nodes"]]


def _at_line_ends(text: str, found: Sequence[Segment]) -> Iterator[Segment]:
    """Cut long prose at line ends, so that a page lays out only the blocks in sight."""
    for segment in found:
        place = segment.start
        while segment.kind in ("prose", "think") and segment.end - place > BLOCK_CHARACTERS:
            cut = text.find("\n", place + BLOCK_CHARACTERS, segment.end) + 1
            if cut == 0:
                break
            yield segment._replace(start=place, end=cut)
            place = cut
        if "\n" in text[place : segment.end] and segment.kind in ("prose", "think"):
            cut = text.index("\n", place, segment.end) + 1  # the line that a formula stands in ends here
            yield segment._replace(start=place, end=cut)
            place = cut
        if place < segment.end:
            yield segment._replace(start=place)


def _inline(text: str, segment: Segment, mark: Span | None) -> list[Node]:
    if segment.kind not in ("math", "display"):
        return _marked(text, segment.start, segment.end, mark)
    source = text[segment.start : segment.end]
    tree = mathml(source)
    if tree is None:
        return _marked(text, segment.start, segment.end, mark)
    node = ["math", tree, visible(source), segment.kind == "display"]
    return [["mark", [node]]] if _overlaps(segment.start, segment.end, mark) else [node]


def _code_block(text: str, segment: Segment, mark: Span | None) -> Block:
    code = text[segment.start : segment.end]
    if segment.kind == "json":
        code, mark = reindent_json(code), None  # its positions are no longer those of the text
    nodes: list[Node] = []
    place = segment.start
    for kind, value in _tokens(code, segment.language):
        inner = _marked(text, place, place + len(value), mark) if segment.kind == "code" else _plain(value)
        nodes += [["tok", kind, inner]] if kind else inner
        place += len(value)
    return {"kind": "code", "language": segment.language, "nodes": nodes}


def _tokens(code: str, language: str) -> Iterator[tuple[str, str]]:
    """Yield (short class, text) of highlighted code; the texts together are the code."""
    name = LANGUAGES.get(language)
    if name is None or len(code) > LONGEST_HIGHLIGHT:
        yield "", code
        return
    from pygments.lexers import get_lexer_by_name
    from pygments.token import STANDARD_TYPES

    found = list(get_lexer_by_name(name, stripnl=False, ensurenl=False).get_tokens(code))
    if "".join(value for _, value in found) != code:
        yield "", code  # the lexer normalised line ends; what is there comes first
        return
    for token, value in found:
        known = next((kind for kind in reversed(token.split()) if kind in STANDARD_TYPES), None)
        yield STANDARD_TYPES.get(known, "") if known else "", value


def _marked(text: str, start: int, end: int, mark: Span | None) -> list[Node]:
    if not _overlaps(start, end, mark):
        return _plain(text[start:end])
    assert mark is not None
    first, last = max(start, mark[0]), min(end, mark[1])
    marked: list[Node] = [["mark", _plain(text[first:last])]]
    return [*_plain(text[start:first]), *marked, *_plain(text[last:end])]


def _overlaps(start: int, end: int, mark: Span | None) -> bool:
    return mark is not None and mark[0] < end and start < mark[1]


def _plain(text: str) -> list[Node]:
    nodes: list[Node] = []
    chips = 0
    for piece in pieces(text):
        if piece.steering and chips < MOST_CHIPS:
            chips += 1
            nodes.append(["chip", label(piece), title(piece)])
            continue
        shown = f"{OPEN}{label(piece)}{CLOSE}" if piece.steering else piece.text
        if nodes and isinstance(nodes[-1], str):
            nodes[-1] += shown
        else:
            nodes.append(shown)
    return nodes


def mathml(source: str) -> list[Any] | None:
    """Return a formula as a tree of allowed MathML elements; None when it cannot be read as one."""
    from xml.etree import ElementTree

    from latex2mathml.converter import convert

    try:
        element = ElementTree.fromstring(convert(visible(source)))  # noqa: S314
    except Exception:  # the converter fails in many ways on text that is no LaTeX; the text is shown instead
        return None
    return _allowed(element)


def _allowed(element: Element) -> list[Any]:
    tag = element.tag.rpartition("}")[2]
    children: list[Any] = [element.text] if element.text else []
    for child in element:
        children.append(_allowed(child))
        if child.tail and child.tail.strip():
            children.append(child.tail)
    if tag not in MATH_TAGS:
        tag = "mrow"
    attributes = {name: value for name, value in element.attrib.items() if name in MATH_ATTRIBUTES}
    return [tag, attributes, children]

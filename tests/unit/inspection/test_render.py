import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlvr.inspection.render import MATH_TAGS, MOST_CHIPS, mathml, render_completion, render_text
from rlvr.inspection.segments import FOLD_FROM, answer_place, reindent_json, segments
from rlvr.visible import STEERING, visible


def words(nodes):
    """Return the plain text of rendered nodes, formulas by their source."""
    out = []
    for node in nodes:
        if isinstance(node, str):
            out.append(node)
        elif node[0] == "math":
            out.append(node[2])
        elif node[0] == "mark":
            out.append(words(node[1]))
        elif node[0] == "tok":
            out.append(words(node[2]))
        else:
            out.append(f"[{node[1]}]")
    return "".join(out)


def kinds(text):
    return [(one.kind, text[one.start : one.end]) for one in segments(text)]


class TestVisible:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("\x1b[31mred\x1b[0m", "⟦ESC⟧[31mred⟦ESC⟧[0m"),
            ("a\u202eb\u202c", "a⟦U+202E⟧b⟦U+202C⟧"),
            ("a\u200b\u200b\u200bb", "a⟦U+200B ×3⟧b"),
            ("\ud800", "⟦U+D800⟧"),
            ("\x9b2J", "⟦CSI⟧2J"),
            ("tag\U000e0041", "tag⟦U+E0041⟧"),
            ("cr\roverwrite", "cr⟦CR⟧overwrite"),
            ("tab\tand\nline", "tab\tand\nline"),
            ("naïve 数学 العربية 👍", "naïve 数学 العربية 👍"),
        ],
    )
    def test_steering_characters_are_named(self, text, shown):
        assert visible(text) == shown

    @given(st.text(st.characters()))
    def test_nothing_that_steers_is_left(self, text):
        assert not STEERING.search(visible(text))


class TestSegments:
    def test_prose_formulas_and_code(self):
        text = "So $x^2$ and \\(y\\):\n```python\nx = 1\n```\ndone \\boxed{4}"
        assert kinds(text) == [
            ("prose", "So "),
            ("math", "x^2"),
            ("prose", " and "),
            ("math", "y"),
            ("prose", ":\n"),
            ("code", "x = 1\n"),
            ("prose", "done "),
            ("math", "\\boxed{4}"),
        ]

    @pytest.mark.parametrize(
        "text", ["It costs $5 and $6.", "between $5 and $10 each", "an empty \\boxed{}", "a $ b $ c"]
    )
    def test_money_and_empty_boxes_are_prose(self, text):
        assert kinds(text) == [("prose", text)]

    def test_nested_braces_in_a_box(self):
        assert kinds("\\boxed{\\frac{1}{2}} ok")[0] == ("math", "\\boxed{\\frac{1}{2}}")

    def test_thinking(self):
        assert [kind for kind, _ in kinds("<think>a $x^2$ b</think>c")] == ["think", "math", "think", "prose"]
        assert kinds("begun before</think>answer")[0] == ("think", "begun before</think>")

    def test_an_unclosed_fence_runs_to_the_end(self):
        assert kinds("```\nabc")[-1] == ("code", "abc")

    def test_json(self):
        assert kinds(' {"a": 1} ') == [("json", '{"a": 1}')]
        assert kinds("[1, 2")[0][0] == "prose"

    @given(st.text(alphabet="ab$\\[](){}`~<think>/\n", max_size=300))
    @settings(max_examples=300)
    def test_no_character_is_shown_twice_or_out_of_order(self, text):
        place = 0
        for one in segments(text):
            assert place <= one.start < one.end <= len(text)
            place = one.end


def test_indented_json_keeps_every_token():
    text = '{"a":[1,2.50,{}],"a":"x\\"y, {","b":[ ]}'
    assert "".join(reindent_json(text).split()) == "".join(text.split())
    assert '"a": "x\\"y, {"' in reindent_json(text)
    assert reindent_json("[]") == "[]"


class TestAnswerPlace:
    @pytest.mark.parametrize(
        ("text", "answer", "at"),
        [
            ("14 and 4 and \\boxed{4}", "4", 20),
            ("\\boxed{4} not 4", "4", 7),
            ("the answer is 12. Or 12", "12", 14),
            ("3.14", "14", 2),
            ("none", "5", None),
            ("x", None, None),
            ("x", "  ", None),
        ],
    )
    def test_the_last_whole_one_after_a_box_first(self, text, answer, at):
        found = answer_place(text, answer)
        assert (found and found[0]) == at


class TestRendering:
    def test_the_answer_is_marked_only_when_it_is_told(self):
        text = "I think 7.\n```python\nx = 7\n```"
        assert "mark" not in json.dumps(render_completion(text))
        assert "mark" in json.dumps(render_completion(text, "7"))

    def test_nothing_is_lost(self):
        text = "a $x$ b\n```python\ndef f():\n    return '\u202e'\n```\nc \x1b[0m"
        found = render_completion(text)
        shown = "".join(words(block["nodes"]) for block in found["head"])
        assert shown == "a x b\ndef f():\n    return '[U+202E]'\nc [ESC][0m"

    def test_a_long_one_is_folded_and_opens(self):
        text = "".join(f"line {number}\n" for number in range(2000))
        folded = render_completion(text)
        assert folded["middle"] == []
        assert folded["hidden"] > len(text) - FOLD_FROM
        whole = render_completion(text, unfolded=True)
        parts = whole["head"] + whole["middle"] + whole["tail"]
        assert "".join(words(block["nodes"]) for block in parts) == text

    def test_the_marked_answer_is_never_folded_away(self):
        text = "x\n" * 2000 + "\\boxed{77}\n" + "y\n" * 3000
        assert "mark" in json.dumps(render_completion(text, "77")["tail"])

    def test_raw_shows_the_source(self):
        found = render_completion("$x^2$ `y`", raw=True)
        assert found["head"] == [{"kind": "prose", "nodes": ["$x^2$ `y`"]}]

    def test_many_steering_characters_stay_few_elements(self):
        found = render_completion("a\u202e" * 2000, raw=True, unfolded=True)
        chips = sum(
            node[0] == "chip"
            for block in found["middle"]
            for node in block["nodes"]
            if isinstance(node, list)
        )
        assert chips <= MOST_CHIPS

    @given(st.text(max_size=400))
    @settings(max_examples=200, deadline=None)
    def test_any_text_renders_to_json(self, text):
        json.dumps(render_completion(text, text[:3]), ensure_ascii=False).encode()

    def test_a_prompt(self):
        assert render_text("hello") == [{"kind": "prose", "nodes": ["hello"]}]


class TestMathml:
    def test_only_allowed_elements_and_attributes(self):
        def tags(tree):
            return {tree[0]} | {tag for child in tree[2] if isinstance(child, list) for tag in tags(child)}

        for source in (
            r"\frac{a}{b}",
            r"\href{javascript:alert(1)}{x}",
            r"\begin{matrix}a&b\end{matrix}",
            r"\color{red}x",
        ):
            tree = mathml(source)
            assert tree is not None
            assert tags(tree) <= MATH_TAGS
            assert "javascript" not in json.dumps(tree)
            assert '"style"' not in json.dumps(tree)

    def test_what_is_no_formula_stays_text(self):
        found = render_completion("see $\\text{<script>}$ here")
        assert "math" not in [node[0] for node in found["head"][0]["nodes"] if isinstance(node, list)]

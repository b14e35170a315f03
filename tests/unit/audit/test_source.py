from rlvr.audit.source import read_source

TEXT = '''
"""Module text with <nothing> in it."""
import json, re, subprocess

PATTERN = re.compile(r"<think>(.*?)</think>", re.DOTALL)
TIMEOUT = 7

def helper(text):
    return json.loads(text)["result"]

def reward(completions, answer, **kwargs):
    """Docstring with <ignored>."""
    unit = kwargs.get("unit", "cm")
    done = subprocess.run(["x"], timeout=4)
    return [1.0 if PATTERN.search(c) and helper(c) == a else 0.0 for c, a in zip(completions, answer)]

def unrelated(completions):
    return [eval(c) for c in completions if "#### " in c]
'''


def facts(tmp_path, function="reward"):
    path = tmp_path / "rewards.py"
    path.write_text(TEXT)
    return read_source(path, function)


def test_only_what_the_function_reaches_counts(tmp_path):
    source = facts(tmp_path)
    assert "result" in source.keys and "unit" in source.keys
    assert source.patterns == (r"<think>(.*?)</think>",)
    assert source.tags == ("think",)
    assert not source.calls_any("eval")
    assert source.mentions_json
    assert facts(tmp_path, "unrelated").calls_any("eval")
    assert not facts(tmp_path, "unrelated").mentions_json


def test_documentation_is_no_constant(tmp_path):
    assert not any("ignored" in text for text in facts(tmp_path).texts)


def test_timeouts_are_read_from_calls(tmp_path):
    assert 4.0 in facts(tmp_path).timeouts


def test_lines_of_calls_are_known(tmp_path):
    assert (
        facts(tmp_path, "unrelated").line_of("eval")
        == TEXT.splitlines().index('    return [eval(c) for c in completions if "#### " in c]') + 1
    )


def test_a_file_that_is_not_python_gives_no_facts(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("def f(:")
    assert read_source(path, "f").calls == frozenset()

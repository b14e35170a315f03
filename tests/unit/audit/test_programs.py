import pytest

from rlvr.audit.programs import candidate_programs, forgeries, partial_programs, read_task, wrong_program
from rlvr.audit.rows import AuditRow
from rlvr.audit.source import Source

ROW = AuditRow(0, "Write `add(a, b)`.", {"entry_point": "add"})
ASSERTS = ["assert add(2, 3) == 5", "assert add(-1, 1) == 0"]
CASES = [{"input": [2, 3], "expected": 5}, {"input": [4, 4], "expected": 8}]


def run(program, call):
    space = {}
    exec(program, space)
    return eval(call, space)


@pytest.mark.parametrize("tests", [ASSERTS, "\n".join(ASSERTS), CASES])
def test_a_right_program_is_made_from_the_tests(tests):
    programs = candidate_programs(ROW, tests, Source())
    assert run(programs[0], "add(2, 3)") == 5
    assert run(wrong_program(ROW, tests, Source()), "add(2, 3)") != 5


def test_the_data_own_solution_comes_first():
    row = AuditRow(0, "q", {"canonical_solution": "def add(a, b):\n    return a + b\n"})
    assert "return a + b" in candidate_programs(row, ASSERTS, Source())[0]


def test_partial_programs_pass_some_tests_only():
    task = read_task(ROW, CASES, Source())
    first = dict(partial_programs(task))["first-test-only"]
    assert run(first, "add(2, 3)") == 5
    assert run(first, "add(4, 4)") is None


CALLS = {"fn": "add", "tests": [{"args": [2, 3], "expect": 5}, {"args": [4, 4], "expect": 8}]}


@pytest.mark.parametrize("tests", [CALLS, {"tests": "\n".join(ASSERTS)}])
def test_tests_inside_a_mapping_are_read(tests):
    programs = candidate_programs(AuditRow(0, "q", {}), tests, Source())
    assert run(programs[0], "add(2, 3)") == 5
    assert run(wrong_program(ROW, tests, Source()), "add(2, 3)") != 5


def test_a_mapping_of_texts_without_a_function_is_a_program():
    pairs = {"tests": [{"input": "1\n", "output": "2\n"}]}
    assert read_task(AuditRow(0, "q", {}), pairs, Source()).is_program
    assert not read_task(AuditRow(0, "q", {}), CALLS, Source()).is_program


def test_programs_over_standard_input_are_recognised():
    source = Source(text="subprocess.run(command, input=given)")
    task = read_task(AuditRow(0, "q", {}), [{"input": "1\n", "output": "2\n"}], source)
    assert task.is_program


def test_forgeries_only_claim_a_verdict():
    task = read_task(ROW, ASSERTS, Source())
    harmful = (
        "remove",
        "unlink",
        "rmtree",
        "fork(",
        "socket",
        "urllib",
        "requests",
        "kill(",
        "system(",
        "Popen",
    )
    for forged in forgeries(task, Source()):
        compile(forged.program, forged.attack, "exec")
        assert not any(word in forged.program for word in harmful), forged.attack
    kinds = {forged.category for forged in forgeries(task, Source())}
    assert kinds == {"sys_exit", "eq_override", "raise_skip", "verdict_forgery"}

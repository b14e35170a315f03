"""What the machine offers, what is missing and why, and the code that runs on each rung."""

import pytest

from rlvr.sandbox import CallTest, Job, Pool, isolation_report

RIGHT = Job("def solve(x): return x * x", (CallTest((2,), {}, 4),), "solve")


def test_the_report_names_every_layer_and_its_remedy() -> None:
    report = isolation_report()
    assert [layer.name for layer in report.layers] == ["namespaces", "landlock", "seccomp", "setuid"]
    for layer in report.layers:
        assert layer.available == (not layer.reason) == (not layer.enable)
        assert layer.purpose
    assert report.meaning
    assert not report.error


def test_a_layer_left_out_lowers_the_rung() -> None:
    report = isolation_report(without=("namespaces", "seccomp"))
    assert report.rung == "E"
    missing = {layer.name: layer for layer in report.layers if not layer.available}
    assert missing["seccomp"].reason == "left out on request"
    assert missing["namespaces"].enable


def test_an_interpreter_that_does_not_start() -> None:
    report = isolation_report(python="/no-such-python")
    assert report.rung == "E"
    assert "no-such-python" in report.error
    assert not any(layer.available for layer in report.layers)


@pytest.mark.parametrize(("without", "rung"), [((), "A"), (("namespaces",), "B"), (("landlock",), "C")])
def test_rungs(without: tuple[str, ...], rung: str) -> None:
    if isolation_report().rung != "A":
        pytest.skip("this machine does not reach rung A, see `rlvr doctor`")
    with Pool(1, without=without, min_isolation=rung) as pool:
        assert pool.rung == rung
        assert set(without) <= set(pool.missing)
        assert pool.run([RIGHT])[0].status == "pass"

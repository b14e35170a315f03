"""The trace runs the real model code, and the closed form agrees with it."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from rlvr.plan.devices import DEVICES
from rlvr.plan.memory.architecture import read_architecture
from rlvr.plan.memory.closed_form import closed_form, training_parts
from rlvr.plan.memory.shape import RunShape
from rlvr.plan.models import named_config

pytestmark = pytest.mark.tiny
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "memory.py"
COUNTED = ("weights", "gradients", "checkpoints", "layer", "head")


def both(size, layers=None, **changes):
    from rlvr.plan.memory.trace import trace_parts

    config = named_config(size)
    if layers:
        config = config | {"num_hidden_layers": layers}
    method = changes.pop("method", "full")
    shape = RunShape(
        read_architecture(config), method=method, weight_bytes=4 if method == "full" else 2, **changes
    )
    traced = sum(trace_parts(shape, config).values())
    closed = sum(part.bytes for part in training_parts(shape) if part.name in COUNTED)
    return traced, closed


@pytest.mark.parametrize(
    ("size", "changes"),
    [
        ("0.5b", {"layers": 3}),
        ("8b", {"layers": 2, "micro_batch": 2, "checkpointing": False}),
        ("8b", {"layers": 3, "method": "lora", "micro_batch": 2, "completion": 2000}),
        ("14b", {"layers": 3, "method": "qlora"}),
        ("30b-a3b", {"layers": 2, "method": "lora"}),
    ],
)
def test_closed_form_agrees_with_the_trace(size, changes):
    traced, closed = both(size, **changes)
    assert abs(closed / traced - 1) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "changes"),
    [
        ("0.5b", {"accumulation": 1}),
        ("1.5b", {"micro_batch": 1}),
        ("7b", {"method": "lora"}),
        ("8b", {"checkpointing": False, "method": "lora", "micro_batch": 1}),
        ("llama-3.2-1b", {"method": "lora", "micro_batch": 1}),
        ("30b-a3b", {"micro_batch": 1}),
        ("70b", {"method": "qlora"}),
    ],
)
def test_closed_form_agrees_with_the_trace_of_whole_models(size, changes):
    traced, closed = both(size, **changes)
    assert abs(closed / traced - 1) < 0.05


@pytest.mark.slow
def test_a_trace_of_70b_is_quick_and_small():
    code = (
        "import json, resource, time; start = time.process_time();"
        "from rlvr.plan.memory.trace import trace_parts;"
        "from rlvr.plan.memory.architecture import read_architecture;"
        "from rlvr.plan.memory.shape import RunShape; from rlvr.plan.models import named_config;"
        "config = named_config('70b');"
        "trace_parts(RunShape(read_architecture(config), method='lora', weight_bytes=2), config);"
        "print(json.dumps([time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    seconds, kilobytes = json.loads(done.stdout.splitlines()[-1])
    assert seconds < 20 and kilobytes < 1024**2


def test_verdict_names_the_trace():
    from rlvr.plan.memory.trace import traced

    config = named_config("smollm2-135m") | {"num_hidden_layers": 2}
    shape = RunShape(read_architecture(config), micro_batch=1)
    memory = traced(shape, DEVICES["l4"], config)
    assert memory.method == "trace" and memory.verdict == "fits"
    assert abs(memory.peak_bytes / closed_form(shape, DEVICES["l4"]).peak_bytes - 1) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", ["full-fp32", "lora-fp32-beta-no-checkpoint"])
def test_trace_and_closed_form_meet_a_real_run(name):
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--row", name],
        check=True,
        capture_output=True,
        text=True,
        timeout=280,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert abs(found["trace"] / found["measured"] - 1) < 0.01
    assert abs(found["closed"] / found["measured"] - 1) < 0.05


def test_benchmark_has_what_its_claim_needs():
    spec = importlib.util.spec_from_file_location("memory_benchmark", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules["memory_benchmark"] = module
    spec.loader.exec_module(module)
    rows = module.ROWS
    assert len(rows) >= 8 and any(row.held_out for row in rows)
    for name in ("method", "beta", "checkpointing", "bf16"):
        assert len({getattr(row, name) for row in rows}) >= 2, name
    assert len({row.sizes["hidden_size"] for row in rows}) >= 2

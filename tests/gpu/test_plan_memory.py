"""The closed form against allocated memory on a card."""

import importlib.util
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("method", ["lora", "full", "qlora"])
def test_error_by_part(method):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    if method == "qlora":
        pytest.importorskip("bitsandbytes")
    path = Path(__file__).parents[2] / "benchmarks" / "memory_gpu.py"
    spec = importlib.util.spec_from_file_location("memory_gpu", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["memory_gpu"] = module
    spec.loader.exec_module(module)
    ours, theirs = module.expected("0.5b", method), module.measure("0.5b", method)
    for name, value in ours.items():
        assert abs(value - theirs[name]) < 0.05 * theirs[name] + 64 * 2**20, name

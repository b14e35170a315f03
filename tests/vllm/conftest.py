"""A tiny model that vLLM's CPU attention takes (heads of 32), and a server on it."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

CPU_SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "HF_HUB_OFFLINE": "1",
}
REASON = "vllm is not installed here: `make test-vllm` makes its environment and runs these tests"


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.vllm)
            item.add_marker(pytest.mark.filterwarnings("ignore"))
            if importlib.util.find_spec("vllm") is None:
                item.add_marker(pytest.mark.skip(reason=REASON))


@pytest.fixture(scope="session", autouse=True)
def cpu_settings():
    os.environ.update(CPU_SETTINGS)


@pytest.fixture(scope="session")
def questions():
    from rlvr.demo.task import questions

    return questions(0)[0]


@pytest.fixture(scope="session")
def model(tmp_path_factory, questions):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from rlvr.demo.model import build_tokenizer, save, teach

    torch.manual_seed(0)
    tokenizer = build_tokenizer()
    network = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=96,
            intermediate_size=192,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=3,
            max_position_embeddings=256,
            tie_word_embeddings=True,
            eos_token_id=1,
            pad_token_id=0,
            bos_token_id=None,
        )
    )
    teach(network, tokenizer, questions, seed=0, steps=300)
    folder = tmp_path_factory.mktemp("model") / "model"
    save(network, tokenizer, folder)
    return folder


@pytest.fixture
def workspace(tmp_path, model, questions):
    """A workspace whose backend the test chooses."""

    def make(sampling: str) -> Path:
        rows = [json.dumps({"prompt": one.prompt, "answer": one.answer}) for one in questions[:120]]
        (tmp_path / "prompts.jsonl").write_text("\n".join(rows) + "\n")
        (tmp_path / "rlvr.yaml").write_text(
            f"model: {model}\n"
            "task: {prompts: prompts.jsonl, signal: answer}\n"
            "rewards: [{use: exact}]\n"
            f"sampling: {{max_completion_length: 16, {sampling}}}\n"
            "gates: {probe: {prompts: 120, rollout_prompts: 40}}\n"
        )
        return tmp_path

    return make


@pytest.fixture(scope="module")
def server(model):
    """Base URL of vLLM's server on the model (`vllm serve` asks for a distribution that vllm-cpu is not)."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command += ["--port", str(port), "--host", "127.0.0.1", "--enforce-eager", "--served-model-name", "tiny"]
    log = Path(model).parent / "server.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **CPU_SETTINGS}
        )
    try:
        _wait(process, port, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(timeout=60)


def _wait(process, port, log):
    end = time.monotonic() + 270
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError(f"the server did not come up: {log.read_text()[-3000:]}")

import json
import struct

import pytest

from rlvr.errors import ConfigError, InfrastructureError
from rlvr.plan.facts import gguf_config, read_model, safetensors_parameters
from rlvr.plan.memory.architecture import read_architecture
from rlvr.plan.models import named_config


def save_safetensors(path, shapes, dtype="BF16"):
    header = {
        name: {"dtype": dtype, "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()
    }
    text = json.dumps(header | {"__metadata__": {}}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text)


def test_folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(named_config("0.5b")))
    save_safetensors(tmp_path / "a.safetensors", {"x": [10, 20], "y": [5]})
    save_safetensors(tmp_path / "b.safetensors", {"z": [3]})
    facts = read_model(str(tmp_path), tmp_path)
    assert facts.parameters == 208 and facts.dtype_on_disk == "BF16"


def test_folder_without_weights(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(named_config("0.5b")))
    assert read_model(".", tmp_path).parameters is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_damaged_configuration(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ConfigError):
        read_model(str(tmp_path), tmp_path)


def test_truncated_weights(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(b"\xff" * 6)
    with pytest.raises(ConfigError, match="safetensors"):
        safetensors_parameters(tmp_path)


def test_empty_folder(tmp_path):
    with pytest.raises(ConfigError, match=r"config\.json"):
        read_model(str(tmp_path), tmp_path)


def test_adapter_folder_takes_its_base(tmp_path):
    adapter = {"base_model_name_or_path": "qwen3-8b", "r": 32}
    (tmp_path / "adapter_config.json").write_text(json.dumps(adapter))
    facts = read_model(str(tmp_path), tmp_path)
    assert facts.adapter_rank == 32 and facts.config["hidden_size"] == 4096


def test_named_size_and_unknown_name(tmp_path):
    assert read_model("7b", tmp_path).config == named_config("qwen2.5-7b")
    with pytest.raises(ConfigError, match="qwen3-8b"):
        read_model("qwn3-8b", tmp_path)


def test_hub_without_a_network(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InfrastructureError, match="cannot be reached"):
        read_model("nobody/novel", tmp_path)


def test_hub_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--nobody--novel" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(named_config("0.5b")))
    refs = tmp_path / "models--nobody--novel" / "refs"
    refs.mkdir()
    (refs / "main").write_text("abc")
    assert read_model("nobody/novel", tmp_path).config["hidden_size"] == 896


def gguf_string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_number(key, value):
    return gguf_string(key) + struct.pack("<II", 4, value)


def save_gguf(path):
    keys = [
        gguf_string("general.architecture") + struct.pack("<I", 8) + gguf_string("llama"),
        *(
            gguf_number(f"llama.{name}", value)
            for name, value in {
                "embedding_length": 576,
                "block_count": 30,
                "attention.head_count": 9,
                "attention.head_count_kv": 3,
                "feed_forward_length": 1536,
                "context_length": 8192,
            }.items()
        ),
        gguf_string("tokenizer.ggml.tokens")
        + struct.pack("<IIQ", 9, 8, 3)
        + b"".join(map(gguf_string, "abc")),
    ]
    tensor = gguf_string("token_embd.weight") + struct.pack("<IQQIQ", 2, 576, 3, 0, 0)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, len(keys)) + b"".join(keys) + tensor)


def test_gguf(tmp_path):
    path = tmp_path / "model.gguf"
    save_gguf(path)
    shape = read_architecture(gguf_config(path))
    assert (shape.hidden, shape.layers, shape.kv_heads, shape.vocabulary, shape.tied) == (576, 30, 3, 3, True)
    assert read_model("model.gguf", tmp_path).config["hidden_size"] == 576


@pytest.mark.parametrize(
    "data", [b"", b"GGUF", b"GGUF\x03\x00\x00\x00" + b"\xff" * 16, b"PK\x03\x04" + b"0" * 40]
)
def test_damaged_gguf(tmp_path, data):
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    with pytest.raises(ConfigError):
        gguf_config(path)

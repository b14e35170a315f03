"""Where a model stands, and what is said when it stands nowhere."""

import json

import pytest

from rlvr.errors import ConfigError, InfrastructureError
from rlvr.generate.location import is_vision_model, load_failed, locate
from rlvr.generate.randomness import completion_seed, token_keys
from rlvr.records.samples import Message


def folder(path, *names, **config):
    path.mkdir()
    for name in names:
        (path / name).write_text("x")
    if config:
        (path / "config.json").write_text(json.dumps(config))
    return path


def test_a_folder_a_file_and_a_hub_id(tmp_path):
    folder(tmp_path / "model", "model.safetensors", model_type="llama")
    folder(tmp_path / "gguf", "small.gguf")
    assert locate("./model", tmp_path).name == str(tmp_path / "model")
    assert locate("gguf", tmp_path).gguf_file == "small.gguf"
    found = locate("gguf/small.gguf", tmp_path)
    assert (found.name, found.gguf_file, found.is_local) == (str(tmp_path / "gguf"), "small.gguf", True)
    hub = locate("owner/name", tmp_path)
    assert (hub.name, hub.is_local) == ("owner/name", False)


def test_an_adapter_folder_names_its_base(tmp_path):
    base = folder(tmp_path / "base", "model.safetensors", model_type="llama")
    adapter = folder(tmp_path / "adapter", "adapter_model.safetensors")
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(base)}))
    found = locate("adapter", tmp_path)
    assert (found.name, found.adapter) == (str(base), str(adapter))
    assert locate("base", tmp_path, "adapter").adapter == str(adapter)
    (adapter / "adapter_config.json").write_text("{}")
    with pytest.raises(ConfigError, match="does not name its base"):
        locate("adapter", tmp_path)


@pytest.mark.parametrize(
    ("model", "code", "needle"),
    [
        ("./none", "model.missing", "no such folder"),
        ("none.gguf", "model.missing", "no such folder"),
        ("notes.txt", "model.not-a-model", "a .txt file"),
        ("empty", "model.not-a-model", "holds nothing"),
        ("bare", "model.not-a-model", "without weights"),
        ("weights", "model.not-a-model", "without config.json"),
    ],
)
def test_what_is_no_model(tmp_path, model, code, needle):
    (tmp_path / "notes.txt").write_text("x")
    folder(tmp_path / "empty")
    folder(tmp_path / "bare", model_type="llama")
    folder(tmp_path / "weights", "model.safetensors")
    with pytest.raises(ConfigError) as caught:
        locate(model, tmp_path)
    assert caught.value.code == code
    assert needle in caught.value.message()


def test_a_folder_that_is_no_adapter(tmp_path):
    folder(tmp_path / "model", "model.safetensors", model_type="llama")
    folder(tmp_path / "other", "x.txt")
    with pytest.raises(ConfigError, match="adapter_config"):
        locate("model", tmp_path, "other")


def test_without_a_network_local_models_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    snapshot = tmp_path / "cache" / "models--owner--kept" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_text("x")
    folder(tmp_path / "mine", "model.safetensors", model_type="llama")
    error = load_failed(locate("owner/absent", tmp_path), tmp_path, OSError("x"))
    assert isinstance(error, InfrastructureError)
    assert "owner/kept" in error.fix
    assert "mine" in error.fix


def test_a_vision_tower_is_seen_in_the_configuration(tmp_path):
    folder(tmp_path / "seeing", "model.safetensors", model_type="x", vision_config={})
    folder(tmp_path / "plain", "model.safetensors", model_type="llama")
    assert is_vision_model(locate("seeing", tmp_path))
    assert not is_vision_model(locate("plain", tmp_path))
    assert not is_vision_model(locate("owner/name", tmp_path))
    error = load_failed(locate("seeing", tmp_path), tmp_path, ValueError("unknown class"))
    assert error.code == "model.vision-language"
    assert "docs/vision-language.md" in error.fix


def test_keys_belong_to_one_completion():
    prompt = [Message(role="user", content="a")]
    seeds = {
        completion_seed(seed, one, heat, index)
        for seed in (1, 2)
        for one in (prompt, [Message(role="user", content="b")], [Message(role="system", content="a")])
        for heat in (0.2, 1.0)
        for index in range(3)
    }
    assert len(seeds) == 2 * 3 * 2 * 3
    assert completion_seed(1, prompt, 1.0, 0) == completion_seed(1, prompt, 1.0, 0)
    long = token_keys(5, 100)
    assert (token_keys(5, 10) == long[:10]).all()
    assert len(set(long.tolist())) == 100

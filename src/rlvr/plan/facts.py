"""Read the facts of a model without its weights: a folder, a GGUF file, a named size, or a Hub id."""

from __future__ import annotations

import json
import math
import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rlvr.errors import ConfigError, InfrastructureError, did_you_mean
from rlvr.plan.inputs import ModelFacts
from rlvr.plan.models import named_config, named_models
from rlvr.workspace import path_from

HEADER_LIMIT = 200_000_000
"""A longer safetensors header is damage, not a header."""

GGUF_KEYS = {
    "embedding_length": "hidden_size",
    "block_count": "num_hidden_layers",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "feed_forward_length": "intermediate_size",
    "context_length": "max_position_embeddings",
    "vocab_size": "vocab_size",
    "expert_count": "num_experts",
    "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
}
"""Key of GGUF's metadata (behind the architecture's name) to the key of config.json."""


def read_model(name: str, base: Path, adapter: str | None = None, *, download: bool = True) -> ModelFacts:
    """Return the facts of a model.

    Args:
        name: A folder with config.json, a GGUF file, a named size, or a Hub id.
        base: Folder that relative paths are resolved against.
        adapter: Adapter folder on top of it.
        download: Whether a Hub id's config.json may be fetched when it is not cached.

    Raises:
        ConfigError: Nothing is there, or its configuration cannot be read.
        InfrastructureError: The Hub cannot be reached.
    """
    path = path_from(base, name)
    rank = _adapter_rank(adapter, base)
    if path.is_dir():
        return _folder(name, path, base, rank)
    if path.is_file() and path.suffix == ".gguf":
        return ModelFacts(name, gguf_config(path), adapter_rank=rank)
    cached = _cached_config(name)
    if cached is not None:
        return ModelFacts(name, _read_json(cached, name), adapter_rank=rank)
    config = named_config(name)
    if config is not None:
        return ModelFacts(name, config, adapter_rank=rank)
    if name.count("/") == 1 and not name.startswith((".", "/", "~")) and download:
        return ModelFacts(name, _fetch(name), adapter_rank=rank)
    raise _unknown(name, path)


def _folder(name: str, path: Path, base: Path, rank: int) -> ModelFacts:
    if (path / "adapter_config.json").is_file() and not (path / "config.json").is_file():
        adapter = _read_json(path / "adapter_config.json", name)
        parent = str(adapter.get("base_model_name_or_path") or "")
        if not parent:
            raise _broken(name, "adapter_config.json names no base_model_name_or_path")
        facts = read_model(parent, base)
        return ModelFacts(
            name, facts.config, facts.parameters, facts.dtype_on_disk, "", int(adapter.get("r") or 16)
        )
    if not (path / "config.json").is_file():
        gguf = sorted(path.glob("*.gguf"))
        if gguf:
            return ModelFacts(name, gguf_config(gguf[0]), adapter_rank=rank)
        raise _broken(name, f"no config.json in {path}")
    config = _read_json(path / "config.json", name)
    count, dtype = safetensors_parameters(path)
    return ModelFacts(name, config, count, dtype or str(config.get("dtype") or "bfloat16"), "", rank)


def safetensors_parameters(folder: Path) -> tuple[int | None, str]:
    """Return parameters and type from the headers of the weight files; (None, "") without such files.

    Raises:
        ConfigError: A header is damaged.
    """
    total, types = 0, dict[str, int]()
    files = sorted(folder.glob("*.safetensors"))
    for path in files:
        for key, entry in _safetensors_header(path).items():
            if key == "__metadata__":
                continue
            size = math.prod(entry["shape"])
            total += size
            types[entry["dtype"]] = types.get(entry["dtype"], 0) + size
    return (total, max(types, key=lambda name: types[name])) if total else (None, "")


def _safetensors_header(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else HEADER_LIMIT + 1
        try:
            header = json.loads(file.read(length)) if length <= HEADER_LIMIT else None
        except ValueError:
            header = None
    if not isinstance(header, dict):
        raise _broken(
            str(path), "the header is no safetensors header", "a whole file; was the download cut short?"
        )
    return header


def _adapter_rank(adapter: str | None, base: Path) -> int:
    if not adapter:
        return 0
    path = path_from(base, adapter) / "adapter_config.json"
    return int(_read_json(path, adapter).get("r") or 16) if path.is_file() else 16


def _read_json(path: Path, name: str) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise _broken(name, f"{path.name} cannot be read ({error})") from None
    if not isinstance(value, dict):
        raise _broken(name, f"{path.name} is not an object")
    return value


def _cached_config(name: str) -> Path | None:
    cache = Path(os.environ.get("HF_HUB_CACHE") or _home() / "hub")
    folder = cache / f"models--{name.replace('/', '--')}"
    reference = folder / "refs" / "main"
    if not reference.is_file():
        return None
    path = folder / "snapshots" / reference.read_text().strip() / "config.json"
    return path if path.is_file() else None


def _home() -> Path:
    return Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")


def _fetch(name: str) -> Mapping[str, Any]:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    if not _hub_answers():
        raise _unreachable(name, "its name or address does not answer")
    try:
        return _read_json(Path(hf_hub_download(name, "config.json")), name)
    except (GatedRepoError, RepositoryNotFoundError):
        raise _broken(
            name, "the Hub has no such model, or it needs a login", "a Hub id; `hf auth login`"
        ) from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise _unreachable(name, type(error).__name__) from None


def _hub_answers() -> bool:
    # The Hub's client tries for half a minute; a machine without a network should hear so at once.
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")):
        return True
    host = urlsplit(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
    try:
        with socket.create_connection((host.hostname or "", host.port or 443), timeout=5):
            return True
    except OSError:
        return False


def _unreachable(name: str, why: str) -> InfrastructureError:
    return InfrastructureError(
        "plan.hub",
        f"config.json of {name} is not cached and the Hub cannot be reached ({why})",
        where=f"model {name}",
        expected="a network, a cached config.json, a local folder, or a named size",
        fix="name a size such as qwen2.5-7b or 7b, or a folder with its config.json",
    )


def gguf_config(path: Path) -> dict[str, Any]:
    """Return the configuration that a GGUF file's metadata describes.

    Raises:
        ConfigError: The file is no GGUF file, or its metadata name no sizes.
    """
    found = read_gguf_metadata(path)
    family = str(found.get("general.architecture", ""))
    config: dict[str, Any] = {
        "model_type": family,
        "tie_word_embeddings": "output.weight" not in found["tensors"],
    }
    for key, name in GGUF_KEYS.items():
        value = found.get(f"{family}.{key}")
        if isinstance(value, int):
            config[name] = value
    tokens = found.get("tokenizer.ggml.tokens")
    config.setdefault("vocab_size", tokens if isinstance(tokens, int) else None)
    return config


_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


def read_gguf_metadata(path: Path) -> dict[str, Any]:
    """Return metadata of a GGUF file (format 2 and 3); of an array only its length, and ``tensors``: their names.

    Raises:
        ConfigError: The file is no GGUF file.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise _broken(str(path), "the file does not begin with GGUF")
            _, tensors, pairs = struct.unpack("<IQQ", file.read(20))
            found = {}
            for _ in range(pairs):
                key = _gguf_string(file)
                found[key] = _gguf_value(file, *struct.unpack("<I", file.read(4)))
            found["tensors"] = {_gguf_tensor(file) for _ in range(tensors)}
            return found
    except (struct.error, KeyError, UnicodeDecodeError, MemoryError, OverflowError):
        raise _broken(
            str(path), "the GGUF metadata are damaged", "a whole file; was the download cut short?"
        ) from None


def _gguf_string(file: Any) -> str:
    (length,) = struct.unpack("<Q", file.read(8))
    if length > HEADER_LIMIT:
        raise OverflowError
    return str(file.read(length).decode("utf-8"))


def _gguf_value(file: Any, kind: int) -> Any:
    if kind == _STRING:
        return _gguf_string(file)
    if kind == _ARRAY:
        inner, length = struct.unpack("<IQ", file.read(12))
        for _ in range(length):
            _gguf_value(file, inner)
        return length
    form = "<" + _SCALARS[kind]
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def _gguf_tensor(file: Any) -> str:
    name = _gguf_string(file)
    (dimensions,) = struct.unpack("<I", file.read(4))
    file.read(8 * dimensions + 12)
    return name


def _broken(
    name: str, found: str, expected: str = "the configuration of a causal language model"
) -> ConfigError:
    return ConfigError(
        "plan.model-config",
        found,
        where=f"model {name}",
        expected=expected,
        fix="check config.json, or name a known size such as 7b",
    )


def _unknown(name: str, path: Path) -> ConfigError:
    hint = did_you_mean(name.lower().rpartition("/")[2], named_models())
    return ConfigError(
        "plan.unknown-model",
        f"no folder {path}, no cached configuration, and no known size {name!r}. {hint}".rstrip(),
        where="model",
        expected="a folder with config.json, a GGUF file, a Hub id, or a size such as 7b or qwen3-8b",
        fix=hint or "rlvr plan --model 7b --method lora --device 1xH200",
    )

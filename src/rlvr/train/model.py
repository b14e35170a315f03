"""The checkpoint that TRL trains: an ordinary folder or Hub id, with the tokenizer that the probe used.

A GGUF file and an adapter from SFT are first turned into an ordinary checkpoint, since TRL reloads the reference
and the trained model by path.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from rlvr.generate.location import Location, load_failed, locate
from rlvr.generate.network import stay_offline_when_unreachable
from rlvr.generate.transformers import TransformersGenerator
from rlvr.workspace import content_hash

if TYPE_CHECKING:
    from rlvr.config.schema import Config


class Checkpoint(NamedTuple):
    """What a trainer loads."""

    path: str
    tokenizer: Any


def prepare(
    model: str, base: Path, *, adapter: str | None, chat_template: Path | None, cache: Path
) -> Checkpoint:
    """Return the checkpoint of the configured model.

    Args:
        model: As configured.
        base: Folder that relative paths are resolved against.
        adapter: Adapter on top of it, merged here.
        chat_template: File that replaces the tokenizer's own template.
        cache: Folder in which a converted checkpoint is kept.

    Raises:
        ConfigError: The model does not load.
        InfrastructureError: The Hub is not reachable.
    """
    location = locate(model, base, adapter)
    ordinary = not (location.gguf_file or location.adapter)
    path = location.name if ordinary else _converted(location, base, cache)
    tokenizer = _tokenizer(path, location, base)
    if chat_template is not None:
        tokenizer.chat_template = chat_template.read_text("utf-8")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Checkpoint(path, tokenizer)


def tokenizer_of(config: Config, base: Path) -> Any:
    """Return the configured model's tokenizer with the configured chat template, for a model in training."""
    template = base / config.sampling.chat_template if config.sampling.chat_template else None
    location = locate(config.model, base, config.adapter)
    extra = {"gguf_file": location.gguf_file} if location.gguf_file else {}
    tokenizer = _tokenizer(location.name, location, base, **extra)
    if template is not None:
        tokenizer.chat_template = template.read_text("utf-8")
    return tokenizer


def _tokenizer(path: str, location: Location, base: Path, **extra: str) -> Any:
    from transformers import AutoTokenizer

    if not location.is_local:
        stay_offline_when_unreachable()
    try:
        return AutoTokenizer.from_pretrained(path, **extra)
    except (OSError, ValueError) as error:
        raise load_failed(location, base, error) from error


def _converted(location: Location, base: Path, cache: Path) -> str:
    target = cache / content_hash([location.name, location.gguf_file, location.adapter])
    if not (target / "config.json").is_file():
        name = str(Path(location.name) / location.gguf_file) if location.gguf_file else location.name
        generator = TransformersGenerator(name, base, adapter=location.adapter)
        save_ordinary(generator.network, generator.tokenizer, target)
    return str(target)


def save_ordinary(network: Any, tokenizer: Any, target: Path) -> None:
    """Save a loaded model as an ordinary fp32 checkpoint folder, adapters merged, whole or not at all."""
    network = network.merge_and_unload() if hasattr(network, "merge_and_unload") else network
    network = _dense(network)
    partial = target.with_name(f"{target.name}.partial")
    network.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    partial.replace(target)


def _dense(network: Any) -> Any:
    """Return the model in fp32 without a quantizer; the library refuses to save one that was read from GGUF."""
    if getattr(network, "hf_quantizer", None) is None:
        return network if next(network.parameters()).dtype is torch.float32 else network.float()
    config = copy.deepcopy(network.config)
    del config.quantization_config
    dense = type(network)(config).float()
    dense.load_state_dict(network.state_dict())
    dense.generation_config = network.generation_config
    return dense

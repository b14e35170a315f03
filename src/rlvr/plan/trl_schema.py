"""Fields of the installed GRPOConfig, read from the sources by ``ast``: importing trl would take seconds.

GRPOConfig inherits from ``trl.trainer.base_config._BaseConfig`` and that from transformers' TrainingArguments; the
three files are parsed in this order of inheritance. Allowed values come from the enumerations that the annotations
name, from the values that the trainer's code compares a field with, or from the field's own help text.
"""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rlvr.errors import InfrastructureError, did_you_mean

COMPARED_FIELDS = (
    "loss_type",
    "importance_sampling_level",
    "scale_rewards",
    "multi_objective_aggregation",
    "vllm_importance_sampling_mode",
)
"""Fields whose allowed values are those that the trainer's code compares them with."""

HELP_FIELDS = ("vllm_mode", "vllm_model_impl")
"""Fields whose allowed values stand in quotes in their help text."""

NOT_A_CHOICE = ("output_dir", "report_to", "debug", "optim_target_modules", "include_num_input_tokens_seen")


WORDS = {
    "float": "a number, such as 1e-3",
    "int": "a whole number, such as 8",
    "bool": "true or false",
    "str": "text",
    "list": "a list",
    "dict": "a mapping of keys and values",
    "none": "null",
}
"""Kind to the words that a message uses."""

SAMPLES: dict[str, Any] = {"float": 1e-3, "int": 8, "bool": True, "list": [], "dict": {}, "str": "text"}
"""Kind to a value for an example."""


class Missing:
    """Default of a field that has none, or one that is computed when the program runs."""

    def __repr__(self) -> str:
        return "computed"


MISSING = Missing()


@dataclass(frozen=True)
class FieldSpec:
    """One field.

    Attributes:
        name: As in ``GRPOConfig(name=...)``.
        annotation: The annotation as written in the source.
        kinds: Names of the accepted kinds: int, float, bool, str, list, dict, none, or other.
        default: The literal default, or :data:`MISSING`.
        allowed: Allowed strings; empty when any string goes.
        help: The source's help text.
    """

    name: str
    annotation: str
    kinds: frozenset[str]
    default: Any
    allowed: tuple[str, ...]
    help: str

    def accepts(self, value: Any) -> bool:
        """Whether the value has an accepted kind (an int passes for a float, a bool never for a number)."""
        kind = kind_of(value)
        if kind in self.kinds or "other" in self.kinds:
            return True
        return kind == "int" and "float" in self.kinds

    def expected(self) -> str:
        """Say what is accepted, for a message."""
        if self.allowed:
            return "one of " + ", ".join(self.allowed)
        return " or ".join(WORDS[kind] for kind in WORDS if self._takes(kind)) or "a value of another type"

    def sample(self) -> Any:
        """Return a value that is accepted, for an example: the default where it is plain."""
        if self.default is not MISSING and self.default is not None and self.accepts(self.default):
            return self.default
        if self.allowed:
            return self.allowed[0]
        return next((value for kind, value in SAMPLES.items() if kind in self.kinds), "...")

    def _takes(self, kind: str) -> bool:
        """Whether a kind is to be named; a whole number is named only where no other number goes."""
        return kind in self.kinds and not (kind == "int" and "float" in self.kinds)


@dataclass(frozen=True)
class ConfigSchema:
    """All fields of one installed GRPOConfig."""

    trl: str
    transformers: str
    fields: Mapping[str, FieldSpec]

    def nearest(self, name: str) -> str:
        """Return a did-you-mean for a name that is not a field."""
        return did_you_mean(name, self.fields)


def kind_of(value: Any) -> str:
    """Return the kind of a plain value, as :class:`FieldSpec` names it."""
    if value is None:
        return "none"
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind.__name__
    if isinstance(value, (list, tuple)):
        return "list"
    return "dict" if isinstance(value, Mapping) else "other"


def package_folder(name: str) -> Path:
    """Return the folder of an installed package without importing it.

    Raises:
        InfrastructureError: The package is not installed.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise InfrastructureError(
            "plan.not-installed", f"{name} is not installed", expected=name, fix=f"pip install {name}"
        )
    return Path(spec.origin).parent


def version_of(name: str) -> str:
    """Return the installed version of a distribution, or an empty string."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


@lru_cache(maxsize=1)
def installed_schema() -> ConfigSchema:
    """Return the schema of the installed TRL (about 0.2 s on first use)."""
    schema = read_schema(package_folder("trl"), package_folder("transformers"))
    return replace(schema, trl=version_of("trl"), transformers=version_of("transformers"))


def read_schema(trl: Path, transformers: Path) -> ConfigSchema:
    """Read the fields from the sources in two package folders.

    Args:
        trl: Folder of the ``trl`` package.
        transformers: Folder of the ``transformers`` package.
    """
    enums = _enumerations(transformers / "training_args.py", transformers / "trainer_utils.py")
    fields: dict[str, FieldSpec] = {}
    for path, name in (
        (transformers / "training_args.py", "TrainingArguments"),
        (trl / "trainer" / "base_config.py", "_BaseConfig"),
        (trl / "trainer" / "grpo_config.py", "GRPOConfig"),
    ):
        for spec in _fields(path, name, enums):
            fields[spec.name] = spec
    compared = _compared_values(trl / "trainer" / "grpo_trainer.py")
    for name, values in compared.items():
        fields[name] = replace(fields[name], allowed=tuple(sorted(values)))
    fields["scale_rewards"] = replace(
        fields["scale_rewards"], kinds=fields["scale_rewards"].kinds | {"bool"}
    )  # TRL maps True to group and False to none
    return ConfigSchema(trl="", transformers="", fields=fields)


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _class(tree: ast.Module, name: str) -> ast.ClassDef | None:
    found = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    return next(found, None)


def _fields(path: Path, name: str, enums: Mapping[str, tuple[str, ...]]) -> Iterator[FieldSpec]:
    body = _class(_parse(path), name)
    if body is None:
        raise InfrastructureError(
            "plan.unknown-trl", f"{path} has no class {name}", expected="TRL 1.14 to 1.16"
        )
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield _field(node.target.id, node, enums)


def _field(name: str, node: ast.AnnAssign, enums: Mapping[str, tuple[str, ...]]) -> FieldSpec:
    arguments = _field_arguments(node.value)
    help_text = _help(arguments.get("metadata"))
    names = {part.id for part in ast.walk(node.annotation) if isinstance(part, ast.Name)}
    allowed = next((values for enum, values in enums.items() if enum in names), ())
    if name in HELP_FIELDS:
        allowed = tuple(sorted(set(re.findall(r"`'?([a-z_]+)'?`", help_text)) - set(_words_to_skip(name))))
    return FieldSpec(
        name=name,
        annotation=ast.unparse(node.annotation),
        kinds=_kinds(node.annotation, enums),
        default=_literal(arguments.get("default")),
        allowed=() if name in NOT_A_CHOICE else allowed,
        help=help_text,
    )


def _words_to_skip(name: str) -> tuple[str, ...]:
    return (name, "use_vllm", "model.generate")


def _field_arguments(value: ast.expr | None) -> dict[str, ast.expr]:
    if isinstance(value, ast.Call):
        return {keyword.arg: keyword.value for keyword in value.keywords if keyword.arg}
    return {} if value is None else {"default": value}


def _literal(node: ast.expr | None) -> Any:
    if node is None:
        return MISSING
    try:
        return ast.literal_eval(node)
    except ValueError:
        return MISSING


def _help(node: ast.expr | None) -> str:
    value = _literal(node)
    text = value.get("help", "") if isinstance(value, dict) else ""
    return " ".join(str(text).split())


_BY_NAME = {"int", "float", "bool", "str", "list", "dict"}


def _kinds(node: ast.expr, enums: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    if isinstance(node, ast.BinOp):
        return _kinds(node.left, enums) | _kinds(node.right, enums)
    if isinstance(node, ast.Constant):
        return frozenset({"none" if node.value is None else "other"})
    if isinstance(node, ast.Subscript):
        return _subscript_kinds(node, enums)
    if isinstance(node, ast.Name) and node.id in _BY_NAME:
        return frozenset({node.id})
    if isinstance(node, ast.Name) and node.id in enums:
        return frozenset({"str"})
    return frozenset({"other"})


def _subscript_kinds(node: ast.Subscript, enums: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    outer = node.value.id if isinstance(node.value, ast.Name) else ""
    if outer == "Optional":
        return _kinds(node.slice, enums) | {"none"}
    if outer == "Union" and isinstance(node.slice, ast.Tuple):
        return frozenset().union(*(_kinds(part, enums) for part in node.slice.elts))
    if outer == "Literal":
        values = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return frozenset(kind_of(_literal(value)) for value in values)
    return frozenset({outer}) if outer in _BY_NAME else frozenset({"other"})


def _enumerations(*paths: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for path in paths:
        for node in _parse(path).body:
            if isinstance(node, ast.ClassDef) and any(
                isinstance(base, ast.Name) and base.id.endswith("Enum") for base in node.bases
            ):
                found[node.name] = tuple(_enum_values(node))
    return {name: values for name, values in found.items() if values}


def _enum_values(node: ast.ClassDef) -> Iterator[str]:
    for item in node.body:
        if isinstance(item, ast.Assign) and isinstance(item.value, ast.Constant):
            yield str(item.value.value)


def _compared_values(path: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {name: set() for name in COMPARED_FIELDS}
    for node in ast.walk(_parse(path)):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Attribute) and node.left.attr in found:
            for side in node.comparators:
                found[node.left.attr].update(_strings(side))
    return {name: values for name, values in found.items() if values}


def _strings(node: ast.expr) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value

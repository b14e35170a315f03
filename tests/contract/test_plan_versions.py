"""The plan's checks hold for every supported TRL, whose fields are stored beside this file."""

import json
import sys
from pathlib import Path

import pytest

from rlvr.errors import ConfigError
from rlvr.plan.build import build_plan
from rlvr.plan.checks import RANGES, SUCCESSORS, check_name, check_value
from rlvr.plan.combinations import ALWAYS_REFUSED
from rlvr.plan.trl_schema import (
    MISSING,
    ConfigSchema,
    FieldSpec,
    installed_schema,
    package_folder,
    read_schema,
)
from rlvr.variants import OWNED_FIELDS, VARIANTS, trl_settings

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "plan"))
from plan_cases import demo_inputs, inputs

STORED = json.loads(Path(__file__).with_name("plan_trl_fields.json").read_text())
VERSIONS = STORED["versions"]


def stored_schema(version):
    fields = {}
    for name, forms in STORED["fields"].items():
        for item in forms:
            if version in item["versions"]:
                form = item["form"]
                fields[name] = FieldSpec(
                    name,
                    " | ".join(form["kinds"]),
                    frozenset(form["kinds"]),
                    MISSING,
                    tuple(form["allowed"]),
                    "",
                )
    return ConfigSchema(trl=version, transformers="", fields=fields)


def test_the_supported_range_is_stored():
    assert {version.rpartition(".")[0] for version in VERSIONS} == {"1.14", "1.15", "1.16"}


def test_the_installed_version_is_stored_as_it_is():
    installed = installed_schema()
    if installed.trl not in VERSIONS:
        pytest.skip(f"TRL {installed.trl} is newer than the stored table")
    stored = stored_schema(installed.trl).fields
    trl_fields = set(stored) & set(installed.fields)
    assert len(trl_fields) > 150
    for name in trl_fields:
        assert (stored[name].kinds, stored[name].allowed) == (
            installed.fields[name].kinds,
            installed.fields[name].allowed,
        )


def test_installed_sources_can_be_read():
    found = read_schema(package_folder("trl"), package_folder("transformers"))
    assert {"num_generations", "loss_type", "learning_rate", "optim"} <= set(found.fields)


@pytest.mark.parametrize("version", VERSIONS)
def test_plans_are_accepted(version):
    schema = stored_schema(version)
    cases = [
        demo_inputs(),
        inputs("0.5b", method="full"),
        inputs("8b", "4xH100"),
        inputs("30b-a3b", "1xH200"),
    ]
    for case in cases:
        plan = build_plan(case, schema)
        for name, setting in plan.settings.items():
            check_value(schema.fields[name], setting.value, name)
        assert plan.memory.keyed_to["trl"] == version


@pytest.mark.parametrize("version", VERSIONS)
def test_tables_name_fields_that_exist(version):
    fields = stored_schema(version).fields
    for name in (*RANGES, *ALWAYS_REFUSED):
        assert name in fields, name
    for successor, _ in SUCCESSORS.values():
        assert not successor or successor in fields, successor
    assert set(fields) >= OWNED_FIELDS


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_are_accepted(version, variant):
    fields = stored_schema(version).fields
    for name, value in trl_settings(VARIANTS[variant], 4).items():
        check_value(fields[name], value, name)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_field_is_refused_by_version(version):
    with pytest.raises(ConfigError, match=f"TRL {version}"):
        check_name("num_generation", stored_schema(version), "here")

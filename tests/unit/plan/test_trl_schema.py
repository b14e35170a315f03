import subprocess
import sys

import pytest

from rlvr.plan.trl_schema import COMPARED_FIELDS, HELP_FIELDS, MISSING, installed_schema, kind_of

SCHEMA = installed_schema()


def test_reading_the_schema_imports_nothing_heavy():
    code = (
        "import sys; from rlvr.plan.trl_schema import installed_schema; installed_schema();"
        "heavy = {'torch', 'trl', 'transformers', 'datasets'} & {name.split('.')[0] for name in sys.modules};"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "name", [*COMPARED_FIELDS, *HELP_FIELDS, "lr_scheduler_type", "optim", "save_strategy"]
)
def test_choices_are_read_and_hold_the_default(name):
    spec = SCHEMA.fields[name]
    assert len(spec.allowed) >= 2
    assert spec.default is MISSING or spec.default in spec.allowed


def test_known_choices():
    assert set(SCHEMA.fields["loss_type"].allowed) >= {"grpo", "dapo", "dr_grpo", "bnpo", "cispo"}
    assert SCHEMA.fields["vllm_mode"].allowed == ("colocate", "server")


def test_every_default_is_accepted_by_its_own_field():
    for spec in SCHEMA.fields.values():
        if spec.default is not MISSING and spec.name != "bf16":
            assert spec.accepts(spec.default), spec


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "none"), (True, "bool"), (1, "int"), (1.0, "float"), ("a", "str"), ([1], "list"), ({}, "dict")],
)
def test_kinds(value, kind):
    assert kind_of(value) == kind

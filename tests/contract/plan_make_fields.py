"""Store the fields of GRPOConfig of several TRL versions, so that the plan's checks can be held against each.

    python tests/contract/plan_make_fields.py FOLDER...     each an unpacked wheel of one TRL version

A field is stored once, with the versions that have it in this form.
"""

import json
import sys
from pathlib import Path

from rlvr.plan.trl_schema import package_folder, read_schema

TARGET = Path(__file__).with_name("plan_trl_fields.json")


def main() -> None:
    folders = [Path(name) for name in sys.argv[1:]]
    table: dict[str, list] = {}
    versions = []
    for folder in folders:
        version = next(folder.glob("trl-*.dist-info")).name.removeprefix("trl-").removesuffix(".dist-info")
        versions.append(version)
        for name, spec in read_schema(folder / "trl", package_folder("transformers")).fields.items():
            form = {"kinds": sorted(spec.kinds), "allowed": list(spec.allowed)}
            forms = table.setdefault(name, [])
            known = next((item for item in forms if item["form"] == form), None)
            if known is None:
                forms.append(known := {"form": form, "versions": []})
            known["versions"].append(version)
    lines = [f"  {json.dumps(name)}: {json.dumps(forms)}" for name, forms in sorted(table.items())]
    head = f'{{\n "versions": {json.dumps(versions)},\n "fields": {{\n'
    TARGET.write_text(head + ",\n".join(lines) + "\n }\n}\n")


if __name__ == "__main__":
    main()

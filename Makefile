# Everything runs inside .venv, which is made when first needed and refreshed when the lock changes.
#   make run PORT=9000               another port
#   make test TESTS=tests/unit       a part of the tests; ARGS='-k name -x' goes to pytest
#   make setup PYTHON=python3.12     another interpreter

PYTHON ?= python3
PORT ?= 8000
WORKERS ?= 3
TESTS ?= tests
ARGS ?=

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
HEADING := @printf '\n== %s\n'

# Where it is set, every process compiles the whole package anew, and the tests start hundreds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev run test test-fast check lint types record browser drill lock clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

setup: .venv/.installed ## Make .venv with what running needs, if it is not there or out of date.

setup-dev: .venv/.installed-dev ## The same with what developing and testing need.

run: setup ## Start the demo at http://127.0.0.1:8000 (PORT= changes the port); Ctrl-C ends it.
	$(HEADING) "Starting effaced with its demo company on port $(PORT)"
	@exec $(BIN)/effaced up --demo --port $(PORT)

# Types and imports are checked while the tests run: those wait for other processes often enough.
test: lint browser ## Run all checks and all tests, on servers of their own.
	$(HEADING) "Tests"
	@log=$$(mktemp); $(MAKE) --no-print-directory types >$$log 2>&1 & checking=$$!; failed=0; \
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS) $(TESTS) || failed=1; \
	wait $$checking || failed=1; cat $$log; rm -f $$log; exit $$failed
	@printf '\nAll checks and tests passed.\n'

test-fast: setup-dev ## Run the unit and contract tests alone.
	@$(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS) tests/unit tests/contract

check: lint types ## Lint, formatting, types, and who imports whom.

lint: setup-dev ## Lint and formatting alone.
	$(HEADING) "Lint and formatting (ruff)"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: setup-dev ## Types, and who imports whom, alone.
	$(HEADING) "Types (mypy)"
	@$(BIN)/mypy
	$(HEADING) "Imports (import-linter)"
	@$(BIN)/lint-imports --no-logo

# The data map's properties run ten times as many: five shards on each of two databases.
drill: setup-dev ## Run the long tests with their full counts.
	$(HEADING) "Drills"
	@EFFACED_EXAMPLES=2000 $(BIN)/pytest -n $(WORKERS) --dist worksteal -m "drill or property" $(ARGS) $(TESTS)

# In this order: the document shows the examples, and the client is written from the document.
record: setup-dev ## Write anew what is recorded or generated: the API's examples, document and client.
	@EFFACED_TEST_RECORD=1 $(BIN)/pytest -q tests/integration/api/test_examples.py
	@EFFACED_TEST_RECORD=1 $(BIN)/pytest -q tests/unit/api/test_document.py tests/unit/client/test_source.py

browser: ## Get chromium for the browser tests where apt-get can.
	@if command -v "$${EFFACED_CHROMIUM:-chromium}" >/dev/null; then exit 0; fi; \
	printf '\n== %s\n' "Browser (chromium)"; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "Installing Debian's chromium; this takes a minute."; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  { apt-get update && apt-get install --yes --no-install-recommends chromium fonts-liberation; } \
	    >/dev/null 2>&1 || echo "apt-get could not install it; the run goes on without browser tests."; \
	else \
	  echo "There is no chromium (apt-get install chromium); the run goes on without browser tests."; \
	fi

lock: .venv/bin/python ## Write the two lock files; versions stay unless ARGS=--upgrade.
	$(HEADING) "Locking"
	@$(PIP) install -qq uv
	@$(BIN)/uv pip compile --quiet $(ARGS) --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-header --extra embedded --extra build pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile --quiet $(ARGS) --universal --python-version 3.11 --generate-hashes \
	  --no-annotate --no-header --all-extras -c requirements.lock pyproject.toml -o requirements-dev.lock
	@echo "requirements.lock and requirements-dev.lock are written."

clean: ## Remove .venv, caches, build results and the demo's data; your own data in var stays.
	rm -rf .venv dist build var/demo .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	$(HEADING) "Making .venv"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "effaced needs Python 3.11 or newer, and '$(PYTHON)' is not. Name another: make setup PYTHON=python3.12"; \
	  exit 1; }
	@$(PYTHON) -m venv --clear .venv

.venv/.installed: requirements.lock pyproject.toml | .venv/bin/python
	$(HEADING) "Installing effaced and what it needs"
	@$(PIP) install -qq --require-hashes -r requirements.lock
	@$(PIP) install -qq --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.installed-dev: requirements-dev.lock pyproject.toml | .venv/bin/python
	$(HEADING) "Installing effaced and what developing it needs"
	@$(PIP) install -qq --require-hashes -r requirements-dev.lock
	@$(PIP) install -qq --no-deps --no-build-isolation --editable .
	@touch .venv/.installed $@

# All targets work in .venv, which the first of them creates: with uv when it is there, else with pip.

PYTHON ?= python3
BIN := .venv/bin
SOURCES := cli agent tooling patterns tests bench
# In small portions: whoever is done takes the next few.
PYTEST := $(BIN)/python -m pytest -n auto --maxschedchunk 4

export LITELLM_LOCAL_MODEL_COST_MAP := True
# Without bytecode every start of the program compiles all it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo demo-cassette screenshots test test-without-bubblewrap programs check lint soak bench fmt clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

demo: .venv/.ready  ## a whole run without network or key
	$(BIN)/agent demo

test: programs lint  ## everything: install missing programs, lint, all tests, again without bubblewrap where it matters
	$(PYTEST)
	@$(MAKE) --no-print-directory test-without-bubblewrap

test-without-bubblewrap: .venv/.ready  ## the tests around commands with Landlock as the only sandbox
	PYTHON=$(BIN)/python .ci/without-bubblewrap -n auto --maxschedchunk 4 \
		tests/sandbox tests/agent/backends tests/cli/run tests/cli/commands

programs:  ## install the programs the tests use, where that is allowed
	@.ci/programs

check: lint  ## what every commit passes: lint and the fast tests
	$(PYTEST) -m "not slow"

lint: .venv/.ready  ## style, formatting, types
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

soak: .venv/.ready  ## the crash tests in full: runs killed 200 times with a model and 200 times without, on full disks too
	$(BIN)/python -m pytest tests/crash --kills 400

bench: .venv/.ready  ## speed and size against their limits
	$(BIN)/python -m bench

demo-cassette: .venv/.ready  ## record the demonstration anew from its script
	$(BIN)/agent demo --record

screenshots: .venv/.ready  ## draw the pictures of the documents from real runs
	$(BIN)/python -m tests.docs.screenshots

fmt: .venv/.ready  ## format, and fix what can be fixed
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

clean:  ## remove all that make made
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find $(SOURCES) -name __pycache__ -prune -exec rm -rf {} +

.venv/.ready: pyproject.toml uv.lock .ci/constraints.py
	@if command -v uv >/dev/null; then \
		UV_COMPILE_BYTECODE=1 UV_PYTHON_DOWNLOADS=never \
			uv sync --locked --all-extras $(if $(filter-out python3,$(PYTHON)),--python $(PYTHON)); \
	else \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
			|| { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11' >&2; exit 1; }; \
		$(PYTHON) -m venv .venv && \
		$(BIN)/python .ci/constraints.py uv.lock > .venv/constraints.txt && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check \
			--constraint .venv/constraints.txt --editable '.[dev,server,docker,mcp,otel,pdf]'; \
	fi
	@touch $@

# All targets use .venv, which is created when first needed: with uv if it is installed, otherwise with pip.

PYTHON ?= python3
BIN := .venv/bin
SOURCES := cli agent tooling patterns tests bench
# Small chunks, so that no worker is idle while another still has a queue of slow tests.
PYTEST := $(BIN)/python -m pytest -n auto --maxschedchunk 4

# The tests that are about commands which the program runs in the sandbox of its choice.
RUNS_COMMANDS := tests/sandbox tests/agent/backends/sandbox tests/agent/backends/test_shared_backend.py \
	$(addprefix tests/cli/commands/,test_exec.py test_mcp.py test_tools_call.py) \
	$(addprefix tests/cli/run/,approvals checkpoints extensions hooks resume) \
	$(patsubst %,tests/cli/run/test_%.py,answers durability edges exit_codes flag_values hints hostile_text \
		interruptions sandbox step_worktrees steps stream_input work_folder worktrees)

# How long the fault campaign runs.
MINUTES ?= 60

export LITELLM_LOCAL_MODEL_COST_MAP := True
# Without cached bytecode, every start of the program would compile everything it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo demo-cassette screenshots test test-without-bubblewrap programs check lint soak fuzz bench bench-mind fmt clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

demo: .venv/.ready  ## a complete run without network or key
	$(BIN)/agent demo

test: programs lint  ## everything: install missing programs, lint, run all tests, repeat the sandbox tests without bubblewrap
	$(PYTEST) --dist loadscope
	@$(MAKE) --no-print-directory test-without-bubblewrap

test-without-bubblewrap: .venv/.ready  ## the tests that run commands, with Landlock as the only sandbox
	PYTHON=$(BIN)/python .ci/without-bubblewrap -n auto --maxschedchunk 4 --chosen-sandbox $(RUNS_COMMANDS)

programs:  ## install missing programs that tests need, if permitted (root or passwordless sudo, apt)
	@.ci/programs

check: lint  ## lint and the fast tests; every commit must pass
	$(PYTEST) -m "not slow"

lint: .venv/.ready  ## style, formatting, types
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

soak: .venv/.ready  ## the fault campaign, an hour long: kills, power cuts, disk faults, damaged folders, provider faults
	$(BIN)/python -m tests.soak --minutes $(MINUTES)
	$(BIN)/python -m pytest tests/crash --kills 400

fuzz: .venv/.ready  ## feed random inputs to everything that reads bytes from elsewhere
	$(BIN)/python -m tests.fuzz

bench: .venv/.ready  ## measure speed and size against their limits
	$(BIN)/python -m bench

bench-mind: .venv/.ready  ## measure requests, prefixes and bytes sent to the model
	$(BIN)/python -m bench.mind

demo-cassette: .venv/.ready  ## re-record the demo from its script
	$(BIN)/agent demo --record

screenshots: .venv/.ready  ## render the screenshots of the documentation from real runs
	$(BIN)/python -m tests.docs.screenshots
	$(BIN)/python -m tests.agent.api.page_screenshots

fmt: .venv/.ready  ## format, and apply automatic fixes
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

clean:  ## remove everything the other targets created
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find $(SOURCES) -name __pycache__ -prune -exec rm -rf {} +

.venv/.ready: pyproject.toml uv.lock .ci/constraints.py
	@echo 'installing what is needed into .venv; this happens once and may take a few minutes' >&2
	@if command -v uv >/dev/null; then \
		UV_COMPILE_BYTECODE=1 UV_PYTHON_DOWNLOADS=never \
			uv sync --locked --all-extras $(if $(filter-out python3,$(PYTHON)),--python $(PYTHON)); \
	else \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
			|| { echo 'Python 3.11 or newer is required: make PYTHON=/path/to/python3.11' >&2; exit 1; }; \
		$(PYTHON) -m venv .venv && \
		$(BIN)/python .ci/constraints.py uv.lock > .venv/constraints.txt && \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check \
			--constraint .venv/constraints.txt --editable '.[dev,server,mcp,acp,queue,storage,otel,pdf,images]'; \
	fi
	@touch $@

# Each target sets up what it needs and says so. PYTHON may name another interpreter (3.11+).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CLI_VERSIONS = $(shell $(BIN)/python -c 'from bridle.protocol.capabilities import TESTED_VERSIONS; print(*TESTED_VERSIONS)')

PROPERTIES := tests/protocol/test_properties.py
SHELLS := tests/policy/shell/test_differential.py
# Only these count for the coverage of bridle.protocol: to measure it makes all others slow.
WIRE := tests/protocol tests/testing tests/wires
KILLING := tests/supervisor/test_kill.py
# Whole servers and commands, which mostly wait for each other.
SERVED := tests/server tests/cli tests/loopback
# Six CLIs that wait for five minutes, and nothing else.
PATIENCE := tests/conformance/test_patience.py

.PHONY: up test check conformance soak bench record clean help

help: ## what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/'

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Bridle needs Python 3.11 or newer; set PYTHON=/path/to/one" >&2; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version) and Bridle's development tools…"
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "could not make a venv; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# Real CLIs come from npm: the machine's own, else Node.js as a Python package.
$(VENV)/.node: $(READY)
	@command -v npm >/dev/null && command -v node >/dev/null || { \
	  echo "npm is not installed: fetching Node.js as a Python package into $(VENV)…"; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[node]'; }
	@touch $@

up: $(READY) ## the server: for your Claude Code if there is one, else with agents that play a part
	@if [ -n "$$BRIDLE_CLAUDE" ] || command -v claude >/dev/null; then exec $(BIN)/bridle up; \
	  else echo "no claude on the PATH: here is the demo"; exec $(BIN)/bridle demo; fi

test: $(VENV)/.node ## unit, property and end-to-end tests (budget: 20 minutes on CI)
	@echo "Running the tests of the wire (bridle.protocol must keep 100% branch coverage)…"
	@$(BIN)/pytest $(WIRE) --ignore=$(PROPERTIES) -n 3 -q --cov --cov-fail-under=100
	@echo "Running the others…"
	@$(BIN)/pytest tests --ignore=tests/conformance $(WIRE:%=--ignore=%) --ignore=$(SHELLS) \
	  --ignore=$(KILLING) $(SERVED:%=--ignore=%) -n 3 -q
	@echo "Killing a supervisor of eight agents ($(if $(CI),300,30) times); beside it the property tests"
	@echo "($(if $(CI),10 000,200) examples each), random scripts in real shells ($(if $(CI),20 000,2 000) in bash),"
	@echo "and the server and the command…"
	@$(BIN)/pytest $(KILLING) -q --timeout 900 & killing=$$!; \
	  $(BIN)/pytest $(PROPERTIES) -n 2 -q && $(BIN)/pytest $(SHELLS) -n 2 -q && \
	  $(BIN)/pytest $(SERVED) -n 3 -q; others=$$?; \
	  wait $$killing && exit $$others
	@echo "Holding the decoder against json.loads…"
	@$(BIN)/python bench/decode.py --messages 10000 --rounds 3

check: $(READY) ## format, lint, types (budget: 3 minutes)
	@echo "Checking format and lint (ruff), then types (mypy --strict)…"
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ." >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy

conformance: $(VENV)/.node ## real CLIs of three versions, and docs/conformance.md (budget: 10 minutes)
	@echo "Installing the CLIs that are not in the cache yet…"
	@$(BIN)/python -m bridle.testing.install $(CLI_VERSIONS)
	@rm -rf .cache/conformance
	@echo "Driving them through every scenario; beside it, waiting for more than 300 seconds…"
	@$(BIN)/pytest $(PATIENCE) -n 6 -q & patience=$$!; \
	  $(BIN)/pytest tests/conformance --ignore=$(PATIENCE) -n 2 -q; others=$$?; \
	  wait $$patience && exit $$others
	@$(BIN)/python -m tests.conformance.report $(if $(CI),--check)

record: $(VENV)/.node ## new fixtures for tests/wires from real CLIs
	@$(BIN)/python -m tests.wires.record

soak: $(READY) ## kill the supervisor 1,000 times while eight agents work
	@echo "Killing a supervisor 1,000 times, for some minutes…"
	@KILLS=1000 $(BIN)/pytest $(KILLING) -q --timeout 1800

# A venv of its own: the official SDK is there only to be compared with.
$(VENV)-bench/.ready: pyproject.toml
	@echo "Setting up $(VENV)-bench with claude-agent-sdk, to compare with…"
	@$(PYTHON) -m venv $(VENV)-bench
	@$(VENV)-bench/bin/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	@touch $@

bench: $(READY) $(VENV)-bench/.ready ## judging; the journal; many agents; streams; loopback; decoding; sessions against claude-agent-sdk (28 minutes)
	@echo "Judging calls by a policy of 100 rules, for some seconds…"
	@$(BIN)/python bench/policy.py --write
	@echo "The journal on this disk, beside plain sqlite3, for some minutes…"
	@$(BIN)/python bench/journal.py --write
	@echo "A hundred agents under a supervisor, for some minutes…"
	@$(BIN)/python bench/supervisor.py --write
	@echo "200 clients of one stream, beside a bare Starlette, for some minutes…"
	@$(BIN)/python bench/sse.py --write
	@echo "Agents that follow others, for some minutes…"
	@$(BIN)/python bench/loopback.py --write
	@echo "Decoding, for some seconds…"
	@$(BIN)/python bench/decode.py
	@echo "Sessions beside claude-agent-sdk, for some minutes…"
	@$(VENV)-bench/bin/python bench/compare.py --write

clean: ## remove what make has made (not the cache of CLIs)
	rm -rf $(VENV) $(VENV)-bench .cache .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis

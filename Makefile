# Each target sets up what it needs and says so. PYTHON may name another interpreter (3.11+), which
# gets a .venv of its own: `make test PYTHON=python3.13` uses .venv-3.13.
ifdef PYTHON
VENV := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
else
PYTHON := python3
VENV := .venv
endif
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CLI_VERSIONS = $(shell $(BIN)/python -m tests.conformance.versions)
# Another version is compared with the newest that is tested.
ifdef VERSION
export CONFORMANCE_VERSIONS := 2.1.325 $(VERSION)
endif

# Only these count for the coverage of bridle.protocol: measuring makes all others slow.
WIRE := tests/protocol tests/testing tests/wires
# Eight agents whose supervisor is killed again and again, and six CLIs that wait for five minutes:
# they mostly wait, and run beside the rest.
KILLS := tests/supervisor/test_kill.py
PATIENCE := tests/conformance/test_patience.py
# More workers than cores: most tests wait for a process.
PYTEST := $(BIN)/pytest -q --dist worksteal
QUICK := -m 'not slow'
DEEP := -m 'slow or deeper or hypothesis'

# Without compiled files every process that a test starts compiles all of Bridle again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: up test test-all check conformance clis soak bench record clean help

help: ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/'

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

test: $(VENV)/.node ## what to run before every commit (3 minutes)
	@$(PYTEST) tests --ignore=tests/conformance $(QUICK) -n 4

check: $(READY) ## format, lint, types, layers (1 minute)
	@echo "Checking format and lint (ruff), types (mypy --strict), and layers…"
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ." >&2; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/pytest -q tests/test_architecture.py

test-all: check test clis ## all that CI runs: slow tests, many examples, kills, real CLIs (20 minutes)
	@rm -rf .cache/conformance
	@echo "Running the slow tests and real CLIs; beside them, 300 kills and waits of five minutes…"
	@export LEVEL=all; $(PYTEST) $(PATIENCE) -n 6 & patience=$$!; $(PYTEST) $(KILLS) & kills=$$!; \
	  $(PYTEST) tests --ignore=$(PATIENCE) --ignore=$(KILLS) $(DEEP) -n 4; rest=$$?; \
	  wait $$kills; kills=$$?; wait $$patience && exit $$((rest + kills))
	@$(BIN)/python -m tests.conformance.report $(if $(CI),--check)
	@echo "Measuring the coverage of bridle.protocol, which must stay at 100% of its branches…"
	@$(PYTEST) $(WIRE) -n 2 --cov --cov-fail-under=100
	@echo "Comparing the decoder with json.loads…"
	@$(BIN)/python bench/decode.py --messages 10000 --rounds 3

conformance: clis ## real CLIs of three versions alone, and docs/conformance.md (7 minutes); VERSION=x compares another
	@rm -rf .cache/conformance
ifdef VERSION
	-@$(PYTEST) tests/conformance -n 4
	@$(BIN)/python -m tests.conformance.report --compare $(VERSION)
else
	@$(PYTEST) tests/conformance -n 4
	@$(BIN)/python -m tests.conformance.report
endif

clis: $(VENV)/.node
	@echo "Installing the CLIs that are not in the cache yet…"
	@$(BIN)/python -m bridle.testing.install $(CLI_VERSIONS)

record: $(VENV)/.node ## new fixtures for tests/wires from real CLIs
	@$(BIN)/python -m tests.wires.record

soak: clis ## the same for hours: 1,000 kills, a million scripts in bash, 20,000 commands for each CLI
	@LEVEL=soak $(PYTEST) $(KILLS) --timeout 7200
	@LEVEL=soak $(PYTEST) tests/conformance/test_shell.py -n 2
	@LEVEL=soak $(PYTEST) tests --ignore=tests/conformance --ignore=$(KILLS) $(DEEP) -n 2 --timeout 7200

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
	rm -rf .venv .venv-* .cache .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis

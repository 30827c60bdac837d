# Two commands on a fresh machine: `make run` and `make test`. The others are for working on Holdfast.

VENV   := .venv
BIN    := $(VENV)/bin
PYTHON ?= python3
READY  := $(VENV)/.ready
PYTEST := $(BIN)/python -m pytest

.PHONY: run run-team test verify bench campaign check fmt docs release pictures clean setup system programs

run:                     ## install what it needs (about 200 MB), play a short session in a throw-away folder, show it
	@$(PYTHON) tools/run.py

run-team: setup          ## PostgreSQL, a team server and three machines with made-up sessions, in a throw-away folder; FLAGS=--once ends by itself
	@$(BIN)/python tools/run_team.py $(FLAGS)

test:                    ## unit tests, a story per feature, a sample of faults: 6 minutes, no browser, no npm programs
	@$(MAKE) --no-print-directory check
	$(PYTEST) -n 3 --dist worksteal $(RERUNS) -m 'not full and not long'

verify: RERUNS := --reruns 2
verify: test             ## everything: `make test`, then real agents, browsers, faults and attacks
	@$(MAKE) --no-print-directory programs
	$(PYTEST) -n 5 --dist worksteal --reruns 2 --durations=15 -m 'full and not long'

bench: setup     ## speed, as ratios inside one run: `make bench`, or `make bench ONLY="hook growth"`
	$(BIN)/python -m tests.bench $(ONLY)

campaign: setup system   ## faults at full size (hours): `make campaign ONLY=kills`
	$(BIN)/python -m tests.campaign $(ONLY)

check: $(READY)          ## lint, types, import rules, no state beside the log
	$(BIN)/ruff check src tests tools hatch_build.py native training
	$(BIN)/ruff format --check -q src tests tools hatch_build.py native training
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/purity.py

fmt: $(READY)
	$(BIN)/ruff check --fix -q src tests tools hatch_build.py native training
	$(BIN)/ruff format -q src tests tools hatch_build.py native training

docs: $(READY)           ## write the pages that are generated from code, then build the site into site/ (works offline)
	$(BIN)/python tools/docs.py
	$(BIN)/python tools/generated_blocks.py
	$(BIN)/python tools/site.py

release: setup           ## wheels for every platform, source archive, formula, container file, plugin: dist/, each checked
	$(BIN)/python tools/release.py $(FLAGS)

pictures: setup system   ## the dashboard in pictures: docs/pictures, and every page at 400, 1280, 2560 in both themes in docs/pictures/every-size
	$(BIN)/python tools/pictures.py $(ONLY)

setup: $(READY)

$(READY): pyproject.toml packaging/constraints.txt hatch_build.py native/hook.c native/anchors.c native/tables.c native/spellings.c native/stamps.c native/bytes.h native/guards.h native/search.h native/values.h native/shorten.h native/build.py src/holdfast/__init__.py src/holdfast/analysis/redact/rule_compiler.py $(wildcard src/holdfast/analysis/redact/rules/*.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Holdfast needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	  { echo "python3 -m venv does not work here; on Debian: apt-get install python3-venv"; exit 1; }
	$(BIN)/python -m pip install -q --disable-pip-version-check -c packaging/constraints.txt -e '.[dev]'
	@touch $@

programs: system         ## the agents and test runners from npm that `make verify` drives
	@$(PYTHON) tests/real/programs.py

system:                  ## programs the tests drive: tmux, strace, …; installed when we may, named when we may not
	@sh tools/system.sh

clean:
	rm -rf $(VENV) .cache dist build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

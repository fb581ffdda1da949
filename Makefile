# make demo     set up the core and run the main job on embedded data
# make test     set up everything and run all checks and tests
# make install  set up everything
# make bench-check  what has become slower, against the tracked ratios
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Kernels are compiled now, not when somebody first waits for them.
WARM_UP = $(BIN)/python -m cleanrank.warm_up
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt
JOBS   ?= $(shell $(PYTHON) -c "import os; print(min(8, os.cpu_count() or 1))")

.PHONY: demo install lint test test-fast browser docs bench bench-check clean

demo: $(VENV)/.core
	$(BIN)/cleanrank demo

install: $(VENV)/.all

test: install browser lint
	$(BIN)/pytest -n $(JOBS) --dist worksteal

test-fast: install lint
	$(BIN)/pytest -n $(JOBS) --dist worksteal -m "not slow"

lint: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# The browser tests drive Debian's chromium; it is installed where it is missing and we may.
browser:
	@command -v chromium >/dev/null || { \
	  command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	  echo "no chromium here: the browser tests will skip"

# Fills the tables and draws the pictures of the pages from results/ and benchmarks/results, then builds the manual.
docs: install
	$(BIN)/python benchmarks/pages.py
	$(BIN)/mkdocs build --strict --quiet

# What writes pages, and what takes minutes to hours, is run by hand.
BY_HAND := timing checkouts check pages baselines niu ctr ctr_gpu recovery strategies peerrank_tables haddad sour_tables \
  judges judge_reports missing panels tau_coverage mutation sizes
bench: install
	@for script in $(filter-out $(BY_HAND:%=benchmarks/%.py),$(wildcard benchmarks/*.py)); do \
	  echo "$$script"; $(BIN)/python $$script || exit 1; done

# Ratios measured now against the tracked ones: what has become slower beyond noise.
bench-check: install
	@$(BIN)/python benchmarks/check.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e .
	@$(WARM_UP)
	@touch $@

$(VENV)/.all: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) -e ".[nn,web,dask,dev]"
	@$(WARM_UP)
	@touch $@ $(VENV)/.core

clean:
	rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

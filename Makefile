# Everything here needs Python 3.11 or newer and nothing else: each target makes the virtual
# environment on first use and installs only what it needs. `make help` lists the targets.

PYTHON ?= python3
VENV   ?= .venv
DATA   ?= data
BIN    := $(VENV)/bin
# The peers have an environment of their own: what they pin must not reach what we test with.
PEERS  ?= .venv-bench

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL: # two installs into one environment at once would fight
.PHONY: help demo test test-library test-benchmarks lint format bench paper docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## fit a model, print its summary, draw it, and write a report to play with
	MPLBACKEND=Agg $(BIN)/lanam demo --force

# One BLAS thread a process: pytest-xdist already fills the cores.
test test-library test-benchmarks: export OPENBLAS_NUM_THREADS = 1
test test-library test-benchmarks: export MKL_NUM_THREADS = 1
test test-library test-benchmarks: export OMP_NUM_THREADS = 1
test test-library test-benchmarks: export MPLBACKEND = Agg
# Lets scikit-learn run its array API check, which it otherwise skips.
test test-library test-benchmarks: export SCIPY_ARRAY_API = 1
test: test-library test-benchmarks ## run the tests and the docstrings' examples (ARGS="-k name" for some)

# 5 is "no test was selected", which is no mistake of a suite that has none of the ARGS.
NONE_OF_ARGS = { code=$$?; [ -n "$(ARGS)" ] && [ $$code -eq 5 ]; }

# A file on one process: what its tests share is made once. The order is tests/conftest.py's.
BY_FILE = -n auto --dist loadfile --no-loadscope-reorder

test-library: $(VENV)/.test ## the tests of the library alone, without the peers
	$(BIN)/python -m pytest $(BY_FILE) --ignore tests/benchmarks $(ARGS) || $(NONE_OF_ARGS)

# With the peers, each of which fits 200 rows.
test-benchmarks: $(PEERS)/.bench
	$(PEERS)/bin/python -m pytest $(BY_FILE) tests/benchmarks $(ARGS) || $(NONE_OF_ARGS)

lint: $(VENV)/.lint ## formatting, lint, types, and the order of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.lint ## let ruff format the code and mend what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(PEERS)/.bench ## run the benchmark (DATA=folder of the data sets, ARGS=further options)
	$(PEERS)/bin/python -m benchmarks.core --data $(DATA) $(ARGS)

paper: $(PEERS)/.bench ## the paper's experiments, all models (DATA=..., ARGS=further options); hours, resumable
	$(PEERS)/bin/python -m benchmarks.run --data $(DATA) $(ARGS)
	MPLBACKEND=Agg $(PEERS)/bin/python -m benchmarks.tables --results results/paper

docs: $(VENV)/.docs ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) $(PEERS) build dist site lanam-demo.* lanam-demo-pair.png
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each extra of the same name; a changed pyproject.toml installs again.
STAMPS := $(addprefix $(VENV)/.,demo test lint docs)
INSTALL = -m pip install --quiet --disable-pip-version-check --editable

$(STAMPS): $(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python $(INSTALL) ".[$*]"
	@touch $@

$(PEERS)/.bench: pyproject.toml | $(PEERS)/bin/python
	$(PEERS)/bin/python $(INSTALL) ".[bench-test]"
	@touch $@

$(VENV)/bin/python $(PEERS)/bin/python: %/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("lanam needs Python 3.11 or newer, and $(PYTHON) is %d.%d: say make PYTHON=python3.11" % v[:2])'
	$(PYTHON) -m venv $*

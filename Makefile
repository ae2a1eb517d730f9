# Everything here needs Python 3.11 or newer and nothing else: each target creates its virtual
# environment on first use and installs only what it needs. `make help` lists the targets.

PYTHON  ?= python3
VENV    ?= .venv
DATA    ?= data
BIN     := $(VENV)/bin
# Environments of their own: the peers' pins, the lowest versions and the missing extras must not
# reach what we develop with.
PEERS   ?= .venv-bench
LOWEST  ?= .venv-lowest
MINIMAL ?= .venv-minimal

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL: # two installs into one environment at once would fight
.PHONY: help demo test test-one test-library test-benchmarks test-lowest test-minimal lint format bench paper trust docs dist clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nOne test:  make test-one T=tests/test_counts.py        (or T="tests/test_counts.py -k exposure")\n'
	@printf 'To add a response family, a data source or a plot, see CONTRIBUTING.md.\n'

demo: $(VENV)/.demo ## fit a model, print its summary, plot it, and write an interactive report
	MPLBACKEND=Agg $(BIN)/lanam demo --force

# One BLAS thread per process: pytest-xdist already fills the cores.
TESTS := test test-one test-library test-benchmarks test-lowest test-minimal
$(TESTS): export OPENBLAS_NUM_THREADS = 1
$(TESTS): export MKL_NUM_THREADS = 1
$(TESTS): export OMP_NUM_THREADS = 1
$(TESTS): export MPLBACKEND = Agg
# Containers often forbid bytecode, and every process that the tests start would compile all of lanam.
$(TESTS): export PYTHONDONTWRITEBYTECODE =
# Lets scikit-learn run its array API check, which it otherwise skips.
$(TESTS): export SCIPY_ARRAY_API = 1
test: test-library test-benchmarks ## run all tests and the docstrings' examples (ARGS="-k name" selects)

test-one: $(VENV)/.test ## run one test file or test: T=tests/test_counts.py
	$(BIN)/python -m pytest $(if $(T),$(T),$(error say which, for example: make test-one T=tests/test_counts.py))

# Exit code 5 means that no test was selected, which is fine for a suite to which ARGS do not apply.
NONE_OF_ARGS = { code=$$?; [ -n "$(ARGS)" ] && [ $$code -eq 5 ]; }

# One file runs in one process, so that its tests share their fixtures. The order is tests/conftest.py's.
BY_FILE = -n auto --dist loadfile --no-loadscope-reorder

test-library: $(VENV)/.test ## run the library's tests alone, without the peers
	$(BIN)/python -m pytest $(BY_FILE) --ignore tests/benchmarks $(ARGS) || $(NONE_OF_ARGS)

# With the peers, each of which fits 200 rows.
test-benchmarks: $(PEERS)/.bench ## run the benchmarks' tests, with the peers
	$(PEERS)/bin/python -m pytest $(BY_FILE) tests/benchmarks $(ARGS) || $(NONE_OF_ARGS)

# Old releases call what the newest releases of their own dependencies have deprecated.
test-lowest: $(LOWEST)/.test ## run the library's tests with the lowest versions that pyproject.toml allows
	$(LOWEST)/bin/python -m pytest $(BY_FILE) --ignore tests/benchmarks \
	  -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning $(ARGS)

# What needs no extra: the core, the metrics, and a fit to arrays.
test-minimal: $(MINIMAL)/.test-minimal ## run the tests that need no extra, with none installed
	$(MINIMAL)/bin/python -m pytest $(BY_FILE) \
	  tests/core tests/metrics tests/test_arguments.py src/lanam/core src/lanam/provenance.py --ignore tests/core/test_many_rows.py $(ARGS)

lint: $(VENV)/.lint ## formatting, lint, types, and the order of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.lint ## let ruff format the code and fix what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(PEERS)/.bench ## run the benchmark (DATA=folder of the data sets, ARGS=further options)
	$(PEERS)/bin/python -m benchmarks.core --data $(DATA) $(ARGS)

paper: $(PEERS)/.bench ## the paper's experiments, all models (DATA=..., ARGS=further options); hours, resumable
	$(PEERS)/bin/python -m benchmarks.run --data $(DATA) $(ARGS)
	MPLBACKEND=Agg $(PEERS)/bin/python -m benchmarks.tables --results results/paper

trust: $(PEERS)/.bench ## can intervals be trusted: seeds, wide tables, few rows, outliers (DATA=..., ARGS=...); hours, resumable
	$(PEERS)/bin/python -m benchmarks.trust --data $(DATA) $(ARGS)

docs: $(VENV)/.docs ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The wheel is tried where nothing is installed but pandas, which the README's example reads, from a folder
# that does not hold the sources.
dist: $(VENV)/.dist ## build wheel and sdist into dist/, check them, and try the wheel in an empty environment
	rm -rf dist build/empty
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv build/empty
	build/empty/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl pandas
	cd build && empty/bin/python ../docs/hooks/blocks.py ../README.md

clean: ## remove the environments and everything that was built
	rm -rf $(VENV) $(PEERS) $(LOWEST) $(MINIMAL) build dist site lanam-demo.* lanam-demo-pair.png
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp for each extra of the same name; a changed pyproject.toml installs again.
STAMPS := $(addprefix $(VENV)/.,demo test lint docs dist)
INSTALL = -m pip install --quiet --disable-pip-version-check --editable

$(STAMPS): $(VENV)/.%: pyproject.toml | $(BIN)/python
	$(BIN)/python $(INSTALL) ".[$*]"
	@touch $@

$(MINIMAL)/.test-minimal: pyproject.toml | $(MINIMAL)/bin/python
	$(MINIMAL)/bin/python $(INSTALL) ".[test-minimal]"
	@touch $@

# pip always takes the newest versions; uv can take the oldest. It compiles only if asked to, and each process
# of the tests would compile again.
$(LOWEST)/.test: pyproject.toml | $(LOWEST)/bin/python
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(LOWEST)/bin/python -m uv pip install --quiet --python $(LOWEST)/bin/python \
	  --resolution lowest-direct --compile-bytecode --editable ".[test]"
	@touch $@

$(PEERS)/.bench: pyproject.toml | $(PEERS)/bin/python
	$(PEERS)/bin/python $(INSTALL) ".[bench-test]"
	@touch $@

$(addsuffix /bin/python,$(VENV) $(PEERS) $(LOWEST) $(MINIMAL)): %/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("lanam needs Python 3.11 or newer, and $(PYTHON) is %d.%d: use make PYTHON=python3.11" % v[:2])'
	$(PYTHON) -m venv $*

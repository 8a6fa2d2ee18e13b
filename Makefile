# SPDX-License-Identifier: Apache-2.0
# make demo    a graph, all algorithms on it, each result checked
# make test    everything: style, types, tests
# make test-full  the same, with all combinations of strategies instead of every two: hours
# make test-networkx  NetworkX's own tests of its algorithms, run by shoal where it can, and a table of what it ran
# make test-gpu  the tests that need a GPU, and the others with a GPU as the default device, with the Python that has
#   CuPy, igraph, NetworkX and SciPy; make test-gpu GPU_PYTHON=python3 JOBS=12
# make sanitize-gpu  every algorithm under compute-sanitizer, on a machine with a GPU and a CUDA toolkit
# make bench   shoal beside the other graph libraries of Python; make bench GRAPHS=kron20,kron22,urand20,grid2000
# make figures all that the documentation states in numbers: measured, kept in benchmarks/results, written into the pages
# make docs    the documentation as a site in local/site, which is read by opening local/site/index.html
# make pictures  the pictures of the documentation, drawn anew from runs
# Each makes its own environment in .venv first; all it needs is Python 3.11 or newer.

PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
JOBS ?= 2
# Of a file's tests, each compiles what the others use.  Files come in the order of their names: with the longest last,
# as the number of tests would have it, one process waits for the other.
DIST ?= loadfile
BIN := .venv/bin

GRAPHS ?= kron20,urand20,grid2000
SCALE ?= 20
DEVICES_SCALE ?= 22
GRID_SIDE ?= 2000

.PHONY: demo test test-networkx test-full test-gpu sanitize-gpu bench figures docs pictures clean

demo: .venv/installed
	$(BIN)/python examples/demo.py

test: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n $(JOBS) --dist $(DIST) --no-loadscope-reorder

# Calls that shoal leaves to NetworkX are run by NetworkX; the plugin counts, and fails if too few tests were served.
test-networkx: export NETWORKX_TEST_BACKEND = shoal
test-networkx: export NETWORKX_FALLBACK_TO_NX = 1
test-networkx: .venv/installed
	cd tests/networkx_suite && PYTHONPATH=. $(abspath $(BIN))/python -m pytest -n $(JOBS) --pyargs networkx.algorithms

test-full: export SHOAL_TEST_PRODUCT = 1
test-full: DIST = worksteal
test-full: test

# A machine with a GPU has its own CUDA, and CuPy for it: its Python is used as it is.
GPU_PYTHON ?= python3
test-gpu:
	PYTHONPATH=src $(GPU_PYTHON) -m pytest -n $(JOBS) --dist worksteal tests/gpu
	PYTHONPATH=src $(GPU_PYTHON) -m pytest -n $(JOBS) --dist $(DIST) --backend cuda --ignore tests/gpu tests

sanitize-gpu:
	PYTHONPATH=src $(GPU_PYTHON) tests/gpu/sanitize.py --jobs $(JOBS)

bench: .venv/installed-peers
	mkdir -p local
	$(BIN)/shoal bench --graphs $(GRAPHS) --output local/bench.json --plot local/bench.html

figures: GRAPHS = kron20,kron22,urand20,grid2000
figures: bench
	$(BIN)/python benchmarks/startup.py --json benchmarks/results/startup.json
	$(BIN)/python benchmarks/memory.py --scale $(SCALE) --json benchmarks/results/memory.json
	$(BIN)/python benchmarks/user_program.py --scale $(SCALE) --json benchmarks/results/user_program.json
	$(BIN)/python benchmarks/devices.py --scale $(DEVICES_SCALE) --json benchmarks/results/devices.json
	$(BIN)/python benchmarks/ownership.py --scale $(GRID_SIDE) --json benchmarks/results/ownership.json
	$(BIN)/python benchmarks/asynchronous.py --scale $(GRID_SIDE) --json benchmarks/results/asynchronous.json
	$(BIN)/python benchmarks/document.py local/bench.json

docs: export NO_MKDOCS_2_WARNING = 1
docs: .venv/installed
	$(BIN)/python -m mkdocs build --strict

pictures: .venv/installed
	$(BIN)/python docs/site/pictures.py

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or newer is needed; give it as make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	@touch $@

.venv/installed-peers: pyproject.toml .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[peers]"
	@touch $@

clean:
	rm -rf .venv demo local build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

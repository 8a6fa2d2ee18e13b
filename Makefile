# SPDX-License-Identifier: Apache-2.0
# make demo    a graph, all algorithms on it, each result checked
# make test    everything: style, types, tests
# make bench   shoal beside the other graph libraries of Python
# Each makes its own environment in .venv first; all it needs is Python 3.11 or newer.

PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
JOBS ?= 2
BIN := .venv/bin

.PHONY: demo test bench clean

demo: .venv/installed
	$(BIN)/python examples/demo.py

test: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

bench: .venv/installed-peers
	mkdir -p local
	$(BIN)/shoal bench --graphs kron20,urand20,grid2000 --output local/bench.json --plot local/bench.html

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

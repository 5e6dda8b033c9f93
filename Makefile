# Each target makes .venv and installs what it needs, once: the stamps are newer than what they were made from.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint bench board clean

demo: .venv/demo.stamp
	$(BIN)/polyweave-torch demo --out runs/demo

test: lint
	$(BIN)/python -m pytest -q

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: .venv/dev.stamp
	$(BIN)/python -m benchmarks

board: .venv/demo.stamp
	$(BIN)/tensorboard --logdir runs/demo/logs

clean:
	rm -rf .venv build dist *.egg-info

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[demo]'
	touch $@

.venv/dev.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[dev]'
	touch $@

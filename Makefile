# Each target makes .venv and installs what it needs, once: the stamps are newer than what they were made from.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint docs bench board clean

demo: .venv/demo.stamp
	$(BIN)/polyweave-torch demo --out runs/demo

test: lint
	$(BIN)/python -m pytest -q

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

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

.venv/docs.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[docs]'
	touch $@

.venv/dev.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[dev]'
	touch $@

.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help
help: ## list the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

.PHONY: test
test: $(VENV)/.ready ## run the tests, in random order
	$(BIN)/pytest -n 2 --dist worksteal

.PHONY: check
check: $(VENV)/.ready ## lint, check types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config pyproject.toml

.PHONY: fuzz
fuzz: $(VENV)/.ready ## decode a million hostile frames
	$(BIN)/python -m tests.fuzz.hostile_frames --frames 1000000

KILLS ?= 100

.PHONY: crash-node
crash-node: $(VENV)/.ready ## kill a node under load, KILLS times, and look for what it lost
	$(BIN)/python -m tests.cluster.crashes --kills $(KILLS)

.PHONY: bench-codec
bench-codec: $(VENV)/.ready ## compare the codecs with those of other Python projects
	$(BIN)/python -m benchmarks.codec

.PHONY: format
format: $(VENV)/.ready ## format the code and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: reference
reference: $(VENV)/.ready ## write the reference pages of the docs from the source
	$(BIN)/python -m ottla.metadata.configs.reference > docs/reference/configs.md

.PHONY: clean
clean: ## remove what the verbs made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist target

.PHONY: up
up: $(VENV)/.ready ## run a node on 127.0.0.1:9092, its data in ./ottla-data
	$(BIN)/ottla up

.PHONY: bench
bench: $(VENV)/.ready ## compare a node with Apache Kafka 4.3.1 (needs Java and Maven)
	$(BIN)/python -m benchmarks.node

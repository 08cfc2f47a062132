.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help
help: ## list the verbs
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

# What a node needs: Python and a few packages.
$(VENV)/.runs: pyproject.toml constraints.txt
	@echo 'setting up $(VENV): this happens once' >&2
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable .
	@touch $@

# What building and testing needs on top of it.
$(VENV)/.ready: $(VENV)/.runs
	@echo 'setting up what tests need: this happens once, and takes some minutes' >&2
	@$(INSTALL) --editable '.[dev]'
	@touch $@

.PHONY: up
up: $(VENV)/.runs ## run a node on 127.0.0.1, its data in ./ottla-data: PORT=9092
	@$(BIN)/ottla up --hints --port $(or $(PORT),9092)

.PHONY: test
test: $(VENV)/.ready ## run the tests; of one room: WHAT=storage (a room of src/ottla, or a folder of tests); all there are: WHAT=all; in another order: SEED=1; with a table of what each test costs: COSTS=1
	@$(BIN)/python -m tests.suite.run --what "$(WHAT)" --order $(or $(SEED),1) $(if $(COSTS),--costs target/costs)

.PHONY: check
check: $(VENV)/.ready ## lint, check types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config pyproject.toml

.PHONY: format
format: $(VENV)/.ready ## format the code and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: sim
sim: $(VENV)/.ready ## simulate WHAT=cluster|clients|connect|mirror|power-cuts|quorum|storage|groups with faults, TIMES=200 from SEED=0 on, and say what was met; BUGS=1 plants bugs and sees that each is found, WHAT=speed measures
	$(BIN)/python -m tests.simulation.sim $(or $(WHAT),cluster) $(if $(TIMES),--seeds $(TIMES)) $(if $(SEED),--first $(SEED)) $(if $(BUGS),--bugs) $(if $(BUG_SEEDS),--bug-seeds $(BUG_SEEDS))

.PHONY: crash
crash: $(VENV)/.ready ## break things for long, and look for what was lost: WHAT=node|campaign|power-cuts|damage|..., TIMES=100 SEED=1; WHAT=help lists what there is
	@$(BIN)/python -m tests.suite.verbs crash $(or $(WHAT),node) --times "$(TIMES)" --seed "$(SEED)" -- $(WITH)

.PHONY: bench
bench: $(if $(filter client,$(WHAT)),target/compiled) $(VENV)/.ready ## measure beside Apache Kafka and others (most need Java and Maven): WHAT=node|cluster|client|pipelines|..., TIMES=3; WHAT=help lists what there is
	@$(BIN)/python -m tests.suite.verbs bench $(or $(WHAT),node) --times "$(TIMES)" -- $(WITH)
	@$(if $(WHAT),,$(BIN)/python -m tests.suite.verbs bench front-door)

.PHONY: mutants
mutants: $(VENV)/.ready ## plant small faults in one room, and list those that no test notices: WHAT=broker SEED=1 TIMES=20, or CHANGED=1 BASE=main
	$(BIN)/python -m tests.mutants --what "$(WHAT)" --seed $(or $(SEED),1) --count $(or $(TIMES),20) $(if $(CHANGED),--changed) --base $(or $(BASE),main) $(if $(TESTS),--tests $(TESTS))

.PHONY: search
search: $(VENV)/.ready ## look for examples that no test has seen yet: TIMES=10
	for round in $$(seq $(or $(TIMES),10)); do EXAMPLES=new $(BIN)/pytest -n 2 -q --oracle live -m "not live_oracle" tests/property tests/differential || exit 1; done

.PHONY: golden
golden: $(VENV)/.ready ## record anew what Apache Kafka answers to the questions of tests (needs Java and Maven)
	rm -rf tests/golden/answers
	$(BIN)/pytest -n 0 -q -p no:randomly --oracle record tests/differential

.PHONY: lab
lab: $(VENV)/.ready ## make troubles happen with real clients, and score how they are explained: TIMES=100 SEED=1 JAVA=target/java-libs
	$(BIN)/python -m ottla.lab.campaign --scenarios $(or $(TIMES),100) --seed $(or $(SEED),1) $(if $(JAVA),--java $(JAVA))

.PHONY: demo
demo: $(VENV)/.ready ## payments, fraud and revenue, live, with a reckoning at the end: DURATION=60 RATE=2000 (needs Java)
	$(BIN)/python examples/payments/demo.py --seconds $(or $(DURATION),60) --rate $(or $(RATE),2000)

.PHONY: reference
reference: $(VENV)/.ready ## write the reference pages and the picture of the architecture from the source
	$(BIN)/python -m ottla.metadata.configs.reference > docs/reference/configs.md
	$(BIN)/python -m ottla.cli.reference.commands > docs/reference/cli.md
	$(BIN)/python -m ottla.cli.reference.metrics > docs/reference/metrics.md
	$(BIN)/python -m ottla.cli.reference.client > docs/reference/client.md
	$(BIN)/python -m ottla.registry.reference > docs/reference/registry.md
	$(BIN)/python -m ottla.connect.reference > docs/reference/connectors.md
	$(BIN)/python -m tests.docs.architecture_picture
	$(BIN)/python -m ottla.broker.serving.collected > served_rows.tmp && mv served_rows.tmp src/ottla/broker/serving/served_rows.py

.PHONY: docs
docs: reference ## build the site of the docs in target/site, with all links checked
	@# Without --quiet: with it, mkdocs does not count warnings, and no link is checked.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir target/site
	@echo 'open target/site/index.html'

.PHONY: wheel
wheel: $(VENV)/.runs ## build the package as dist/ottla-*.whl; with compiled records, where cc is: COMPILE=1
	$(if $(COMPILE),OTTLA_COMPILE=1) $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/ottla-*.whl

# Our client with compiled records, for its benchmark.
target/compiled: $(VENV)/.runs
	OTTLA_COMPILE=1 $(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target $@ .

.PHONY: clean
clean: ## remove what the verbs made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist target

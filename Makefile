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

.PHONY: test
test: $(VENV)/.ready ## run the tests; of one room: WHAT=storage (a room of src/ottla, or a folder of tests); all there are: WHAT=all; shuffled by a seed: ORDER=1
	@$(if $(COSTS),rm -rf target/costs; COSTS=target/costs) $(BIN)/python -m tests.suite.run --what "$(WHAT)" --order $${ORDER:-1}

.PHONY: test-costs
test-costs: ## run the tests, and print what each folder, file and test costs: WHAT=storage
	@failed=0; $(MAKE) --no-print-directory test COSTS=1 || failed=$$?; $(BIN)/python -m tests.suite.costs target/costs; exit $$failed

.PHONY: search
search: $(VENV)/.ready ## look for examples that no test has seen yet: ROUNDS=10
	for round in $$(seq $${ROUNDS:-10}); do EXAMPLES=new $(BIN)/pytest -n 2 -q --oracle live -m "not live_oracle" tests/property tests/differential || exit 1; done

.PHONY: golden
golden: $(VENV)/.ready ## record anew what Apache Kafka answers to the questions of tests (needs Java and Maven)
	rm -rf tests/golden/answers
	$(BIN)/pytest -n 0 -q -p no:randomly --oracle record tests/differential

.PHONY: mutants
mutants: $(VENV)/.ready ## plant small faults in one room, and list those that no quick test notices: WHAT=broker SEED=1 COUNT=20, or CHANGED=1 BASE=main
	$(BIN)/python -m tests.mutants --what "$(WHAT)" --seed $${SEED:-1} --count $${COUNT:-20} $(if $(CHANGED),--changed) --base $${BASE:-main} $(if $(TESTS),--tests $(TESTS))

.PHONY: check
check: $(VENV)/.ready ## lint, check types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --config pyproject.toml

.PHONY: fuzz-logins
fuzz-logins: $(VENV)/.ready ## talk to a node that asks for a login as a hostile peer would, TALKS=100000 times
	$(BIN)/python -m tests.fuzz.hostile_logins --talks $(or $(TALKS),100000)

.PHONY: siege
siege: $(VENV)/.ready ## besiege a node with PEERS=2000 that never log in, and see what a client notices: RATE=100 DURATION=30
	$(BIN)/python -m tests.cluster.siege --peers $${PEERS:-2000} --rate $${RATE:-100} --seconds $${DURATION:-30}

.PHONY: fuzz
fuzz: $(VENV)/.ready ## decode a million hostile frames
	$(BIN)/python -m tests.fuzz.hostile_frames --frames 1000000

.PHONY: expensive
expensive: $(VENV)/.ready ## send each API its most expensive requests, and measure what another client waits: API="METADATA FETCH"
	$(BIN)/python -m benchmarks.expensive --api $(API)
	$(BIN)/python -m benchmarks.expensive --without-rights --api $(API)

KILLS ?= 100

.PHONY: crash-node
crash-node: $(VENV)/.ready ## kill a node under load, KILLS times, and look for what it lost
	$(BIN)/python -m tests.cluster.crashes --kills $(KILLS)

.PHONY: damage
damage: $(VENV)/.ready ## damage the files of a stopped or killed node at random, and see what a start makes of it: ROUNDS=300 SEED=1
	$(BIN)/python -m tests.damage.rounds --rounds $${ROUNDS:-300} --seed $${SEED:-1}

.PHONY: bit-rot
bit-rot: $(VENV)/.ready ## flip bits in the files of one of three nodes that run, and see that all is healed: ROUNDS=200 SEED=1
	$(BIN)/python -m tests.cluster.bit_rot --rounds $${ROUNDS:-200} --seed $${SEED:-1}

.PHONY: bench-codec
bench-codec: $(VENV)/.ready ## compare the codecs with those of other Python projects
	$(BIN)/python -m benchmarks.codec

.PHONY: crash-groups
crash-groups: $(VENV)/.ready ## kill members of a group and their broker for 5 minutes, and look for what was skipped
	$(BIN)/python -m tests.clients.group_endurance --minutes 5

.PHONY: crash-quorum
crash-quorum: $(VENV)/.ready ## kill the active one of three controllers KILLS=50 times while the metadata changes
	KILLS=$${KILLS:-50} $(BIN)/pytest -n 0 --timeout 7200 tests/cluster/test_quorum_failover.py

.PHONY: bench-quorum
bench-quorum: $(VENV)/.ready ## measure the time without an active controller against Apache Kafka, ROUNDS=10 times (needs Java)
	$(BIN)/python -m benchmarks.quorum --rounds $${ROUNDS:-10}

.PHONY: bench-groups
bench-groups: $(VENV)/.ready ## measure heartbeats, commits, share groups, a group of 1,000 and a restart with 5,000 groups against Apache Kafka
	$(BIN)/python -m benchmarks.groups
	$(BIN)/python -m benchmarks.consumer_groups
	$(BIN)/python -m benchmarks.share_groups
	$(BIN)/python -m benchmarks.groups --restart

.PHONY: format
format: $(VENV)/.ready ## format the code and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: reference
reference: $(VENV)/.ready ## write the reference pages and the picture of the architecture from the source
	$(BIN)/python -m ottla.metadata.configs.reference > docs/reference/configs.md
	$(BIN)/python -m ottla.cli.reference.commands > docs/reference/cli.md
	$(BIN)/python -m ottla.cli.reference.metrics > docs/reference/metrics.md
	$(BIN)/python -m ottla.cli.reference.client > docs/reference/client.md
	$(BIN)/python -m ottla.registry.reference > docs/reference/registry.md
	$(BIN)/python -m ottla.connect.reference > docs/reference/connectors.md
	$(BIN)/python -m tests.docs.architecture_picture

.PHONY: sim
sim: $(VENV)/.ready ## simulate WHAT=cluster|power-cuts|quorum|storage|groups with faults, SEEDS=200 times from seed FIRST=0 on, and say what was met; BUGS=1 plants bugs and sees that each is found, WHAT=speed measures
	$(BIN)/python -m tests.simulation.sim $${WHAT:-cluster} $${SEEDS:+--seeds $$SEEDS} $${FIRST:+--first $$FIRST} $${BUGS:+--bugs} $${BUG_SEEDS:+--bug-seeds $$BUG_SEEDS}

.PHONY: campaign
campaign: $(VENV)/.ready ## break three real nodes in networks of their own while clients work: OPERATIONS=20000 SEED=0 NODES=ottla|kafka|mixed CLIENT=confluent|ottla|java FAULTS=kill,cut-power,... INTERVAL=3 (needs root)
	$(BIN)/python -m tests.cluster.campaign --operations $${OPERATIONS:-20000} --seed $${SEED:-0} --nodes $${NODES:-ottla} --client $${CLIENT:-confluent} $${FAULTS:+--faults $$FAULTS} $${INTERVAL:+--interval $$INTERVAL}

.PHONY: power-cuts
power-cuts: $(VENV)/.ready ## cut the power of three real nodes at once while clients work, TIMES=300 SEED=0 NODES=ottla|kafka|mixed CLIENT=confluent|ottla|java (needs root)
	$(BIN)/python -m tests.cluster.campaign --times $${TIMES:-300} --faults cut-power-of-all --interval 1.5 --seed $${SEED:-0} --nodes $${NODES:-ottla} --client $${CLIENT:-confluent}

.PHONY: bench-log
bench-log: $(VENV)/.ready ## measure the log: append, look-up, group commit, recovery, compaction (needs Java)
	$(BIN)/python -m benchmarks.log

.PHONY: restart-clients
restart-clients: $(VENV)/.ready ## kill and start a broker under our producer and a group of our consumers: RESTARTS=20
	RESTARTS=$${RESTARTS:-20} $(BIN)/pytest tests/cluster/test_clients_through_restarts.py

.PHONY: bench-client
bench-client: compiled-wheel $(VENV)/.ready ## compare our Python client with aiokafka, kafka-python and confluent-kafka (needs cc)
	@rm -rf target/compiled
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target target/compiled target/wheels/ottla-*.whl
	$(BIN)/python -m benchmarks.client

.PHONY: demo
demo: $(VENV)/.ready ## payments, fraud and revenue, live, with a reckoning at the end: DURATION=60 RATE=2000 (needs Java)
	$(BIN)/python examples/payments/demo.py --seconds $${DURATION:-60} --rate $${RATE:-2000}

.PHONY: test-pipelines
test-pipelines: $(VENV)/.ready ## run all tests of pipelines, those on a Spark cluster and with kills included (needs Java)
	$(BIN)/pytest tests/pipelines tests/unit/pipelines tests/connect/test_spark.py

.PHONY: kill-pipelines
kill-pipelines: $(VENV)/.ready ## kill pipelines and their broker, and look for what was lost or doubled: KILLED=20 RECORDS=2000000
	$(BIN)/python -m tests.pipelines.kills --kills $${KILLED:-20} --records $${RECORDS:-2000000}

.PHONY: kill-connectors
kill-connectors: $(VENV)/.ready ## kill a connector, its broker and PostgreSQL, and look for what was lost or doubled: KILLED=30 (needs PostgreSQL)
	$(BIN)/python -m tests.connect.changes --kills $${KILLED:-30}

.PHONY: bench-connect
bench-connect: $(VENV)/.ready ## compare connectors with those of Kafka Connect: rows for each second of CPU (needs Java and Maven)
	$(BIN)/python -m benchmarks.connect

.PHONY: bench-pipelines
bench-pipelines: $(VENV)/.ready ## compare source and sink with Spark's own Kafka connector (needs Java and Maven)
	$(BIN)/python -m benchmarks.pipelines

.PHONY: clean
clean: ## remove what the verbs made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist target

.PHONY: up
up: $(VENV)/.runs ## run a node on 127.0.0.1, its data in ./ottla-data: PORT=9092
	@$(BIN)/ottla up --hints --port $${PORT:-9092}

.PHONY: wheel
wheel: $(VENV)/.runs ## build the package as dist/ottla-*.whl
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/ottla-*.whl

.PHONY: compiled-wheel
compiled-wheel: $(VENV)/.runs ## build the package with compiled records as target/wheels/ottla-*.whl (needs cc)
	@rm -rf target/wheels
	OTTLA_COMPILE=1 $(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir target/wheels .
	@ls target/wheels/ottla-*.whl

.PHONY: docs
docs: reference ## build the site of the docs in target/site, with all links checked
	@# Without --quiet: with it, mkdocs does not count warnings, and no link is checked.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir target/site
	@echo 'open target/site/index.html'

.PHONY: bench-cluster
bench-cluster: $(VENV)/.ready ## compare three nodes with three brokers of Apache Kafka (needs Java and Maven)
	$(BIN)/python -m benchmarks.cluster

.PHONY: mirror-kills
mirror-kills: $(VENV)/.ready ## kill mirrors, their sources and their targets many times, and compare the copies (needs Java and Maven)
	MIRROR_KILLS=5 $(BIN)/pytest -n 0 --timeout 3600 tests/cluster/test_mirror_kills.py

.PHONY: bench-mirror
bench-mirror: $(VENV)/.ready ## compare ottla mirror with MirrorMaker 2: bytes per CPU second (needs Java and Maven)
	$(BIN)/python -m benchmarks.mirror

.PHONY: bench-fixture
bench-fixture: $(VENV)/.ready ## time 200 tests that each get a fresh node
	$(BIN)/python -m benchmarks.fresh_nodes

.PHONY: bench-security
bench-security: $(VENV)/.ready ## measure what TLS, logins and access rules cost, beside Apache Kafka (needs Java and Maven)
	$(BIN)/python -m benchmarks.security

.PHONY: bench
bench: $(VENV)/.ready ## compare a node with Apache Kafka 4.3.1: ROWS=start,produce,fetch (needs Java and Maven)
	$(BIN)/python -m benchmarks.node $(if $(ROWS),--rows $(ROWS))
	$(if $(ROWS),,$(BIN)/python -m benchmarks.front_door)

.PHONY: bench-before
bench-before: $(VENV)/.ready ## compare a node with that of another commit, in turns: BASE=HEAD~10
	$(BIN)/python -m benchmarks.before $${BASE:-HEAD~10}

.PHONY: guarantees
guarantees: $(VENV)/.ready ## check delivery guarantees while a node is killed and paused: OPERATIONS=100000 SEED=0 CLIENT=confluent
	$(BIN)/python -m tests.cluster.guarantees --operations $${OPERATIONS:-100000} --first-seed $${SEED:-0} --client $${CLIENT:-confluent}

.PHONY: bench-journal
bench-journal: $(VENV)/.ready ## measure what the journal costs a node
	$(BIN)/python -m benchmarks.journal

.PHONY: bench-registry
bench-registry: $(VENV)/.ready ## measure the schema registry, and its serializers beside those of confluent-kafka
	$(BIN)/python -m benchmarks.registry

.PHONY: lab
lab: $(VENV)/.ready ## make troubles happen with real clients, and score how they are explained: SCENARIOS=100 SEED=1 JAVA=target/java-libs
	$(BIN)/python -m ottla.lab.campaign --scenarios $${SCENARIOS:-100} --seed $${SEED:-1} $${JAVA:+--java $$JAVA}

.PHONY: exactly-once
exactly-once: $(VENV)/.ready ## copy a topic exactly once with four clients while a node is killed: RECORDS=50000
	RECORDS=$${RECORDS:-50000} $(BIN)/pytest tests/cluster/test_exactly_once.py

.PHONY: copies
copies: $(VENV)/.ready ## let Apache Kafka's copier copy MESSAGES=100000 through BOUNCES=20 kills of a node (needs Java)
	$(BIN)/python -m tests.cluster.apache_copies --messages $${MESSAGES:-100000} --bounces $${BOUNCES:-20}

# One command each; every target is safe to repeat. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := bash

DEMO_SECONDS ?= 180
BIN := .venv/bin
CORE_TESTS := tests/benchmarks tests/contracts tests/deploy tests/golden tests/model tests/planner \
	tests/properties tests/simulation tests/sources tests/unit
SPARK_TESTS := tests/e2e tests/spark
FAULTS_TESTS := tests/agent tests/faults tests/traffic
UV_VERSION := 0.13.8
COMPILE = UV_CUSTOM_COMPILE_COMMAND="make lock" build/uv/bin/uv pip compile pyproject.toml \
	--universal --python-version 3.11 --fork-strategy fewest --generate-hashes --quiet

.PHONY: help
help: ## print this list
	@sed -n 's/^\([a-z.-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 13

.PHONY: demo
demo: setup ## Kafka, Redis, the job and a skewed fleet, balancing before your eyes; KEEP=1 leaves all running
	$(BIN)/trimtab demo --seconds $(DEMO_SECONDS) $(if $(KEEP),--keep)

.PHONY: test
test: setup check ## set up, then everything CI runs

.PHONY: check
check: .venv ## format, lint, types, import contracts, tests, the built wheel
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(MAKE) --no-print-directory --jobs 3 --keep-going --output-sync=target \
		test-servers test-spark test-core test-faults types try-wheel

# The tests start JVMs of Kafka and Spark again and again.
.PHONY: class-archive
class-archive: jars
	$(BIN)/python -m tests.support.class_archive

# Three at once, and the longest first: tests with servers wait more than they compute. What mostly
# computes gives way.
.PHONY: test-faults test-servers test-core test-spark
test-faults: class-archive
	$(BIN)/pytest -m "not slow" $(FAULTS_TESTS)
test-servers: class-archive
	$(BIN)/pytest -m "not slow" tests $(patsubst %,--ignore %,$(CORE_TESTS) $(FAULTS_TESTS) $(SPARK_TESTS))
# Spark gives a worker ten seconds to start: these do not give way.
test-spark: class-archive
	$(BIN)/pytest -m "not slow" $(SPARK_TESTS)
test-core:
	nice $(BIN)/pytest -m "not slow" $(CORE_TESTS)

.PHONY: types
types: .venv ## types and import contracts
	nice $(BIN)/mypy
	nice $(BIN)/lint-imports

.PHONY: try-wheel
try-wheel: wheel ## the wheel in an environment of its own
	nice deploy/try_wheel.sh

.PHONY: slow
slow: setup ## the longer tests that neither `make test` nor `make faults` runs; fifty times the examples
	$(BIN)/pytest -m "slow and not pulsar" --ignore tests/faults
	$(BIN)/pytest --hypothesis-profile long -o timeout=1800 -m "not slow" tests/planner tests/properties

.PHONY: false-plans
false-plans: .venv ## count the plans that noise alone causes over DAYS=300 of each kind of noise; hours
	$(BIN)/python -m simulation.false_plans $(if $(DAYS),--days $(DAYS))

.PHONY: bench
bench: setup ## measure every claim in 40 minutes; ONLY=name for one; QUICK=1 those that need no job
	$(BIN)/python -m benchmarks $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

.PHONY: faults
faults: setup ## break everything under the running job; ROW=n for one fault, SEED=s for its dice
	$(BIN)/pytest tests/faults --faults-json build/faults.json $(if $(ROW),--row $(ROW)) \
		$(if $(SEED),--seed $(SEED))

.PHONY: model
model: .venv ## search the models of the ownership protocol to the end; WITHOUT=flag tells what one cure prevents
	$(BIN)/python -m model.check $(if $(WITHOUT),--without $(WITHOUT))

.PHONY: pulsar
pulsar: setup ## observe real Pulsar brokers; TRIMTAB_REALPULSAR names the scripts that start them
	$(BIN)/pytest -s -m pulsar tests/e2e

.PHONY: setup
setup: jdk .venv jars ## JDK, Python environment, jars

.PHONY: jdk
jdk:
	@deploy/setup.sh jdk

.PHONY: .venv
.venv: .venv/installed ## the Python environment alone

.venv/installed: pyproject.toml deploy/requirements-dev.lock deploy/setup.sh
	@deploy/setup.sh venv

.PHONY: jars
jars: .venv ## fetch and verify the Spark connector and Kafka jars
	@$(BIN)/python -m deploy.jars

.PHONY: java-broker
java-broker: jdk .venv ## compile the example broker in Java (examples/java-broker)
	@$(BIN)/python examples/java-broker/build.py

.PHONY: wheel
wheel: .venv ## build dist/trimtab-*.whl
	rm -rf dist build/lib build/bdist.*
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

.PHONY: lock
lock: .venv ## resolve packages and jars again and rewrite the lock files
	@test -x build/uv/bin/uv || python3 -m venv build/uv
	@build/uv/bin/python -m pip install --quiet uv==$(UV_VERSION)
	$(COMPILE) --upgrade --output-file deploy/requirements.lock
	$(COMPILE) --upgrade --group dev --constraint deploy/requirements.lock \
		--output-file deploy/requirements-dev.lock

# Each is held by a test, which names this target where it fails.
MADE := admin.documents.commands admin.documents.metrics admin.documents.paths \
	admin.documents.migration_diagram admin.documents.pictures admin.documents.plan_diagram admin.documents.runbooks \
	admin.documents.state_diagram admin.exit_codes admin.wire deploy.dashboards \
	deploy.manifests model.table
.PHONY: documents
documents: .venv ## write all that is made from the code: references, schemas, pictures, boards, manifests
	@set -e; for module in $(MADE); do $(BIN)/python -m $$module; done

.PHONY: site
site: .venv ## build the documentation as a site in build/site; a broken link is an error
	@$(BIN)/python -m admin.documents.site

.PHONY: clean
clean: ## remove everything made here, except the jar cache
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf .import_linter_cache spark-warehouse metastore_db

# Everything runs in .venv of this clone: needs Python 3.11+ and Java 17+ (without Java, one from the lock is installed), no root, no
# Docker. Downloads come once: pip's cache, and Kafka's jars in the user's cache, are shared by clones side by side.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEV_STAMP := $(VENV)/.installed-dev
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The tests start hundreds of Python processes: each would compile samzapy anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv dev demo test prove simulate chaos chaos-program bench bench-peers bench-check lint check docs lock clean
.DEFAULT_GOAL := help

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 8

venv: $(STAMP)  ## .venv with what it takes to run and test a job: requirements.lock, and samzapy itself

$(STAMP): requirements.lock requirements-java.lock pyproject.toml hatch_build.py $(wildcard samzapy/native/*.[ch]) samzapy/native/build.py
	@echo "setting up $(VENV): a minute; the first time some minutes, mostly PySpark (450 MB)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m samzapy.dev.java || $(BIN)/python -m pip install --require-hashes --no-deps -r requirements-java.lock
	@$(BIN)/python -m samzapy.dev.java
	@touch $@

dev: $(DEV_STAMP)  ## what the tests, the lint and the pages need besides: requirements-dev.lock

$(DEV_STAMP): $(STAMP) requirements-dev.lock
	@echo "installing what only the tests need"
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.lock
	@touch $@

demo: venv  ## the guided run: Kafka, Spark, a word count, a killed container
	@$(BIN)/samzapy demo

lint: dev  ## style, types, layers
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint  ## lint and the tests that need neither Kafka nor Spark
	$(BIN)/pytest -m "not kafka and not spark and not slow and not prove"

# The first collection compiles every test: done once, rather than by each of the five processes. The lint goes on beside the tests; what it finds
# wrong is shown at once, and at the end too it is a failure.
test: dev  ## lint, and everything: five tests at a time (much of their time goes into waiting)
	@{ $(MAKE) --no-print-directory lint >.lint.log 2>&1 || { cat .lint.log; exit 1; }; } & lint=$$!; \
	$(BIN)/pytest --collect-only -qq >/dev/null; $(BIN)/pytest -n 5 --durations=15; tests=$$?; \
	wait $$lint || { tail -n 20 .lint.log; echo "the lint failed"; exit 1; }; exit $$tests

prove: dev  ## the long proofs: every failpoint in every way, 500 simulated histories, planted bugs, three hosts; half an hour
	$(BIN)/pytest -n 3 -m prove

bench: dev  ## samzapy beside hand-written loops: a table, and JSON in .bench/results; ONLY=w2 ROUNDS=5 RECORDS=1000000 SMALL=1
	$(BIN)/python -m tests.bench run --only "$(ONLY)" --rounds $(or $(ROUNDS),5) --records $(or $(RECORDS),1000000) $(if $(SMALL),--small)

bench-check: dev  ## compare the newest results of `make bench` with tests/bench/recorded.json
	$(BIN)/python -m tests.bench check

bench-peers: dev  ## w2, w3, latency and restore beside Quix Streams, Bytewax, Kafka Streams and Flink, each in an environment of its own; BENCH=w3 ONLY=quix ROUNDS=3 RECORDS=1000000 SMALL=1
	$(BIN)/python -m tests.bench.peers.run --bench "$(BENCH)" --only "$(ONLY)" --rounds $(or $(ROUNDS),3) --records $(or $(RECORDS),1000000) $(if $(SMALL),--small)

simulate: dev  ## ten thousand simulated histories, resumable: SEEDS=from-to, JOBS=processes
	$(BIN)/python -m tests.recovery.simulate --seeds $(SEEDS) --jobs $(JOBS) --resume .simulated.jsonl

SEEDS ?= 0-9999
JOBS ?= 2

chaos: dev  ## half an hour of faults of every kind over three brokers, as child processes and on Spark (SEED=n MINUTES=n)
	$(BIN)/python -m tests.recovery.run --chaos --minutes $(or $(MINUTES),30) --seed $(or $(SEED),1)
	$(MAKE) --no-print-directory chaos-program

chaos-program: dev  ## the same time of kills, pauses and deleted state for a program of three stages (SEED=n MINUTES=n)
	$(BIN)/python -m tests.recovery.program.feed $(or $(SEED),1) 100000 | \
	$(BIN)/samzapy chaos tests/recovery/program/job.yaml --input - --minutes $(or $(MINUTES),30) --seed $(or $(SEED),1)

docs: dev  ## the pages as a static site with search, in .docs/site; no network is needed
	@$(BIN)/python docs/build.py

lock:  ## write the lock files again from pyproject.toml
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet --upgrade pip pip-tools
	$(WANTED) spark base dev | $(COMPILE) --output-file requirements-dev.lock -
	$(WANTED) spark base | $(COMPILE) --constraint requirements-dev.lock --output-file requirements.lock -
	$(WANTED) java | $(COMPILE) --output-file requirements-java.lock -
	rm -rf $(VENV)-lock

# The requirements of pyproject.toml that a lock file answers: the project's own, or those of the extras and groups named.
WANTED := $(VENV)-lock/bin/python -c 'import sys, tomllib; \
	project = tomllib.load(open("pyproject.toml", "rb")); named = sys.argv[1:]; \
	own = project["project"]["dependencies"] if "spark" in named else []; \
	parts = project["project"]["optional-dependencies"] | project["dependency-groups"]; \
	print(*own, *(line for name in named for line in parts[name]), sep="\n")'
COMPILE := $(VENV)-lock/bin/pip-compile --quiet --upgrade --rebuild --generate-hashes --allow-unsafe --strip-extras --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options

clean:  ## remove .venv and the files of tools
	rm -rf $(VENV) $(VENV)-lock .docs .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .lint.log

# The two commands of the README are `make demo` and `make test`; both install what they need into .venv first.

PYTHON ?= python3
VENV := .venv
PACKAGES := controller emulator experiments hostlib p4src policies runtime simulator topologies trainyard workloads
BIN := $(VENV)/bin

.PHONY: setup torch demo test quick docs chaos lint types p4 p4-tofino proto package clean

setup: $(VENV)/.installed

$(VENV)/.installed: requirements.txt pyproject.toml hostlib/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Trainyard needs Python 3.11 or later, this is %s" % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable ./hostlib --editable .
	touch $@

# PyTorch is large, and only PyTorch jobs need it.
torch: $(VENV)/.torch-installed

$(VENV)/.torch-installed: requirements-torch.txt | setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-torch.txt
	touch $@

demo: setup
	$(BIN)/trainyard demo --out out

test: torch lint types docs
	$(BIN)/python -m pytest -rs -n auto --dist worksteal

# The inner loop: everything but types and the tests that are marked as slow.
quick: torch lint
	$(BIN)/python -m pytest -m "not slow" -n auto --dist worksteal

# The documentation as a site, in out/docs/index.html. Warnings, broken links among them, are errors.
docs: setup
	$(BIN)/sphinx-build -W --keep-going -q -d out/.doctrees docs out/docs

# Random failures of everything at once: docs/chaos.md. SEED replays a run that went wrong.
SEED := 1
EVENTS := 10000
KILLS := 50
STOPS := 10
chaos: setup
	$(BIN)/python -m tests.chaos --seed $(SEED) --events $(EVENTS)
	CHAOS_SEED=$(SEED) CHAOS_KILLS=$(KILLS) $(BIN)/python -m pytest -rs tests/chaos/test_killed_processes.py tests/controller/store/test_killed_store.py
	CHAOS_STOPS=$(STOPS) $(BIN)/python -m pytest -rs tests/chaos/test_stopped_leaders.py
	$(BIN)/python -m tests.chaos.fail_over --seed $(SEED)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive $(PACKAGES)

types: setup
	$(BIN)/mypy

# Compile the P4 program: needs p4c-bm2-ss, or Docker for the p4lang/p4c container.
p4: setup
	$(BIN)/python -m p4src.compile

# The same for Tofino: needs p4c with its Tofino back end on PATH.
p4-tofino: setup
	$(BIN)/python -m p4src.compile_tofino

# Regenerate the wire formats of the host library, of the operations service and of driven time from their .proto files.
proto: setup
	$(BIN)/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. hostlib/wire/trainyard.proto controller/api/operations/operations.proto experiments/scenarios/driven/driven_time.proto

# A Debian package in out/, for the Python of this Debian. All Python packages go inside: docs/installation.md.
package: setup
	deploy/debian/build.sh

clean:
	rm -rf $(VENV) out build *.egg-info hostlib/build hostlib/*.egg-info

# Two commands are enough: `make demo` and `make test`. Each sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-slow test-federation coverage trust lint bench clean

demo: .venv/.demo .venv/.kernels
	$(BIN)/fdrsvm demo --output report

test: .venv/.test .venv/.kernels
	$(BIN)/python -m pytest

test-slow: .venv/.test .venv/.kernels
	$(BIN)/python -m pytest -m slow

# Real processes on loopback, and hosts as network namespaces where that is permitted.
test-federation: export OMP_NUM_THREADS = 1
test-federation: .venv/.test .venv/.simulation .venv/.kernels
	$(BIN)/python -m pytest -m federation tests/federation

# All branches of what reads files and judges messages: the list is in pyproject.toml.
coverage: export OMP_NUM_THREADS = 1
coverage: .venv/.test .venv/.kernels
	$(BIN)/python -m pytest --no-cov-on-fail --cov --cov-config=pyproject.toml \
		tests/test_codec.py tests/test_files.py tests/test_hostile_files.py tests/federated \
		tests/estimators/test_model_file.py tests/federation/test_plant.py

# Every figure of docs/trust.md; kills and files take seven and four minutes on a busy machine.
trust: export OMP_NUM_THREADS = 1
trust: .venv/.test .venv/.kernels
	$(BIN)/python -m fdrsvm.experiments.trust --output docs

lint: .venv/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: export OMP_NUM_THREADS = 1
bench: export OPENBLAS_NUM_THREADS = 1
bench: export NUMBA_NUM_THREADS = 1
bench: .venv/.bench .venv/.kernels
	$(BIN)/python benchmarks/worst_case.py
	$(BIN)/python benchmarks/client_solvers.py
	$(BIN)/python benchmarks/pump.py
	$(BIN)/python benchmarks/federated.py

clean:
	rm -rf .venv report .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv

# A stamp for each set of extras, remade when the dependencies change.
.venv/.demo: pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[experiments]'
	touch $@

.venv/.test .venv/.simulation .venv/.lint .venv/.bench: .venv/.%: pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[$*]'
	touch $@

# numba keeps machine code beside the sources and looks only at the file a kernel stands in, not at
# the files of the kernels it calls: after a change anywhere all of it must go.
.venv/.kernels: $(shell find src -name '*.py') | .venv/bin/python
	find src -name '*.nb[ic]' -delete
	touch $@

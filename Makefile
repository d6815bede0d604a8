# Two commands are enough: `make demo` and `make test`. Each sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
BENCH_PIP := .venv-bench/bin/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-slow test-federation test-federation-all coverage trust lint docs gallery build bench bench-env clean

demo: .venv/.demo .venv/.kernels
	$(BIN)/fdrsvm demo --output report

test: .venv/.test .venv/.kernels
	$(BIN)/python -m pytest

test-slow: .venv/.test .venv/.docs .venv/.release .venv/.kernels
	$(BIN)/python -m pytest -m 'slow and not federation'

# Real processes on loopback, and hosts as network namespaces where that is permitted. The second
# one adds every signal and every wrong clock.
test-federation test-federation-all: export OMP_NUM_THREADS = 1
test-federation: .venv/.test .venv/.simulation .venv/.kernels
	$(BIN)/python -m pytest -m 'federation and not slow' tests/federation

test-federation-all: .venv/.test .venv/.simulation .venv/.kernels
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

# The site, with its examples run: warnings are errors, and nothing may be loaded from elsewhere.
docs: export OMP_NUM_THREADS = 1
docs: .venv/.docs .venv/.kernels
	$(BIN)/python -m sphinx -W --keep-going -q -d .venv/doctrees docs site
	$(BIN)/python docs/check_site.py site

# The examples as plain scripts.
gallery: .venv/.test .venv/.docs .venv/.kernels
	$(BIN)/python -m pytest -m slow tests/test_examples.py

build: .venv/.release
	rm -rf dist
	$(BIN)/python -m build --outdir dist

# Side by side with other solvers, which have an environment of their own. Rows go to bench/ as they
# come, and a second `make bench` goes on where the first was interrupted.
bench: .venv-bench/.ready .venv-bench/.kernels
	.venv-bench/bin/python -m benchmarks --output bench

bench-env: .venv-bench/.ready

# What cannot be installed beside the project is named and left out; its rows say so.
.venv-bench/.ready: benchmarks/requirements.txt pyproject.toml | .venv-bench/bin/python
	$(BENCH_PIP) --editable '.[bench]'
	grep -v '^#' benchmarks/requirements.txt | while read -r package; do \
		$(BENCH_PIP) --editable '.[bench]' "$$package" || echo "not installed: $$package" >&2; done
	touch $@

clean:
	rm -rf .venv .venv-bench report site dist docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python .venv-bench/bin/python: %/bin/python:
	$(PYTHON) -m venv $*

# A stamp for each set of extras, remade when the dependencies change.
.venv/.demo: pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[experiments]'
	touch $@

.venv/.test .venv/.simulation .venv/.lint .venv/.docs .venv/.release: .venv/.%: pyproject.toml | .venv/bin/python
	$(PIP) --editable '.[$*]'
	touch $@

# numba keeps machine code beside the sources and looks only at the file a kernel stands in, not at
# the files of the kernels it calls: after a change anywhere all of it must go.
.venv/.kernels .venv-bench/.kernels: %/.kernels: $(shell find src -name '*.py') | %/bin/python
	find src -name '*.nb[ic]' -delete
	touch $@

# Two commands are enough: `make demo` and `make test`. Each sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
# Python compiles what it imports: compiling all that is installed takes longer than installing it.
PIP_OPTIONS := --quiet --disable-pip-version-check --no-compile
PIP := $(BIN)/python -m pip install $(PIP_OPTIONS)
BENCH_PIP := .venv-bench/bin/python -m pip install $(PIP_OPTIONS)

.PHONY: demo test test-slow test-federation test-federation-all coverage trust lint docs gallery build native-check bench bench-env bench-releases clean

demo: .venv/.native
	$(BIN)/fdrsvm demo --output report

# Two processes, each with whole files, since tests of a file share what they made.
test: export OMP_NUM_THREADS = 1
test: .venv/.test
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: .venv/.test .venv/.docs .venv/.release
	$(BIN)/python -m pytest -m 'slow and not federation'
	$(BIN)/python -m pytest -m 'hypothesis and not federation' --hypothesis-profile thorough

# Real processes on loopback, and hosts as network namespaces where that is permitted. The second
# one adds every signal and every wrong clock.
test-federation test-federation-all: export OMP_NUM_THREADS = 1
test-federation: .venv/.test .venv/.simulation
	$(BIN)/python -m pytest -m 'federation and not slow' tests/deploy

test-federation-all: .venv/.test .venv/.simulation
	$(BIN)/python -m pytest -m federation tests/deploy

# All branches of what reads files and judges messages: the list is in pyproject.toml.
coverage: export OMP_NUM_THREADS = 1
coverage: .venv/.test
	$(BIN)/python -m pytest --no-cov-on-fail --cov --cov-config=pyproject.toml \
		tests/core/test_codec.py tests/core/test_files.py tests/test_hostile_files.py tests/federated tests/privacy \
		tests/model/test_model_file.py tests/deploy/test_plant.py

# Every figure of docs/trust.md; kills and files take seven and four minutes on a busy machine.
trust: export OMP_NUM_THREADS = 1
trust: .venv/.test
	$(BIN)/python -m benchmarks.trust --output docs

lint: .venv/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# The site, with its examples run: warnings are errors, and nothing may be loaded from elsewhere.
docs: export OMP_NUM_THREADS = 1
docs: .venv/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -d .venv/doctrees docs site
	$(BIN)/python docs/check_site.py site

# The examples as plain scripts.
gallery: .venv/.test .venv/.docs
	$(BIN)/python -m pytest -m slow tests/test_examples.py

build: .venv/.release
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m build --outdir dist paper

# The kernels' tests under the sanitizers of addresses and undefined behaviour, which end the process
# at the first fault. The environment is that of the tests, but for the package.
SANITIZED := build/sanitized
KERNEL_TESTS := tests/native tests/risk tests/solvers tests/core tests/datasets/test_pump.py \
	tests/federated/test_screening.py tests/federated/test_baselines.py
native-check: export OMP_NUM_THREADS = 1
native-check: .venv/.test
	rm -rf $(SANITIZED)/package $(SANITIZED)/venv
	mkdir -p $(SANITIZED)/package
	cp -R src/fdrsvm $(SANITIZED)/package/
	$(BIN)/python -m venv --without-pip $(SANITIZED)/venv
	$(BIN)/python native/sanitized.py $(SANITIZED) $(KERNEL_TESTS)

# Side by side with other solvers, which have an environment of their own. Rows go to bench/ as they
# come, and a second `make bench` goes on where the first was interrupted.
bench: .venv-bench/.ready
	.venv-bench/bin/python -m benchmarks --output bench

# Beside an earlier release: make bench-releases OLD=path/to/python, of an environment that has it.
bench-releases: .venv-bench/.ready
	.venv-bench/bin/python -m benchmarks releases --old $(OLD) --output bench

bench-env: .venv-bench/.ready

# What cannot be installed beside the project is named and left out; its rows say so.
.venv-bench/.ready: benchmarks/requirements.txt pyproject.toml .venv-bench/.native .venv-bench/.paper
	$(BENCH_PIP) 'fdr-svm[bench]'
	grep -v '^#' benchmarks/requirements.txt | while read -r package; do \
		$(BENCH_PIP) 'fdr-svm[bench]' "$$package" || echo "not installed: $$package" >&2; done
	touch $@

clean:
	rm -rf .venv .venv-bench build report site dist docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis

.venv/bin/python .venv-bench/bin/python: %/bin/python:
	$(PYTHON) -m venv $*

# The package, compiled: with tools that stay, so that next time only what has changed is compiled.
.venv/.native .venv-bench/.native: %/.native: pyproject.toml src/fdrsvm/__init__.py $(shell find native -type f -not -path '*/__pycache__/*') | %/bin/python
	$*/bin/python -m pip install $(PIP_OPTIONS) $$($*/bin/python native/build_tools.py)
	PATH="$(CURDIR)/$*/bin:$$PATH" $*/bin/python -m pip install $(PIP_OPTIONS) --no-build-isolation --editable .
	touch $@

# The paper's experiments, which add the command `fdrsvm reproduce`.
.venv/.paper .venv-bench/.paper: %/.paper: paper/pyproject.toml | %/.native
	$*/bin/python -m pip install $(PIP_OPTIONS) --editable paper
	touch $@

# A stamp for each set of extras, remade when the dependencies change.
.venv/.test .venv/.simulation .venv/.lint .venv/.docs .venv/.release: .venv/.%: pyproject.toml | .venv/.native .venv/.paper
	$(PIP) 'fdr-svm[$*]'
	touch $@

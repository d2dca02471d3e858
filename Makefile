# Everything runs in .venv, which is made on first use. Needs Python >= 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Test processes in parallel; compiled kernels are shared through the cache.
JOBS ?= 2
# The lower bounds of pyproject.toml have wheels for this Python only.
OLDEST_PYTHON ?= python3.11
# make test-newest PRE=--pre tries versions that are not released yet.
PRE ?=
# Where there is no GPU, a build without CUDA is smaller by gigabytes; PyTorch's site says where to
# get one: TORCH='torch --index-url https://download.pytorch.org/whl/cpu'.
TORCH ?= torch==2.13.0

# Tests to run; all by default.
TESTS ?=
# Of make faults; KIND=files, for example, tries one kind only.
MINUTES ?= 15
SEED ?= 0
KIND ?=

.PHONY: help demo test faults test-rounding test-torch test-oldest test-newest coverage lint check \
  docs docs-links dist bench bench-check peers paper clean

help:
	@echo "make demo           train on a text-like problem, verify the certificate, compare"
	@echo "make test           run the tests (TESTS=tests/solvers: some of them)"
	@echo "make faults         signals, hostile files, forged proofs, full disks; MINUTES=15 of them"
	@echo "make test-rounding  run them twice more, with the rounding of other x86 processors"
	@echo "make test-torch     run the tests of tensors; installs PyTorch (TORCH= says which)"
	@echo "make test-oldest    run them with the lower bounds of all dependencies, in .venv-oldest"
	@echo "make test-newest    run them with the newest versions, in .venv-newest (PRE=--pre: pre-releases)"
	@echo "make coverage       run them and say which lines ran"
	@echo "make lint           ruff, mypy --strict, import rules"
	@echo "make check          lint and test"
	@echo "make docs           build the site into docs/_build/html; warnings are errors"
	@echo "make docs-links     check that the links of the site to other sites lead somewhere"
	@echo "make dist           build sdist and wheel reproducibly, and try them outside of the checkout"
	@echo "make bench          run the benchmarks; DATA=folder names a folder of libsvm files"
	@echo "make bench-check    five small fits against recorded ratios: did a change make us slower?"
	@echo "make peers          compare with other solvers; needs DATA=folder, takes hours"
	@echo "make paper          the paper's tables; DATA=folder, or QUICK=1 for generated data, ten minutes"
	@echo "make clean          remove the environment and all caches"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "certsvm needs Python 3.11 or newer; say make PYTHON=python3.12, for example"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.runtime

demo: $(VENV)/.runtime
	@$(BIN)/python -m certsvm.demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n $(JOBS) $(TESTS)

faults: $(VENV)/.dev
	$(BIN)/python -m tests.faults --minutes $(MINUTES) --seed $(SEED) $(if $(KIND),--only $(KIND))

# Sums are rounded differently where vectors are shorter: first without AVX (NumPy and Numba) and with
# AVX2 (BLAS), then with AVX2 throughout, as on AMD's processors before Zen 4. NumPy warns of features
# that it cannot disable, so it is asked which it can.
NUMPY_FEATURES = $(BIN)/python -c 'from numpy._core._multiarray_umath import __cpu_dispatch__ as names; print(*names)'
AVX512_FEATURES = $(NUMPY_FEATURES) | tr ' ' '\n' | grep -E 'V4|AVX512' | tr '\n' ' '

test-rounding: $(VENV)/.dev
	NPY_DISABLE_CPU_FEATURES="$$($(NUMPY_FEATURES))" OPENBLAS_CORETYPE=Haswell NUMBA_CPU_NAME=generic \
	  $(BIN)/python -m pytest -q -n $(JOBS) $(TESTS)
	NPY_DISABLE_CPU_FEATURES="$$($(AVX512_FEATURES))" OPENBLAS_CORETYPE=Zen NUMBA_CPU_NAME=haswell \
	  NUMBA_CPU_FEATURES=+avx2,+fma $(BIN)/python -m pytest -q -n $(JOBS) $(TESTS)

$(VENV)/.torch: $(VENV)/.dev
	$(BIN)/python -c 'import torch' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	@touch $@

test-torch: $(VENV)/.torch
	$(BIN)/python -m pytest -q -n $(JOBS) tests/torch src/certsvm/torch

.venv-oldest/.test: pyproject.toml tools/bounds.py
	$(OLDEST_PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m tools.bounds > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint .venv-oldest/constraints.txt -e '.[test]'
	@touch $@

test-oldest: .venv-oldest/.test
	.venv-oldest/bin/python -m pytest -q -n $(JOBS) $(TESTS)

.venv-newest/bin/python:
	$(PYTHON) -m venv .venv-newest

# What is newest changes from day to day.
test-newest: .venv-newest/bin/python
	.venv-newest/bin/python -m pip install --quiet --disable-pip-version-check $(PRE) \
	  --upgrade --upgrade-strategy eager -e '.[test]'
	.venv-newest/bin/python -m pytest -q -n $(JOBS) $(TESTS)

coverage: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n $(JOBS) --cov --cov-report=term --cov-report=xml $(TESTS)

dist: $(VENV)/.dev
	$(BIN)/python -m tools.dist

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@ $(VENV)/.runtime

SPHINX = $(BIN)/python -m sphinx -d docs/_build/doctrees

# Runs the gallery, except for scripts that have not changed since the last time.
docs: $(VENV)/.docs
	$(SPHINX) -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

docs-links: docs
	$(SPHINX) -b linkcheck docs docs/_build/links

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA))

bench-check: $(VENV)/.dev
	$(BIN)/python -m benchmarks.continuous

peers: $(VENV)/.dev
	$(BIN)/python -m benchmarks.peers --install --environments .benchmark-cache/environments \
	  $(if $(DATA),--data $(DATA))

paper: $(VENV)/.dev
	$(BIN)/python -m benchmarks.paper $(if $(DATA),--data $(DATA)) \
	  $(if $(QUICK),--quick,--page docs/paper.md) $(if $(TABLE),--table $(TABLE))

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest dist .coverage* coverage.xml
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .numba_cache .import_linter_cache
	rm -rf docs/_build docs/api docs/auto_examples docs/sg_execution_times.rst
	find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} +

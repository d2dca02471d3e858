# Everything runs in .venv, which is made on first use. Needs Python >= 3.11 and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Test processes in parallel; compiled kernels are shared through the cache.
JOBS ?= 2
# Where there is no GPU, a build without CUDA is smaller by gigabytes; PyTorch's site says where to
# get one: TORCH='torch --index-url https://download.pytorch.org/whl/cpu'.
TORCH ?= torch==2.13.0

.PHONY: help demo test test-torch lint check bench peers paper clean

help:
	@echo "make demo   train on a text-like problem, verify the proof, compare"
	@echo "make test   run the tests"
	@echo "make test-torch  the tests of tensors; installs PyTorch (TORCH= says which)"
	@echo "make lint   ruff, mypy --strict, import rules"
	@echo "make check  lint and test"
	@echo "make bench  measure; DATA=folder names a folder of libsvm files"
	@echo "make peers  compare with other solvers; needs DATA=folder, takes hours"
	@echo "make paper  the paper's tables; DATA=folder, or QUICK=1 for generated data, ten minutes"
	@echo "make clean  remove the environment and all caches"

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
	$(BIN)/python -m pytest -q -n $(JOBS)

$(VENV)/.torch: $(VENV)/.dev
	$(BIN)/python -c 'import torch' 2>/dev/null || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	@touch $@

test-torch: $(VENV)/.torch
	$(BIN)/python -m pytest -q -n $(JOBS) tests/torch src/certsvm/torch

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA))

peers: $(VENV)/.dev
	$(BIN)/python -m benchmarks.peers --install --environments .benchmark-cache/environments \
	  $(if $(DATA),--data $(DATA))

paper: $(VENV)/.dev
	$(BIN)/python -m benchmarks.paper $(if $(DATA),--data $(DATA)) \
	  $(if $(QUICK),--quick,--page docs/paper.md) $(if $(TABLE),--table $(TABLE))

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .numba_cache .import_linter_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

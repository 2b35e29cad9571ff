# `make demo` and `make test` need nothing but Python >= 3.11 and make: they build their own environment in .venv once.
.PHONY: help demo check test lint types quick-tests all-tests docs bench bench-peers release clean
.DEFAULT_GOAL := help

PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11 python,\
  $(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))
VENV := .venv
RUN := $(VENV)/bin
PIP := $(RUN)/python -m pip install -q --disable-pip-version-check
# Three processes on two cores: many tests of the whole suite wait for other processes, files or a browser.
JOBS ?= 3
# One BLAS thread a process: the tests and the benchmarks bring their own parallelism.
export OPENBLAS_NUM_THREADS ?= 1
export MPLBACKEND ?= Agg
# Python keeps the tests as it has compiled them: without that, every process compiles them again.
unexport PYTHONDONTWRITEBYTECODE
# What JAX has compiled is kept for the other processes of a run and for the next run.
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/$(VENV)/jax
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0
export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES ?= -1
# The tests use each program that JAX compiles a few times only: optimising it takes longer than running it. JAX aborts
# where it does not know a flag, so that these are tried once.
XLA_FAST := --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false

# The tests of PyTorch run where pip finds a CPU build, which PyPI does not have: pip.conf has to name a folder or an
# index that does. No other build is asked for, because those for GPUs bring gigabytes that the tests do not use.
TORCH := torch==2.13.0+cpu

help:
	@echo "make demo   set up, solve the default example, print the certificate, write out/demo.png"
	@echo "make check  set up, lint, check types, run the quick tests (90 seconds); for while you work"
	@echo "make test   set up, lint, check types, run the whole suite (about a quarter of an hour)"
	@echo "make docs   set up, build the site with its gallery: out/site/index.html"
	@echo "make bench  measure what the docs report, peers included (hours), and put it on one page: out/bench.html"
	@echo "make release  build sdist and wheel, install them in empty environments, try them"
	@echo "make clean  remove the environment and everything that was written"

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "saddlepoint needs Python >= 3.11 on the PATH (or make PYTHON=/path/to/python)"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "python -m venv failed; on Debian or Ubuntu: apt-get install python3-venv"; exit 1; }

# The many packages of the tests are installed by uv, which takes a fifth of the time of pip; where uv cannot be had or
# cannot reach the packages (it does not read the configuration of pip), pip installs them.
# The stamps are newer than pyproject.toml once its dependencies are installed, so a second run reuses them.
$(VENV)/demo.stamp: pyproject.toml | $(VENV)/bin/python
	@echo "installing saddlepoint into $(VENV) (once) ..."
	@$(PIP) -e '.[cli,plot]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(VENV)/bin/python
	@echo "installing saddlepoint and its test tools into $(VENV) (once) ..."
	@$(PIP) uv 2>/dev/null && $(RUN)/uv pip install -q --python $(RUN)/python -e '.[dev]' 2>/dev/null || \
	  $(PIP) --no-compile -e '.[dev]'
	@$(PIP) '$(TORCH)' >/dev/null 2>&1 || \
	  echo "pip finds no CPU build of PyTorch ($(TORCH)); the tests that need one will skip"
	@XLA_FLAGS="$(XLA_FAST)" $(RUN)/python -c "import jax; jax.devices()" >/dev/null 2>&1 && \
	  echo "$(XLA_FAST)" > $(VENV)/xla_flags || : > $(VENV)/xla_flags
	@touch $@ $(VENV)/demo.stamp

demo: $(VENV)/demo.stamp
	@$(RUN)/saddlepoint demo --plot out/demo.png

lint: $(VENV)/dev.stamp
	$(RUN)/ruff check .
	$(RUN)/ruff format --check .

types: $(VENV)/dev.stamp
	$(RUN)/mypy

# mypy, which is one process, runs at the same time as the tests; make fails if either does.
check: $(VENV)/dev.stamp
	@$(MAKE) --no-print-directory -j 2 lint types quick-tests

test: $(VENV)/dev.stamp
	@$(MAKE) --no-print-directory -j 2 lint types all-tests

# The tests without a marker: CONTRIBUTING.md explains the markers.
quick-tests: $(VENV)/dev.stamp
	EXAMPLES=4 $(RUN)/pytest -n 2 --dist worksteal -m "not slow and not browser and not cluster and not gpu"

all-tests: $(VENV)/dev.stamp
	XLA_FLAGS="$${XLA_FLAGS-$$(cat $(VENV)/xla_flags 2>/dev/null)}" $(RUN)/pytest -n $(JOBS) --dist worksteal

docs: $(VENV)/dev.stamp
	$(RUN)/sphinx-build -q -W --keep-going -b html docs out/site
	@echo "written: out/site/index.html"

bench: $(VENV)/dev.stamp bench-peers
	$(RUN)/python benchmarks/run.py
	$(RUN)/python benchmarks/report.py

release: $(VENV)/dev.stamp
	$(RUN)/python tools/release.py

# The peers have an environment of their own; what their JSON files hold already is not measured again.
$(VENV)-peers/stamp: benchmarks/peers/requirements.txt pyproject.toml
	@echo "installing the peers into $(VENV)-peers (once) ..."
	@$(PYTHON) -m venv $(VENV)-peers
	@$(VENV)-peers/bin/python -m pip install -q --disable-pip-version-check -r benchmarks/peers/requirements.txt -e .
	@touch $@

bench-peers: $(VENV)-peers/stamp
	for stage in fresh suite sparse expensive report; do $(VENV)-peers/bin/python -m benchmarks.peers $$stage || exit 1; done

clean:
	rm -rf $(VENV) $(VENV)-peers out dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf docs/repository docs/gallery docs/api/generated
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The two commands of the README are `make demo` and `make test`; `make help` lists the others.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Extras that install as wheels. [world] needs a compiler and [torch] gigabytes: their tests skip without them.
EXTRAS := sphere,demo,wer,asr,whisper,networks,dask,dev
# Tests run in so many processes; those of one file stay together, since they share what they only read.
WORKERS ?= 2
PYTEST  := -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Each of these processes has a core: with more threads the BLAS of one would wait for the others.
check test test-all kernels oldest: export OMP_NUM_THREADS = 1

# Tests start many processes, which take compiled modules where an earlier one has left them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv demo check test test-all kernels oldest docs wheel release lint clean

help:
	@echo "make demo      run both recipes on the embedded simulated corpora (synthetic speech)"
	@echo "make check     the quick loop: lint, types, and the tests of the science without whole programs"
	@echo "make test      lint, format check, type check and tests"
	@echo "make test-all  the same with the slow tests (an hour)"
	@echo "make kernels   the numerical tests as another type of CPU computes them"
	@echo "make docs      the site of the documentation, into build/site"
	@echo "make oldest    the tests with the oldest versions that setup.cfg allows"
	@echo "make wheel     the source distribution and the wheel, into dist, installed once to try it"
	@echo "make release   the same, byte for byte from the same commit, checked for an index, and the demo from it"
	@echo "make venv      only the environment in $(VENV)"
	@echo "make clean     remove the environment and everything built"

# The stamps make the environment once, and again when its description changes. The demo needs half of the packages.
$(VENV)/.demo-installed: setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "spkver needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) --version 2>&1); use make PYTHON=python3.x" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) || \
	  { rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment: on Debian, apt-get install python3-venv" >&2; exit 2; }
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

$(VENV)/.installed: $(VENV)/.demo-installed
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRAS)]'
	@touch $@

venv: $(VENV)/.installed

demo: $(VENV)/.demo-installed
	$(BIN)/spkver demo --output demo

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: lint
	$(BIN)/python $(PYTEST) -m "not slow and not whole"

test: lint
	$(BIN)/python $(PYTEST)

test-all: lint
	$(BIN)/python $(PYTEST) -m "" --hypothesis-profile many

kernels: venv
	$(BIN)/python tests/other_kernel.py -n $(WORKERS) --dist loadfile

# On Python 3.11, for which all these versions are there as wheels.
oldest:
	mkdir -p build
	$(PYTHON) tests/lower_bounds.py > build/oldest.txt
	PIP_CONSTRAINT=$(CURDIR)/build/oldest.txt $(MAKE) venv VENV=build/oldest
	build/oldest/bin/python $(PYTEST)

# What the site needs beside all else is installed when it is first built.
$(VENV)/.docs-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[$(EXTRAS),docs]'
	@touch $@

# Warnings are errors; then every link of the finished pages is followed, and nothing may lead to another machine.
docs: $(VENV)/.docs-installed
	$(BIN)/python -m sphinx -q -E -j 2 -W --keep-going -b html -c docs -d build/doctrees . build/site
	$(BIN)/python docs/check_site.py build/site

# The wheel is built from the source distribution, so that a file missing there is noticed.
wheel: venv
	rm -rf dist build/installed
	$(BIN)/python -m build --outdir dist
	$(PYTHON) -m venv build/installed
	build/installed/bin/python -m pip install --quiet dist/*.whl
	build/installed/bin/spkver --version
	build/installed/bin/spkver-eval --version

# The time of the commit dates everything, so that the same commit gives the same bytes. The demo runs in an environment
# that holds the wheel alone, from a folder without the sources.
release: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct 2>/dev/null || echo 1577836800)
release: venv
	rm -rf dist build/released build/demo
	$(BIN)/python -m build --sdist --outdir dist
	$(BIN)/python .ci/reproducible.py dist/*.tar.gz
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist dist/*.tar.gz
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv build/released
	build/released/bin/python -m pip install --quiet "$$(ls dist/*.whl)[demo]"
	mkdir -p build/demo
	cd build/demo && ../released/bin/spkver demo --output results
	cd dist && sha256sum * > SHA256SUMS && cat SHA256SUMS

clean:
	rm -rf $(VENV) demo build dist docs/api *.egg-info .mypy_cache .ruff_cache .pytest_cache

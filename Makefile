# Everything a newcomer needs: make demo, make test. Every target makes its own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# The package alone, which is all the demo needs, and then what its developers need.
BASE_STAMP := $(VENV)/.package-installed
STAMP := $(VENV)/.installed
# The compiled loops: built into src/ with the package, and again when one of their sources changes.
KERNELS := setup.py $(wildcard src/recollect/kernels/*.pyx src/recollect/kernels/*.pxd)
KERNEL_STAMP := $(VENV)/.kernels-built
BENCH_STAMP := $(VENV)/.bench-installed
# pywb (GPL, a real archive for tests and demo) wants old versions of its own, so it lives apart.
PYWB_STAMP := .venv-pywb/.installed
DOCS_STAMP := $(VENV)/.docs-installed
PYTEST_WORKERS ?= auto
INSTALL ?= yes

.PHONY: help install kernels demo demo-serve test check bench format dist clean docs reference

help:  ## show the targets
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

$(BASE_STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python scripts/compiler.py
	$(PIP) setuptools Cython
	$(PIP) --no-build-isolation -e .
	touch $@ $(KERNEL_STAMP)

$(KERNEL_STAMP): $(BASE_STAMP) $(KERNELS)
	$(BIN)/python scripts/compiler.py
	$(BIN)/python setup.py --quiet build_ext --inplace
	touch $@

$(STAMP): $(BASE_STAMP)
	$(PIP) --no-build-isolation -e '.[dev,protect,spark]'
	touch $@

$(BENCH_STAMP): $(STAMP)
	$(PIP) --no-build-isolation -e '.[bench]'
	touch $@

$(PYWB_STAMP): constraints-pywb.txt
	test -x .venv-pywb/bin/python || $(PYTHON) -m venv .venv-pywb
	.venv-pywb/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-pywb.txt pywb setuptools
	touch $@

$(DOCS_STAMP): $(STAMP)
	$(PIP) --no-build-isolation -e '.[docs]'
	touch $@

install: $(STAMP) $(KERNEL_STAMP)  ## make the environment

kernels: $(KERNEL_STAMP)  ## compile src/recollect/kernels after a change

demo: $(BASE_STAMP) $(KERNEL_STAMP) $(PYWB_STAMP)  ## see it work, offline, in three minutes
	$(BIN)/python scripts/demo.py

demo-serve: $(BASE_STAMP) $(KERNEL_STAMP) $(PYWB_STAMP)  ## the same, and the servers stay up until Ctrl-C
	$(BIN)/python scripts/demo.py --serve

test: $(STAMP) $(KERNEL_STAMP) $(PYWB_STAMP)  ## run the tests; installs the servers they need (INSTALL=no: does not)
	@INSTALL=$(INSTALL) sh scripts/prepare_tests.sh $(BIN)/python
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadgroup

check: $(STAMP)  ## ruff, cython-lint, mypy --strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cython-lint src
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)  ## let ruff lay out the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: bench-surt  ## the quick benchmarks

bench-%: $(BENCH_STAMP) $(KERNEL_STAMP)  ## one benchmark of bench/, as bench-surt; options as ARGS='...'
	@test -f bench/$*.py || { echo "no bench/$*.py; there are:" bench/*.py >&2; exit 2; }
	$(BIN)/python bench/$*.py $(ARGS)

reference: $(STAMP) $(KERNEL_STAMP)  ## write docs/reference from the code
	$(BIN)/python scripts/reference.py

docs: $(DOCS_STAMP) $(KERNEL_STAMP)  ## the documentation as a site, in site/
	$(BIN)/python scripts/reference.py --check
	$(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

dist: $(STAMP)  ## build the wheel, and try it in an empty environment
	rm -rf dist build
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	rm -rf build
	$(PYTHON) -m venv dist/try
	dist/try/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl
	cd dist && try/bin/python -I ../scripts/try_wheel.py
	rm -rf dist/try
	@ls -l dist

clean:  ## remove what the targets made
	rm -rf $(VENV) .venv-pywb .bench dist build demo site
	find src tests bench scripts -name __pycache__ -prune -exec rm -rf {} +
	rm -f src/recollect/kernels/*.so

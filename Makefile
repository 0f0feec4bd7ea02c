# Everything a newcomer needs: make demo, make test. Every target makes its own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# The package alone, which is all the demo needs, and then what its developers need.
BASE_STAMP := $(VENV)/.package-installed
STAMP := $(VENV)/.installed
# What an extra needs, without compiling the package again.
EXTRAS := $(BIN)/python scripts/extras.py
# The compiled loops: built into src/ with the package, and again when one of their sources changes.
KERNELS := setup.py $(wildcard src/recollect/kernels/*.pyx src/recollect/kernels/*.pxd)
KERNEL_STAMP := $(VENV)/.kernels-built
BENCH_STAMP := $(VENV)/.bench-installed
# pywb (GPL, a real archive for tests and demo) wants old versions of its own, so it lives apart.
PYWB_STAMP := .venv-pywb/.installed
DOCS_STAMP := $(VENV)/.docs-installed
PYTEST_WORKERS ?= auto
INSTALL ?= yes

.PHONY: help install kernels demo demo-serve demo-desk test check sanitize fuzz bench format size dist clean docs reference man messages screenshots reader vectors

help:  ## show the targets
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 20

$(BASE_STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python scripts/compiler.py
	$(PIP) setuptools Cython
	$(PIP) --no-build-isolation -e .
	$(BIN)/python -m compileall -q src
	touch $@ $(KERNEL_STAMP)

$(KERNEL_STAMP): $(BASE_STAMP) $(KERNELS)
	$(BIN)/python scripts/compiler.py
	$(BIN)/python setup.py --quiet build_ext --inplace
	touch $@

$(STAMP): $(BASE_STAMP)
	$(EXTRAS) dev language protect spark | $(PIP) -r /dev/stdin
	touch $@

$(BENCH_STAMP): $(STAMP)
	$(EXTRAS) bench | $(PIP) -r /dev/stdin
	touch $@

$(PYWB_STAMP): constraints-pywb.txt
	test -x .venv-pywb/bin/python || $(PYTHON) -m venv .venv-pywb
	.venv-pywb/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-pywb.txt pywb setuptools
	touch $@

$(DOCS_STAMP): $(STAMP)
	$(EXTRAS) docs | $(PIP) -r /dev/stdin
	touch $@

install: $(STAMP) $(KERNEL_STAMP)  ## make the environment

kernels: $(KERNEL_STAMP)  ## compile src/recollect/kernels after a change

demo: $(BASE_STAMP) $(KERNEL_STAMP) $(PYWB_STAMP)  ## see it work, offline, in three minutes
	$(BIN)/python scripts/demo.py

demo-serve: $(BASE_STAMP) $(KERNEL_STAMP) $(PYWB_STAMP)  ## the same, and the servers stay up until Ctrl-C
	$(BIN)/python scripts/demo.py --serve

test: $(STAMP) $(KERNEL_STAMP)  ## run the tests; installs the servers they need (INSTALL=no: does not)
	@$(MAKE) --no-print-directory $(PYWB_STAMP) || echo "make test: pywb could not be installed" >&2
	@INSTALL=$(INSTALL) sh scripts/prepare_tests.sh $(BIN)/python
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadgroup

check: $(STAMP)  ## ruff, cython-lint, mypy --strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/cython-lint src
	$(BIN)/mypy
	$(BIN)/lint-imports

# Property tests of keys, scanning, lookup, merging and compaction; compiled loops that read or write beyond their
# buffers, or do what C leaves undefined, stop them.
SANITIZED := build/sanitized
PROPERTIES := $(addprefix tests/property/test_,$(addsuffix .py,line_kernels surt_kernel kernel_is_careful \
	profile_against_brute_force lookup merge merge_as_text compaction budget keytree uri_keys protection_codes \
	sets patch stats_against_brute_force))
fuzz: $(STAMP) $(KERNEL_STAMP)  ## mutated inputs for every parser, for SECONDS; the corpus is in RECOLLECT_FUZZ or the user's cache
	$(BIN)/python scripts/fuzz.py --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

sanitize: $(STAMP) $(KERNEL_STAMP)  ## property tests over a build with AddressSanitizer and UBSan
	rm -rf $(SANITIZED) && mkdir -p $(SANITIZED) && cp -r src/recollect $(SANITIZED)/
	rm -f $(SANITIZED)/recollect/kernels/*.so
	RECOLLECT_SANITIZE=1 $(BIN)/python setup.py --quiet build_ext --parallel 2 --build-lib $(SANITIZED) --build-temp build/sanitized-objects
	PYTHONPATH=$(SANITIZED) LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
		ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 PYTHONMALLOC=malloc \
		HYPOTHESIS_PROFILE=sanitize $(BIN)/python -m pytest -n $(PYTEST_WORKERS) $(PROPERTIES)

format: $(STAMP)  ## let ruff lay out the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo-desk: $(BASE_STAMP) $(PYWB_STAMP) $(KERNEL_STAMP)  ## a recovery desk on generated data, to click through
	$(BIN)/python scripts/demo_desk.py

bench: bench-surt  ## the quick benchmarks

bench-%: $(BENCH_STAMP) $(KERNEL_STAMP)  ## one benchmark of bench/, as bench-surt; options as ARGS='...'
	@test -f bench/$*.py || { echo "no bench/$*.py; there are:" bench/*.py >&2; exit 2; }
	$(BIN)/python bench/$*.py $(ARGS)

experiment-%: $(STAMP) $(KERNEL_STAMP) $(PYWB_STAMP)  ## one experiment of experiments/, as experiment-decay; options as ARGS='...'
	@test -f experiments/$*.py || { echo "no experiments/$*.py; there are:" experiments/*.py >&2; exit 2; }
	$(BIN)/python experiments/$*.py $(ARGS)

reference: $(STAMP) $(KERNEL_STAMP)  ## write docs/reference from the code
	$(BIN)/python scripts/reference.py

man: $(STAMP) $(KERNEL_STAMP)  ## manual pages from the commands, in build/man
	$(BIN)/python scripts/manpages.py

docs: $(DOCS_STAMP) $(KERNEL_STAMP)  ## the documentation as a site, in site/
	$(BIN)/python scripts/reference.py --check
	$(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

messages: $(STAMP)  ## bring the catalogues in line with the texts of pages and mails
	$(BIN)/python scripts/messages.py

reader: $(STAMP)  ## the JavaScript reader of maps, from its source
	$(BIN)/python scripts/reader.py

vectors: $(STAMP) $(KERNEL_STAMP)  ## the test vectors of the map format in conformance/
	$(BIN)/python scripts/vectors.py

screenshots: $(STAMP) $(KERNEL_STAMP)  ## pictures of every page in build/screenshots, and those of docs/images
	$(BIN)/python scripts/screenshots.py
	$(BIN)/python scripts/screenshots.py --docs

size: $(STAMP) $(KERNEL_STAMP)  ## what the package and all that it needs take on disk
	$(BIN)/python scripts/size.py

dist: $(STAMP) $(KERNEL_STAMP)  ## build sdist and wheel, and try the wheel in an empty environment without a compiler
	rm -rf dist build/lib* build/bdist* build/try
	mkdir -p build
	$(PIP) build twine check-wheel-contents
	$(BIN)/python -m build --no-isolation --outdir dist . > build/dist.log 2>&1 || { tail -n 20 build/dist.log; exit 1; }
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python scripts/hashes.py dist/requirements.txt
	$(PYTHON) -m venv dist/try
	CC=/nonexistent dist/try/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -c constraints.txt dist/*.whl
	cd dist && PATH=/nonexistent try/bin/python -I ../scripts/try_wheel.py
	@du -sm dist/try/lib | sed 's/\t.*/ MB with all dependencies and pip/'
	rm -rf dist/try
	@ls -l dist

middleware: $(STAMP)  ## the middleware of protection as a small wheel of its own, in dist/
	$(BIN)/python scripts/middleware_wheel.py dist
	@ls -l dist/recollect_middleware-*.whl

clean:  ## remove what the targets made
	rm -rf $(VENV) .venv-pywb .bench dist build demo demo-desk site
	find src tests bench scripts experiments -name __pycache__ -prune -exec rm -rf {} +
	rm -f src/recollect/kernels/*.so

# Two commands do everything on a fresh machine: `make demo` and `make test`. Each sets up what it needs.

SHELL := /bin/bash
PYTHON ?= python3.11
ifeq ($(shell command -v $(PYTHON) 2>/dev/null),)
PYTHON := python3
endif
VENV := .venv
BIN := $(VENV)/bin
DEMO_DIR ?= demo-run
WRITTEN := src tests benchmarks checks docs/conf.py docs/gallery_images.py docs/run_notebooks.py docs/reference_from_code
APT_TEST := chromium strace

# Tests start hundreds of processes; where bytecode is not kept, each of them compiles plantain anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: shapes demo test test-fast fuzz prices check style types types-of-benchmarks doctests size words bench docs gallery dist \
  format clean

demo: $(VENV)/.demo
	$(BIN)/plantain demo $(DEMO_DIR)

# The same examples each time, on three processes, since some tests wait for a disk or a browser; a file of tests stays
# on one of them, long files first. In another order: make test ARGS='--shuffle 7'
test: $(VENV)/.dev debian
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder $(ARGS)

# The inner loop: what takes no model, no browser and no process of its own.
test-fast: $(VENV)/.dev
	$(BIN)/pytest -n 2 --dist loadfile -q --fast -m 'not slow' $(ARGS)

# Other examples each time. What fails becomes a fixed example by the `git apply` that the last lines print.
fuzz: SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
fuzz: $(VENV)/.dev
	@echo "seed $(SEED); the same again: make fuzz SEED=$(SEED)"
	$(BIN)/pytest -n 2 --dist loadfile -q -m hypothesis --hypothesis-profile fuzz --hypothesis-seed $(SEED) $(ARGS)
	$(BIN)/python benchmarks/fuzz.py --minutes 1 --seed $(SEED)

# Its parts can go side by side: make -j 2 check
check: style types types-of-benchmarks doctests size words

style: $(VENV)/.dev
	$(BIN)/ruff format --check $(WRITTEN)
	$(BIN)/ruff check $(WRITTEN)
	$(BIN)/lint-imports

types: $(VENV)/.dev
	$(BIN)/mypy

types-of-benchmarks: $(VENV)/.dev
	$(BIN)/mypy --config-file benchmarks/mypy.ini benchmarks

doctests: $(VENV)/.dev
	$(BIN)/pytest --doctest-modules src/plantain -q -p no:cacheprovider

# Lines per package against the budgets of pyproject.toml.
size: $(VENV)/.made
	@$(BIN)/python checks/size.py

# Words of our former dialect, each with its replacement.
words: $(VENV)/.made
	@$(BIN)/python checks/words.py

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/run_all.py

# A wheel and a source distribution; each is installed into an empty environment and runs the demo there.
dist: $(VENV)/.dist
	rm -rf dist && $(BIN)/python -m build --outdir dist . && $(BIN)/twine check --strict dist/*
	set -e; for made in dist/*.whl dist/*.tar.gz; do \
	  rm -rf $(VENV)-dist && $(BIN)/python -m venv $(VENV)-dist; \
	  $(VENV)-dist/bin/python -m pip install --quiet "$$made[demo]"; \
	  (cd $(VENV)-dist && bin/plantain demo demo-run); \
	  echo "$$made: installed, and its demo ran"; \
	done; rm -rf $(VENV)-dist

# The site, offline: build/site/index.html. A warning is an error.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -q -W --keep-going -j 2 -b html docs build/site
	@echo "Look at it: build/site/index.html"

# Writes the shapes of what commands print with --json, for the reference, after a walk through the pages.
shapes: $(VENV)/.dev debian
	PYTHONPATH=tests $(BIN)/python -m docs.shapes

# Takes the pictures of the gallery anew (docs/images), from demos that it makes in build/gallery.
gallery: docs $(VENV)/.dev debian
	$(BIN)/python docs/gallery_images.py

# Writes models/prices.csv from genai-prices and prints what changed.
prices: $(VENV)/.dev
	@$(BIN)/python checks/prices.py

format: $(VENV)/.dev
	$(BIN)/ruff format $(WRITTEN)
	$(BIN)/ruff check --fix $(WRITTEN)

# --- set-up ---------------------------------------------------------------------------------------

# The stamp comes last: an environment whose making was cut short is made again.
$(VENV)/.made:
	@if command -v uv >/dev/null 2>&1; then uv venv --seed --clear --python 3.11 $(VENV); \
	else $(PYTHON) -m venv --clear $(VENV); fi
	@touch $@

$(VENV)/.demo: pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --editable '.[demo,dev]'
	@touch $@ $(VENV)/.demo

$(VENV)/.dist: pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet 'build>=1.2' 'twine>=6'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@

# The browser that the report is looked at with, and the tracer that shows in which order a run reaches the disk.
# Tests that need them skip, with this reason, where they are absent.
.PHONY: debian
debian:
	@missing=""; for tool in $(APT_TEST); do command -v $$tool >/dev/null 2>&1 || missing="$$missing $$tool"; done; \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; } >/dev/null \
	      || echo "plantain: could not install$$missing; the tests that need them will be skipped"; \
	  else \
	    echo "plantain: no root or no apt-get here; install$$missing by hand, or the tests that need them are skipped"; \
	  fi; fi

clean:
	rm -rf $(VENV) $(VENV)-dist dist $(DEMO_DIR) bench-out build docs/reference/generated docs/development/generated

# `make` lists what there is. Everything happens in .venv and _build; `make clean` removes both.

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
SITE := _build/html
PRACTICE := $(SITE)/_static/practice
PORT ?= 8000
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help book serve test faults lab notebooks colab check audit clean vendor
.SUFFIXES:

# Sets $$python to the first Python from 3.10 to 3.13 that can make an environment, or ends with why not.
FIND_PYTHON := python= unable=; \
  for name in python3.11 python3.12 python3.13 python3.10 python3 python; do \
    $$name -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null || continue; \
    if $$name -c 'import ensurepip, venv' 2> /dev/null; then python=$$name; break; fi; \
    unable="$$unable $$name"; \
  done; \
  if test -z "$$python" && test -n "$$unable"; then \
    echo "These cannot make a virtual environment:$$unable. On Debian or Ubuntu install, for the first of them,"; \
    echo "the package $$(set -- $$unable; echo $$1)-venv; then run again."; exit 1; \
  elif test -z "$$python"; then \
    echo "No Python from 3.10 to 3.13 is on PATH. Install one (3.11 is what this book is tested with) and run again."; exit 1; \
  fi

# A moved folder breaks the absolute paths inside .venv: make it again.
ifneq ($(wildcard $(READY)),)
ifneq ($(shell cat $(READY)),$(CURDIR))
$(shell rm -f $(READY))
endif
endif

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

book: $(READY) ## build the site from the executed notebooks
	@rm -rf _build && mkdir _build
	@$(VENV)/bin/jupyter-book build . --all -n -W --keep-going --quiet > _build/log.txt 2>&1 \
	  || { cat _build/log.txt; echo; echo "The site was not built: see the warnings above."; exit 1; }
	@$(VENV)/bin/minilab cards json --out $(PRACTICE)/bank.json > /dev/null
	@$(VENV)/bin/minilab cards deck --out $(PRACTICE)/contrastive.apkg > /dev/null
	@$(PY) book/site/policy.py $(SITE)  # last: it writes the hashes of what the pages hold
	@echo "The site is in $(SITE). To look at it: make serve"

serve: ## look at the site on 127.0.0.1 (PORT=8000)
	@test -f $(SITE)/index.html || { echo "There is no site yet: run make book first."; exit 1; }
	@echo "http://127.0.0.1:$(PORT)/  (Ctrl-C ends it)"
	@$(PY) -m http.server $(PORT) --bind 127.0.0.1 --directory $(SITE)

# Time is measured by the tests marked serial, so they run with nothing beside them.
test: book ## build the site and run every test, in a real browser too
	$(PY) tests/site/browser.py
	$(PY) -m pytest -n 2 -m "not serial"
	$(PY) -m pytest -m serial || test $$? -eq 5
	$(PY) -m pytest --nbval-lax --nbval-cell-timeout 600 --timeout 900 notebooks

faults: $(READY) ## break things on purpose and print what held (a few minutes)
	$(PY) -m pytest -q -m fault

lab: $(READY) ## open the notebooks in JupyterLab
	@$(VENV)/bin/jupyter-trust notebooks/*/*.ipynb > /dev/null  # or their pictures stay hidden until they are run
	$(VENV)/bin/jupyter-lab $(if $(filter 0,$(shell id -u)),--allow-root) notebooks

notebooks: $(READY) ## execute the chapters whose notebook is stale
	$(PY) -m minilab.textbook.execute

colab: $(READY) ## run every notebook as Colab would, with ipywidgets 7.7.1 and 8 (half an hour; WIDGETS=8.1.7 for one)
	$(PY) tests/colab.py $(if $(WIDGETS),--widgets $(WIDGETS))

check: $(READY) ## lint and check types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

audit: $(READY) ## list the licences, and ask whether a pinned package has a known fault (needs the network)
	$(PY) tests/audit.py

clean: ## remove what make made: .venv, _build and caches
	rm -rf $(VENV) _build build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

vendor: $(READY) ## fetch the site's scripts again, into book/site/vendor (needs Node's npm)
	$(PY) book/site/vendor.py

# The stamp is written last, so an install that was cut short leaves none. The file .installing says
# that one was begun; then nothing in .venv is trusted and it is made again.
$(READY): requirements.txt pyproject.toml setup.py
	@test ! -e $(VENV)/.installing || rm -rf $(VENV)
	@test -x $(PY) || { $(FIND_PYTHON); rm -rf $(VENV); mkdir $(VENV); touch $(VENV)/.installing; \
	  echo "Making $(VENV) with $$python ($$($$python -V))"; $$python -m venv $(VENV); }
	@touch $(VENV)/.installing
	@echo "Installing what requirements.txt names into $(VENV). The first time takes a few minutes."
	@$(PY) -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@rm -f $(VENV)/.installing
	@printf '%s' '$(CURDIR)' > $(READY)

# Two commands matter: `make demo` and `make test`. Each makes what it needs, once.
VENV := .venv
BIN := $(VENV)/bin
export SYNTH_HOME ?= $(CURDIR)/.synth
export OPENBLAS_NUM_THREADS ?= 2
# One more than there are cores: some tests wait for a daemon or a browser.
WORKERS = $(shell python3 -c 'import os; print((os.cpu_count() or 1) + 1)')

.PHONY: demo test lint ui governance clean

$(VENV)/.installed: pyproject.toml constraints.txt
	python3 -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	$(BIN)/pip check
	touch $@

demo: $(VENV)/.installed
	$(BIN)/synth demo

test: $(VENV)/.installed
	$(BIN)/pytest -q -n $(WORKERS) --maxprocesses 4 --dist loadfile

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

ui: $(VENV)/.installed
	$(BIN)/synth ui

governance: $(VENV)/.installed
	$(BIN)/synth ui --read-only

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info

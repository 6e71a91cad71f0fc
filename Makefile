# Everything runs from a virtual environment in .venv, which the first target that needs it creates.
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
# Tests that run at the same time.
JOBS ?= 2
# How many cases `make fuzz` checks, and the seed of the first.
N ?= 1000
SEED ?= 0
fuzz-input: N := $(if $(filter file,$(origin N)),10000,$(N))

.DEFAULT_GOAL := help
.PHONY: help docs new-pass setup demo test test-long test-all lint format grammar bench bench-cpu fidelity onnx-conformance networks fuzz fuzz-input wheel clean

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS='	' read -r name text; do \
		printf '  %-10s %s\n' "$$name" "$$text"; done

setup: $(STAMP) ## Create .venv with everything in it (the other targets do so by themselves)

$(STAMP): pyproject.toml
	@sh tools/make-venv.sh $(VENV)
	@echo "installing into $(VENV) ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(STAMP) ## Compile a convolution for a DSP machine, run it three ways and compare
	@$(PY) examples/demo.py

test: $(STAMP) ## Run the tests that take a second or less each: four minutes
	$(PY) -m pytest -m "not long and not slow" -n $(JOBS)

test-long: $(STAMP) ## Run the tests of continuous integration: all but the slow ones
	$(PY) -m pytest -m "not slow" -n $(JOBS)

test-all: $(STAMP) ## Run all tests
	$(PY) -m pytest -n $(JOBS)

lint: $(STAMP) ## Check style, format, types and layers
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/basedpyright
	$(VENV)/bin/lint-imports

format: $(STAMP) ## Format the code and repair what ruff can
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

new-pass: $(STAMP) ## Write the files of a new pass (NAME=merge_loops); fill in what they say
	@$(PY) tools/new_pass.py $(NAME)

docs: $(STAMP) ## Write the pages of docs/ that come from the code
	$(PY) -m tools.write_docs

grammar: $(STAMP) ## Write the tables of the parsers, grammar/*.tables.json
	$(PY) tools/grammar_tables.py

bench: $(STAMP) ## Write the benchmark tables
	$(PY) -m benchmarks.run

bench-cpu: $(STAMP) ## Measure emitted C beside its peers, into docs/cpu.md (PEERS=FOLDER: their environment)
	$(PY) -m benchmarks.cpu $(if $(PEERS),--peers $(PEERS))

fidelity: $(STAMP) ## Measure the models of machines beside other tools and chips, into docs/fidelity.md
	$(PY) -m tools.fidelity

onnx-conformance: $(STAMP) ## Run the conformance suite of onnx on the emitted C and write its table (PEERS=python: peers beside it)
	@mkdir -p out/onnx
	$(PY) -m tools.onnx_conformance --jobs $(JOBS) --out out/onnx/stripe-opt.jsonl
	@for peer in $(if $(PEERS),onnxruntime emx-onnx-cgen); do \
		echo "$$peer:"; $(PEERS) -m tools.onnx_conformance --jobs $(JOBS) --engine $$peer --out out/onnx/$$peer.jsonl; done
	$(PY) -m tools.onnx_table out/onnx/stripe-opt.jsonl $(if $(PEERS),out/onnx/onnxruntime.jsonl out/onnx/emx-onnx-cgen.jsonl)

networks: $(STAMP) ## Compile, build, run, simulate and prove whole networks, and write their page (PEERS=python: ONNX Runtime for outputs)
	$(PY) -m tools.network_page $(if $(PEERS),--peers $(PEERS))

fuzz: $(STAMP) ## Check N random programs under random pass lists, from seed SEED on (N=1000 SEED=0)
	$(PY) -m tests.fuzz --cases $(N) --seed $(SEED) --jobs $(JOBS) --out out/fuzz

fuzz-input: $(STAMP) ## Run all commands on N mutated inputs, from seed SEED on (N=10000 SEED=0)
	$(PY) -m tests.fuzz.inputs --cases $(N) --seed $(SEED) --out out/fuzz-input

wheel: $(STAMP) ## Build the wheel into dist/
	$(PY) -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

clean: ## Remove what was built, the environment included
	rm -rf $(VENV) build dist out .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The two commands of this project: `make demo` and `make test`. The rest serves them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
PYTHON ?= python3
# The file of figures that `make gpu-check` writes.
TO ?= gpu-check.json
RUN := .envs/main/bin/python -m
# Tests wait more than they compute; tests/conftest.py says what stays in one process.
PARALLEL := -n 2
# Where the CDK's Python side unpacks itself once. Its own choice is the home folder, which may take nothing.
export JSII_RUNTIME_PACKAGE_CACHE_ROOT ?= $(CURDIR)/.envs/cache/jsii
# Tests start hundreds of processes of this code: each would compile it anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# What the demo runs in; tests and checks need `development` beside it, which comes into the environment `main`.
ENVIRONMENTS := main emulator triton backends exporters node

.PHONY: setup
setup: ## Make the environments under .envs/ (outside this folder only download caches change)
	@$(PYTHON) scripts/setup.py $(ENVIRONMENTS) development

.PHONY: wheel
wheel: ## Build dist/tritonstack-VERSION-py3-none-any.whl, the package that projects of your own install
	@$(PYTHON) scripts/setup.py wheel

.PHONY: demo
demo: ## Deploy environment `local` to a local AWS with the real CDK CLI; send its models requests until one is evicted
	@$(PYTHON) scripts/setup.py $(ENVIRONMENTS)
	@$(RUN) tritonstack local up
	@$(RUN) tritonstack local deploy
	@$(RUN) tritonstack local demo

.PHONY: down
down: ## Stop what `make demo` started
	@$(RUN) tritonstack local down

.PHONY: test
test: setup ## The test suite: unit tests, one whole way through, seeded samples of the long ones
	@CDK_VALIDATION=false $(RUN) pytest $(PARALLEL) -m "not long"

.PHONY: test-all
test-all: setup ## Every test, the long ones included
	@$(PYTHON) scripts/setup.py torch dali tensorflow perf-analyzer trainers
	@CDK_VALIDATION=false $(RUN) pytest $(PARALLEL)

.PHONY: systems
systems: setup ## Every published system, tiny: built, deployed to a local AWS and invoked; prints each response (minutes)
	@$(PYTHON) scripts/setup.py torch dali tensorflow perf-analyzer
	@CDK_VALIDATION=false $(RUN) pytest -s tests/systems

.PHONY: full
full: setup ## Every published system at its real size, with random weights: exported, proved, measured; four deployed and invoked
	@$(PYTHON) scripts/setup.py torch dali tensorflow
	@CDK_VALIDATION=false $(RUN) pytest -s tests/systems/full_size.py

.PHONY: check
check: setup ## Lint, types, and tests with a coverage floor
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) mypy
	@for each in examples/*/app.py; do $(RUN) mypy "$$each" || exit 1; done # apart: all are modules named app
	@CDK_VALIDATION=false $(RUN) pytest $(PARALLEL) -m "not long and not e2e" --cov --cov-fail-under=80 -q

.PHONY: bench
bench: setup ## The benchmarks, each against something in the same run
	@$(PYTHON) scripts/setup.py torch dali tensorflow perf-analyzer
	@$(RUN) benchmarks

.PHONY: snapshots
snapshots: setup ## Rewrite snapshots/, the synthesised templates of every environment and the pipeline, which `tritonstack review` compares
	@$(RUN) tritonstack snapshots

.PHONY: docs
docs: setup ## Rewrite the pages of docs/ that are made from the code
	@$(RUN) scripts.documentation

.PHONY: gpu-check
gpu-check: ## On a machine with an NVIDIA GPU and PyTorch: the published claims on it, into TO=FILE; engines where trtexec is
	@$(PYTHON) -m benchmarks.gpu_check --to $(TO)
	@if $(PYTHON) -m benchmarks.gpu_check --has-trtexec; then \
		$(PYTHON) scripts/setup.py main exporters development; \
		TRITONSTACK_GPU_CHECK=1 $(RUN) pytest -n 0 -rA tests/engines/test_gpu_check.py; \
		else echo "trtexec is not here: no engine was built"; fi

.PHONY: lock
lock: ## Resolve requirements/*.in anew into the pinned, hashed requirements/*.txt
	@$(PYTHON) scripts/setup.py lock

.PHONY: clean
clean: ## List what was made here with its sizes, and remove it after a question (with YES=1 without one)
	@if [ -x .envs/main/bin/python ]; then $(RUN) tritonstack clean $(if $(YES),--yes); else \
		left=$$(ls -d .envs .local cdk.out node_modules 2>/dev/null || true); \
		[ -n "$$left" ] || { echo "nothing to remove"; exit 0; }; \
		du -sh $$left; \
		[ -n "$(YES)" ] || { read -r -p "Remove all of this? [y/N] " answer && [ "$$answer" = y ]; } \
			|| { echo "nothing removed; without the question: make clean YES=1"; exit 1; }; \
		rm -rf $$left; fi

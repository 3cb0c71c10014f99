"""Fixtures for every test: local endpoints that answer, and fail, as the test says."""

import asyncio
import gc
import importlib.util
import inspect
import os
import signal
import sqlite3
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache, lru_cache
from pathlib import Path
from types import SimpleNamespace

import cyclopts  # noqa: F401 - it is changed below
import pytest
import tiktoken
from hypothesis import settings

from tests import explore
from tests.openai_server import Server
from tests.processes import Started, end_server

# How long an example takes says more about the machine than about the code. The suite tries the
# same few examples each time, so that what it says is about the change; `make explore` tries as
# many new ones as it is told to.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("explore", deadline=None, max_examples=explore.N or 1)
settings.load_profile("explore" if explore.N else "suite")

ROOT = Path(__file__).resolve().parents[1]

# tiktoken's vocabulary comes in a wheel (requirements-tokens.lock).
if spec := importlib.util.find_spec("llama_index"):
    for place in spec.submodule_search_locations or ():
        vocabulary = Path(place) / "core" / "_static" / "tiktoken_cache"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(vocabulary))

# No test speaks TLS, so the certificates of the machine, which take a client 60 ms, are read once.
ssl.create_default_context = cache(ssl.create_default_context)  # type: ignore[assignment]

# Plans count the same lines again and again; the tokens of a text are its tokens.
tiktoken.Encoding.encode_ordinary = lru_cache(1 << 16)(  # type: ignore[method-assign]
    tiktoken.Encoding.encode_ordinary
)

# Where pydantic is imported, cyclopts checks each flag again by it. When users' commands are parsed
# it is not; here tests of batches have brought it.
if parser := sys.modules.get("cyclopts.argument._argument"):
    vars(parser)["sys"] = SimpleNamespace(modules={})

if hasattr(signal, "SIGHUP"):
    # Under nohup it is ignored, and processes that tests start would inherit that.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Flags of the suite's own."""
    parser.addoption(
        "--update-tables",
        action="store_true",
        help="write anew what test_sources.py compares: lists of prompts and their sources",
    )
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write the digests of tests/golden anew, and print which moved",
    )


def pytest_collection() -> None:
    """No garbage is looked for while thousands of tests are made, all of which stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Nor among them ever after, and far less often than others do: 4 % of the suite."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 10)


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine is run in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**given))
    return True


def pytest_unconfigure() -> None:
    """Wait for the process that commands are forked from."""
    end_server()


@pytest.fixture(autouse=True, scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is kept for a user is kept here; others may not write what tests write."""
    os.umask(0o022)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `botchat demo` makes in an empty folder, once for all workers; to change it, copy it."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent  # of all workers
    with closing(sqlite3.connect(place / "demo.lock", timeout=600)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        if not (place / "demo.done").exists():
            # A process of its own: what `undrawn` changes may be changed already.
            made = Started(["demo", "--dir", place / "demo"])
            said = made.communicate()
            assert made.returncode == 0, said
            (place / "demo.done").touch()
    return place / "demo"


@pytest.fixture
def server() -> Iterator[Server]:
    """A local OpenAI-compatible endpoint in a thread of its own; see `tests.openai_server`."""
    with Server() as running:
        yield running


PICTURED = {"test_golden.py", "test_figures.py", "test_executor.py"}
"""Files of tests whose figures are drawn, or that have none: these import nothing for them."""


@pytest.fixture(autouse=True, scope="module")
def undrawn(request: pytest.FixtureRequest) -> Iterator[Callable[[], None]]:
    """Elsewhere a figure is one fixed picture; test_golden and test_figures hold how all look.

    Boards have an Elo of few shuffles, but for those of tests/golden.
    """
    with pytest.MonkeyPatch.context() as patched:
        if request.path.name not in PICTURED:
            from botchat.ratings import elo
            from botchat.ratings.elo import EloSettings
            from botchat.report.figures import Chart

            picture = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'
            patched.setattr(Chart, "inline", lambda *_: picture)
            forms = {"svg": picture.encode(), "png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF"}
            patched.setattr(Chart, "render", lambda _, form, *__: forms[form])
            if request.path.parent.name != "golden":
                patched.setattr(elo, "PAPER", EloSettings(shuffles=20, runs=2))
        yield patched.undo


@pytest.fixture
def pictures(undrawn: Callable[[], None]) -> None:
    """In the rest of this module figures are drawn, and Elo is played, as for users."""
    undrawn()

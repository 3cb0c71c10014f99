"""The seam of wire formats: another one is a module and a line of registration."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import botchat
from botchat.errors import ConfigError
from botchat.models import endpoint
from botchat.models.endpoint import WireFormat, wire_format
from botchat.records import Seed
from botchat.workspace.config import ModelSettings
from botchat.workspace.folder import Workspace
from tests.scripted import Scripted


class Closable:
    """A connection that knows whether it was closed."""

    closed = False

    async def close(self):
        """Note it."""
        self.closed = True


@pytest.fixture
def shouting(monkeypatch):
    """The connections made in a new wire format, whose models answer ``HELLO``."""
    made = []

    def connect(base_url, key, batches):
        made.append(Closable())
        return made[-1]

    module = ModuleType("botchat.models.endpoint.shouting")
    module.WIRE = WireFormat(
        identity=lambda settings: {"model": settings.model, "wire": "shouting"},
        connect=connect,
        model=lambda name, settings, connection, quirks: Scripted("HELLO", name),
        token_logprobs=lambda raw: (),
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(endpoint.WIRE_FORMATS, "shouting", "shouting")
    return made


@pytest.fixture
def workspace(tmp_path):
    """A set of two seeds and a model that is asked in the new wire format."""
    entry = '[models.loud]\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\napi = "shouting"\n'
    (tmp_path / "botchat.toml").write_text(entry)
    made = Workspace(tmp_path)
    made.write_seeds("two", [Seed("a", ("Hi.", "Hello.")), Seed("b", ("So?", "Well."))])
    return made


def test_a_registered_wire_format_is_all_that_a_run_needs(workspace, shouting):
    """Generation asks its model, stores the replies and closes its connection."""
    botchat.generate(workspace, "two", ["loud"], turns=4)
    dialogues = workspace.dialogues("two", "loud").values()
    assert [dialogue.utterances[2:] for dialogue in dialogues] == [("HELLO", "HELLO")] * 2
    assert [connection.closed for connection in shouting] == [True]


def test_a_wire_format_without_a_batch_api_refuses_batches(workspace, shouting):
    """One line that names the model."""
    with pytest.raises(ConfigError, match=r"--batch: loud .* has no Batch API"):
        botchat.generate(workspace, "two", ["loud"], turns=4, batch=True)


def test_an_unknown_wire_format_is_named_with_those_that_are_known():
    """It is a mistake in botchat.toml."""
    with pytest.raises(ConfigError, match=r"^models\.m: unknown api 'x'; known: chat$"):
        wire_format("m", ModelSettings(model="m", api="x"))


def test_the_seam_imports_no_client():
    """Offline commands do not wait for the client library."""
    program = (
        "import sys, botchat.models.endpoint, botchat.pipeline.session; "
        "sys.exit(bool({'openai', 'aiohttp', 'httpx2'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0

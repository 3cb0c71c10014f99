"""The seam of wire formats: another one is a module and a line of registration."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from importlib import metadata
from types import ModuleType

import pytest

import botchat
from botchat.errors import ConfigError
from botchat.interfaces import Usage
from botchat.models import endpoint
from botchat.models.endpoint import WireFormat, wire_format
from botchat.models.endpoint.replies import ended, error_parts
from botchat.records import Seed
from botchat.workspace.config import ModelSettings
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from tests.openai_server import Answer, Server, faults


def shout(messages, decoding, settings):
    """A request in a made-up wire format."""
    return {"who": settings.model, "hear": [message["content"] for message in messages]}


def heard(parsed, raw):
    """A reply in it."""
    return ended(parsed.get("SAID"), parsed.get("WHY"), usage=Usage(3, 1), raw=raw)


SHOUTING = WireFormat(
    path="/shouts",
    body=shout,
    read=heard,
    refusal=error_parts,
    assemble=lambda events: events[-1] if events else None,
    parameters={},
    key_header="x-megaphone",
    headers={"x-loud": "very"},
)


class Shouting(Server):
    """A server that speaks it."""

    def answer(self, call):
        """HELLO, whatever is asked."""
        if call.path != "/v1/shouts" or call.headers.get("x-megaphone") != "canary-key":
            return faults.not_found()
        return Answer(200, {"SAID": "HELLO", "WHY": "stop"})


@pytest.fixture
def shouting(monkeypatch):
    """A server in a new wire format, which is registered as one of the package's own."""
    module = ModuleType("botchat.models.endpoint.shouting")
    module.WIRE = SHOUTING
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(endpoint.WIRE_FORMATS, "shouting", "shouting")
    monkeypatch.setenv("BOTCHAT_API_KEY", "canary-key")
    with Shouting() as server:
        yield server


@pytest.fixture
def workspace(tmp_path, shouting):
    """A set of two seeds and a model that is asked in the new wire format."""
    entry = f'[models.loud]\nmodel = "m"\nbase_url = "{shouting.url}"\napi = "shouting"\n'
    (tmp_path / "botchat.toml").write_text(entry)
    made = Workspace(tmp_path)
    made.write_seeds("two", [Seed("a", ("Hi.", "Hello.")), Seed("b", ("So?", "Well."))])
    return made


def test_a_registered_wire_format_is_all_that_a_run_needs(workspace, shouting):
    """Generation asks its model with its own headers and key, and stores the replies."""
    botchat.generate(workspace, "two", ["loud"], turns=4)
    dialogues = workspace.dialogues("two", "loud").values()
    assert [dialogue.utterances[2:] for dialogue in dialogues] == [("HELLO", "HELLO")] * 2
    assert [call.headers["x-loud"] for call in shouting.calls] == ["very"] * 4
    assert shouting.calls[0].body["who"] == "m"
    with closing(Ledger(workspace.ledger_path, readonly=True)) as ledger:
        stored = list(ledger.calls(""))
    assert {(call.prompt_tokens, call.completion_tokens) for call in stored} == {(3, 1)}


def test_an_installed_package_may_add_a_wire_format(workspace, shouting, monkeypatch):
    """By an entry point, whose object is the wire format."""
    added = metadata.EntryPoint("shouting", "their.package:WIRE", endpoint.ENTRY_POINTS)
    monkeypatch.delitem(endpoint.WIRE_FORMATS, "shouting")
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda self: SHOUTING)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [added])
    botchat.generate(workspace, "two", ["loud"], turns=3)
    assert shouting.n_received == 2


def test_a_wire_format_without_a_batch_api_refuses_batches(workspace, shouting):
    """One line that names the model."""
    with pytest.raises(ConfigError, match=r"--batch: loud .* has no Batch API"):
        botchat.generate(workspace, "two", ["loud"], turns=4, batch=True)


def test_an_unknown_wire_format_is_named_with_those_that_are_known():
    """It is a mistake in botchat.toml."""
    with pytest.raises(ConfigError, match=r"^models\.m: unknown api 'x'; known: chat.*$"):
        wire_format("m", ModelSettings(model="m", api="x"))


def test_the_seam_imports_no_client():
    """Offline commands do not wait for the client library."""
    program = (
        "import sys, botchat.models.endpoint, botchat.pipeline.run.session; "
        "sys.exit('aiohttp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0

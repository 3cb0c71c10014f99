"""What lets requests in: a header of one's own, further headers, keys that expire."""

from __future__ import annotations

import asyncio

from botchat.cli.main import main
from botchat.interfaces import Decoding, Message
from botchat.models.cached import RecordedModel
from botchat.models.endpoint.connection import Connection
from botchat.models.endpoint.model import EndpointModel
from botchat.records import Seed
from botchat.workspace.config import ModelSettings
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from tests.integration.test_endpoints import QUICK
from tests.openai_server import Server, converse, faults, text

EXPIRED = faults.error(401, "The access token has expired.", code="token_expired")


class Guarded(Server):
    """Lets in whoever has the token, in one header."""

    def answer(self, call):
        """The script's answer, or a refusal of the token."""
        return super().answer(call) if call.headers.get("api-key") == "token-1" else EXPIRED


def ask(server, tmp_path, key, headers=lambda: ({}, ()), **how):
    """One request: its reply."""
    settings = ModelSettings(model="m", base_url=how.pop("url", server.url))

    async def run():
        ledger = Ledger(tmp_path / "ledger.sqlite3")
        connection = Connection(settings.base_url, key, headers, **how)
        endpoint = EndpointModel("m", settings, connection)
        model = RecordedModel(endpoint, ledger, stage="test", retry=QUICK)
        try:
            return await model.chat([Message(role="user", content="Question?")], Decoding())
        finally:
            await model.drain()
            await connection.close()
            ledger.close()

    return asyncio.run(run())


def test_a_key_in_a_header_of_its_own_goes_nowhere_else(tmp_path):
    """As Azure's ``api-key``, beside further headers, in small letters or not."""
    headers = {"X-Team": "eval", "x-portkey-provider": "openai"}
    with Guarded(converse) as server:
        reply = ask(
            server,
            tmp_path,
            lambda: "token-1",
            headers=lambda: (headers, ("eval",)),
            key_header="api-key",
        )
        (call,) = server.calls
    assert reply.outcome == "ok"
    assert call.headers["api-key"] == "token-1"
    assert (call.headers["x-team"], call.headers["x-portkey-provider"]) == ("eval", "openai")
    assert "authorization" not in call.headers


def test_a_version_in_a_urls_query_is_no_secret_and_a_key_is(tmp_path):
    """Azure's ``api-version`` may stand in an answer; a key in the URL may not."""
    said = "On 2024-10-21 it was true that preview and Hush-4711 are hunter22."
    query = "?api-version=2024-10-21&beta=true&stage=preview&sig=Hush-4711&key=hunter22"
    with Server(text(said)) as server:
        reply = ask(server, tmp_path, lambda: None, url=server.url + query)
        (call,) = server.calls
    assert "api-version=2024-10-21" in call.path
    assert reply.text == "On 2024-10-21 it was true that preview and [key] are [key]."


def test_a_run_with_headers_and_a_key_header(tmp_path, monkeypatch, capsys):
    """From botchat.toml to the last request; no token is written anywhere."""
    monkeypatch.setenv("TOKEN_OF_M", "token-1")
    monkeypatch.setenv("TEAM_SECRET", "s3cret-of-the-team")
    with Guarded(converse) as server:
        (tmp_path / "botchat.toml").write_text(
            f'[models.m]\nmodel = "m"\nbase_url = "{server.url}"\nkey_header = "api-key"\n'
            'api_key_env = "TOKEN_OF_M"\n'
            'headers = { "X-Team" = "$TEAM_SECRET", "x-plain" = "eval" }\nmax_concurrency = 1\n'
        )
        seeds = [Seed(f"s{k}", (f"Hi {k}.", "Ho.")) for k in range(6)]
        Workspace(tmp_path).write_seeds("six", seeds)
        command = ["generate", "--seeds", "six", "--model", "m", "--turns", "4"]
        assert main([*command, "--dir", str(tmp_path)]) == 0
        assert server.n_received == 12
        assert {call.headers["x-team"] for call in server.calls} == {"s3cret-of-the-team"}
        assert {call.headers["x-plain"] for call in server.calls} == {"eval"}
        assert not any("authorization" in call.headers for call in server.calls)
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    told = "".join(capsys.readouterr()).encode()
    for secret in (b"s3cret-of", b"token-1"):
        assert secret not in told + written

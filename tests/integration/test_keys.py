"""What lets requests in: a header of one's own, further headers, keys that expire."""

from __future__ import annotations

import asyncio

from botchat.cli.main import main
from botchat.interfaces import Decoding, Message
from botchat.models.cached import CachedModel
from botchat.models.connection import server_of
from botchat.models.endpoint import EndpointModel
from botchat.records import Seed
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import ModelSettings
from tests.integration.test_endpoints import QUICK
from tests.openai_server import Server, converse, faults, text

EXPIRED = faults.error(401, "The access token has expired.", code="token_expired")


class Guarded(Server):
    """Lets in whoever has the token, in one header."""

    def answer(self, call):
        """The script's answer, or a refusal of the token."""
        return super().answer(call) if call.headers.get("api-key") == "token-1" else EXPIRED


def ask(url, tmp_path, **settings):
    """One request: its reply."""
    entry = ModelSettings(model="m", base_url=url, **settings)

    async def run():
        ledger, server = Ledger(tmp_path / "ledger.sqlite3"), server_of(entry)
        model = CachedModel(EndpointModel("m", entry, server), ledger, stage="test", retry=QUICK)
        try:
            return await model.chat([Message(role="user", content="Question?")], Decoding())
        finally:
            await model.drain()
            await server.close()
            ledger.close()

    return asyncio.run(run())


def test_a_key_in_a_header_of_its_own_goes_nowhere_else(tmp_path, monkeypatch):
    """As Azure's ``api-key``, beside further headers, in small letters or not."""
    monkeypatch.setenv("TOKEN_OF_M", "token-1")
    monkeypatch.setenv("TEAM", "eval")
    headers = {"api-key": "$TOKEN_OF_M", "X-Team": "$TEAM", "x-gateway-provider": "openai"}
    with Guarded(converse) as server:
        reply = ask(server.url, tmp_path, headers=headers)
        (call,) = server.calls
    assert reply.outcome == "ok"
    assert call.headers["api-key"] == "token-1"
    assert (call.headers["x-team"], call.headers["x-gateway-provider"]) == ("eval", "openai")
    assert "authorization" not in call.headers


def test_a_version_in_a_urls_query_is_no_secret_and_a_key_is(tmp_path):
    """Azure's ``api-version`` may stand in an answer; a key in the URL may not."""
    said = "On 2024-10-21 it was true that preview and Hush-4711 are hunter22."
    query = "?api-version=2024-10-21&beta=true&stage=preview&sig=Hush-4711&key=hunter22"
    with Server(text(said)) as server:
        reply = ask(server.url + query, tmp_path)
        (call,) = server.calls
    assert "api-version=2024-10-21" in call.path
    assert reply.text == "On 2024-10-21 it was true that preview and [key] are [key]."


def test_a_run_with_secret_headers(tmp_path, monkeypatch, capsys):
    """From botchat.toml to the last request; no token is written anywhere."""
    monkeypatch.setenv("TOKEN_OF_M", "token-1")
    monkeypatch.setenv("TEAM_SECRET", "s3cret-of-the-team")
    with Guarded(converse) as server:
        (tmp_path / "botchat.toml").write_text(
            f'[models.m]\nmodel = "m"\nbase_url = "{server.url}"\n'
            'headers = { api-key = "$TOKEN_OF_M", X-Team = "$TEAM_SECRET", x-plain = "eval" }\n'
            "max_concurrency = 1\n"
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

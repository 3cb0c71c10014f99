"""What lets requests in: a header of one's own, further headers, keys that expire."""

from __future__ import annotations

import asyncio
import itertools
import sys
import threading

import pytest

from botchat.cli.main import main
from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Decoding, Message
from botchat.models.endpoint.chat import WIRE
from botchat.models.endpoint.connection import Connection
from botchat.models.endpoint.model import EndpointModel
from botchat.models.recorded import RecordedModel
from botchat.records import Seed
from botchat.workspace.accounts import stats
from botchat.workspace.config import ModelSettings
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from tests.integration.test_endpoints import QUICK
from tests.openai_server import Server, converse, faults, text

EXPIRED = faults.error(401, "The access token has expired.", code="token_expired")


class Guarded(Server):
    """Lets in whoever has the newest token; a token is good for so many answers."""

    def __init__(self, script=converse, *, good_for=None, status=401, header="authorization"):
        super().__init__(script)
        self.valid, self.good_for, self.answered = 1, good_for, 0
        self.status, self.header = status, header
        self.lock = threading.Lock()

    def answer(self, call):
        """The script's answer, or a refusal of the token."""
        bearer = "Bearer " if self.header == "authorization" else ""
        with self.lock:
            if self.answered == self.good_for:
                self.valid, self.answered = self.valid + 1, 0
            if call.headers.get(self.header) != f"{bearer}token-{self.valid}":
                if self.status == 401:
                    return EXPIRED
                return faults.error(self.status, "The security token in the request is expired")
            self.answered += 1
        return super().answer(call)


class Keys:
    """A command that prints a key; how often it ran."""

    def __init__(self, *printed):
        self.printed, self.n = printed, 0

    def __call__(self):
        """The next key; the last one for ever."""
        self.n += 1
        key = self.printed[min(self.n, len(self.printed)) - 1]
        if isinstance(key, Exception):
            raise key
        return key


def numbered(n=50):
    """Keys as the server wants them one after the other."""
    return Keys(*(f"token-{k}" for k in range(1, n)))


def ask(server, tmp_path, key, n=1, at_once=False, headers=lambda: ({}, ()), **how):
    """``n`` different requests: their replies, and answers in the ledger."""
    settings = ModelSettings(model="m", base_url=how.pop("url", server.url))

    async def run():
        ledger = Ledger(tmp_path / "ledger.sqlite3")
        connection = Connection(settings.base_url, key, headers, **how)
        endpoint = EndpointModel("m", settings, WIRE, connection)
        model = RecordedModel(endpoint, ledger, stage="test", retry=QUICK)
        asked = [
            model.chat([Message(role="user", content=f"Question {k}?")], Decoding())
            for k in range(n)
        ]
        try:
            replies = await asyncio.gather(*asked) if at_once else [await one for one in asked]
            return replies, sum(one.calls for one in stats(ledger))
        finally:
            for one in asked:
                one.close()
            await model.drain()
            await connection.close()
            ledger.close()

    return asyncio.run(run())


def test_a_key_in_a_header_of_its_own_goes_nowhere_else(tmp_path):
    """As Azure's ``api-key``, beside further headers, in small letters or not."""
    headers = {"X-Team": "eval", "x-portkey-provider": "openai"}
    with Guarded(header="api-key") as server:
        (reply,), _ = ask(
            server,
            tmp_path,
            Keys("token-1"),
            headers=lambda: (headers, ("eval",)),
            key_header="api-key",
        )
        (call,) = server.calls
    assert reply.outcome == "ok"
    assert call.headers["api-key"] == "token-1"
    assert (call.headers["x-team"], call.headers["x-portkey-provider"]) == ("eval", "openai")
    assert "authorization" not in call.headers


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_expires_is_renewed_and_nothing_else_is_asked_twice(tmp_path, status):
    """One run of the command and one repeated request for each token."""
    with Guarded(good_for=3, status=status) as server:
        keys = numbered()
        replies, stored = ask(server, tmp_path, keys, n=10)
        assert {one.outcome for one in replies} == {"ok"}
        assert (stored, server.n_received, server.n_repeated, keys.n) == (10, 13, 3, 4)


def test_requests_differ_in_their_body_and_key_only(tmp_path):
    """URL, query and headers are those of the first."""
    with Guarded(good_for=3) as server:
        ask(server, tmp_path, numbered(), n=10, url=f"{server.url}?api-version=1")
        calls = server.calls
    assert {call.path for call in calls} == {"/v1/chat/completions?api-version=1"}
    of_key = [{**call.headers, "content-length": ""} for call in calls]
    assert len({str(headers) for headers in of_key}) == 4
    assert len({str({**headers, "authorization": ""}) for headers in of_key}) == 1
    assert len({call.body["messages"][0]["content"] for call in calls}) == 10


def test_many_calls_in_flight_renew_a_key_once(tmp_path):
    """Whoever was refused first; the first request of a run included."""
    with Guarded() as server:
        server.valid = 2
        keys = numbered()
        replies, stored = ask(server, tmp_path, keys, n=40, at_once=True)
        assert {one.outcome for one in replies} == {"ok"}
        assert (stored, keys.n) == (40, 2)
        assert server.n_received == 40 + server.n_repeated


@pytest.mark.parametrize(
    ("keys", "runs", "requests", "said"),
    [
        (Keys("token-0"), 2, 1, "cannot be used: HTTP 401.*check its key"),
        (Keys("token-0", "token-9", "token-8"), 2, 2, "cannot be used: HTTP 401.*check its key"),
        (Keys("token-0", ConfigError("its command failed")), 2, 1, "its command failed"),
        (Keys(ConfigError("its command failed")), 1, 0, "its command failed"),
    ],
    ids=["the same again", "another that is refused", "fails later", "fails at once"],
)
def test_a_key_that_cannot_be_renewed_is_one_fatal_line(tmp_path, keys, runs, requests, said):
    """The command is run once more, not for every request."""
    with Guarded() as server:
        with pytest.raises(FatalModelError, match=said) as caught:
            ask(server, tmp_path, keys, n=5)
        assert (keys.n, server.n_received) == (runs, requests)
    assert "\n" not in str(caught.value)
    assert "token" not in str(caught.value).replace("The access token has expired", "")


def test_a_slow_command_holds_no_other_reply_up(tmp_path):
    """It runs beside the event loop: another connection is answered meanwhile."""
    going, done = threading.Event(), threading.Event()

    def slow():
        going.set()
        assert done.wait(30)
        return "token-1"

    async def run():
        with Server(text("fine")) as other, Guarded() as server:
            ask = [Message(role="user", content="Hi.")]
            models = [
                EndpointModel("m", entry, WIRE, Connection(entry.base_url, key))
                for entry, key in (
                    (ModelSettings(model="m", base_url=server.url), slow),
                    (ModelSettings(model="m", base_url=other.url), lambda: None),
                )
            ]
            first = asyncio.create_task(models[0].chat(ask, Decoding()))
            assert await asyncio.to_thread(going.wait, 30)
            assert (await models[1].chat(ask, Decoding())).text == "fine"
            done.set()
            assert (await first).outcome == "ok"
            for model in models:
                await model.connection.close()

    asyncio.run(run())


def test_a_version_in_a_urls_query_is_no_secret_and_a_key_is(tmp_path):
    """Azure's ``api-version`` may stand in an answer; a key in the URL may not."""
    said = "On 2024-10-21 it was true that preview and Hush-4711 are hunter22."
    query = "?api-version=2024-10-21&beta=true&stage=preview&sig=Hush-4711&key=hunter22"
    with Server(text(said)) as server:
        (reply,), _ = ask(server, tmp_path, lambda: None, url=server.url + query)
        (call,) = server.calls
    assert "api-version=2024-10-21" in call.path
    assert reply.text == "On 2024-10-21 it was true that preview and [key] are [key]."


COMMAND = """
import pathlib, sys
count = pathlib.Path(__file__).with_suffix(".n")
n = int(count.read_text()) + 1 if count.exists() else 1
count.write_text(str(n))
print(f"token-{n}")
"""


def test_a_run_with_a_command_headers_and_a_key_header(tmp_path, monkeypatch, capsys):
    """From botchat.toml to the last request; no token is written anywhere."""
    pytest.importorskip("botchat.workspace.entries")
    (tmp_path / "token.py").write_text(COMMAND)
    monkeypatch.setenv("TEAM_SECRET", "s3cret-of-the-team")
    with Guarded(good_for=5, header="api-key") as server:
        (tmp_path / "botchat.toml").write_text(
            f'[models.m]\nmodel = "m"\nbase_url = "{server.url}"\nkey_header = "api-key"\n'
            f'api_key_command = "{sys.executable} {tmp_path / "token.py"}"\n'
            'headers = { "X-Team" = "$TEAM_SECRET", "x-plain" = "eval" }\nmax_concurrency = 1\n'
        )
        seeds = [Seed(f"s{k}", (f"Hi {k}.", "Ho.")) for k in range(6)]
        Workspace(tmp_path).write_seeds("six", seeds)
        command = ["generate", "--seeds", "six", "--model", "m", "--turns", "4"]
        assert main([*command, "--dir", str(tmp_path)]) == 0
        assert (server.n_received, server.n_repeated) == (12 + 2, 2)
        assert {call.headers["x-team"] for call in server.calls} == {"s3cret-of-the-team"}
        assert {call.headers["x-plain"] for call in server.calls} == {"eval"}
        assert not any("authorization" in call.headers for call in server.calls)
        assert (tmp_path / "token.n").read_text() == "3"
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    told = "".join(capsys.readouterr()).encode()
    for secret in itertools.chain((b"s3cret-of",), (f"token-{n}".encode() for n in (1, 2, 3))):
        assert secret not in told + written

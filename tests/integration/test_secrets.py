"""Keys planted in every place, repeated by the server in every spelling: no file or output has one.

What a secret is looked for in is first decoded by other means than the redactor's own.
"""

from __future__ import annotations

import asyncio
import codecs
import gzip
import html
import json
import re
import sqlite3
import zlib
from base64 import b64encode
from contextlib import closing
from urllib.parse import quote, unquote

import pytest

from botchat.cli.main import main
from botchat.interfaces import Decoding, Message
from botchat.models.cached import CachedModel
from botchat.models.connection import server_of
from botchat.models.endpoint import EndpointModel
from botchat.records import Seed
from botchat.workspace import jsonl
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import ModelSettings
from tests.integration.test_endpoints import QUICK
from tests.openai_server import Server, converse, faults, text
from tests.processes import Started

PLANTED = {
    "env": "planted-Env/k3y+0123456789",
    "query": "planted-Query/k3y+0123456789",
    "login": "planted-user:planted-Passw0rd",
    "header": "planted-Header/k3y+01234567",
    "named": "planted-Named/k3y+0123456789",
}
"""No part of one is a part of anything else."""

FOREIGN = "sk-foreign-0123456789abcdef"
"""Somebody else's key, which only the server knows."""


def escaped(secret):
    """Every character as JSON may write it."""
    return "".join(f"\\u{ord(c):04x}" for c in secret)


SPELLINGS = (
    str,
    escaped,
    lambda secret: escaped(secret[:9]) + secret[9:],
    lambda secret: secret.replace("/", "\\/"),
    lambda secret: quote(secret, safe=""),
    lambda secret: quote(quote(secret, safe=""), safe=""),
    lambda secret: json.dumps(json.dumps(escaped(secret))),
    lambda secret: "".join(f"&#x{ord(c):x};" for c in secret),
    lambda secret: b64encode(secret.encode()).decode(),
    lambda secret: f"Bearer {secret}",
)


def received(call):
    """Every secret that came with a request, as the server can see it."""
    seen = " ".join([call.path, unquote(call.path), *call.headers.values()])
    for value in call.headers.values():
        if value.startswith("Basic "):
            seen += " " + codecs.decode(value[6:].encode(), "base64").decode()
    return [secret for secret in (*PLANTED.values(), FOREIGN) if secret in seen] + [FOREIGN]


def echo(call):
    """A reply or an error with all that was received, in the spelling of this call's turn."""
    spell = SPELLINGS[call.n % len(SPELLINGS)]
    told = " ".join(spell(secret) for secret in received(call))
    headers = (("x-echo", quote(told)), ("retry-after", "0"))
    if call.repeat == 1 and call.n % 12 == 1:
        return faults.error(500, f"internal error; you sent {told}", headers=headers)
    if "Choice:" in str(call.messages):
        return converse(call)
    if call.n % 3 == 2:
        # JSON as other servers write it: the escapes are in the body itself.
        body = json.dumps({"object": "chat.completion", "choices": [CHOICE]})
        return faults.Answer(body=body.replace("HERE", told.replace('"', "'")).encode())
    return text(f"I got {told}", reasoning_content=told)


CHOICE = {
    "index": 0,
    "message": {"role": "assistant", "content": "It was HERE, was it not?"},
    "finish_reason": "stop",
}


def refuse(status):
    """Every request is refused, with what came in it."""

    def script(call):
        told = " ".join(spell(secret) for secret in received(call) for spell in SPELLINGS)
        code = "insufficient_quota" if status == 429 else told[:40]
        return faults.error(status, f"cannot let you in with {told}", code=code)

    return script


def workspace(folder, server, monkeypatch):
    """Models that get their keys from each place, the places outside but for the settings."""
    outside = folder.parent / "outside"
    outside.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name in ("env", "header"):
        monkeypatch.setenv(f"PLANTED_{name.upper()}_KEY", PLANTED[name])
    host = server.url.removeprefix("http://")
    query = quote(PLANTED["query"], safe="")
    settings = {
        "env": ['api_key_env = "PLANTED_ENV_KEY"'],
        "query": [f'base_url = "{server.url}?api-key={query}"'],
        "login": [f'base_url = "http://{PLANTED["login"]}@{host}"'],
        "header": ['headers = { X-Gateway-Key = "Token $PLANTED_HEADER_KEY" }'],
        "named": ['headers = { api-key = "$PLANTED_ENV_KEY" }'],
    }
    entries = [
        "\n".join(
            [
                f'[models.{name}]\nmodel = "m-{name}"',
                *([] if "base_url" in str(lines) else [f'base_url = "{server.url}"']),
                *lines,
            ]
        )
        for name, lines in settings.items()
    ]
    (folder / "botchat.toml").write_text("\n".join(entries))
    seeds = [Seed(f"s{n}", tuple(f"line {i} of talk {n}" for i in range(6))) for n in range(3)]
    jsonl.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    return folder


def direct(server):
    """A name on the command line that holds a key."""
    return f"{server.url}?api-key={quote(PLANTED['named'], safe='')}#direct"


def undone(found):
    """A text as it is, and with everything that could hide a secret undone, again and again."""
    yield found
    for _ in range(5):
        found = re.sub(r"\\+u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), found)
        found = re.sub(r"\\+([/\"'])", r"\1", found)
        found = html.unescape(unquote(found))
        yield found


def leaks(found):
    """Places whose secrets stand in a text, in any spelling."""
    needles = {name: {secret, secret.rpartition(":")[2]} for name, secret in PLANTED.items()}
    for secrets in needles.values():
        secrets |= {b64encode(secret.encode()).decode().rstrip("=") for secret in set(secrets)}
    needles["foreign"] = {FOREIGN}  # known by its form, which base64 hides
    forms = list(undone(found))
    return {
        name
        for name, secrets in needles.items()
        if any(secret in form for secret in secrets for form in forms)
    }


def contents(path):
    """What a file holds, unpacked; of a database every value."""
    data = path.read_bytes()
    if data.startswith(b"SQLite format 3"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            names = [
                row[0]
                for row in database.execute("SELECT name FROM sqlite_master WHERE type='table'")
            ]
            rows = [
                value
                for name in names
                if not name.startswith("sqlite_")
                for row in database.execute(f'SELECT * FROM "{name}"')
                for value in row
            ]
        for value in rows:
            packed = isinstance(value, bytes) and value[:1] == b"\x78"
            yield str(zlib.decompress(value).decode() if packed else value)
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    yield data.decode("utf-8", "replace")


def leaking(folder):
    """Files that hold a secret, with whose it is; but for the settings, where the user wrote it."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "botchat.toml":
            for content in contents(path):
                if there := leaks(content):
                    found[path.name] = there | found.get(path.name, set())
    return found


def test_what_is_looked_for_would_be_found(tmp_path):
    """The search itself: each secret in each spelling, in a plain and in a packed file."""
    for name, secret in PLANTED.items():
        for n, spell in enumerate(SPELLINGS):
            assert name in leaks(f"so {spell(secret)} it is"), n
    (tmp_path / "a.gz").write_bytes(gzip.compress(escaped(FOREIGN).encode()))
    assert leaking(tmp_path) == {"a.gz": {"foreign"}}


def test_no_file_and_no_output_of_a_whole_run_holds_a_secret(tmp_path, capfd, monkeypatch):
    """Generated, judged, ranked and shown, with a server that repeats every secret."""
    with Server(echo) as server:
        folder = workspace(tmp_path / "w", server, monkeypatch)
        named = [part for name in PLANTED for part in ("--model", name)]
        judge = ["--seeds", "small", "--judge", "env"]
        models = [*named, "--model", direct(server)]
        commands = [
            ["generate", "--seeds", "small", "--turns", "4", *models, "--plan"],
            ["generate", "--seeds", "small", "--turns", "4", *models],
            ["generate", "--seeds", "small", "--turns", "4", *models, "--json"],
            ["models", "--check"],
            ["judge", "unieval", *judge, "--model", "query", "--model", direct(server)],
            ["judge", "unieval", "--seeds", "small", "--judge", direct(server), "--model", "env"],
            ["judge", "arena", *judge, "--turns", "4"],
            ["leaderboard", *judge],
            ["ledger"],
        ]
        for command in commands:
            assert main([*command, "--dir", str(folder)]) == 0, (command, capfd.readouterr())
            printed = capfd.readouterr()
            assert not leaks(printed.out + printed.err), command
        sent = {
            name for call in server.calls for name in PLANTED if PLANTED[name] in received(call)
        }
        assert sent == set(PLANTED)
    assert leaking(folder) == {}
    names = " ".join(str(path) for path in folder.rglob("*"))
    assert not leaks(names)


@pytest.mark.parametrize("status", [400, 401, 429])
def test_no_refusal_repeats_a_secret(tmp_path, capfd, monkeypatch, status):
    """In one line of the output, in the attempts of the ledger, in the list of models."""
    with Server(refuse(status)) as server:
        folder = workspace(tmp_path / "w", server, monkeypatch)
        models = [*PLANTED, direct(server)]
        named = [part for name in models for part in ("--model", name)]
        flags = ["--seeds", "small", "--turns", "3", "--max-calls", "8"]
        for command in (["generate", *flags, *named], ["models", "--check"]):
            main([*command, "--dir", str(folder)])
            printed = capfd.readouterr()
            assert not leaks(printed.out + printed.err), command
        assert server.n_received
    assert leaking(folder) == {}


def test_the_lock_tells_others_who_holds_it_without_secrets(tmp_path, capfd, monkeypatch):
    """Neither the file beside the lock nor a second process's error shows a key."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server, monkeypatch)
        gate = server.hold()
        login = f"http://{PLANTED['login']}@{server.url.removeprefix('http://')}#direct"
        more = ["--model", direct(server), "--model", login]
        command = ["generate", "--seeds", "small", "--turns", "3"]
        first = Started([*command, "--dir", folder, *more])
        try:
            server.wait_for(1)
            holder = folder / ".botchat" / "lock-holder"
            assert main(["generate", "--seeds", "small", "--model", "env", "--dir", str(folder)])
            second = capfd.readouterr().err
            assert f"is in use by process {first.pid}" in second
            for shown in (holder.read_text(), second):
                assert not leaks(shown)
        finally:
            gate.open()
            printed = first.communicate()
        assert first.returncode == 0, printed
        assert not leaks("".join(printed))
    assert leaking(folder) == {}


WRONG = {
    "no scheme": ['base_url = "planted-user:planted-Passw0rd@host/v1"'],
    "a wrong port": [f'base_url = "http://{PLANTED["login"]}@host:abc/v1?k={PLANTED["query"]}"'],
    "a bare key": [PLANTED["env"]],
    "half a line": [f'api_key = "{PLANTED["env"]}'],
    "a key that is no setting": [f'api_key = "{PLANTED["env"]}"'],
    "as the variable": [f'api_key_env = "{PLANTED["env"]}"'],
    "in extra": [f'extra_body = {{ api_key = "{PLANTED["env"]}" }}'],
    "in extra, nested": [f'extra_body = {{ a = [{{ Authorization = "{PLANTED["env"]}" }}] }}'],
    "in headers": [f'headers = {{ x-api-key = "{PLANTED["env"]}" }}'],
}


@pytest.mark.parametrize("how", WRONG)
def test_a_secret_in_a_wrong_place_is_not_printed(tmp_path, capfd, how):
    """One line on stderr from each command, without it; nothing is sent or stored."""
    with Server(converse) as server:
        where = "" if "base_url" in str(WRONG[how]) else f'base_url = "{server.url}"\n'
        lines = "\n".join(WRONG[how])
        (tmp_path / "botchat.toml").write_text(f'[models.m]\nmodel = "m"\n{where}{lines}\n')
        command = ["generate", "--seeds", "sample", "--limit", "1", "--model", "m"]
        assert main([*command, "--dir", str(tmp_path)]) == 1
        printed = capfd.readouterr()
        assert printed.err.count("\n") == 1
        assert "Traceback" not in printed.err
        assert not leaks(printed.out + printed.err)
        assert server.n_received == 0
    assert leaking(tmp_path) == {}


@pytest.mark.parametrize(
    "name",
    [
        "planted-user:planted-Passw0rd@host/v1#m",
        f"host/v1?api-key={PLANTED['query']}#m",
        f"https://host:abc/v1?api-key={PLANTED['query']}#m",
        f"https://host/v1#m?api-key={PLANTED['query']}",
        FOREIGN,
        PLANTED["env"],
    ],
)
@pytest.mark.parametrize("flags", [("generate", "--model"), ("judge", "unieval", "--judge")])
def test_a_secret_in_a_wrong_name_is_not_printed(tmp_path, capfd, monkeypatch, name, flags):
    """Also one whose form says nothing, where the environment has it."""
    monkeypatch.setenv("PLANTED_ENV_KEY", PLANTED["env"])
    more = [*flags, name, "--seeds", "sample", "--dir", str(tmp_path)]
    assert main(["generate", "--model", "bot:parrot", *more[-4:], "--limit", "1"]) == 0
    capfd.readouterr()
    assert main(more) == 1
    printed = capfd.readouterr()
    assert printed.err.count("\n") == 1
    assert not leaks(printed.out + printed.err)
    assert main([*more, "--api-key", name]) == 2
    assert not leaks(capfd.readouterr().err)
    assert leaking(tmp_path) == {}


# What lets requests in: a header of one's own, further headers, keys that expire.


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
            await server.aclose()
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

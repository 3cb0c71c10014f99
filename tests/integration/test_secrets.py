"""Keys planted in every place, repeated by the server in many spellings: no file or output has one.

What a secret is looked for in is first decoded by other means than the redactor's own.
"""

import gzip
import html
import json
import re
import shutil
import sqlite3
import zlib
from base64 import b64decode, b64encode
from contextlib import closing
from urllib.parse import quote, unquote, unquote_plus

import pytest

from botchat.cli.main import main
from botchat.records import Seed
from botchat.workspace import jsonl
from tests.openai_server import Server, converse, faults, text
from tests.processes import Started

PLANTED = {
    "env": "planted-Env/k3y+0123456789",
    "query": "planted-Query/k3y+0123456789",
    "login": "planted-user:planted-Passw0rd",
    "header": "planted-Header/k3y+01234567",
    "named": "planted-Named/k3y+0123456789",
    "field": "planted-Field/k3y 0123456789",
    "place": "planted-Place.0123456789",
}
"""No part of one is a part of anything else."""

FOREIGN = "sk-foreign-0123456789abcdef"
"""Somebody else's key, which only the server knows."""

VERSION = "2024-10-21"
"""Of an API: it stands in a URL, and is too short to be cut out of what models say."""


def escaped(secret):
    """Every character as JSON may write it."""
    return "".join(f"\\u{ord(c):04x}" for c in secret)


SPELLINGS = (  # more of them: tests/unit/test_redactor.py
    str,
    lambda secret: escaped(secret[:9]) + secret[9:],
    lambda secret: quote(quote(secret, safe=""), safe=""),
    lambda secret: json.dumps(json.dumps(escaped(secret))),
    lambda secret: "".join(f"&#x{ord(c):x};" for c in secret),
    lambda secret: b64encode(secret.encode()).decode(),
    lambda secret: f"Bearer {secret}",
)


def received(call):
    """Names of the secrets that came with a request, as the server can see it."""
    seen = " ".join(
        [call.path, unquote(call.path), unquote_plus(call.path), *call.headers.values()]
    )
    for value in call.headers.values():
        if value.startswith("Basic "):
            seen += " " + b64decode(value[6:]).decode()
    return [name for name, secret in PLANTED.items() if secret in seen]


def secrets_of(call):
    """All that the server may repeat."""
    return [*(PLANTED[name] for name in received(call)), FOREIGN]


def echo(call):
    """A reply or an error with all that was received, in the spelling of this call's turn."""
    spell = SPELLINGS[call.n % len(SPELLINGS)]
    told = " ".join(spell(secret) for secret in secrets_of(call))
    headers = (("x-echo", quote(told)), ("retry-after", "0"))
    if call.repeat == 1 and call.n % 12 == 1:
        return faults.error(500, f"internal error; you sent {told}", headers=headers)
    if "Choice:" in str(call.messages):
        return converse(call)
    if call.n % 3 == 2:
        # JSON as other servers write it: the escapes are in the body itself.
        body = json.dumps({"object": "chat.completion", "choices": [CHOICE]})
        return faults.Answer(body=body.replace("HERE", told.replace('"', "'")).encode())
    return text(f"On {VERSION} I got {told}", reasoning_content=told)


CHOICE = {
    "index": 0,
    "message": {"role": "assistant", "content": "It was HERE, was it not?"},
    "finish_reason": "stop",
}


def refuse(status):
    """Every request is refused, with what came in it."""

    def script(call):
        told = " ".join(spell(secret) for secret in secrets_of(call) for spell in SPELLINGS)
        code = "insufficient_quota" if status == 429 else told[:40]
        return faults.error(status, f"cannot let you in with {told}", code=code)

    return script


def workspace(folder, server, monkeypatch):
    """Models that get their keys from each place, the places outside but for the settings."""
    folder.mkdir()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name in ("env", "header"):
        monkeypatch.setenv(f"PLANTED_{name.upper()}_KEY", PLANTED[name])
    # Neither the field's nor the variable's name says that it holds a secret.
    monkeypatch.setenv("PLANTED_PLACE", PLANTED["place"])
    field = f"?k={quote(PLANTED['field'], safe='').replace('%20', '+')}"
    place = server.url.replace("/v1", "/$PLANTED_PLACE/v1")
    query = f"?api-version={VERSION}&api-key={quote(PLANTED['query'], safe='')}"
    login = server.url.replace("http://", f"http://{PLANTED['login']}@")
    settings = {
        "env": (server.url, 'api_key_env = "PLANTED_ENV_KEY"'),
        "query": (server.url + query, ""),
        "login": (login, ""),
        "header": (server.url, 'headers = { X-Gateway-Key = "Token $PLANTED_HEADER_KEY" }'),
        "field": (server.url + field, ""),
        "place": (place, 'identity = "m@place"'),
        "named": (server.url, 'headers = { api-key = "$PLANTED_ENV_KEY", X-Team = "eval" }'),
    }
    entries = [
        f'[models.{name}]\nmodel = "m-{name}"\nbase_url = "{url}"\n{line}\n'
        for name, (url, line) in settings.items()
    ]
    (folder / "botchat.toml").write_text("\n".join(entries))
    seeds = [Seed(f"s{n}", tuple(f"line {i} of talk {n}" for i in range(6))) for n in range(3)]
    jsonl.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    return folder


def direct(server):
    """A name on the command line that holds a key."""
    return f"{server.url}?api-key={quote(PLANTED['named'], safe='')}#direct"


def flags(*models):
    """--model for each."""
    return [part for name in models for part in ("--model", name)]


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
            tables = database.execute("SELECT name FROM sqlite_master WHERE type='table'")
            names = [name for (name,) in tables if not name.startswith("sqlite_")]
            rows = [row for name in names for row in database.execute(f'SELECT * FROM "{name}"')]
        for value in (value for row in rows for value in row):
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
    """Generated, judged, ranked and shown, with a server that repeats every secret.

    A header of its own takes the place of the usual one.
    """
    with Server(echo) as server:
        folder = workspace(tmp_path / "w", server, monkeypatch)
        judge = ["--seeds", "small", "--judge", "env"]
        generate = ["generate", "--seeds", "small", "--turns", "4"]
        generate += flags(*PLANTED, direct(server))
        commands = [
            [*generate, "--plan"],
            generate,
            [*generate, "--json"],
            ["models", "--check"],
            ["judge", "unieval", *judge, *flags("query", direct(server))],
            ["judge", "unieval", "--seeds", "small", "--judge", direct(server), *flags("env")],
            ["judge", "arena", *judge, "--turns", "4"],
            ["leaderboard", *judge],
            ["ledger"],
        ]
        for command in commands:
            assert main([*command, "--dir", str(folder)]) == 0, (command, capfd.readouterr())
            printed = capfd.readouterr()
            assert not leaks(printed.out + printed.err), command
        assert {name for call in server.calls for name in received(call)} == set(PLANTED)
        headers = next(call.headers for call in server.calls if call.model == "m-named")
    assert (headers["api-key"], headers["x-team"]) == (PLANTED["env"], "eval")
    assert "authorization" not in headers
    assert leaking(folder) == {}
    assert not leaks(" ".join(str(path) for path in folder.rglob("*")))


@pytest.mark.parametrize("dummy", ["test", "none", "your-api-key-here"])
def test_a_dummy_key_and_a_version_stay_in_what_a_model_says(tmp_path, monkeypatch, dummy):
    """They may be words of a dialogue; a real key beside them is cut out all the same."""
    with Server(lambda call: text(f"My {dummy} of {VERSION}: {PLANTED['query']}")) as server:
        folder = workspace(tmp_path / "w", server, monkeypatch)
        monkeypatch.setenv("BOTCHAT_API_KEY", dummy)
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        few = ["--seeds", "small", "--turns", "3", "--limit", "1", "--dir", str(folder)]
        assert main(["generate", *flags("query"), *few]) == 0
    (said,) = (folder / "generations" / "small").glob("query*.jsonl")
    assert f"My {dummy} of {VERSION}: [key]" in said.read_text()
    assert leaking(folder) == {}


@pytest.mark.parametrize("status", [400, 401, 429])
def test_no_refusal_repeats_a_secret(tmp_path, capfd, monkeypatch, status):
    """In one line of the output, in the attempts of the ledger, in the list of models."""
    with Server(refuse(status)) as server:
        folder = workspace(tmp_path / "w", server, monkeypatch)
        few = ["--seeds", "small", "--turns", "3", "--max-calls", "8"]
        asked = ["generate", *few, *flags(*PLANTED, direct(server))]
        for command in (asked, ["models", "--check"]):
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
        command = ["generate", "--seeds", "small", "--turns", "3", "--dir", str(folder)]
        first = Started([*command, *flags(direct(server))])
        try:
            server.wait_for(1)
            assert main([*command, *flags("env")]) == 1
            second = capfd.readouterr().err
            assert f"is in use by process {first.pid}" in second
            holder = (folder / ".botchat" / "lock-holder").read_text()
            assert not leaks(holder + second)
        finally:
            gate.open()
            printed = first.communicate()
        assert first.returncode == 0, printed
        assert not leaks("".join(printed))
    assert leaking(folder) == {}


WRONG = {
    "no scheme": 'base_url = "planted-user:planted-Passw0rd@host/v1"',
    "a wrong port": f'base_url = "http://{PLANTED["login"]}@host:abc/v1?k={PLANTED["query"]}"',
    "a bare key": PLANTED["env"],
    "half a line": f'api_key = "{PLANTED["env"]}',
    "a key that is no setting": f'api_key = "{PLANTED["env"]}"',
    "as the variable": f'api_key_env = "{PLANTED["env"]}"',
    "in extra, nested": f'extra_body = {{ a = [{{ Authorization = "{PLANTED["env"]}" }}] }}',
    "in headers": f'headers = {{ x-api-key = "{PLANTED["env"]}" }}',
}
"""Lines of a model's entry."""

NAMES = (
    "m",
    "planted-user:planted-Passw0rd@host/v1#m",
    f"https://host:abc/v1?api-key={PLANTED['query']}#m",
    f"https://host/v1#m?api-key={PLANTED['query']}",
    FOREIGN,
    PLANTED["env"],  # of which only the environment says what it is
)
"""On the command line."""


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A workspace with something to judge."""
    folder = tmp_path_factory.mktemp("begun")
    generate = ["generate", "--seeds", "sample", "--model", "bot:parrot", "--limit", "1"]
    assert main([*generate, "--dir", str(folder)]) == 0
    return folder


@pytest.mark.parametrize(
    ("line", "name"), [*((line, "m") for line in WRONG.values()), *(("", name) for name in NAMES)]
)
def test_a_secret_in_a_wrong_place_is_not_printed(begun, tmp_path, capfd, monkeypatch, line, name):
    """One line on stderr of who generates and who judges, without it; nothing is stored."""
    monkeypatch.setenv("PLANTED_ENV_KEY", PLANTED["env"])
    shutil.copytree(begun, tmp_path, dirs_exist_ok=True)
    where = ["--seeds", "sample", "--dir", str(tmp_path)]
    entry = f'[models.m]\nmodel = "m"\n{line}\n' if line else ""
    (tmp_path / "botchat.toml").write_text(entry)
    for command in (["generate", "--limit", "1", "--model"], ["judge", "unieval", "--judge"]):
        assert main([*command, name, *where]) == 1
        printed = capfd.readouterr()
        assert printed.err.count("\n") == 1
        assert not leaks(printed.out + printed.err)
    assert main([*command, "m", *where, "--api-key", name]) == 2
    assert not leaks(capfd.readouterr().err)
    assert leaking(tmp_path) == {}

"""What `botchat view` lets in: its own pages, of this start, with JSON of a limited size."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from botchat.errors import ConfigError
from botchat.interfaces import Shown, case_digest
from botchat.pipeline import view
from botchat.pipeline.view import MOST_BYTES, Server
from botchat.requests import generate
from botchat.workspace.folder import SAMPLE, Workspace
from tests.view_door import ask, of_a_page, post, running, token_in

PAGE = b"<!doctype html>\n<html>\n<head>\n<title>x</title></head><body></body></html>"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with one route that answers what it gets, and one that refuses it."""
    workspace = Workspace(tmp_path_factory.mktemp("workspace"))
    workspace.write_out(workspace.out(SAMPLE), dict.fromkeys(("index.html", "game.html"), PAGE))
    found = Server(workspace, SAMPLE)

    def refuse(sent: Mapping[str, Any]) -> Mapping[str, Any]:
        raise ConfigError(f"{sent['what']}: cannot be had")

    found.posts |= {"/echo": lambda sent: {"got": sent}, "/refuse": refuse}
    with running(found):
        yield found


def test_a_page_of_the_server_is_answered(server: Server) -> None:
    """JSON in, JSON out; an expected error is one line."""
    assert post(server, "/echo", {"a": ["ü", 1]}) == (200, {"got": {"a": ["ü", 1]}})
    assert post(server, "/refuse", {"what": "all"}) == (422, {"error": "all: cannot be had"})
    also = of_a_page(server) | {
        "Host": f"localhost:{server.server_port}",
        "Origin": f"http://localhost:{server.server_port}",
    }
    assert ask(server, "POST", "/echo", b"{}", also)[0] == 200


WRONG: dict[str, tuple[dict[str, str | None], int]] = {
    "no Origin": ({"Origin": None}, 403),
    "Origin of another site": ({"Origin": "https://evil.example"}, 403),
    "Origin null, as of a file or a sandbox": ({"Origin": "null"}, 403),
    "Origin of another port": ({"Origin": "http://127.0.0.1:1"}, 403),
    "Origin of another name": ({"Origin": "http://localhost:{port}"}, 403),
    "Origin over TLS": ({"Origin": "https://127.0.0.1:{port}"}, 403),
    "Host of another site": ({"Host": "evil.example:{port}"}, 403),
    "both of another site": (
        {"Host": "evil.example:{port}", "Origin": "http://evil.example:{port}"},
        403,
    ),
    "no token": ({"X-BotChat-Token": None}, 403),
    "empty token": ({"X-BotChat-Token": ""}, 403),
    "wrong token": ({"X-BotChat-Token": "x" * 43}, 403),
    "token beyond ASCII": ({"X-BotChat-Token": "ÿ"}, 403),
    "a form, which needs no permission": ({"Content-Type": "text/plain"}, 415),
    "no kind of content": ({"Content-Type": None}, 415),
    "too large": ({"Content-Length": str(MOST_BYTES + 1)}, 413),
    "absurdly large": ({"Content-Length": "9" * 5_000}, 413),
    "negative length": ({"Content-Length": "-1"}, 411),
    "length in other digits": ({"Content-Length": "²"}, 411),
    "in chunks": ({"Transfer-Encoding": "chunked"}, 411),
}


@pytest.mark.parametrize("why", WRONG)
def test_everybody_else_is_refused(
    server: Server, capfd: pytest.CaptureFixture[str], why: str
) -> None:
    """With one JSON object that says why, whatever the route; nothing is printed."""
    changed, status = WRONG[why]
    port = str(server.server_port)
    headers = {
        name: text.replace("{port}", port)
        for name, text in (of_a_page(server) | changed).items()
        if text is not None
    }
    found, answered, text = ask(server, "POST", "/echo", b"{}", headers)
    assert found == status
    assert answered["Content-Type"] == "application/json"
    assert list(json.loads(text)) == ["error"]
    assert server.token not in text
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b"\xff{}", b"[" * 100_000, b"NaN"])
def test_only_a_json_object_is_taken(server: Server, body: bytes) -> None:
    """400, in one line."""
    status, _, text = ask(server, "POST", "/echo", body, of_a_page(server))
    assert status == 400
    assert "no JSON object" in json.loads(text)["error"]


def test_the_largest_body_and_one_byte_more(server: Server) -> None:
    """The limit itself is taken; beyond it the sender still gets the answer, not a reset."""
    frame = len(b'{"a":""}')
    most = b'{"a":"%b"}' % (b"x" * (MOST_BYTES - frame))
    assert ask(server, "POST", "/echo", most, of_a_page(server))[0] == 200
    more = b'{"a":"%b"}' % (b"x" * (MOST_BYTES - frame + 1))
    status, _, text = ask(server, "POST", "/echo", more, of_a_page(server))
    assert (status, "8,388,608 bytes" in text) == (413, True)


def test_other_methods_and_other_places(server: Server) -> None:
    """A route that takes POST takes nothing else; a page takes no POST."""
    status, headers, text = ask(server, "GET", "/echo?x=1")
    assert (status, headers["Allow"]) == (405, "POST")
    assert json.loads(text) == {"error": "/echo takes POST only"}
    assert ask(server, "HEAD", "/echo")[0] == 405
    for method in ("PUT", "DELETE", "OPTIONS"):
        assert ask(server, method, "/echo", b"{}", of_a_page(server))[0] == 501
    for path in ("/live", f"/{SAMPLE}/", "/nothing"):
        assert post(server, path, {})[0] == 404


def test_the_token_is_in_the_page_that_posts_and_in_no_file(server: Server) -> None:
    """Every start has its own; other sites cannot read the pages (no CORS headers)."""
    for path in (f"/{SAMPLE}/", f"/{SAMPLE}/index.html", f"/{SAMPLE}/game.html?rater=a", "/live"):
        status, headers, text = ask(server, "GET", path)
        assert status == 200
        assert ("game" in path and token_in(text) == server.token) or server.token not in text
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert headers["Cache-Control"] == "no-store"
    for file in Path(server.workspace.root).rglob("*"):
        assert not file.is_file() or server.token.encode() not in file.read_bytes()
    assert (server.workspace.out(SAMPLE) / "index.html").read_bytes() == PAGE
    other = Server(server.workspace, SAMPLE)
    other.server_close()
    assert other.token != server.token
    assert len(server.token) >= 43


def test_two_hundred_connections_are_answered_and_silent_ones_end(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside as many that say nothing; who says nothing for too long is let go."""
    here = ("127.0.0.1", server.server_port)
    request = f"GET /{SAMPLE}/ HTTP/1.0\r\nHost: 127.0.0.1:{here[1]}\r\n\r\n".encode()
    with contextlib.ExitStack() as opened:
        made = [opened.enter_context(socket.create_connection(here, 30)) for _ in range(400)]
        for one in made[::2]:
            one.sendall(request)
        for one in made[::2]:
            with one.makefile("rb") as answer:
                assert answer.readline().startswith(b"HTTP/1.0 200")
                assert answer.read().endswith(PAGE)
    monkeypatch.setattr(view._Handler, "timeout", 0.05)
    with socket.create_connection(here, 30) as silent:
        assert silent.recv(1) == b""


def test_labels_go_into_the_workspace(tmp_path: Path) -> None:
    """``POST /labels``: appended to the judge file of the person, or nothing and one line."""
    workspace = Workspace(tmp_path)
    generate(workspace, SAMPLE, ["bot:eliza"], limit=1)
    ((seed_id, dialogue),) = workspace.dialogues(SAMPLE, "bot:eliza").items()
    row = {
        "seed_id": seed_id,
        "judge": "human:Amy",
        "verdict": "3",
        "case": case_digest("unieval", Shown.of(dialogue)),
    }
    with running(Server(workspace, SAMPLE)) as server:
        sent = {"set": SAMPLE, "protocol": "unieval", "rows": [row]}
        assert post(server, "/labels", sent) == (200, {"saved": 1})
        wrong = sent | {"rows": [row | {"verdict": "99"}]}
        status, told = post(server, "/labels", wrong)
        assert (status, "does not offer" in told["error"]) == (422, True)
    ((path),) = workspace.judgment_files(SAMPLE)["human:amy"].values()
    ((key, found),) = workspace.judgments(path).items()
    assert (key, found.verdict) == ((seed_id, ("bot:eliza",)), "3")

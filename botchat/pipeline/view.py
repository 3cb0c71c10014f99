"""Serves the workspace's pages, and one that follows a run, on 127.0.0.1 only.

A new page is a route here; how far a run is is in `live`.

A page of another site cannot read what is served (its name must be ours, so DNS rebinding does not
help) and cannot have anything done: a POST must come from a page of this server (`Origin`), which
alone knows the token of this start, as JSON of a limited size.
"""

from __future__ import annotations

import hmac
import http.server
import io
import secrets
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from email.message import Message
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from botchat.errors import BotChatError, ConfigError, MissingError, did_you_mean
from botchat.pipeline import label
from botchat.pipeline.live import Live
from botchat.report import live
from botchat.requests.arguments import Limits
from botchat.requests.leaves import leaf
from botchat.workspace.folder import Workspace

HOST = "127.0.0.1"

TOKEN = "X-BotChat-Token"
"""Header of a POST; pages have the same in ``<meta name="botchat-token">``."""

MOST_BYTES = 8 << 20
"""Of a body."""

_PORTS = 2**16 - 1

_PATIENCE_S = 10.0
"""For the rest of a body that is being sent."""

_LINGER_BYTES = 64 << 20
"""Read of a body that was refused, so that its sender gets to see the answer."""

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""What a POST is answered with; raises `BotChatError`."""


class Refused(BotChatError):
    """A request that is turned away, with its HTTP status."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Room(Protocol):
    """A page of its own, ``/talk``, and what answers it: the leaf talk."""

    seed_set: str

    @property
    def answers(self) -> Mapping[str, Answer]:
        """Path of a POST -> what answers it."""

    @property
    def policy(self) -> str:
        """The page's Content-Security-Policy."""

    def page(self, board: str) -> str:
        """The page as HTML text; ``board``: address of the set's page, if there is one."""

    def close(self) -> None:
        """Store what is under way."""


def room_of(
    workspace: Workspace,
    seed_set: str,
    limits: Limits,
    models: Sequence[str] = (),
    *,
    opened: bool,
) -> Room | None:
    """The room, if it is to be ``opened``; raises `ConfigError` for what only a room uses."""
    if opened:
        room: Room = leaf("talk.room", "--talk").TalkRoom(workspace, seed_set, limits, models)
        return room
    if models or limits != Limits():
        raise ConfigError("--model and limits of view are for the room to talk in; add --talk")
    return None


class Server(http.server.ThreadingHTTPServer):
    """Serves ``leaderboards/``, and the state of a set at ``/live`` and ``/``.

    Raises `MissingError` if there is no such set, `BotChatError` if the port is taken.
    """

    daemon_threads = True
    opens = ""
    """Path of the page to begin with."""

    def __init__(
        self, workspace: Workspace, seed_set: str, port: int = 0, room: Room | None = None
    ) -> None:
        """Listen on loopback; port 0 takes a free one. ``room``: to talk in."""
        if seed_set not in workspace.seed_sets():
            sets = workspace.seed_sets()
            raise MissingError(
                f"no seed set {seed_set!r} in {workspace.root}{did_you_mean(seed_set, sets)} "
                f"(there are: {', '.join(sets) or 'none'})"
            )
        self.workspace = workspace
        self.seed_set = seed_set
        self.live = Live(workspace, seed_set, talk=room is not None)
        self.room = room
        self.token = secrets.token_urlsafe(32)
        """Of this start; pages that it serves know it."""
        self.posts: dict[str, Answer] = {"/labels": self._labels}
        self.posts |= room.answers if room else {}
        folder = workspace.root / "leaderboards"
        if not 0 <= port <= _PORTS:
            raise ConfigError(
                f"--port {port}: give a number from 1 to {_PORTS}, or 0 for a free one"
            )
        try:
            super().__init__((HOST, port), partial(_Handler, directory=str(folder)))
        except OSError as error:
            raise BotChatError(
                f"cannot listen on {HOST}:{port}: {error.strerror}; leave out --port for a free one"
            ) from None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that went away."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        """Stop listening, and store what is under way."""
        super().server_close()
        if self.room:
            self.room.close()

    @property
    def url(self) -> str:
        """Of the set's page, or of ``/live`` while there is none or a run goes on."""
        root = f"http://{HOST}:{self.server_port}/"
        page = self.workspace.out(self.seed_set) / "index.html"
        if self.room:
            return f"{root}talk"
        still = page.exists() and self.workspace.writer() is None
        return f"{root}{quote(self.seed_set)}/" if still else f"{root}live"

    def _labels(self, sent: Mapping[str, Any]) -> Mapping[str, Any]:
        """Labels of a person, into the workspace."""
        return {"saved": label.save(self.workspace, sent)}


def _hosts(port: int) -> set[str]:
    """The names that this server answers to."""
    return {f"{name}:{port}" for name in (HOST, "localhost")}


def _check_host(headers: Message, port: int) -> None:
    """Raise `Refused` for a name of another site that was made to point here (DNS rebinding)."""
    if headers.get("Host") not in _hosts(port):
        raise Refused(HTTPStatus.FORBIDDEN, "this server answers its own machine only")


def _check_sender(headers: Message, port: int, token: str) -> None:
    """Raise `Refused` unless a page of this server, as started now, has sent it."""
    _check_host(headers, port)
    if headers.get("Origin") != f"http://{headers['Host']}":
        raise Refused(HTTPStatus.FORBIDDEN, "only this server's own pages may send anything")
    if not hmac.compare_digest(headers.get(TOKEN, "").encode(), token.encode()):
        raise Refused(
            HTTPStatus.FORBIDDEN,
            "this page is from an earlier start of botchat view; load it again",
        )


def _length(headers: Message) -> int:
    """Bytes of a body of JSON; raises `Refused` for another kind, an unknown or too great one."""
    if headers.get_content_type() != "application/json":
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON (Content-Type)")
    said = headers.get("Content-Length", "")
    if "Transfer-Encoding" in headers or not (said.isascii() and said.isdigit()):
        raise Refused(HTTPStatus.LENGTH_REQUIRED, "say how long the body is (Content-Length)")
    if len(said) > len(str(MOST_BYTES)) or int(said) > MOST_BYTES:
        raise Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MOST_BYTES:,} bytes are taken at once"
        )
    return int(said)


def _body(data: bytes) -> Mapping[str, Any]:
    """The JSON object that was sent; raises `Refused`."""
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        why = " ".join(str(error).split())[:200]
        raise Refused(HTTPStatus.BAD_REQUEST, f"the body is no JSON object: {why}") from None


def _with_token(page: bytes, token: str) -> bytes:
    """A page with the token, for its scripts; it is in no file."""
    return page.replace(
        b"<head>", b'<head>\n<meta name="botchat-token" content="%b">' % token.encode(), 1
    )


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Files, the live page and what its pages post, to this machine's own browser only."""

    server: Server
    extensions_map = {  # noqa: RUF012 (the base class has it so)
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        **{".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"},
    }

    def send_head(self) -> Any:
        """The answer to GET and HEAD."""
        path = self.path.split("?")[0]
        try:
            _check_host(self.headers, self.server.server_port)
        except Refused as refused:
            self.send_error(refused.status, explain=str(refused))
            return None
        if path in self.server.posts:
            self._say(HTTPStatus.METHOD_NOT_ALLOWED, {"error": f"{path} takes POST only"})
            return None
        if path in ("/", "/live"):
            return self._made(lambda: live.render(self.server.live.state()), live.POLICY)
        if (room := self.server.room) and path == "/talk":
            return self._made(lambda: self._room(room), room.policy)
        if path == "/talk":
            self.send_error(HTTPStatus.NOT_FOUND, explain="Start it with: botchat view --talk")
            return None
        try:
            page = self._stored(path)
            return super().send_head() if page is None else self._html(page)
        except ValueError:  # NUL or half a character: no file has such a name
            self.send_error(HTTPStatus.NOT_FOUND, "No page here")
            return None

    def do_POST(self) -> None:
        """What a page of ours sends; every answer is one JSON object."""
        server, path = self.server, self.path.split("?")[0]
        try:
            _check_sender(self.headers, server.server_port, server.token)
            if path not in server.posts:
                raise Refused(HTTPStatus.NOT_FOUND, "nothing is taken here")
            self.connection.settimeout(_PATIENCE_S)
            sent = _body(self.rfile.read(_length(self.headers)))
            self._say(HTTPStatus.OK, server.posts[path](sent))
        except Refused as refused:
            self._say(refused.status, {"error": str(refused)})
            self._linger()
        except BotChatError as error:
            self._say(HTTPStatus.UNPROCESSABLE_ENTITY, {"error": str(error)})

    def list_directory(self, path: Any) -> None:  # noqa: ARG002 (the base class names it)
        """Folders are not listed."""
        self.send_error(
            HTTPStatus.NOT_FOUND, "No page here; make one with: botchat leaderboard page"
        )

    def end_headers(self) -> None:
        """Nothing is kept by the browser or shown inside another page."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on stderr for each request."""

    def _stored(self, path: str) -> bytes | None:
        """A page of ``leaderboards/``; ``None``: there is none of that name."""
        file = Path(self.translate_path(path), "index.html" if path.endswith("/") else "")
        try:
            return file.read_bytes() if file.suffix == ".html" else None
        except OSError:
            return None

    def _room(self, room: Room) -> str:
        page = self.server.workspace.out(room.seed_set) / "index.html"
        return room.page(f"/{quote(room.seed_set)}/" if page.exists() else "")

    def _made(self, make: Callable[[], str], rules: str) -> Any:
        """A page that is made now."""
        try:
            page = make().encode()
        except (BotChatError, OSError) as error:  # a line that is broken, a file that just went
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, explain=str(error))
            return None
        return self._html(page, rules)

    def _html(self, page: bytes, rules: str = "") -> Any:
        """A page with the token; ``rules``: its Content-Security-Policy, unless it has one."""
        page = _with_token(page, self.server.token)
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        if rules:
            self.send_header("Content-Security-Policy", rules)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        return io.BytesIO(page)

    def _say(self, status: HTTPStatus, told: Mapping[str, Any]) -> None:
        data = msgspec.json.encode(told)
        self.send_response(status)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "POST")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _linger(self) -> None:
        """Read what is still being sent: a connection closed before would lose the answer."""
        self.wfile.flush()
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            left = _LINGER_BYTES
            while left > 0 and (read := self.connection.recv(1 << 16)):
                left -= len(read)


def view(
    workspace: Workspace,
    seed_set: str,
    port: int,
    models: Sequence[str],
    limits: Limits,
    *,
    talk: bool,
) -> Server:
    """A server of the pages, not yet at work; with ``talk`` also of a room to talk in."""
    room = room_of(workspace, seed_set, limits, models, opened=talk)
    return Server(workspace, seed_set, port, room)


def label_page(
    workspace: Workspace,
    seed_set: str,
    protocol: str | None,
    name: str | None,
    port: int,
    *,
    plan: bool,
) -> Server:
    """The same, which opens at the page of blind cases."""
    server = Server(workspace, seed_set, port)
    try:
        server.opens = label.game_path(workspace, seed_set, protocol=protocol, name=name, plan=plan)
    except BaseException:
        server.server_close()
        raise
    return server

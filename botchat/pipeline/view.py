"""Serves the workspace's pages, and one that follows a run, on 127.0.0.1 only.

A new page is a route here; how far a run is is in `live`.

A page of another site cannot read what is served (its name must be ours, so DNS rebinding does not
help) and cannot have anything done: a POST must come from a page of this server (`Origin`), which
alone knows the token of this start, as JSON of a limited size.

Pages are those that this workspace has made, as it wrote them; in all other files nothing runs. The
room to talk in, which spends money, is a server of its own: another origin, with another token.
"""

from __future__ import annotations

import hmac
import html
import http.server
import io
import re
import secrets
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, unquote, urljoin

import msgspec

from botchat.errors import BotChatError, ConfigError
from botchat.pipeline import label
from botchat.pipeline.live import Live
from botchat.report import live
from botchat.requests import Viewing
from botchat.requests.arguments import Limits
from botchat.requests.leaves import leaf
from botchat.workspace.folder import PAGES, Workspace

HOST = "127.0.0.1"

TOKEN = "X-BotChat-Token"
"""Header of a POST; pages have the same in ``<meta name="botchat-token">``."""

MOST_BYTES = 8 << 20
"""Of a body."""

_PORTS = 2**16 - 1

_PATIENCE_S = 10.0
"""For the rest of a body that is being sent."""

_IDLE_S = 30.0
"""For a request, and for each part of an answer to be taken."""

_QUEUE = 256
"""Connections that wait to be taken; more are tried again by the system, a second later."""

_INERT = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""The policy of what is no page: nothing in it runs, loads, or asks this server."""

_MAKE = "Make it here with: botchat leaderboard page"

_POLICY = re.compile(rb'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')

_LINGER_BYTES = 64 << 20
"""Read of a body that was refused, so that its sender gets to see the answer."""

Answer = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""What a POST is answered with; raises `BotChatError`."""


class Refused(BotChatError):
    """A request that is turned away, with its HTTP status."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


class Page(NamedTuple):
    """What is served to a browser as a page."""

    content: bytes
    policy: str
    """Its Content-Security-Policy."""
    posts: bool = False
    """Whether it sends something, and so has the token."""


class Room(Protocol):
    """A page of its own, ``/talk``, and what answers it: the leaf talk."""

    seed_set: str

    @property
    def answers(self) -> Mapping[str, Answer]:
        """Path of a POST -> what answers it."""

    @property
    def policy(self) -> str:
        """The page's Content-Security-Policy."""

    def page(self, board: str, live: str) -> str:
        """The page as HTML text; address of the set's page, if there is one, and of ``/live``."""

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


class Listening(http.server.ThreadingHTTPServer):
    """Answers this machine's own browser; raises `BotChatError` if the port is taken."""

    daemon_threads = True
    request_queue_size = _QUEUE

    def __init__(self, port: int, host: str = HOST) -> None:
        """Listen, on loopback by default; port 0 takes a free one."""
        if not 0 <= port <= _PORTS:
            raise ConfigError(
                f"--port {port}: give a number from 1 to {_PORTS}, or 0 for a free one"
            )
        self.token = secrets.token_urlsafe(32)
        """Of this start; pages that send something know it."""
        self.made: dict[str, Callable[[], Page]] = {}
        """Address -> what makes its page."""
        self.posts: dict[str, Answer] = {}
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            named = "" if host == HOST else "give --host an address of this machine, and "
            raise BotChatError(
                f"cannot listen on {host}:{port}: {error.strerror}; {named}leave out --port for a "
                "free one"
            ) from None

    @property
    def root(self) -> str:
        """Its origin, and a slash."""
        return f"http://{HOST}:{self.server_port}/"

    def is_ours(self, name: str) -> bool:
        """Whether it answers to a name, as a request's Host has it."""
        return name in (HOST, "localhost")

    def answers(self, token: str) -> Mapping[str, Answer]:
        """Path of a POST -> what answers it, for who has the token; raises `Refused`."""
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            why = "this page is from an earlier start of botchat view; load it again"
            raise Refused(HTTPStatus.FORBIDDEN, why)
        return self.posts

    def told(self, path: str) -> Mapping[str, str]:  # noqa: ARG002 (who has several names it)
        """What the page at an address that posts is told, in meta elements; it is in no file."""
        return {"token": self.token}

    def file(self, path: str) -> Path | None:  # noqa: ARG002 (what has files names it)
        """The file at an address, which may not be there; ``None``: there can be none."""
        return None

    def stored(self, file: Path) -> Page | None:  # noqa: ARG002
        """The page that is in a file; ``None``: none that may be served."""
        return None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that went away."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Server(Listening):
    """Serves ``leaderboards/``, and the state of a set at ``/live`` and ``/``.

    Raises as `Workspace.seeds` and `Listening`.
    """

    opens = ""
    """Path of the page to begin with."""

    def __init__(
        self,
        workspace: Workspace,
        seed_set: str,
        port: int = 0,
        room: Room | None = None,
        host: str = HOST,
    ) -> None:
        """Listen; ``room``: to talk in, at the port after this one, or a free one."""
        workspace.seeds(seed_set)
        self.workspace, self.seed_set = workspace, seed_set
        self.talk: RoomServer | None = None
        super().__init__(port, host)
        if room:
            try:
                self.talk = RoomServer(room, port + 1 if port else 0, self)
            except BaseException:
                self.server_close()
                raise
        self.live = Live(workspace, seed_set, talk=self.talk.url if self.talk else "")
        self.made = dict.fromkeys(
            ("/", "/live"), lambda: Page(live.render(self.live.state()).encode(), live.POLICY)
        )
        self.posts = {"/labels": lambda sent: {"saved": label.save(workspace, sent)}}

    def serve_forever(self, poll_interval: float = 0.5) -> None:
        """Serve until `shutdown`; the room too."""
        if self.talk is None:
            super().serve_forever(poll_interval)
            return
        talking = threading.Thread(target=self.talk.serve_forever, args=(poll_interval,))
        talking.start()
        try:
            super().serve_forever(poll_interval)
        finally:
            self.talk.shutdown()
            talking.join()

    def server_close(self) -> None:
        """Stop listening, and store what is under way."""
        super().server_close()
        if self.talk:
            self.talk.server_close()

    @property
    def starts(self) -> Sequence[str]:
        """What is told when it starts: first the address to open."""
        return [f"{urljoin(self.url, self.opens)} (Ctrl-C ends it)"]

    @property
    def url(self) -> str:
        """Of the set's page, or of ``/live`` while there is none or a run goes on."""
        if self.talk:
            return self.talk.url
        board = self.board() if self.workspace.writer() is None else ""
        return f"{self.root}{board or 'live'}"

    def board(self) -> str:
        """Address of the set's page, below the root; empty: there is none."""
        page = self.workspace.out(self.seed_set) / "index.html"
        return f"{quote(self.seed_set)}/" if self.workspace.made_here(page) else ""

    def file(self, path: str) -> Path | None:
        """The file of ``leaderboards/`` at an address."""
        parts = [part for part in unquote(path).split("/") if part not in ("", ".")]
        if any(part == ".." or "\\" in part or ":" in part for part in parts):
            return None
        return Path(
            self.workspace.root, "leaderboards", *parts, *["index.html"] * path.endswith("/")
        )

    def stored(self, file: Path) -> Page | None:
        """A page as it was written here; it names its own policy."""
        if (content := self.workspace.made_here(file)) is None:
            return None
        named = _POLICY.search(content)
        policy = html.unescape(named[1].decode()) if named else _INERT
        return Page(content, policy, file.name == label.GAME)


class RoomServer(Listening):
    """Serves the room, and nothing that somebody else has written."""

    def __init__(self, room: Room, port: int, pages: Server) -> None:
        """Listen; ``pages``: that the room's page leads to."""
        super().__init__(port)
        self.room, self._pages = room, pages
        self.made = {"/talk": self._page}
        self.posts = dict(room.answers)

    @property
    def url(self) -> str:
        """Its address."""
        return f"{self.root}talk"

    def server_close(self) -> None:
        """Stop listening, and store what is under way."""
        super().server_close()
        self.room.close()

    def _page(self) -> Page:
        root, board = self._pages.root, self._pages.board()
        page = self.room.page(root + board if board else "", f"{root}live")
        return Page(page.encode(), self.room.policy, posts=True)


def _check_host(headers: Message, server: Listening) -> None:
    """Raise `Refused` for a name of another site that was made to point here (DNS rebinding)."""
    name, _, port = headers.get("Host", "").rpartition(":")
    if port != str(server.server_port) or not server.is_ours(name):
        raise Refused(HTTPStatus.FORBIDDEN, "this server answers to its own names only")


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


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Files, pages that are made now, and what they post; to this machine's own browser only."""

    server: Listening
    timeout = _IDLE_S
    extensions_map = {  # noqa: RUF012 (the base class has it so)
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        **{".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"},
    }

    def send_head(self) -> Any:
        """The answer to GET and HEAD."""
        try:
            _check_host(self.headers, self.server)
            return self._found(self.path.split("?")[0])
        except Refused as refused:
            self.send_error(refused.status, explain=str(refused))
            return None

    def _found(self, path: str) -> Any:
        if path in self.server.posts:
            self._say(HTTPStatus.METHOD_NOT_ALLOWED, {"error": f"{path} takes POST only"})
            return None
        if (make := self.server.made.get(path)) is not None:
            return self._made(make)
        if path == "/talk":
            self.send_error(HTTPStatus.NOT_FOUND, explain="Start it with: botchat view --talk")
            return None
        try:
            return self._file(path)
        except (OSError, ValueError):  # NUL or half a character: no file has such a name
            self.send_error(HTTPStatus.NOT_FOUND, "No page here")
            return None

    def do_POST(self) -> None:
        """What a page of ours sends; every answer is one JSON object."""
        server, path = self.server, self.path.split("?")[0]
        try:
            _check_host(self.headers, server)
            if self.headers.get("Origin") != f"http://{self.headers['Host']}":
                raise Refused(
                    HTTPStatus.FORBIDDEN, "only this server's own pages may send anything"
                )
            if (answer := server.answers(self.headers.get(TOKEN, "")).get(path)) is None:
                raise Refused(HTTPStatus.NOT_FOUND, "nothing is taken here")
            self.connection.settimeout(_PATIENCE_S)
            sent = _body(self.rfile.read(_length(self.headers)))
            self._say(HTTPStatus.OK, answer(sent))
        except Refused as refused:
            self._say(refused.status, {"error": str(refused)})
            self._linger()
        except BotChatError as error:
            self._say(HTTPStatus.UNPROCESSABLE_ENTITY, {"error": str(error)})

    def end_headers(self) -> None:
        """Nothing is kept by the browser, or shown inside or read by a page of another site."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on stderr for each request."""

    def _file(self, path: str) -> Any:
        """A file: a page as it was made here, or what no browser runs."""
        file = self.server.file(path)
        if file is None or not file.is_file():
            if file is not None and file.is_dir():
                self.send_response(HTTPStatus.MOVED_PERMANENTLY)  # to the page of a folder
                self.send_header("Location", f"/{path.lstrip('/')}/")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return None
            self.send_error(HTTPStatus.NOT_FOUND, "No page here", _MAKE)
            return None
        kind = self.guess_type(str(file))
        if file.suffix not in PAGES:
            return self._answer(Page(file.read_bytes(), _INERT), kind)
        if (page := self.server.stored(file)) is None:
            why = f"{path} is not as this workspace has written it, and is not shown. {_MAKE}"
            self.send_error(HTTPStatus.NOT_FOUND, "Not made here", why)
            return None
        return self._answer(page, kind)

    def _made(self, make: Callable[[], Page]) -> Any:
        """A page that is made now."""
        try:
            page = make()
        except (BotChatError, OSError) as error:  # a line that is broken, a file that just went
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, explain=str(error))
            return None
        return self._answer(page, "text/html")

    def _answer(self, page: Page, kind: str) -> Any:
        """A file; a page that posts has the token."""
        told = self.server.told(self.path.split("?")[0]) if page.posts else {}
        said = (f'\n<meta name="botchat-{n}" content="{html.escape(told[n])}">' for n in told)
        data = page.content.replace(b"<head>", b"<head>" + "".join(said).encode(), 1)
        self.send_response(HTTPStatus.OK)
        text = kind.startswith("text/")
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if text else kind)
        self.send_header("Content-Security-Policy", page.policy)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        return io.BytesIO(data)

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


def view(request: Viewing, workspace: Workspace) -> Server:
    """A server of the pages, not yet at work; with ``talk`` also of a room to talk in."""
    seed_set, limits = request.seed_set, request.limits
    room = room_of(workspace, seed_set, limits, request.models, opened=request.talk)
    return Server(workspace, seed_set, request.port, room)

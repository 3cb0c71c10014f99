"""The workspace's pages on loopback, with a page that follows a run; bound to 127.0.0.1 only."""

from __future__ import annotations

import http.server
import io
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from botchat.errors import BotChatError, MissingError
from botchat.pipeline.following import state
from botchat.report.live import policy, render
from botchat.workspace.folder import Workspace

HOST = "127.0.0.1"

_TYPES = {".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Server(http.server.ThreadingHTTPServer):
    """Serves ``leaderboards/``, and the state of a set at ``/live`` and ``/``.

    Raises `BotChatError` if the port is taken.
    """

    daemon_threads = True

    def __init__(self, workspace: Workspace, seed_set: str, port: int = 0) -> None:
        """Listen on loopback; port 0 takes a free one."""
        self.workspace = workspace
        self.seed_set = seed_set
        folder = workspace.root / "leaderboards"
        try:
            super().__init__((HOST, port), partial(_Handler, directory=str(folder)))
        except OSError as error:
            raise BotChatError(
                f"cannot listen on {HOST}:{port}: {error.strerror}; leave out --port for a free one"
            ) from None

    @property
    def url(self) -> str:
        """Of the set's page, or of ``/live`` while there is none or a run goes on."""
        root = f"http://{HOST}:{self.server_port}/"
        page = self.workspace.out(self.seed_set) / "index.html"
        still = page.exists() and self.workspace.writer() is None
        return f"{root}{quote(self.seed_set)}/" if still else f"{root}live"


def serve(workspace: Workspace, seed_set: str, port: int = 0) -> Server:
    """A server that is ready to run (``serve_forever``); asks that the set is there."""
    if seed_set not in workspace.seed_sets():
        known = ", ".join(workspace.seed_sets()) or "none"
        raise MissingError(f"no seed set {seed_set!r} in {workspace.root} (there are: {known})")
    return Server(workspace, seed_set, port)


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Files and the live page, to this machine's own browser only."""

    server: Server
    extensions_map = {  # noqa: RUF012 (the base class has it so)
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        **_TYPES,
    }

    def send_head(self) -> Any:
        """The answer to GET and HEAD."""
        # A name of another site that was made to point here (DNS rebinding) is not ours.
        if self.headers.get("Host") not in {
            f"{name}:{self.server.server_port}" for name in (HOST, "localhost")
        }:
            self.send_error(HTTPStatus.FORBIDDEN, "This server answers its own machine only")
            return None
        if self.path.split("?")[0] in ("/", "/live"):
            return self._live()
        return super().send_head()

    def list_directory(self, path: Any) -> None:  # noqa: ARG002 (the base class names it)
        """Folders are not listed."""
        self.send_error(HTTPStatus.NOT_FOUND, "No page here; make one with: botchat report")

    def end_headers(self) -> None:
        """Nothing is kept by the browser or shown inside another page."""
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on stderr for each request."""

    def _live(self) -> Any:
        page = render(state(self.server.workspace, self.server.seed_set)).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Security-Policy", policy())
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        return io.BytesIO(page)

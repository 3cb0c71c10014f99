"""The workspace's pages on loopback, with a page that follows a run; bound to 127.0.0.1 only."""

from __future__ import annotations

import http.server
import io
import json
from collections.abc import Iterator
from functools import partial
from html import escape
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from botchat.errors import BotChatError, MissingError
from botchat.pipeline.accounts import stats_rows
from botchat.pipeline.workspace import Workspace

HOST = "127.0.0.1"

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_NEWEST = 3
_TAIL = 1 << 16
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
        """Of the set's page, or of ``/live`` while there is none."""
        root = f"http://{HOST}:{self.server_port}/"
        page = self.workspace.out(self.seed_set) / "index.html"
        return f"{root}{quote(self.seed_set)}/" if page.exists() else f"{root}live"


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
        page = live(self.server.workspace, self.server.seed_set).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        return io.BytesIO(page)


def live(workspace: Workspace, seed_set: str) -> str:
    """Progress, cost and the newest dialogues of a set as one page that renews itself."""
    seeds = len(workspace.seeds(seed_set))
    rows: list[tuple[str, str]] = []
    newest: list[tuple[float, Path]] = []
    for path in sorted((workspace.root / "generations" / seed_set).glob("*.jsonl")):
        last = _last_line(path)
        if last:
            newest.append((path.stat().st_mtime, path))
            rows.append((_name(last, "model"), f"{_lines(path):,} of {seeds:,} dialogues"))
    for path in sorted((workspace.root / "judgments" / seed_set).glob("*/*.jsonl")):
        last = _last_line(path)
        if last:
            who = f"{path.parent.name} by {_name(last, 'judge')}"
            rows.append((who, f"{_lines(path):,} verdicts"))
    try:
        calls = stats_rows(workspace)
    except MissingError:
        calls = []
    costs = [
        (
            f"{row['model']} ({row['stage']})",
            f"{row['calls']:,} calls, {_money(row)}; {_counts(row['outcomes'])}",
        )
        for row in calls
    ]
    told = [_told(path) for _, path in sorted(newest, reverse=True)[:_NEWEST]]
    page = workspace.out(seed_set) / "index.html"
    link = f'<p><a href="/{quote(seed_set)}/">Leaderboard</a></p>' if page.exists() else ""
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        '<meta http-equiv="refresh" content="5"><meta name="color-scheme" content="light dark">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(seed_set)} · live</title>"
        "<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:1rem auto;"
        "padding:0 1rem}td,th{text-align:left;padding:.2rem 1rem .2rem 0;vertical-align:top;"
        "overflow-wrap:anywhere}p{white-space:pre-wrap;overflow-wrap:anywhere}</style>"
        f"<h1>{escape(seed_set)}</h1>{link}"
        f"{_table('Made so far', rows)}{_table('Calls', costs)}{''.join(told)}</html>"
    )


def _table(title: str, rows: list[tuple[str, str]]) -> str:
    body = "".join(f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows)
    return f"<h2>{title}</h2><table>{body}</table>" if rows else ""


def _told(path: Path) -> str:
    """The last dialogue of a file."""
    try:
        said = json.loads(_last_line(path))
    except ValueError:
        return ""  # being written just now; the next look has it
    lines = "".join(
        f"<p><b>{'AB'[i % 2]}</b> {escape(str(text)[:2000])}</p>"
        for i, text in enumerate(said.get("utterances", ()))
    )
    name = f"{said.get('model', '')} · {said.get('seed_id', '')}"
    return f"<h2>{escape(name)}</h2>{lines}"


def _name(line: str, key: str) -> str:
    try:
        return str(json.loads(line).get(key, ""))
    except ValueError:
        return "…"


def _money(row: dict[str, Any]) -> str:
    return "unknown cost" if row["cost_usd"] is None else f"${row['cost_usd']:,.4f}"


def _counts(outcomes: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in outcomes.items())


def _lines(path: Path) -> int:
    return sum(block.count(b"\n") for block in _blocks(path))


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            yield block


def _last_line(path: Path) -> str:
    """The last whole line, if it is not longer than a window at the end of the file."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL))
        lines = file.read().splitlines()
    return lines[-1].decode("utf-8", "replace") if lines else ""

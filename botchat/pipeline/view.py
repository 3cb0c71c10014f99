"""Serves the workspace's pages, and one that follows a run, on 127.0.0.1 only."""

from __future__ import annotations

import http.server
import io
import sys
from contextlib import closing, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from botchat.errors import BotChatError, ConfigError, MissingError
from botchat.pipeline.session import catalogue_of
from botchat.records import Dialogue, Judgment
from botchat.report.live import Calls, Progress, State, policy, render
from botchat.workspace.accounts import stats
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger

HOST = "127.0.0.1"

_PORTS = 2**16 - 1


class Server(http.server.ThreadingHTTPServer):
    """Serves ``leaderboards/``, and the state of a set at ``/live`` and ``/``.

    Raises `MissingError` if there is no such set, `BotChatError` if the port is taken.
    """

    daemon_threads = True

    def __init__(self, workspace: Workspace, seed_set: str, port: int = 0) -> None:
        """Listen on loopback; port 0 takes a free one."""
        if seed_set not in workspace.seed_sets():
            known = ", ".join(workspace.seed_sets()) or "none"
            raise MissingError(f"no seed set {seed_set!r} in {workspace.root} (there are: {known})")
        self.workspace = workspace
        self.seed_set = seed_set
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

    @property
    def url(self) -> str:
        """Of the set's page, or of ``/live`` while there is none or a run goes on."""
        root = f"http://{HOST}:{self.server_port}/"
        page = self.workspace.out(self.seed_set) / "index.html"
        still = page.exists() and self.workspace.writer() is None
        return f"{root}{quote(self.seed_set)}/" if still else f"{root}live"


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Files and the live page, to this machine's own browser only."""

    server: Server
    extensions_map = {  # noqa: RUF012 (the base class has it so)
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        **{".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml"},
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
        try:
            return super().send_head()
        except ValueError:  # NUL or half a character: no file has such a name
            self.send_error(HTTPStatus.NOT_FOUND, "No page here")
            return None

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
        try:
            page = render(state(self.server.workspace, self.server.seed_set)).encode()
        except (BotChatError, OSError) as error:  # a line that is broken, a file that just went
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, explain=str(error))
            return None
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Security-Policy", policy())
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        return io.BytesIO(page)


Record = TypeVar("Record", Dialogue, Judgment)

_NEWEST = 4
"""Dialogues that are shown, and verdicts."""

_OF_A_FILE = 2
"""Of one file, so that several models at work are all seen."""

_TAIL = 1 << 18
"""Bytes at the end of a file that are looked at for the newest."""


def state(workspace: Workspace, seed_set: str) -> State:
    """How far everything is, what it cost, and the newest of it."""
    said = _files(workspace.root / "generations" / seed_set, "*.jsonl", Dialogue)
    ruled = _files(workspace.root / "judgments" / seed_set, "*/*.jsonl", Judgment)
    seeds = workspace.seeds(seed_set)
    made = {path: _lines(path) for path in (*said, *ruled)}
    n_dialogues, n_models = sum(made[path] for path in said), len(said)
    catalogue = catalogue_of(workspace, seed_set)
    verdicts = []
    for path, newest in ruled.items():
        protocol = catalogue.find(newest[0].protocol)
        most = protocol.most_cases(seeds, n_models, n_dialogues) if protocol else 0
        name = f"{newest[0].protocol} by {newest[0].judge}"
        verdicts.append(Progress(name, made[path], max(most, made[path]), at_most=True))
    page = workspace.out(seed_set) / "index.html"
    return State(
        seed_set,
        running=workspace.writer() or "",
        page=f"/{quote(seed_set)}/" if page.exists() else "",
        dialogues=[
            Progress(newest[0].contestant, made[path], max(len(seeds), made[path]))
            for path, newest in said.items()
        ],
        verdicts=verdicts,
        calls=_calls(workspace),
        said=_newest(said),
        ruled=_newest(ruled),
    )


def _files(folder: Path, pattern: str, kind: type[Record]) -> dict[Path, list[Record]]:
    """Every stage file with its newest records, newest first; files without any are left out."""
    found = {path: _last(path, kind) for path in sorted(folder.glob(pattern))}
    return {path: records for path, records in found.items() if records}


def _newest(files: dict[Path, list[Record]]) -> list[Record]:
    """Those of the files that were written last."""
    by_age = sorted(files, key=lambda path: -path.stat().st_mtime)
    return [record for path in by_age for record in files[path]][:_NEWEST]


def _last(path: Path, kind: type[Record]) -> list[Record]:
    """The last whole records of a file, newest first, as far as they are near its end."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL))
        lines = file.read().splitlines()
    found: list[Record] = []
    for line in reversed(lines):
        with suppress(msgspec.MsgspecError):  # it is being written, or cut at the window's edge
            found.append(msgspec.json.decode(line, type=kind))
        if len(found) == _OF_A_FILE:
            break
    return found


def _calls(workspace: Workspace) -> list[Calls]:
    if not workspace.ledger_path.exists():
        return []
    with closing(Ledger(workspace.ledger_path, readonly=True)) as ledger:
        return [
            Calls(
                of.model,
                f"{of.stage}, superseded" if of.superseded else of.stage,
                of.calls,
                of.prompt_tokens + of.completion_tokens,
                of.cost_usd or 0.0,
                of.unpriced_calls,
                ", ".join(f"{number:,} {what}" for what, number in of.outcomes.items()),
            )
            for of in stats(ledger)
        ]


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(partial(file.read, 1 << 20), b""))

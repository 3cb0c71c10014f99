"""A small hub: repositories with commits over HTTP, as far as `huggingface_hub` uses them."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest

TOKEN = "hf_tokenOfTheTests0123"


class Hub(ThreadingHTTPServer):
    """Serves repositories from a thread of its own; whoever has `TOKEN` may write."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.commits: dict[str, list[tuple[str, dict[str, bytes]]]] = {}
        """``datasets/ORG/NAME`` -> its commits, oldest first: id and files."""
        self.created: list[dict[str, object]] = []
        self.asked: list[str] = []
        self.tags: dict[str, str] = {}
        """Names of revisions besides ``main``, with their commits."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def commit(self, repository: str, files: dict[str, bytes]) -> str:
        """Add a commit with these files; its id."""
        made = self.commits.setdefault(repository, [])
        told = sorted(
            (path, hashlib.sha256(content).hexdigest()) for path, content in files.items()
        )
        name = hashlib.sha1(json.dumps([len(made), told]).encode()).hexdigest()
        made.append((name, dict(files)))
        return name

    def sha(self, repository: str, revision: str) -> str:
        """The commit of a revision."""
        tags = {"main": self.commits[repository][-1][0], **self.tags}
        return tags.get(revision, revision)

    def files(self, repository: str, revision: str = "main") -> dict[str, bytes] | None:
        """Those of a commit or of the newest; None: no such revision."""
        return dict(self.commits[repository]).get(self.sha(repository, revision))

    def __enter__(self) -> Hub:
        """Serve."""
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}).start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self.shutdown()
        self.server_close()


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Iterator[Hub]:
    """A hub of one's own, with the right to write, and an empty cache."""
    with Hub() as running:
        constants = "huggingface_hub.constants"
        monkeypatch.setattr(f"{constants}.ENDPOINT", running.url)
        template = running.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(f"{constants}.HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(f"{constants}.HF_HUB_CACHE", str(cache))
        monkeypatch.setattr(f"{constants}.HF_HUB_DISABLE_PROGRESS_BARS", True)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield running


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        path = self._begin()
        data = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if path == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return self._say(401, b"{}")
        if path == "/api/repos/create":
            told = json.loads(data)
            name = f"{told['type']}s/{told['organization']}/{told['name']}"
            self.server.created.append(told)
            status = 409 if name in self.server.commits else 200
            if status == 200:
                self.server.commit(name, {".gitattributes": b""})
            url = f"{self.server.url}/{name}"
            return self._say(status, json.dumps({"url": url}).encode())
        found = re.fullmatch(r"/api/(\w+/[^/]+/[^/]+)/(preupload|commit)/main", path)
        assert found is not None, path
        repository, what = found.groups()
        if what == "preupload":
            files = [one["path"] for one in json.loads(data)["files"]]
            how = {"uploadMode": "regular", "shouldIgnore": False}
            return self._json({"files": [{"path": file, **how} for file in files]})
        if repository not in self.server.commits:
            return self._say(404, b"", {"X-Error-Code": "RepoNotFound"})
        now = dict(self.server.files(repository) or {})
        for line in data.splitlines():
            change = json.loads(line)
            value = change["value"]
            if change["key"] == "file":
                now[value["path"]] = base64.b64decode(value["content"])
            elif change["key"] == "deletedFile":
                del now[value["path"]]
        oid = self.server.commit(repository, now)
        home = f"{self.server.url}/{repository}"
        told = {"commitUrl": f"{home}/commit/{oid}", "commitOid": oid, "success": True}
        return self._json(told)

    def do_GET(self) -> None:
        path = self._begin()
        found = re.fullmatch(r"/api/(\w+/[^/]+/[^/]+)(?:/(tree|revision)/(.+))?", path)
        if found:
            revision = found[3] or "main"
            if found[1] not in self.server.commits:
                return self._say(404, b"", {"X-Error-Code": "RepoNotFound"})
            files = self.server.files(found[1], revision)
            if files is None:
                return self._say(404, b"", {"X-Error-Code": "RevisionNotFound"})
            if found[2] != "tree":
                sha = self.server.sha(found[1], revision)
                siblings = [{"rfilename": name, "size": len(files[name])} for name in files]
                return self._json({"id": found[1], "sha": sha, "siblings": siblings})
            listed = [
                {"type": "file", "path": name, "size": len(content), "oid": "0" * 40}
                for name, content in files.items()
            ]
            return self._json(listed)
        found = re.fullmatch(r"/(datasets/[^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if not found or found[1] not in self.server.commits:
            return self._say(404, b"", {"X-Error-Code": "RepoNotFound"})
        there = self.server.files(found[1], found[2])
        if there is None:
            return self._say(404, b"", {"X-Error-Code": "RevisionNotFound"})
        if found[3] not in there:
            return self._say(404, b"", {"X-Error-Code": "EntryNotFound"})
        commit = self.server.sha(found[1], found[2])
        content = there[found[3]]
        etag = f'"{hashlib.sha1(content).hexdigest()}"'
        return self._say(200, content, {"ETag": etag, "X-Repo-Commit": commit})

    def do_HEAD(self) -> None:
        self.do_GET()

    def _begin(self) -> str:
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append(f"{self.command} {path}")
        return path

    def _json(self, value: object) -> None:
        self._say(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _say(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""

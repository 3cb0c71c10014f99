"""A running `botchat view` and the requests of a browser, and of others."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

from botchat.pipeline.view import Server


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """The server, serving in a thread until the end."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(
    server: Server,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of an answer to exactly these headers (and the usual Host)."""
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    try:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def token_in(page: str) -> str:
    """The token that a page was served with."""
    (token,) = re.findall(r'<meta name="botchat-token" content="([\w-]+)">', page)
    return str(token)


def of_a_page(server: Server) -> dict[str, str]:
    """Headers of a POST that a page of the server sends."""
    return {
        "Origin": f"http://127.0.0.1:{server.server_port}",
        "X-BotChat-Token": server.token,
        "Content-Type": "application/json",
    }


def post(server: Server, path: str, sent: Any) -> tuple[int, Any]:
    """Status and JSON of the answer to what a page of the server posts."""
    status, _, text = ask(server, "POST", path, json.dumps(sent).encode(), of_a_page(server))
    return status, json.loads(text)

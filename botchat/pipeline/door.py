"""The door of `botchat view`: who may ask this server something, and who may have it do something.

It listens on loopback only. A page of another site cannot read what it serves (its name must be
ours, so DNS rebinding does not help) and cannot have it do anything: a POST must come from a page
of this server (`Origin`), which alone knows the token of this start, as JSON of a limited size.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from email.message import Message
from http import HTTPStatus
from typing import Any

import msgspec

from botchat.errors import BotChatError

HOST = "127.0.0.1"

TOKEN = "X-BotChat-Token"
"""Header of a POST; pages have the same in ``<meta name="botchat-token">``."""

MOST_BYTES = 8 << 20
"""Of a body."""


class Refused(BotChatError):
    """A request that is turned away, with its HTTP status."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


def hosts(port: int) -> set[str]:
    """The names that this server answers to."""
    return {f"{name}:{port}" for name in (HOST, "localhost")}


def check_host(headers: Message, port: int) -> None:
    """Raise `Refused` for a name of another site that was made to point here (DNS rebinding)."""
    if headers.get("Host") not in hosts(port):
        raise Refused(HTTPStatus.FORBIDDEN, "this server answers its own machine only")


def check_sender(headers: Message, port: int, token: str) -> None:
    """Raise `Refused` unless a page of this server, as started now, has sent it."""
    check_host(headers, port)
    if headers.get("Origin") != f"http://{headers['Host']}":
        raise Refused(HTTPStatus.FORBIDDEN, "only this server's own pages may send anything")
    if not hmac.compare_digest(headers.get(TOKEN, "").encode(), token.encode()):
        raise Refused(
            HTTPStatus.FORBIDDEN,
            "this page is from an earlier start of botchat view; load it again",
        )


def length(headers: Message) -> int:
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


def body(data: bytes) -> Mapping[str, Any]:
    """The JSON object that was sent; raises `Refused`."""
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        why = " ".join(str(error).split())[:200]
        raise Refused(HTTPStatus.BAD_REQUEST, f"the body is no JSON object: {why}") from None


def with_token(page: bytes, token: str) -> bytes:
    """A page with the token, for its scripts; it is in no file."""
    return page.replace(
        b"<head>", b'<head>\n<meta name="botchat-token" content="%b">' % token.encode(), 1
    )

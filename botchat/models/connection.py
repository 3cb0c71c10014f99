"""HTTP to one server with one key: whole responses, or how an exchange failed.

It is the only HTTP client of the product, but for the Batch API, which has openai's. No redirect is
followed: it would take prompt and key to another host.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import parse_qsl, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from botchat.errors import ConfigError, FatalModelError
from botchat.frames import package_toml
from botchat.models.faults import Fault
from botchat.records import VERSION
from botchat.workspace.model_settings import Access, ModelSettings, access
from botchat.workspace.secrets import Redactor, public_url

if TYPE_CHECKING:
    import openai

MAX_BODY = 16 << 20
"""Bytes of a body, unpacked; no chat completion is longer."""
MAX_HEADER = 1 << 16
"""Bytes of a header: gateways put policies and traces into theirs."""

_NO_KEY = "none"


class HttpResponse(NamedTuple):
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Failure(NamedTuple):
    """An exchange without a response."""

    fault: Fault
    detail: str
    status: int | None = None
    content: bytes = b""


Response: TypeAlias = HttpResponse | Failure

_FAILURES = package_toml("models/failures.toml", dict[str, Failure])


class _UnreadBytes(aiohttp.ClientConnectionError):
    """A kept connection holds bytes that belong to no request of ours."""


class _Request(aiohttp.ClientRequest):
    """A request that is sent on no connection with unread bytes.

    A second answer to an earlier request would be taken for the answer to this one.
    """

    async def send(self, conn: aiohttp.connector.Connection) -> aiohttp.ClientResponse:
        """Send it, or raise before anything is sent."""
        if conn.protocol is not None and conn.protocol.should_close:
            raise _UnreadBytes
        return await super().send(conn)


@dataclass(eq=False)
class Server:
    """One server with one key: its HTTP connections, shared by all its models, and its secrets.

    Messages name only the kind of an error, since its text may hold the key.
    """

    name: str
    """URL, for messages."""
    find_access: Callable[[], Access]
    """Called at the first request: a ledger replays without a key."""

    def __post_init__(self) -> None:
        """Open nothing yet."""
        self._session: aiohttp.ClientSession | None = None
        self._proxy = ""
        self.redactor = Redactor()
        """Redacts the secrets that the server may have repeated; the result is valid UTF-8."""

    def open(self) -> Access:
        """Read what lets requests in. Raises `FatalModelError` if it is not set."""
        try:
            self.access = self.find_access()
        except ConfigError as error:
            raise FatalModelError(str(error)) from None
        self.redactor = Redactor(self.access.secrets)
        self._place = urlsplit(self.access.base_url)
        self._host = self._place.netloc.rpartition("@")[2]
        return self.access

    async def send(self, path: str, body: bytes | None, deadline_s: float) -> Response:
        """POST a JSON body, or GET if there is none."""
        session = self._session or self._connect()
        url = self.access.base_url + path + self.access.query
        method = "POST"
        if body is None:
            method = "GET"
        try:
            if re.match("(?!https?:).", self._proxy):  # SOCKS, and whatever else is no HTTP
                raise ValueError
            async with (
                asyncio.timeout(deadline_s),
                session.request(
                    method, url, data=body, allow_redirects=False, proxy=self._proxy or None
                ) as response,
            ):
                await response.content.readexactly(MAX_BODY + 1)
            return Failure("unreadable", f"the body is larger than {MAX_BODY} bytes")
        except asyncio.IncompleteReadError as whole:  # as it should be: it is shorter
            return HttpResponse(response.status, response.headers.copy(), whole.partial)
        except _UnreadBytes:
            # That connection is closed now, and nothing was sent.
            return await self.send(path, body, deadline_s)
        except (aiohttp.ClientError, ValueError, OSError) as error:
            return self._failure(error, deadline_s)

    def _failure(self, error: Exception, deadline_s: float) -> Failure:
        """Return how an exchange failed, and what to do about it."""
        names = [kind.__name__ for kind in type(error).__mro__]
        text = f"{self._proxy} {' '.join(names)}: {error}"
        failure = next(_FAILURES[words] for words in _FAILURES if re.search(words, text))
        detail = failure.detail.format(
            host=self._host,
            proxy=public_url(self._proxy),
            kind=names[0],
            deadline=f"{deadline_s:g}",
        )
        return failure._replace(detail=detail)

    def _connect(self) -> aiohttp.ClientSession:
        self.open()
        # `trust_env` would look these up in another thread for every request.
        if not proxy_bypass(self._host):
            proxies = getproxies()
            self._proxy = proxies.get(self._place.scheme) or proxies.get("all", "")
        if self._proxy and "://" not in self._proxy:
            self._proxy = f"http://{self._proxy}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={
                "content-type": "application/json",
                "user-agent": f"botchat/{VERSION}",
                **self.access.headers,
            },
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30.0),
            request_class=_Request,
            max_line_size=MAX_HEADER,
            max_field_size=MAX_HEADER,
        )
        return self._session

    @asynccontextmanager
    async def openai_client(self) -> AsyncIterator[openai.AsyncOpenAI]:
        """Open a client of the same server, with the same key, for its batches and files.

        What fails with it is a `FatalModelError`.
        """
        import openai  # a second of CPU

        access = self.open()
        headers: dict[str, Any] = {name.title(): text for name, text in access.headers.items()}
        for own in ("OpenAI-Organization", "OpenAI-Project"):  # from no variable
            headers.setdefault(own, openai.Omit())
        client = openai.AsyncOpenAI(
            api_key=_NO_KEY,
            base_url=access.base_url,
            default_query=dict(parse_qsl(access.query[1:], keep_blank_values=True)),
            default_headers=headers,
            # It refuses to go without a key, so that of nobody is taken off what it sends.
            http_client=openai.DefaultAsyncHttpxClient(
                follow_redirects=False, event_hooks={"request": [_without_authorization]}
            ),
        )
        try:
            async with client:
                yield client
        except openai.OpenAIError as error:
            fault = " ".join(self.redactor.clean(f"in its Batch API: {error}").split())[:500]
            raise FatalModelError(
                f"{self.name} failed {fault}; run it again, or leave --batch out"
            ) from None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _without_authorization(request: Any) -> None:
    """Take off the key that stands for none; a login of the URL stays."""
    if request.headers.get("authorization") == f"Bearer {_NO_KEY}":
        del request.headers["authorization"]


def server_of(settings: ModelSettings) -> Server:
    """Return the server of an entry; its key is read at the first request."""
    return Server(public_url(settings.base_url), lambda: access(settings))

"""One HTTP request for the ``openai`` client.

The client's own aiohttp transport reads bodies of any size, sends headers that the environment adds
to any host, can take a late duplicate of an earlier reply for the next one, and passes on errors
whose text holds the URL. It is also slower (``benchmarks/client_overhead.py``).
"""

from __future__ import annotations

import selectors
import weakref
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a body, unpacked; no chat completion is longer."""

MAX_STREAM = 8 * MAX_BODY
"""The same of a stream of events, which wraps every token in some hundred bytes."""

CONNECT_TIMEOUT_S = 30.0
_KEEP_S = 30.0
_Selector = getattr(selectors, "PollSelector", selectors.DefaultSelector)
"""One system call a look, where there is ``poll``; ``epoll`` takes four."""
_SENT = ("content-type", "accept", "user-agent")
_SENT_TO_OPENAI = ("openai-organization", "openai-project")


_NOT_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)
"""Failures before there was a connection."""


class BodyTooLargeError(Exception):
    """A body is larger than the limit."""


class Precedent(NamedTuple):
    """Of a request that was sent, what the next one to the same place shares with it."""

    url: str
    headers: Mapping[str, str]


class Received(NamedTuple):
    """A whole response, with the names that it has in an ``httpx2.Response``."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes
    raw_headers: Sequence[tuple[bytes, bytes]] = ()


class Transport(httpx2.AsyncBaseTransport):
    """Sends only what is needed, follows no redirect, reads no body beyond ``max_body`` bytes."""

    def __init__(
        self, base_url: str, headers: Mapping[str, str] | None = None, max_body: int = MAX_BODY
    ) -> None:
        """``base_url`` decides which proxy of the environment is used.

        ``headers`` are sent with every request, as they are at that time.
        """
        url = httpx2.URL(base_url)
        self._base = url.path.rstrip("/")
        self._proxy = None if proxy_bypass(url.host) else getproxies().get(url.scheme)
        self._sent = _SENT + (_SENT_TO_OPENAI if url.host == "api.openai.com" else ())
        self._headers = headers or {}
        self._max_body = max_body
        self._session: aiohttp.ClientSession | None = None
        self.precedents: dict[str, Precedent] = {}
        """By path after the base URL: POST requests; to be cleared where a header changes."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send ``request`` and read the whole response; raises as `exchange`."""
        sent = {name: request.headers[name] for name in self._sent if name in request.headers}
        made = Precedent(str(request.url), {**sent, **self._headers, "accept-encoding": "gzip"})
        if request.method == "POST":
            self.precedents[request.url.path.removeprefix(self._base)] = made
        found = await self.exchange(made, await request.aread(), request.method)
        headers = [pair for pair in found.raw_headers if pair[0].lower() != b"content-encoding"]
        return httpx2.Response(
            found.status_code, headers=headers, content=found.content, request=request
        )

    async def exchange(self, made: Precedent, body: bytes, method: str = "POST") -> Received:
        """Send ``body`` as ``made`` says and read the whole response.

        Raises:
            ConnectError: there was no connection, so nothing was sent.
            TransportError: it failed later. The text of both is only the kind of failure.
            BodyTooLargeError: the body is larger than ``max_body``.
        """
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=_Connector(limit=0, keepalive_timeout=_KEEP_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
            )
        try:
            async with self._session.request(
                method,
                made.url,
                data=body,
                headers=made.headers,
                allow_redirects=False,
                proxy=self._proxy,
            ) as reply:
                content = await self._read(reply)
        except _NOT_SENT as error:
            cause = getattr(error, "os_error", error)
            raise httpx2.ConnectError(type(cause).__name__) from None
        except (aiohttp.ClientError, zlib.error, ValueError, OSError) as error:
            raise httpx2.TransportError(type(error).__name__) from None
        return Received(reply.status, reply.headers, content, reply.raw_headers)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def _read(self, reply: aiohttp.ClientResponse) -> bytes:
        packed = reply.headers.get("content-encoding", "identity").lower() != "identity"
        unzip = zlib.decompressobj(zlib.MAX_WBITS | 32) if packed else None
        most = self._max_body
        if reply.headers.get("content-type", "").lower().startswith("text/event-stream"):
            most = max(most, MAX_STREAM)
        body = bytearray()
        async for chunk in reply.content.iter_any():
            room = most + 1 - len(body)
            body += unzip.decompress(chunk, room) if unzip else chunk
            if len(body) > most:
                raise BodyTooLargeError
        return bytes(body)


class _Connector(aiohttp.TCPConnector):
    """Drops a kept-alive connection on which something has arrived before it is used again.

    It may be a late duplicate of an earlier reply, taken for the reply to the next request.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._used: weakref.WeakSet[Any] = weakref.WeakSet()

    async def connect(self, *arguments: Any, **more: Any) -> Any:
        """A connection that is new, or kept alive and silent."""
        while True:
            connection = await super().connect(*arguments, **more)
            protocol = connection.protocol
            # On a new connection this is no fault: TLS sends session tickets at once.
            if protocol is None or protocol not in self._used:
                if protocol is not None:
                    self._used.add(protocol)
                return connection
            if not protocol.should_close and not _readable(connection.transport):
                return connection
            connection.close()


def _readable(transport: Any) -> bool:
    socket = transport.get_extra_info("socket") if transport is not None else None
    if socket is None or socket.fileno() < 0:
        return True
    with _Selector() as selector:
        selector.register(socket.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))

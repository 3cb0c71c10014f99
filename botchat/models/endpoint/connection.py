"""One server with one key: its HTTP connections, shared by all its models, and its secrets.

The ``openai`` client says what a request is: URL, query, headers, the form of a file. aiohttp sends
it: nothing is tried again that would not be recorded, no redirect is followed (it would take the
prompt to another host), no header goes out that the environment holds for another host, no error's
text is passed on that may hold the key. What the client says is kept for the next request to the
same place: eight times as fast as the client's own way (``benchmarks/client_overhead.py``).
"""

from __future__ import annotations

import asyncio
import re
import selectors
import weakref
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
import msgspec
import openai
from yarl import URL

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Reply
from botchat.records import Outcome
from botchat.workspace.secrets import Redactor

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a body, unpacked; no chat completion is longer."""

CONNECT_TIMEOUT_S = 30.0
_KEEP_S = 30.0

_NOT_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)
"""Failures before there was a connection."""

_SENT = ("content-type", "accept", "user-agent")
_SENT_TO_OPENAI = ("openai-organization", "openai-project")
"""Headers of the client that go out; the second ones are from the environment, for OpenAI."""

_ADMITS = re.compile(r"key|token|secret|pass|auth|sig|code|credential", re.IGNORECASE)
_PLAIN = re.compile(r"[a-z]{1,8}|v?\d{1,4}(?:[.-]\d{1,2}){0,3}(?:-preview)?")
"""Versions and words in a URL's query; to take them out of replies would change what was said."""


class BodyTooLargeError(Exception):
    """A body is larger than the limit."""


class HttpRequest(NamedTuple):
    """What is sent: a GET without content."""

    path: str
    """After the base URL; or a whole URL."""
    body: bytes | None = None
    """JSON."""
    query: Mapping[str, str] = {}
    file: tuple[str, bytes] | None = None
    """In place of a body: name and content of a file of a batch."""


class HttpResponse(NamedTuple):
    """A whole response."""

    status_code: int
    headers: Mapping[str, str]
    content: bytes


class _Composer(httpx2.AsyncBaseTransport):
    """Sends nothing: keeps what the client would have sent."""

    composed: httpx2.Request

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Keep it."""
        await request.aread()
        self.composed = request
        return httpx2.Response(200, request=request)


@dataclass(eq=False)
class Connection:
    """A session and what it is let in with."""

    base_url: str
    """As it is set; `address` once a request was sent."""
    key: Callable[[], str | None] = field(repr=False)
    """Called at the first request."""
    headers: Callable[[], tuple[Mapping[str, str], tuple[str, ...]]] = lambda: ({}, ())
    """Further headers, and which values are secret; called at the first request."""
    key_header: str = "authorization"
    """Only this one has ``Bearer`` before the key."""
    max_body: int = MAX_BODY
    """Bytes read of a response's body."""
    address: Callable[[], str] | None = None
    """Where ``base_url`` is, called at the first request; ``None``: as it is set."""

    def __post_init__(self) -> None:
        """Nothing is open yet."""
        self._session: aiohttp.ClientSession | None = None
        self._composer = _Composer()
        self._places: dict[tuple[Any, ...], tuple[URL, dict[str, str]]] = {}
        """Method, path and query -> where such requests go, with which headers."""
        self._sent: dict[str, str] = {}
        self._secrets: tuple[str, ...] = ()
        self._redactor = Redactor()
        self._entering = asyncio.Lock()

    async def _open(self) -> aiohttp.ClientSession:
        """The session, made at the first request: a ledger replays without a key.

        Raises:
            FatalModelError: there is no key, or no value for a header or the address.
        """
        async with self._entering:  # many calls begin at once
            if self._session is None:
                try:
                    key = self.key()
                    more, secret = self.headers()
                    self.base_url = self.address() if self.address else self.base_url
                except ConfigError as error:
                    raise FatalModelError(str(error)) from None
                self._prepare(key, more, secret)
                self._session = aiohttp.ClientSession(
                    connector=_Connector(limit=0, keepalive_timeout=_KEEP_S),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    auto_decompress=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
                )
        return self._session

    def _prepare(
        self, key: str | None, headers: Mapping[str, str], secret: tuple[str, ...]
    ) -> None:
        parts = urlsplit(self.base_url)
        login, _, host = parts.netloc.rpartition("@")
        name = parts.hostname or ""
        self._client = openai.AsyncOpenAI(
            api_key="none",  # it insists on one; ours is sent
            base_url=f"{parts.scheme}://{host}{parts.path}",
            default_query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            max_retries=0,
            http_client=httpx2.AsyncClient(transport=self._composer),
        )
        self._proxy = None if proxy_bypass(name) else getproxies().get(parts.scheme)
        told = (
            v for n, v in parse_qsl(parts.query) if _ADMITS.search(n) or not _PLAIN.fullmatch(v)
        )
        self._secrets = (login, unquote(parts.password or ""), *told, *secret)
        self._kept = _SENT + _SENT_TO_OPENAI if name == "api.openai.com" else _SENT
        self._sent |= {name.lower(): value for name, value in headers.items()}
        if login and not key:  # a login in the URL is used where there is no key
            self._sent["authorization"] = f"Basic {b64encode(login.encode()).decode()}"
            self._secrets += (self._sent["authorization"][6:],)
        if key:
            bearer = "Bearer " if self.key_header == "authorization" else ""
            self._sent[self.key_header] = f"{bearer}{key}"
            self._secrets += (key,)
        self._redactor = Redactor(self._secrets)

    async def post(
        self, path: str, body: Mapping[str, Any], deadline_s: float
    ) -> HttpResponse | Reply:
        """Send a JSON body, as `exchange`."""
        return await self.exchange(HttpRequest(path, msgspec.json.encode(body)), deadline_s)

    async def exchange(self, request: HttpRequest, deadline_s: float) -> HttpResponse | Reply:
        """One HTTP exchange, or how it failed."""
        session = self._session or await self._open()
        failed: Outcome = "transport"
        reached = True
        try:
            async with asyncio.timeout(deadline_s):
                return await self._answered(session, request)
        except BodyTooLargeError:
            failed, detail = "malformed", f"the body is larger than {self.max_body} bytes"
        # Of an error only its kind is told: its text may hold the URL.
        except _NOT_SENT as error:
            kind, reached = type(getattr(error, "os_error", error)).__name__, False
            detail = f"connection failed ({kind}); nothing was sent"
        except TimeoutError:
            detail = f"no reply within {deadline_s:g} s; it may have been billed"
        except (aiohttp.ClientError, zlib.error, ValueError, OSError) as error:
            detail = f"connection failed ({type(error).__name__}); it may have been billed"
        return Reply(failed, detail=detail, retry_after_s=0.0, reached=reached)

    async def _answered(self, session: aiohttp.ClientSession, request: HttpRequest) -> HttpResponse:
        """Send a request and read the whole response; the client is asked once a place."""
        body = request.body
        key = (body is None, request.path, *request.query.items())
        if request.file is not None:
            url, headers, body = await self._composed(request)
        elif (known := self._places.get(key)) is not None:
            url, headers = known
        else:
            url, headers, _ = await self._composed(request)
            self._places[key] = url, headers
        async with session.request(
            "GET" if body is None else "POST",
            url,
            data=body,
            headers={**headers, **self._sent},
            allow_redirects=False,
            proxy=self._proxy,
        ) as reply:
            return HttpResponse(reply.status, reply.headers, await self._read(reply))

    async def _composed(self, request: HttpRequest) -> tuple[URL, dict[str, str], bytes]:
        """Address, headers and body of what the client would send."""
        client, kind = self._client, httpx2.Response
        async with self._entering:  # the composer keeps one at a time
            if request.file is not None:
                files = client.files.with_raw_response
                await files.create(file=request.file, purpose="batch")
            elif request.body is None:
                query: openai.RequestOptions = {"params": dict(request.query)}
                await client.get(request.path, cast_to=kind, options=query)
            else:
                await client.post(request.path, content=request.body, cast_to=kind)
            made = self._composer.composed
        kept = {name: made.headers[name] for name in self._kept if name in made.headers}
        url = URL(str(made.url), encoded=True)  # as text it would be quoted anew
        return url, {**kept, "accept-encoding": "gzip"}, made.content

    async def _read(self, reply: aiohttp.ClientResponse) -> bytes:
        packed = reply.headers.get("content-encoding", "identity").lower() != "identity"
        unzip = zlib.decompressobj(zlib.MAX_WBITS | 32) if packed else None
        body = bytearray()
        async for chunk in reply.content.iter_any():
            room = self.max_body + 1 - len(body)
            body += unzip.decompress(chunk, room) if unzip else chunk
            if len(body) > self.max_body:
                raise BodyTooLargeError
        return bytes(body)

    def clean(self, text: str) -> str:
        """``text`` as valid UTF-8, without any secret that the server may have repeated."""
        return self._redactor.clean(text)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


_Selector = getattr(selectors, "PollSelector", selectors.DefaultSelector)
"""One system call a look, where there is ``poll``; ``epoll`` takes four."""


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

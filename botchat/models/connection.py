"""HTTP to one server with one key: whole responses, or how an exchange failed.

It is the only HTTP client of the product, but for the Batch API, which has openai's. No redirect is
followed: it would take prompt and key to another host.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from botchat.errors import ConfigError, FatalModelError
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


class HttpResponse(NamedTuple):
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Failure(NamedTuple):
    """An exchange without a response."""

    fault: Fault
    detail: str


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
    find_access: Callable[[], Access] = field(repr=False)
    """Called at the first request: a ledger replays without a key."""

    def __post_init__(self) -> None:
        """Open nothing yet."""
        self._session: aiohttp.ClientSession | None = None
        self._proxy: str | None = None
        self.redactor = Redactor()
        """Redacts the secrets that the server may have repeated; the result is valid UTF-8."""

    def open(self) -> Access:
        """Read what lets requests in. Raises `FatalModelError` if it is not set."""
        try:
            self.access = self.find_access()
        except ConfigError as error:
            raise FatalModelError(str(error)) from None
        self.redactor = Redactor(self.access.secrets)
        return self.access

    async def send(
        self, path: str, body: bytes | None, deadline_s: float
    ) -> HttpResponse | Failure:
        """POST a JSON body, or GET if there is none."""
        session = self._session or self._connect()
        if self._proxy is not None and not self._proxy.startswith(("http://", "https://")):
            fault = f"{self._proxy_name} is no HTTP proxy; set http_proxy to one, or use no_proxy"
            return Failure(Fault.SETTING, fault)
        try:
            async with asyncio.timeout(deadline_s):
                return await self._exchange(session, path, body)
        except TimeoutError as error:
            if isinstance(error, aiohttp.ConnectionTimeoutError):
                return self._not_connected(error)
            return Failure(
                Fault.TIMEOUT,
                f"no reply within timeout_s = {deadline_s:g}; it may have been billed; "
                "raise timeout_s in its [models] entry if it is slow",
            )
        except _UnreadBytes:
            # That connection is closed now, and nothing was sent.
            return await self.send(path, body, deadline_s)
        except (aiohttp.ClientError, ValueError, OSError) as error:
            return self._failure(error)

    async def _exchange(
        self, session: aiohttp.ClientSession, path: str, body: bytes | None
    ) -> HttpResponse | Failure:
        url = self.access.base_url + path + self.access.query
        method = "GET" if body is None else "POST"
        async with session.request(
            method, url, data=body, allow_redirects=False, proxy=self._proxy
        ) as response:
            content = bytearray()
            while not response.content.at_eof():
                content += await response.content.read(MAX_BODY + 1 - len(content))
                if len(content) > MAX_BODY:
                    fault = f"the body is larger than {MAX_BODY} bytes"
                    return Failure(Fault.UNREADABLE, fault)
            headers = {name.lower(): text for name, text in response.headers.items()}
            return HttpResponse(response.status, headers, bytes(content))

    def _connect(self) -> aiohttp.ClientSession:
        self.open()
        parts = urlsplit(self.access.base_url)
        host = parts.netloc.rpartition("@")[2]
        # `trust_env` would look these up in another thread for every request.
        if not proxy_bypass(host):
            self._proxy = getproxies().get(parts.scheme)
        if self._proxy is not None and "://" not in self._proxy:
            self._proxy = f"http://{self._proxy}"
        own = {"content-type": "application/json", "user-agent": f"botchat/{VERSION}"}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={**own, **self.access.headers},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30.0),
            request_class=_Request,
            max_line_size=MAX_HEADER,
            max_field_size=MAX_HEADER,
        )
        return self._session

    @property
    def _host(self) -> str:
        return urlsplit(self.access.base_url).netloc.rpartition("@")[2]

    @property
    def _proxy_name(self) -> str:
        return f"the proxy {public_url(self._proxy or '')}"

    def _failure(self, error: Exception) -> Failure:
        """Return how an exchange failed, and what to do about it."""
        if isinstance(error, aiohttp.ClientHttpProxyError):
            fault = f"{self._proxy_name} refuses the connection (HTTP {error.status})"
            return Failure(Fault.SETTING, f"{fault}; correct http_proxy, or use no_proxy")
        if isinstance(error, aiohttp.InvalidURL):
            return Failure(Fault.SETTING, "the address is no URL; correct base_url and http_proxy")
        if isinstance(error, aiohttp.ClientConnectorError):
            return self._not_connected(error)
        kind = type(error).__name__
        if isinstance(error, aiohttp.ClientResponseError):
            fault = f"the response is no HTTP that can be read ({kind}); it may have been billed"
            return Failure(Fault.UNREADABLE, fault)
        if isinstance(error, aiohttp.ClientPayloadError):
            fault = f"the response broke off ({kind}); it may have been billed"
            return Failure(Fault.LOST, fault)
        return Failure(Fault.LOST, f"connection lost ({kind}); it may have been billed")

    def _not_connected(self, error: Exception) -> Failure:
        """Return why nothing was sent."""
        cause = getattr(error, "os_error", error)
        if isinstance(error, aiohttp.ClientProxyConnectionError) or (
            self._proxy is not None and isinstance(error, aiohttp.ConnectionTimeoutError)
        ):
            fault = f"{self._proxy_name} does not answer; correct http_proxy, or use no_proxy"
            return Failure(Fault.UNREACHABLE, fault)
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            fault = f"the certificate of {self._host} is not trusted here"
            advice = "correct base_url, or name its authority's file in SSL_CERT_FILE"
            return Failure(Fault.SETTING, f"{fault}; {advice}")
        if isinstance(error, aiohttp.ClientSSLError) or isinstance(cause, ssl.SSLError):
            fault = f"{self._host} does not speak TLS (https); write http:// in base_url"
            return Failure(Fault.SETTING, fault)
        if isinstance(cause, socket.gaierror):
            fault = f"no address is known for the host {self._host} (DNS)"
            return Failure(Fault.UNREACHABLE, f"{fault}; correct base_url, or check the network")
        if isinstance(cause, OSError) and cause.errno in (23, 24):
            fault = "too many open files; lower max_concurrency in its [models] entry"
            return Failure(Fault.UNREACHABLE, fault)
        kind = type(cause).__name__
        fault = f"nothing answers at {self._host} ({kind}), so nothing was sent"
        return Failure(Fault.UNREACHABLE, f"{fault} (is the server running? check host and port)")

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
        transport = openai.DefaultAsyncHttpxClient(follow_redirects=False)
        if "Authorization" not in headers:
            # The client refuses to go without one, so it is taken off what it sends.
            transport.event_hooks = {"request": [_without_authorization]}
        client = openai.AsyncOpenAI(
            api_key="none",
            base_url=access.base_url,
            default_query=dict(parse_qsl(access.query[1:], keep_blank_values=True)),
            default_headers=headers,
            http_client=transport,
        )
        try:
            async with client:
                yield client
        except openai.OpenAIError as error:
            fault = " ".join(self.redactor.clean(f"in its Batch API: {error}").split())[:500]
            advice = "run it again, or leave --batch out"
            raise FatalModelError(f"{self.name} failed {fault}; {advice}") from None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _without_authorization(request: Any) -> None:
    request.headers.pop("authorization", None)


def server_of(settings: ModelSettings) -> Server:
    """Return the server of an entry; its key is read at the first request."""
    return Server(public_url(settings.base_url), lambda: access(settings))

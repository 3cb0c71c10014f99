"""HTTP to one server with one key: whole responses, or how an exchange failed.

It is the only HTTP client of the product, but for the Batch API, which has openai's. No redirect is
followed: it would take prompt and key to another host.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
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


_NO_KEY = "none"
_TLS_ALERT = r"\x15\x03"
"""First bytes of a server that was asked without TLS, as an error shows them."""
_PROXY = "correct the variable http_proxy, or use no_proxy"
_FAILURES: Sequence[tuple[type[Exception], Fault, str]] = (
    (
        aiohttp.ClientHttpProxyError,
        Fault.SETTING,
        f"the proxy {{proxy}} refuses the connection; {_PROXY}",
    ),
    (
        aiohttp.ClientProxyConnectionError,
        Fault.UNREACHABLE,
        f"the proxy {{proxy}} does not answer; {_PROXY}",
    ),
    (aiohttp.InvalidURL, Fault.SETTING, "{host} is no address; correct base_url"),
    (
        aiohttp.ClientConnectorCertificateError,
        Fault.SETTING,
        "the certificate of {host} is not trusted here; correct base_url, or name the file of its "
        "authority in SSL_CERT_FILE",
    ),
    (ssl.SSLError, Fault.SETTING, "{host} does not speak TLS (https); write http:// in base_url"),
    (
        aiohttp.ClientConnectorDNSError,
        Fault.UNREACHABLE,
        "no address is known for {host} (DNS); correct base_url, or check the network",
    ),
    (
        aiohttp.ClientConnectorError,
        Fault.UNREACHABLE,
        "nothing answers at {host}, so nothing was sent (is the server running? check host and "
        "port)",
    ),
    (
        aiohttp.ConnectionTimeoutError,
        Fault.UNREACHABLE,
        "{host} does not answer; is it behind a proxy (http_proxy)? check host and port",
    ),
    (
        TimeoutError,
        Fault.TIMEOUT,
        "no reply within timeout_s = {deadline}; it may have been billed; if it is slow, raise "
        "timeout_s in its [models] entry",
    ),
    (
        aiohttp.ClientPayloadError,
        Fault.LOST,
        "the response broke off ({kind}); it may have been billed",
    ),
    (
        aiohttp.ClientResponseError,
        Fault.UNREADABLE,
        "the response is no HTTP that can be read ({kind}); it may have been billed",
    ),
)
"""Kind of an error -> the fault, and a sentence on it; the first that fits counts."""


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
            fault = f"the proxy {public_url(self._proxy)} is no HTTP proxy; {_PROXY}"
            return Failure(Fault.SETTING, fault)
        try:
            async with asyncio.timeout(deadline_s):
                return await self._exchange(session, path, body)
        except _UnreadBytes:
            # That connection is closed now, and nothing was sent.
            return await self.send(path, body, deadline_s)
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
                advice = "lower max_concurrency in its [models] entry"
                return Failure(Fault.UNREACHABLE, f"too many open files; {advice}")
            if isinstance(error, aiohttp.ClientResponseError) and _TLS_ALERT in error.message:
                advice = "write https:// in base_url"
                return Failure(Fault.SETTING, f"{self._host} speaks TLS alone; {advice}")
            return self._failure(error, deadline_s)

    @property
    def _host(self) -> str:
        return urlsplit(self.access.base_url).netloc.rpartition("@")[2]

    def _failure(self, error: Exception, deadline_s: float) -> Failure:
        """Return how an exchange failed, and what to do about it."""
        words = {
            "host": self._host,
            "proxy": public_url(self._proxy or ""),
            "kind": type(error).__name__,
            "deadline": f"{deadline_s:g}",
        }
        for kind, fault, sentence in _FAILURES:
            # Where there is a proxy, it is the one that is connected to.
            is_proxy = kind is aiohttp.ClientProxyConnectionError and self._proxy is not None
            is_connecting = isinstance(error, aiohttp.ClientConnectorError)
            is_tls = isinstance(error, ssl.SSLError)
            if isinstance(error, kind) or (is_proxy and is_connecting and not is_tls):
                return Failure(fault, sentence.format_map(words))
        return Failure(Fault.LOST, f"connection lost ({words['kind']}); it may have been billed")

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
            self._proxy = getproxies().get(parts.scheme) or getproxies().get("all")
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
            api_key=_NO_KEY,
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
    """Take off the key that stands for none; a login of the URL stays."""
    if request.headers.get("authorization") == f"Bearer {_NO_KEY}":
        del request.headers["authorization"]


def server_of(settings: ModelSettings) -> Server:
    """Return the server of an entry; its key is read at the first request."""
    return Server(public_url(settings.base_url), lambda: access(settings))

"""HTTP to one server with one key: whole responses, or how an exchange failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Reply
from botchat.records import VERSION, Outcome
from botchat.workspace.model_settings import Access, ModelSettings, access
from botchat.workspace.secrets import Redactor, public_url

if TYPE_CHECKING:
    import openai

MAX_BODY = 16 << 20  # bytes, unpacked; no chat completion is longer


class HttpResponse(NamedTuple):
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(eq=False)
class Server:
    """One server with one key: its HTTP connections, shared by all its models, and its secrets.

    No redirect is followed: it would take the prompt to another host. Messages name only the kind
    of an error, since its text may hold the key.
    """

    name: str
    """URL, for messages."""
    find_access: Callable[[], Access] = field(repr=False)
    """Called at the first request: a ledger replays without a key."""

    def __post_init__(self) -> None:
        """Open nothing yet."""
        self._session: aiohttp.ClientSession | None = None
        self.clean = Redactor().clean
        """Redacts the secrets that the server may have repeated; the result is valid UTF-8."""

    def open(self) -> Access:
        """Read what lets requests in. Raises `FatalModelError` if it is not set."""
        try:
            self.access = self.find_access()
        except ConfigError as error:
            raise FatalModelError(str(error)) from None
        self.clean = Redactor(self.access.secrets).clean
        return self.access

    def _connect(self) -> aiohttp.ClientSession:
        self.open()
        parts = urlsplit(self.access.base_url)
        # `trust_env` would look these up in another thread for every request.
        self._proxy = None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)
        own = {"content-type": "application/json", "user-agent": f"botchat/{VERSION}"}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={**own, **self.access.headers},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30.0),
        )
        return self._session

    async def send(self, path: str, body: bytes | None, deadline_s: float) -> HttpResponse | Reply:
        """POST a JSON body, or GET if there is none; a `Reply` says how the exchange failed."""
        session = self._session or self._connect()
        outcome: Outcome = "transport"
        reached = True
        try:
            async with (
                asyncio.timeout(deadline_s),
                session.request(
                    "GET" if body is None else "POST",
                    self.access.base_url + path + self.access.query,
                    data=body,
                    allow_redirects=False,
                    proxy=self._proxy,
                ) as response,
            ):
                content = await response.content.read(MAX_BODY + 1)
                while len(content) <= MAX_BODY and not response.content.at_eof():
                    content += await response.content.read(MAX_BODY + 1 - len(content))
                if len(content) <= MAX_BODY:
                    headers = {name.lower(): text for name, text in response.headers.items()}
                    return HttpResponse(response.status, headers, content)
                outcome, detail = "malformed", f"the body is larger than {MAX_BODY} bytes"
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            kind, reached = type(getattr(error, "os_error", error)).__name__, False
            detail = f"connection failed ({kind}); nothing was sent"
        except TimeoutError:
            detail = f"no reply within {deadline_s:g} s; it may have been billed"
        except (aiohttp.ClientError, ValueError, OSError) as error:
            detail = f"connection failed ({type(error).__name__}); it may have been billed"
        return Reply(outcome, detail=detail, retry_after_s=0.0, reached=reached)

    @asynccontextmanager
    async def openai_client(self) -> AsyncIterator[openai.AsyncOpenAI]:
        """Open a client of the same server, with the same key, for its batches and files.

        What fails with it is a `FatalModelError`.
        """
        import openai  # a second of CPU

        access = self.open()
        own = ("Authorization", "OpenAI-Organization", "OpenAI-Project")  # from no variable
        headers: dict[str, Any] = dict.fromkeys(own, openai.Omit())
        client = openai.AsyncOpenAI(
            api_key="none",
            base_url=access.base_url,
            default_query=dict(parse_qsl(access.query[1:], keep_blank_values=True)),
            default_headers=headers | {k.title(): v for k, v in access.headers.items()},
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )
        try:
            async with client:
                yield client
        except (openai.OpenAIError, msgspec.MsgspecError) as error:
            fault = " ".join(self.clean(f"in its Batch API: {error}").split())[:500]
            advice = "run it again, or leave --batch out"
            raise FatalModelError(f"{self.name} failed {fault}; {advice}") from None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def server_of(settings: ModelSettings) -> Server:
    """Return the server of an entry; its key is read at the first request."""
    return Server(public_url(settings.base_url), lambda: access(settings))

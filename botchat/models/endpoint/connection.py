"""One server with one key: its HTTP client, shared by all its models, and its secrets.

The client library's own retries, errors and redirects are switched off: they would not be recorded,
may hold the key, and would take the prompt to another host.
"""

from __future__ import annotations

import asyncio
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import httpx2
import msgspec
import openai

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Reply
from botchat.models.endpoint.transport import (
    MAX_BODY,
    BodyTooLargeError,
    Received,
    Transport,
)
from botchat.workspace.secrets import Redactor

Response: TypeAlias = httpx2.Response | Received
Send = Callable[[openai.AsyncOpenAI], Awaitable[Response]]
"""Makes one request through the client."""

_ADMITS = re.compile(r"key|token|secret|pass|auth|sig|code|credential", re.IGNORECASE)
_PLAIN = re.compile(r"[a-z]{1,8}|v?\d{1,4}(?:[.-]\d{1,2}){0,3}(?:-preview)?")
"""Versions and words in a URL's query; to take them out of replies would change what was said."""


@dataclass(eq=False)
class Connection:
    """A client and what it is let in with."""

    base_url: str
    """As it is set; `address` once a request was sent."""
    key: Callable[[], str | None] = field(repr=False)
    """Called at the first request, and again where the endpoint refuses the key."""
    headers: Callable[[], tuple[Mapping[str, str], tuple[str, ...]]] = lambda: ({}, ())
    """Further headers, and which values are secret; called at the first request."""
    key_header: str = "authorization"
    """Only this one has ``Bearer`` before the key."""
    max_body: int = MAX_BODY
    """Bytes read of a response's body."""
    address: Callable[[], str] | None = None
    """Where ``base_url`` is, called at the first request; ``None``: as it is set."""
    _client: openai.AsyncOpenAI | None = field(default=None, init=False)
    _transport: Transport | None = field(default=None, init=False)
    _sent: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _secrets: tuple[str, ...] = field(default=(), init=False, repr=False)
    _redactor: Redactor = field(default_factory=Redactor, init=False, repr=False)
    _entering: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)
    _renewable: bool = field(default=True, init=False)
    """Whether the key has let something in, or is the first."""

    async def _open(self) -> openai.AsyncOpenAI:
        """The client, made at the first request: a ledger replays without a key.

        Raises:
            FatalModelError: there is no key, or no value for a header or the address.
        """
        async with self._entering:  # many calls begin at once
            if self._client is None:
                key = await self._key()
                try:
                    more, secret = self.headers()
                    self.base_url = self.address() if self.address else self.base_url
                except ConfigError as error:
                    raise FatalModelError(str(error)) from None
                self._client = self._made(key, more, secret)
        return self._client

    def _made(
        self, key: str | None, headers: Mapping[str, str], secret: tuple[str, ...]
    ) -> openai.AsyncOpenAI:
        url = httpx2.URL(self.base_url)
        login = url.userinfo.decode()
        told = (v for n, v in url.params.items() if _ADMITS.search(n) or not _PLAIN.fullmatch(v))
        self._secrets = (login, url.password, *told, *secret)
        self._sent |= {name.lower(): value for name, value in headers.items()}
        if login and not key:  # a login in the URL is used where there is no key
            self._sent["authorization"] = f"Basic {b64encode(login.encode()).decode()}"
            self._secrets += (self._sent["authorization"][6:],)
        self._let_in_with(key)
        plain = url.copy_with(userinfo=None, query=None)
        self._transport = Transport(str(plain), self._sent, self.max_body)
        return openai.AsyncOpenAI(
            api_key="none",  # it insists on one; the transport sends ours
            base_url=plain,
            default_query=dict(url.params),
            max_retries=0,
            timeout=None,
            http_client=httpx2.AsyncClient(transport=self._transport, timeout=None),
        )

    async def _key(self) -> str | None:
        try:
            # In a thread: a command may take its time, while other replies come in.
            return await asyncio.to_thread(self.key)
        except ConfigError as error:
            raise FatalModelError(str(error)) from None

    def _let_in_with(self, key: str | None) -> None:
        if key:
            bearer = "Bearer " if self.key_header == "authorization" else ""
            self._sent[self.key_header] = f"{bearer}{key}"
            self._secrets += (key,)
            if self._transport is not None:
                self._transport.precedents.clear()  # they hold the key of before
        self._redactor = Redactor(self._secrets)

    async def _renewed(self, refused: str | None) -> bool:
        """Whether there is another key than in the header ``refused``; asks for one if need be.

        A new key that lets nothing in is the last one.

        Raises:
            FatalModelError: a key cannot be had.
        """
        async with self._entering:  # many calls are refused at once
            if self._sent.get(self.key_header) == refused:
                if not self._renewable:
                    return False
                self._renewable = False
                self._let_in_with(await self._key())
            return self._sent.get(self.key_header) != refused

    async def post(self, path: str, body: Mapping[str, Any], deadline_s: float) -> Response | Reply:
        """Send a JSON body, as `exchange`.

        The client makes the first request to ``path``: URL, query and headers; later ones are the
        same with another body, which spares most of the CPU time. A new key begins anew.
        """
        data = msgspec.json.encode(body)

        def send(client: openai.AsyncOpenAI) -> Awaitable[Response]:
            transport = self._transport
            if transport is not None and (made := transport.precedents.get(path)):
                return transport.exchange(made, data)
            return client.post(path, content=data, cast_to=httpx2.Response)

        return await self.exchange(send, deadline_s)

    async def exchange(self, send: Send, deadline_s: float) -> Response | Reply:
        """One HTTP exchange, or how it failed; the key is renewed where it has expired."""
        client = self._client or await self._open()
        key = self._sent.get(self.key_header)
        found: Response
        try:
            async with asyncio.timeout(deadline_s):
                found = await send(client)
        except TimeoutError:
            detail = f"no reply within {deadline_s:g} s; it may have been billed"
            return Reply("transport", detail=detail, retry_after_s=0.0)
        except openai.APIStatusError as error:
            found = error.response
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            # The transport's text is the kind of failure; the client's own may hold the URL.
            cause = error.__cause__ or error
            kind = str(cause) if isinstance(cause, httpx2.HTTPError) else type(cause).__name__
            reached = not isinstance(cause, httpx2.ConnectError)
            billed = "it may have been billed" if reached else "nothing was sent"
            detail = f"connection failed ({kind}); {billed}"
            return Reply("transport", detail=detail, retry_after_s=0.0, reached=reached)
        except BodyTooLargeError:
            detail = f"the body is larger than {self.max_body} bytes"
            return Reply("malformed", detail=detail, retry_after_s=0.0)
        status = found.status_code
        # Some name what has expired with another status than 401.
        if status == 401 or (status == 403 and b"expired" in found.content.lower()):
            if await self._renewed(key):
                return Reply(
                    "transport", detail="the key was renewed", status=status, retry_after_s=0.0
                )
        elif status < 400:
            self._renewable = True
        return found

    def clean(self, text: str) -> str:
        """``text`` as valid UTF-8, without any secret that the server may have repeated."""
        return self._redactor.clean(text)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None


def posted(path: str, body: Mapping[str, Any]) -> Send:
    """Sends a request's JSON body.

    The client's generic ``post`` skips the walk over ``messages`` that takes most of the CPU time
    of ``chat.completions.create``.
    """
    return lambda client: client.post(path, body=body, cast_to=httpx2.Response)

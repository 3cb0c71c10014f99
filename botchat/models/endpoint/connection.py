"""One server with one key: its HTTP client, shared by all its models, and its secrets.

The client library's own retries, errors and redirects are switched off: they would not be recorded,
may hold the key, and would take the prompt to another host.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Reply
from botchat.models.endpoint.transport import MAX_BODY, BodyTooLargeError, Transport
from botchat.workspace.secrets import Redactor

Send = Callable[[openai.AsyncOpenAI], Awaitable[httpx2.Response]]
"""Makes one request through the client."""


@dataclass(eq=False)
class Connection:
    """A client and what it is let in with."""

    base_url: str
    key: Callable[[], str | None] = field(repr=False)
    """Called at the first request, and again where the endpoint refuses the key."""
    headers: Callable[[], tuple[Mapping[str, str], tuple[str, ...]]] = lambda: ({}, ())
    """Further headers, and which values are secret; called at the first request."""
    key_header: str = "authorization"
    """Only this one has ``Bearer`` before the key."""
    max_body: int = MAX_BODY
    """Bytes read of a response's body."""
    _client: openai.AsyncOpenAI | None = field(default=None, init=False)
    _sent: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _secrets: tuple[str, ...] = field(default=(), init=False, repr=False)
    _redactor: Redactor = field(default_factory=Redactor, init=False, repr=False)
    _renewing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False, repr=False)

    def client(self) -> openai.AsyncOpenAI:
        """The client, made at the first request: a ledger replays without a key."""
        if self._client is None:
            url = httpx2.URL(self.base_url)
            try:
                key = self.key()
                more, secret = self.headers()
            except ConfigError as error:
                raise FatalModelError(str(error)) from None
            login = url.userinfo.decode()
            self._secrets = (login, url.password, *url.params.values(), *secret)
            self._sent |= {name.lower(): value for name, value in more.items()}
            if login and not key:  # a login in the URL is used where there is no key
                self._sent["authorization"] = f"Basic {b64encode(login.encode()).decode()}"
                self._secrets += (self._sent["authorization"][6:],)
            self._let_in_with(key)
            plain = url.copy_with(userinfo=None, query=None)
            self._client = openai.AsyncOpenAI(
                api_key="none",  # it insists on one; the transport sends ours
                base_url=plain,
                default_query=dict(url.params),
                max_retries=0,
                timeout=None,
                http_client=httpx2.AsyncClient(
                    transport=Transport(str(plain), self._sent, self.max_body), timeout=None
                ),
            )
        return self._client

    def _let_in_with(self, key: str | None) -> None:
        if key:
            bearer = "Bearer " if self.key_header == "authorization" else ""
            self._sent[self.key_header] = f"{bearer}{key}"
            self._secrets += (key,)
        self._redactor = Redactor(self._secrets)

    @property
    def let_in_with(self) -> str | None:
        """The header with the key as it is sent now."""
        return self._sent.get(self.key_header)

    async def renew(self, refused: str | None) -> bool:
        """Ask for a new key, where requests with the header ``refused`` are; whether there is one.

        Raises:
            FatalModelError: a key cannot be had.
        """
        async with self._renewing:  # many calls are refused at once
            if self.let_in_with == refused:
                try:
                    self._let_in_with(await asyncio.to_thread(self.key))
                except ConfigError as error:
                    raise FatalModelError(str(error)) from None
            return self.let_in_with != refused

    async def exchange(self, send: Send, deadline_s: float) -> httpx2.Response | Reply:
        """One HTTP exchange, or how it failed."""
        client = self.client()
        try:
            async with asyncio.timeout(deadline_s):
                return await send(client)
        except TimeoutError:
            detail = f"no reply within {deadline_s:g} s; it may have been billed"
            return Reply("transport", detail=detail, retry_after_s=0.0)
        except openai.APIStatusError as error:
            return error.response
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

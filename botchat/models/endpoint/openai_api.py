"""Any OpenAI-compatible endpoint (OpenAI, vLLM, Ollama, …) through the ``openai`` package.

One call here is one attempt. Whatever comes back is validated and becomes a typed `Reply`. The
client library's own retries, errors and redirects are switched off: they would not be recorded, may
hold the key, and would take the prompt to another host.

| what the endpoint does | outcome |
| --- | --- |
| an answer | ``ok``; ``truncated`` at ``finish_reason: length`` |
| nothing said | ``empty`` |
| refusal field | ``refused`` |
| content filter (as finish reason or as error) | ``filtered`` |
| prompt too long, in any wording | ``overflow`` |
| refuses a role layout or an optional parameter | ``transport``, adapted, tried again |
| not JSON, HTML, no choices, an error object with status 200 | ``malformed``, tried again |
| 408, 409, 429, 5xx, connection lost, deadline | ``transport``, tried again |
| any other 4xx | ``transport``, not tried again in this run |
| 401, 402, 403, 404, quota used up, redirect | `FatalModelError`: the model stops, others go on |
"""

from __future__ import annotations

import asyncio
import re
import time
import tomllib
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import resources
from typing import Any

import httpx2
import msgspec
import openai

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Decoding, Message, Reply
from botchat.models.endpoint.replies import error_parts, read_completion, retry_after_s
from botchat.models.endpoint.transport import MAX_BODY, BodyTooLargeError, Transport
from botchat.models.roles import ARRANGEMENTS, arrange, reply_tokens
from botchat.workspace.config import ModelSettings, public_url

_KEY_LIKE = re.compile(r"\bsk-[A-Za-z0-9_-]{12,}")
"""A key of somebody else."""

_REFUSALS = tomllib.loads(resources.files(__package__).joinpath("refusals.toml").read_text("utf-8"))
_TOLD = {name: re.compile(said, re.IGNORECASE) for name, said in _REFUSALS["wording"].items()}
_PARAMETERS = {name: re.compile(said, re.I) for name, said in _REFUSALS["parameters"].items()}
"""Optional parameter -> how endpoints name it when they refuse it."""

NOT_SENT = (
    "ClientConnectorError",
    "ClientConnectorDNSError",
    "ClientConnectorSSLError",
    "ClientConnectorCertificateError",
    "ClientHttpProxyError",
    "ClientProxyConnectionError",
    "ConnectionTimeoutError",
    "InvalidURL",
)
"""Kinds of failure before a connection was there, as aiohttp names them."""

Send = Callable[[openai.AsyncOpenAI], Awaitable[httpx2.Response]]
"""Makes one request through the client."""


@dataclass(eq=False)
class Connection:
    """One server with one key: a client, shared by all its models."""

    base_url: str
    key: Callable[[], str | None] = field(repr=False)
    """Called at the first request."""
    max_body: int = MAX_BODY
    """Bytes read of a response's body."""
    _client: openai.AsyncOpenAI | None = field(default=None, init=False)
    _secrets: tuple[str, ...] = field(default=(), init=False, repr=False)

    def client(self) -> openai.AsyncOpenAI:
        """The client, made at the first request: a ledger replays without a key."""
        if self._client is None:
            try:
                key = self.key()
            except ConfigError as error:
                raise FatalModelError(str(error)) from None
            url = httpx2.URL(self.base_url)
            login = url.userinfo.decode()
            secrets = (key, login, url.password, *url.params.values())
            self._secrets = tuple(s for s in secrets if s and len(s) > 3)
            plain = url.copy_with(userinfo=None, query=None)
            # A login in the URL is used where there is no key.
            basic = {"Authorization": f"Basic {b64encode(login.encode()).decode()}"}
            self._client = openai.AsyncOpenAI(
                # The client insists on a key; servers that need none ignore this one.
                api_key=key or "none",
                base_url=plain,
                default_query=dict(url.params),
                default_headers=basic if login and not key else {},
                max_retries=0,
                timeout=None,
                http_client=httpx2.AsyncClient(
                    transport=Transport(str(plain), self.max_body), timeout=None
                ),
            )
        return self._client

    def clean(self, text: str) -> str:
        """``text`` as valid UTF-8, without any secret that the server may have repeated."""
        for secret in self._secrets:
            text = text.replace(secret, "[key]")
        return _KEY_LIKE.sub("[key]", text).encode("utf-8", "replace").decode("utf-8")

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None


class OpenAIModel:
    """One model of one endpoint, as a `botchat.interfaces.ChatModel`."""

    def __init__(
        self, name: str, settings: ModelSettings, connection: Connection, quirks: Mapping[str, Any]
    ) -> None:
        """``quirks``: what earlier runs learnt (see `Reply.sent`)."""
        self.name = name
        self.identity: Mapping[str, Any] = identity(settings)
        self.context_window = settings.context_window
        self.parallel = settings.max_concurrency
        self.where = f"{name} at {public_url(connection.base_url)}"
        self.clean = connection.clean
        self._settings = settings
        self._connection = connection
        self._quirks: dict[str, Any] = dict(quirks)
        self._allowed = [
            (layout, system)
            for layout, system in ARRANGEMENTS
            if settings.layout in ("auto", layout) and settings.system in ("auto", system)
        ]

    @property
    def quirks(self) -> dict[str, Any]:
        """What the endpoint was found to refuse so far (see `Reply.sent`)."""
        return dict(self._quirks)

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """One attempt; the module's table lists what can come of it."""
        quirks = self.quirks
        body = self.body(messages, decoding, quirks)
        started = time.monotonic()
        # The client's generic ``post`` skips the walk over ``messages`` that takes most of the CPU
        # time of ``chat.completions.create``.
        response = await self.exchange(
            lambda client: client.post("/chat/completions", body=body, cast_to=httpx2.Response)
        )
        reply = response if isinstance(response, Reply) else self.read(response, quirks)
        return replace(reply, latency_s=time.monotonic() - started, sent=reply.sent or quirks)

    async def exchange(self, send: Send, longer_s: float = 0.0) -> httpx2.Response | Reply:
        """One HTTP exchange, or how it failed; ``longer_s`` is added to a call's ``timeout_s``."""
        client = self._connection.client()
        deadline_s = self._settings.timeout_s + longer_s
        try:
            async with asyncio.timeout(deadline_s):
                return await send(client)
        except TimeoutError:
            return Reply("transport", detail=f"no reply within {deadline_s:g} s", retry_after_s=0.0)
        except openai.APIStatusError as error:
            return error.response
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            # The transport's text is the kind of failure; the client's own may hold the URL.
            cause = error.__cause__ or error
            kind = str(cause) if isinstance(cause, httpx2.HTTPError) else type(cause).__name__
            reached = kind not in NOT_SENT
            billed = "; it may have been billed" if reached else "; nothing was sent"
            detail = f"connection failed ({kind}){billed}"
            return Reply("transport", detail=detail, retry_after_s=0.0, reached=reached)
        except BodyTooLargeError:
            detail = f"the body is larger than {self._connection.max_body} bytes"
            return Reply("malformed", detail=detail, retry_after_s=0.0)

    def read(self, response: httpx2.Response, sent: Mapping[str, Any]) -> Reply:
        """What the response to a request sent with the quirks ``sent`` is, as the table above says.

        Raises:
            FatalModelError: no retry can make this model answer.
        """
        status, data = response.status_code, response.content
        try:
            parsed = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            parsed = None
        raw = data.decode("utf-8", "replace")
        if status == 200 and not isinstance(parsed, dict):
            detail = f"the reply is not JSON: {' '.join(raw[:80].split())!r}"
            reply = Reply("malformed", detail=detail, raw=raw, status=status, retry_after_s=0.0)
        elif status == 200 and not parsed.get("error"):
            reply = read_completion(parsed, raw)
        else:
            reply = self._read_error(response, parsed, raw, sent)
        return replace(
            reply,
            text=self.clean(reply.text),
            detail=self.clean(reply.detail)[:500],
            raw=self.clean(reply.raw),
            sent=self.quirks if reply.adapted else dict(sent),
        )

    def body(
        self, messages: Sequence[Message], decoding: Decoding, quirks: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The request's JSON body, arranged as ``quirks`` say."""
        settings = self._settings
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": arrange(messages, *self._arrangement(quirks)),
        }
        if decoding.temperature is not None and settings.temperature is not None:
            body["temperature"] = decoding.temperature
        if decoding.max_tokens is not None:
            window = settings.context_window or quirks.get("context_window")
            body["max_tokens"] = reply_tokens(decoding.max_tokens, window)
        if decoding.sample:
            # A server that caches by seed would repeat the first draw.
            body["seed"] = decoding.sample
        if decoding.schema is not None:
            form = {"name": "reply", "strict": True, "schema": decoding.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if decoding.logprobs is not None:
            body["logprobs"] = True
        if decoding.logprobs:
            body["top_logprobs"] = decoding.logprobs
        for parameter, new in quirks.get("parameters", {}).items():
            if parameter in body:
                value = body.pop(parameter)
                if new:
                    body[new] = value
        if "logprobs" not in body:
            body.pop("top_logprobs", None)
        return body | settings.extra

    def _read_error(
        self, response: httpx2.Response, parsed: Any, raw: str, sent: Mapping[str, Any]
    ) -> Reply:
        status = response.status_code
        code, message, parameter = error_parts(parsed, raw)
        if status == 200:  # an error object in disguise
            status = int(code) if code.isdigit() and 400 <= int(code) < 600 else 500
        said = f"HTTP {status}: {message}" if message else f"HTTP {status}"
        told = f"{code} {message}"
        failed = partial(Reply, detail=said, raw=raw, status=status)
        if 300 <= status < 400:
            target = public_url(response.headers.get("location", ""))
            raise FatalModelError(
                f"{self.where} redirects to {target or 'elsewhere'}: not followed; "
                "correct its base_url"
            )
        if status in (400, 403, 413, 422, 500) and _TOLD["filtered"].search(told):
            return failed("filtered")
        if status == 413 or (status in (400, 422, 500) and _TOLD["overflow"].search(told)):
            window = _TOLD["window"].search(message)
            if not window or self._settings.context_window or sent.get("context_window"):
                return failed("overflow")
            self._quirks["context_window"] = int(window[1])
            return failed("overflow", retry_after_s=0.0, adapted=True)
        if status in (400, 403, 422, 500) and self._adapt(status, told, parameter, sent):
            return failed("transport", retry_after_s=0.0, adapted=True)
        if status in (401, 402, 403, 404) or (status == 429 and _TOLD["quota"].search(told)):
            reason = {401: "check its key", 402: "check its account", 404: "check model and URL"}
            hint = reason.get(status, "check its key and account")
            raise FatalModelError(f"{self.where} cannot be used: {self.clean(said)}; {hint}")
        passing = status in (408, 409, 425, 429) or status >= 500
        pause_s = retry_after_s(response.headers) if passing else None
        return failed("transport", retry_after_s=pause_s)

    def _adapt(self, status: int, told: str, parameter: str, sent: Mapping[str, Any]) -> bool:
        """Leave out, rename or rearrange what is refused; whether there is something new to try.

        It is enough that another call has learnt since the request went out with the quirks
        ``sent``.
        """
        if dict(sent) != self._quirks:
            return True
        known: dict[str, str | None] = self._quirks.get("parameters", {})
        for name, naming in _PARAMETERS.items():
            if name not in known and (parameter == name or naming.search(told)):
                better = name == "max_tokens" and "max_completion_tokens" in told
                new = "max_completion_tokens" if better else None
                self._quirks["parameters"] = known | {name: new}
                return True
        if status == 403:  # OpenAI refuses log-probabilities so; no endpoint refuses a layout so
            return False
        no_system = _TOLD["no_system"].search(told)
        if no_system and self._arrange(need_system_in_user=True):
            return True
        return bool(no_system or _TOLD["alternate"].search(told)) and self._arrange()

    def _arrangement(self, quirks: Mapping[str, Any]) -> tuple[str, str]:
        """Layout and place of the system prompt: as learnt, or the first allowed."""
        layout, system = self._allowed[0]
        return quirks.get("layout") or layout, quirks.get("system") or system

    def _arrange(self, *, need_system_in_user: bool = False) -> bool:
        """Take the next arrangement of roles that the settings allow; whether there is one."""
        now = self._arrangement(self._quirks)
        later = self._allowed[self._allowed.index(now) + 1 :]
        if need_system_in_user:
            later = [a for a in later if a[1] == "system-in-user" and now[1] == "system"]
        if not later:
            return False
        self._quirks["layout"], self._quirks["system"] = later[0]
        return True


def identity(settings: ModelSettings) -> dict[str, Any]:
    """What decides an endpoint model's answers besides the request; free of secrets."""
    return {
        "model": settings.model,
        "base_url": public_url(settings.base_url),
        "temperature": settings.temperature is not None,
        "layout": settings.layout,
        "system": settings.system,
        "extra": settings.extra,
    }

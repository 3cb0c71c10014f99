"""Any OpenAI-compatible endpoint (OpenAI, vLLM, Ollama, …) through the ``openai`` package.

One call here is one attempt. Whatever comes back is validated and becomes a typed `Reply`; what
the client library would raise, retry or follow by itself is switched off, because its retries are
not recorded, its errors carry the key and its redirects take the prompt to another host.

| what the endpoint does | what becomes of it |
| --- | --- |
| an answer | ``ok``; ``truncated`` at ``finish_reason: length`` |
| nothing said | ``empty`` |
| refusal field | ``refused`` |
| content filter (as finish reason or as error) | ``filtered`` |
| prompt too long, in any wording | ``overflow`` |
| refuses a role layout, or a parameter it can do without | adapted once, tried again |
| not JSON, HTML, no choices, an error object with status 200 | ``malformed``, tried again |
| 408, 409, 429, 5xx, connection lost, deadline | ``transport``, tried again |
| any other 4xx | ``transport``, not tried again in this run |
| 401, 402, 403, 404, quota used up, redirect | `FatalModelError`: the model stops, others go on |
"""

from __future__ import annotations

import asyncio
import base64
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx2
import msgspec
import openai

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Decoding, Message, Reply
from botchat.models.endpoint.replies import error_parts, read_completion, retry, retry_after_s
from botchat.models.endpoint.transport import MAX_BODY, BodyTooLargeError, Transport
from botchat.models.roles import ARRANGEMENTS, arrange, reply_tokens
from botchat.workspace.config import ModelSettings, public_url

_KEY_LIKE = re.compile(r"\bsk-[A-Za-z0-9_-]{12,}")
"""Somebody's key, if not ours."""

_OVERFLOW = re.compile(
    r"context.?length|context.?window|maximum context|too many (?:input )?tokens|prompt is too long"
    r"|input is too long|reduce the length|exceeds? the (?:available )?context"
    r"|larger than the maximum|longer than the (?:model|maximum)",
    re.IGNORECASE,
)
_WINDOW = re.compile(r"(?:context (?:length|window|size)|maximum)\D{0,40}?(\d{3,8})", re.IGNORECASE)
_ALTERNATE = re.compile(r"altern|(?:first|start\w*)[^.]{0,40}(?:message|role|user)", re.IGNORECASE)
_NO_SYSTEM = re.compile(
    r"system (?:role|message|prompt|instruction)s? (?:is |are )?not"
    r"|(?:developer|system) instruction|only user and assistant|role.{0,20}system",
    re.IGNORECASE,
)
_FILTERED = re.compile(
    r"content.?(?:filter|policy|management)|moderation|flagged|safety", re.IGNORECASE
)
_QUOTA = re.compile(
    r"insufficient.?(?:quota|balance|credit|funds)|billing|credit balance", re.IGNORECASE
)


_PARAMETERS = {
    **{
        name: re.compile(rf"\b{name}\b", re.IGNORECASE)
        for name in ("max_tokens", "temperature", "seed", "logprobs", "top_logprobs")
    },
    "response_format": re.compile(r"response.?format|json.?schema|structured.?output", re.I),
}
"""What a model can do without -> how endpoints name it where they refuse it."""

Send = Callable[[openai.AsyncOpenAI], Awaitable[httpx2.Response]]
"""Makes one request through the client."""

Exchange = tuple[int, Mapping[str, str], bytes]
"""Status, headers and body."""


class Connection:
    """One server with one key: a client, shared by all its models."""

    def __init__(
        self, base_url: str, key: Callable[[], str | None], max_body: int = MAX_BODY
    ) -> None:
        """Remember where to connect; ``key`` is asked for when the first call is sent.

        ``max_body``: bytes that are read of a reply's body.
        """
        self.base_url = base_url
        self.max_body = max_body
        self._key = key
        self._client: openai.AsyncOpenAI | None = None
        self._secrets: tuple[str, ...] = ()

    def client(self) -> openai.AsyncOpenAI:
        """The client, made at the first call: a ledger replays without a key."""
        if self._client is None:
            try:
                key = self._key()
            except ConfigError as error:
                raise FatalModelError(str(error)) from None
            url = httpx2.URL(self.base_url)
            login = url.userinfo.decode()
            secrets = (key, login, url.password, *url.params.values())
            self._secrets = tuple(s for s in secrets if s and len(s) > 3)
            plain = url.copy_with(userinfo=None, query=None)
            self._client = openai.AsyncOpenAI(
                # The client insists on a key; servers that need none ignore this one.
                api_key=key or "none",
                base_url=plain,
                default_query=dict(url.params),
                # A login in the URL stands for the key where there is none.
                default_headers=_basic(login) if login and not key else {},
                max_retries=0,
                timeout=None,
                http_client=httpx2.AsyncClient(
                    transport=Transport(str(plain), self.max_body), timeout=None
                ),
            )
        return self._client

    def clean(self, text: str) -> str:
        """``text`` without any secret the server may have echoed, and valid UTF-8."""
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
        self._name = name
        self._settings = settings
        self._connection = connection
        self._quirks: dict[str, Any] = dict(quirks)

    @property
    def name(self) -> str:
        """The name users call it by."""
        return self._name

    @property
    def identity(self) -> Mapping[str, Any]:
        """Model id, endpoint without credentials, and every fixed parameter."""
        return identity(self._settings)

    @property
    def context_window(self) -> int | None:
        """Tokens of prompt and reply, from botchat.toml."""
        return self._settings.context_window

    @property
    def parallel(self) -> int:
        """Calls worth having in flight."""
        return self._settings.max_concurrency

    @property
    def quirks(self) -> dict[str, Any]:
        """What the endpoint was found to refuse so far (see `Reply.sent`)."""
        return dict(self._quirks)

    @property
    def where(self) -> str:
        """Name and endpoint, for messages."""
        return f"{self._name} at {public_url(self._connection.base_url)}"

    def clean(self, text: str) -> str:
        """``text`` without any secret the server may have echoed."""
        return self._connection.clean(text)

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """One attempt; see the module's table for what can come of it."""
        quirks = self.quirks
        body = self.body(messages, decoding, quirks)
        started = time.monotonic()
        answer = await self.exchange(lambda client: _post(client, body))
        reply = answer if isinstance(answer, Reply) else self.read(*answer, quirks)
        return replace(reply, latency_s=time.monotonic() - started, sent=reply.sent or quirks)

    async def exchange(self, send: Send, longer_s: float = 0.0) -> Exchange | Reply:
        """One HTTP exchange with the endpoint, or how it failed.

        Args:
            send: makes the request.
            longer_s: beyond the wall clock that a call is given.
        """
        client = self._connection.client()
        deadline_s = self._settings.timeout_s + longer_s
        try:
            async with asyncio.timeout(deadline_s):
                response = await send(client)
        except TimeoutError:
            return retry("transport", f"no reply within {deadline_s:g} s")
        except openai.APIStatusError as error:
            response = error.response
        except (openai.OpenAIError, httpx2.HTTPError) as error:
            # The transport's text is the kind of failure; the client's own may hold the URL.
            cause = error.__cause__ or error
            kind = str(cause) if isinstance(cause, httpx2.HTTPError) else type(cause).__name__
            return retry("transport", f"connection failed ({kind}); it may have been billed")
        except BodyTooLargeError:
            most = self._connection.max_body
            return retry("malformed", f"the body is larger than {most} bytes")
        return response.status_code, response.headers, response.content

    def read(
        self, status: int, headers: Mapping[str, str], data: bytes, sent: Mapping[str, Any]
    ) -> Reply:
        """What an answer to a request sent with the quirks ``sent`` is, as the module's table says.

        Raises:
            FatalModelError: no retry can make this model answer.
        """
        reply = self._read(status, headers, data, sent)
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
        layout = quirks.get("layout") or _first(settings.layout, "natural")
        system = quirks.get("system") or _first(settings.system, "system")
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": arrange(messages, layout, system),
        }
        if decoding.temperature is not None and settings.temperature is not None:
            body["temperature"] = decoding.temperature
        if decoding.max_tokens is not None:
            window = settings.context_window or quirks.get("context_window")
            body["max_tokens"] = reply_tokens(decoding.max_tokens, window)
        if decoding.sample:
            # A server that caches by seed would otherwise give the first draw again.
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

    def _read(
        self, status: int, headers: Mapping[str, str], data: bytes, sent: Mapping[str, Any]
    ) -> Reply:
        try:
            parsed = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            parsed = None
        raw = data.decode("utf-8", "replace")
        if status == 200 and isinstance(parsed, dict) and not parsed.get("error"):
            return read_completion(parsed, raw)
        if status == 200 and not isinstance(parsed, dict):
            start = " ".join(raw[:80].split())
            return retry("malformed", f"the reply is not JSON: {start!r}", raw=raw, status=status)
        return self._read_error(status, headers, parsed, raw, sent)

    def _read_error(
        self,
        status: int,
        headers: Mapping[str, str],
        parsed: Any,
        raw: str,
        sent: Mapping[str, Any],
    ) -> Reply:
        code, message, parameter = error_parts(parsed, raw)
        if status == 200:  # an error object in disguise
            status = int(code) if code.isdigit() and 400 <= int(code) < 600 else 500
        said = f"HTTP {status}: {message}" if message else f"HTTP {status}"
        told = f"{code} {message}"
        wait_s = retry_after_s(headers)
        if 300 <= status < 400:
            target = public_url(headers.get("location", ""))
            raise FatalModelError(
                f"{self.where} redirects to {target or 'elsewhere'}: not followed; "
                "correct its base_url"
            )
        if status in (400, 403, 413, 422, 500) and _FILTERED.search(told):
            return Reply("filtered", detail=said, raw=raw, status=status)
        if status == 413 or (status in (400, 422, 500) and _OVERFLOW.search(told)):
            return self._overflow(said, message, raw, status, sent)
        if status in (400, 403, 422, 500) and self._adapt(status, told, parameter, sent):
            return Reply(
                "transport", detail=said, raw=raw, status=status, retry_after_s=0.0, adapted=True
            )
        if status in (401, 402, 403, 404) or (status == 429 and _QUOTA.search(told)):
            reason = {401: "check its key", 402: "check its account", 404: "check model and URL"}
            hint = reason.get(status, "check its key and account")
            raise FatalModelError(f"{self.where} cannot be used: {self.clean(said)}; {hint}")
        if status in (408, 409, 425, 429) or status >= 500:
            return retry("transport", said, raw=raw, status=status, after_s=wait_s)
        return Reply("transport", detail=said, raw=raw, status=status)

    def _overflow(
        self, said: str, message: str, raw: str, status: int, sent: Mapping[str, Any]
    ) -> Reply:
        """A prompt that does not fit; the window, if the message names it, is learnt."""
        window = _WINDOW.search(message)
        known = self._settings.context_window or sent.get("context_window")
        if window and not known:
            self._quirks["context_window"] = int(window[1])
            return Reply(
                "overflow", detail=said, raw=raw, status=status, retry_after_s=0.0, adapted=True
            )
        return Reply("overflow", detail=said, raw=raw, status=status)

    def _adapt(self, status: int, told: str, parameter: str, sent: Mapping[str, Any]) -> bool:
        """Leave out or rearrange what the endpoint refuses; whether there is something new to try.

        ``sent`` are the quirks the refused request went out with: if another call has learnt
        since, that alone is worth a try.
        """
        if dict(sent) != self._quirks:
            return True
        if self._leave_out(told, parameter):
            return True
        if status == 403:  # so OpenAI refuses log-probabilities, but nobody a role layout
            return False
        if _NO_SYSTEM.search(told) and self._arrange(need_system_in_user=True):
            return True
        return bool(_ALTERNATE.search(told) or _NO_SYSTEM.search(told)) and self._arrange()

    def _leave_out(self, told: str, parameter: str) -> bool:
        """Leave out or rename a parameter that is refused; whether one is that was not yet."""
        known: dict[str, str | None] = dict(self._quirks.get("parameters", {}))
        for name, naming in _PARAMETERS.items():
            if name in known or not (parameter == name or naming.search(told)):
                continue
            better = name == "max_tokens" and "max_completion_tokens" in told
            self._quirks["parameters"] = known | {name: "max_completion_tokens" if better else None}
            return True
        return False

    def _arrange(self, *, need_system_in_user: bool = False) -> bool:
        """Take the next arrangement of roles that the settings allow; whether there is one."""
        settings = self._settings
        allowed = [
            (layout, system)
            for layout, system in ARRANGEMENTS
            if settings.layout in ("auto", layout) and settings.system in ("auto", system)
        ]
        now = (
            self._quirks.get("layout") or _first(settings.layout, "natural"),
            self._quirks.get("system") or _first(settings.system, "system"),
        )
        later = allowed[allowed.index(now) + 1 :] if now in allowed else allowed
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


async def _post(client: openai.AsyncOpenAI, body: dict[str, Any]) -> httpx2.Response:
    """The request for one completion.

    The client's generic ``post`` skips the walk over ``messages`` that costs most of the CPU time
    of ``chat.completions.create``.
    """
    return await client.post("/chat/completions", body=body, cast_to=httpx2.Response)


def _basic(login: str) -> dict[str, str]:
    return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}


def _first(setting: str, default: str) -> str:
    return default if setting == "auto" else setting

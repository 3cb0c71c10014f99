"""One model of an endpoint: one attempt a call, typed, redacted, adapted.

| what the endpoint does | outcome |
| --- | --- |
| an answer | ``ok``; ``truncated`` where it was cut at the token limit |
| nothing said | ``empty`` |
| a refusal of the model | ``refused`` |
| content filter, as the end of a reply or as a 4xx that says so | ``filtered`` |
| prompt too long, as a 4xx that says so | ``overflow`` |
| a 4xx that refuses a role layout or an optional parameter | ``transport``, adapted, tried again |
| not JSON, HTML, no choices, an unknown end | ``malformed``, tried again |
| 408, 409, 425, 429, 5xx, connection lost, deadline | ``transport``, tried again |
| any other 4xx | ``transport``, not tried again in this run |
| 401, 402, 403, 404, quota used up, account blocked, redirect | `FatalModelError` |

An outcome that is kept for good needs evidence: what a 5xx, a rate limit or an account error says
is never held against a prompt or a parameter.

A new wording of an error or an end is a line of ``refusals.toml``, with an example in
``tests/integration/test_finality.py``.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import msgspec
from msgspec import structs

from botchat.errors import FatalModelError
from botchat.interfaces import Decoding, Message, Reply
from botchat.models.endpoint import chat
from botchat.models.endpoint.connection import Connection, HttpRequest, HttpResponse
from botchat.models.endpoint.replies import WORDINGS, Refusal, error_parts, retry_after_s
from botchat.models.self_chat import ARRANGEMENTS, arrange, reply_tokens
from botchat.workspace.config import ModelSettings, public_url

SMALLEST_WINDOW = 256
"""Tokens; a smaller context window that an error names is a mistake of the server."""

_TOLD = {
    name: re.compile(said, re.IGNORECASE)
    for table in ("final", "passing", "fatal", "learnt")
    for name, said in WORDINGS[table].items()
}


@dataclass(eq=False)
class EndpointModel:
    """A `botchat.interfaces.ChatModel` behind a connection."""

    name: str
    settings: ModelSettings
    connection: Connection
    quirks: dict[str, Any] = field(default_factory=dict)
    """What the endpoint was found to refuse so far (see `Reply.sent`); never changed in place."""

    def __post_init__(self) -> None:
        """Derive what callers ask for."""
        self.identity: Mapping[str, Any] = chat.identity(self.settings)
        self.context_window = self.settings.context_window
        self.parallel = self.settings.max_concurrency
        self.where = f"{self.name} at {public_url(self.connection.base_url)}"
        self.clean = self.connection.clean

    @cached_property
    def _allowed(self) -> list[tuple[str, str]]:
        """Arrangements of roles that may be tried."""
        layout, system = self.settings.layout, self.settings.system
        return [
            one for one in ARRANGEMENTS if layout in ("auto", one[0]) and system in ("auto", one[1])
        ]

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """One attempt; the module's table lists what can come of it."""
        sent, started = self.quirks, time.monotonic()
        body = self.body(messages, decoding, sent)
        found = await self.connection.post(chat.PATH, body, self.settings.timeout_s)
        latency_s = time.monotonic() - started
        if isinstance(found, Reply):
            return structs.replace(found, latency_s=latency_s, sent=sent)
        return self.read(found, sent, latency_s)

    async def exchange(self, request: HttpRequest, longer_s: float = 0.0) -> HttpResponse | Reply:
        """One HTTP exchange, or how it failed; ``longer_s`` is added to a call's ``timeout_s``."""
        return await self.connection.exchange(request, self.settings.timeout_s + longer_s)

    def body(
        self, messages: Sequence[Message], decoding: Decoding, quirks: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The request's JSON body, arranged as ``quirks`` say."""
        settings = self.settings
        window = settings.context_window or quirks.get("context_window")
        if decoding.max_tokens is not None and window is not None:
            decoding = replace(decoding, max_tokens=reply_tokens(decoding.max_tokens, window))
        arranged = arrange(messages, *self._arrangement(quirks))
        body = chat.body(arranged, decoding, settings)
        for parameter, new in quirks.get("parameters", {}).items():
            if parameter in body:
                value = body.pop(parameter)
                if new:
                    body[new] = value
        return body | settings.extra

    def read(
        self, response: HttpResponse, sent: Mapping[str, Any], latency_s: float = 0.0
    ) -> Reply:
        """What the response to a request sent with the quirks ``sent`` is, as the table above says.

        Raises:
            FatalModelError: no retry can make this model answer; it has the reply.
        """
        try:
            reply = self._read(response, sent)
        except FatalModelError:
            raise
        except Exception as error:  # whatever a body holds, it is one call that failed
            raw = response.content.decode("utf-8", "replace")
            detail = f"the reply cannot be read: {type(error).__name__}: {error}"
            status = response.status_code
            reply = Reply("malformed", detail=detail, raw=raw, status=status, retry_after_s=0.0)
        return self._cleaned(reply, sent, latency_s)

    def _read(self, response: HttpResponse, sent: Mapping[str, Any]) -> Reply:
        status, data = response.status_code, response.content
        raw = data.decode("utf-8", "replace")
        parsed: Any = None
        with contextlib.suppress(msgspec.DecodeError, ValueError, RecursionError):
            parsed = msgspec.json.decode(data)
        if status == 200 and not isinstance(parsed, dict):
            # Cleaned before it is cut: half a key would not be recognised.
            start = " ".join(self.clean(raw)[:80].split())
            detail = f"the reply is not JSON: {start!r}" if start else "the reply is empty"
            return Reply("malformed", detail=detail, raw=raw, status=status, retry_after_s=0.0)
        if status == 200 and not parsed.get("error"):
            return chat.read(parsed, raw)
        return self._read_error(response, error_parts(parsed, raw), raw, sent)

    def _cleaned(self, reply: Reply, sent: Mapping[str, Any], latency_s: float = 0.0) -> Reply:
        fields = structs.asdict(reply).items()
        cleaned = {name: self.clean(value) for name, value in fields if isinstance(value, str)}
        cleaned["detail"] = cleaned["detail"][:500]
        return structs.replace(
            reply,
            **cleaned,
            sent=self.quirks if reply.adapted else dict(sent),
            latency_s=latency_s,
        )

    def _read_error(
        self, response: HttpResponse, refusal: Refusal, raw: str, sent: Mapping[str, Any]
    ) -> Reply:
        status = response.status_code
        code, message, parameter = refusal
        told = f"{code} {message}"
        wording = {name: bool(said.search(told)) for name, said in _TOLD.items()}
        passing = status in (408, 409, 425, 429) or wording["rate"]
        if status == 200:  # an error object in disguise
            numbers = [int(part) for part in code.split() if part.isdigit()]
            named = wording["filtered"] or wording["overflow"]
            of_code = _TOLD["filtered"].search(code) or _TOLD["overflow"].search(code)
            status = next((n for n in numbers if 400 <= n < 600), 400 if named and of_code else 500)
        said = f"HTTP {status}: {message}" if message else f"HTTP {status}"
        failed = partial(Reply, detail=said, raw=raw, status=status)
        there = public_url(self.settings.base_url).rstrip("/")
        listing = f"{there}/models lists what is there"
        if 300 <= status < 400:
            target = public_url(response.headers.get("location", ""))
            why = f"redirects to {target or 'elsewhere'}: not followed; correct its base_url"
            raise self._fatal(failed("transport"), why)
        ours = 400 <= status < 500 and not passing and status not in (401, 402, 404)
        if ours and wording["filtered"] and not wording["account"]:
            return failed("filtered")
        if ours and status != 403 and (status == 413 or wording["overflow"]):
            sizes = map(int, _TOLD["window"].findall(message))
            window = next((n for n in sizes if n >= SMALLEST_WINDOW), None)
            if window is None or self.settings.context_window or "context_window" in sent:
                return failed("overflow")
            self.quirks = self.quirks | {"context_window": window}
            return failed("overflow", retry_after_s=0.0, adapted=True)
        if self._adapts(status, told, parameter, sent, wording, ours):
            return failed("transport", retry_after_s=0.0, adapted=True)
        if ours and wording["model"]:
            why = f"cannot be used: {said}; check its model; {listing}"
            raise self._fatal(failed("transport"), why)
        quota = wording["quota"] and not (passing and wording["rate"])
        blocked = status in (400, 403) and wording["account"] and not passing
        if status in (401, 402, 404) or (status == 403 and not passing) or quota or blocked:
            reason = {
                401: "check its key",
                402: "check its account",
                404: f"check model and URL; {listing}",
            }
            hint = reason.get(status, "check its key and account")
            raise self._fatal(failed("transport"), f"cannot be used: {said}; {hint}")
        again = passing or status >= 500
        pause_s = retry_after_s(response.headers) if again else None
        return failed("transport", retry_after_s=pause_s)

    def _fatal(self, reply: Reply, why: str) -> FatalModelError:
        return FatalModelError(
            self.clean(f"{self.where} {why}"), reply=self._cleaned(reply, self.quirks)
        )

    def _adapts(
        self,
        status: int,
        told: str,
        parameter: str,
        sent: Mapping[str, Any],
        wording: Mapping[str, bool],
        ours: bool,
    ) -> bool:
        """Leave out, rename or rearrange what is refused; whether there is something new to try.

        It is enough that another call has learnt since the request went out with the quirks
        ``sent``.
        """
        template = status == 500 and wording["template"]
        if not ours and not template:
            return False
        known: dict[str, str | None] = self.quirks.get("parameters", {})
        for name, naming in chat.PARAMETERS.items():
            if parameter.split(".")[0] == name or (wording["unsupported"] and naming.search(told)):
                if name in known:
                    # Another call has learnt it since this one went out.
                    return name not in sent.get("parameters", {})
                new = chat.RENAMED.get(name)
                known = known | {name: new if new and new in told else None}
                self.quirks = self.quirks | {"parameters": known}
                return True
        if status == 403 or not (wording["no_system"] or wording["alternate"]):
            return False
        if self._arrangement(sent) != self._arrangement(self.quirks):
            return True
        if wording["no_system"] and self._arrange(need_system_in_user=True):
            return True
        return self._arrange()

    def _arrangement(self, quirks: Mapping[str, Any]) -> tuple[str, str]:
        """Layout and place of the system prompt: as learnt, or the first allowed."""
        layout, system = self._allowed[0]
        return quirks.get("layout") or layout, quirks.get("system") or system

    def _arrange(self, *, need_system_in_user: bool = False) -> bool:
        """Take the next arrangement of roles that the settings allow; whether there is one."""
        now = self._arrangement(self.quirks)
        later = self._allowed[self._allowed.index(now) + 1 :] if now in self._allowed else []
        if need_system_in_user:
            later = [a for a in later if a[1] == "system-in-user" and now[1] == "system"]
        if not later:
            return False
        self.quirks = self.quirks | {"layout": later[0][0], "system": later[0][1]}
        return True

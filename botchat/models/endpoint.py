"""A model behind OpenAI's chat completions: one attempt a call, typed, redacted, adapted.

| what the endpoint does | outcome |
| --- | --- |
| an answer | ``ok``; ``truncated`` if it was cut at the token limit |
| no visible text; a refusal of the model; a content filter | ``empty``; ``refused``; ``filtered`` |
| a 4xx about a prompt that is too long | ``overflow`` |
| a 4xx that refuses a role layout or an optional parameter | ``transport``, adapted, tried again |
| not JSON, no choice, an unknown end, anything that cannot be read | ``malformed``, tried again |
| 408, 409, 425, 429, 5xx, connection lost, deadline | ``transport``, tried again |
| any other 4xx | ``transport``, not tried again in this run |
| 401, 402, 403, 404, quota used up, account blocked, redirect | ``transport``, `Reply.fatal` |

An outcome that is kept for good needs evidence: a 5xx, a rate limit or an account error is never
held against a prompt or a parameter. A new wording of an error or an end is a line of
``refusals.toml``, with an example in ``tests/integration/test_finality.py``.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import msgspec
from msgspec.structs import replace

from botchat.interfaces import Decoding, Message, Reply, Usage, token_count, visible
from botchat.models.connection import HttpResponse, Server
from botchat.models.self_chat import ARRANGEMENTS, LEARNT_PART, OWN_PART, apply_layout, reply_tokens
from botchat.records import Outcome
from botchat.workspace.model_settings import ModelSettings
from botchat.workspace.secrets import public_url

LONGEST_PAUSE_S = 600.0  # longest Retry-After that is kept
SMALLEST_WINDOW = 256  # tokens; a smaller window that an error names is a mistake of the server
_WORDINGS: dict[str, Any] = tomllib.loads(
    resources.files(__package__).joinpath("refusals.toml").read_text("utf-8")
)
_ENDS: dict[str, Outcome] = {
    reason: outcome for outcome, reasons in _WORDINGS["finish"].items() for reason in reasons
}
_PATTERNS = {
    name: re.compile(pattern, re.IGNORECASE)
    for table in ("final", "passing", "fatal", "learnt")
    for name, pattern in _WORDINGS[table].items()
}
_OPTIONAL = ("max_tokens", "temperature", "seed")  # fields that an endpoint may refuse


def identity(settings: ModelSettings) -> dict[str, Any]:
    """Return what decides an endpoint model's answers besides the request; free of secrets."""
    plain = {name: value for name, value in settings.headers.items() if "$" not in value}
    # Only where they are set: ledgers made before these existed keep their keys.
    later = {"revision": settings.revision, "headers": plain or None}
    return {
        "model": settings.model,
        "base_url": settings.identity or public_url(settings.base_url),
        "temperature": settings.temperature is not None,
        "layout": settings.message_layout,
        "system": settings.system_role,
        "extra": settings.extra_body,
        **{name: value for name, value in later.items() if value is not None},
    }


@dataclass(eq=False)
class EndpointModel:
    """A `botchat.interfaces.ChatModel` on a server."""

    name: str
    settings: ModelSettings
    server: Server
    quirks: dict[str, Any] = field(default_factory=dict)
    """Refusals and window of the endpoint (see `Reply.sent`); never changed in place."""

    def __post_init__(self) -> None:
        """Derive what callers ask for."""
        self.identity: Mapping[str, Any] = identity(self.settings)
        self.context_window = self.settings.context_window
        self.parallel = self.settings.max_concurrency
        self.where = f"{self.name} at {self.server.name}"
        layout, system = self.settings.message_layout, self.settings.system_role
        self._arrangements = [
            p for p in ARRANGEMENTS if layout in ("auto", p[0]) and system in ("auto", p[1])
        ]

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Make one attempt; the module's table lists the outcomes."""
        if not self.context_window and "context_window" not in self.quirks:
            await self._find_window()
        quirks, started = self.quirks, time.monotonic()
        body = msgspec.json.encode(self.body(messages, decoding))
        response = await self.server.send("/chat/completions", body, self.settings.timeout_s)
        reply = self.read(response, quirks) if isinstance(response, HttpResponse) else response
        return replace(reply, sent=reply.sent or quirks, latency_s=time.monotonic() - started)

    async def _find_window(self) -> None:
        """Learn the context window from the endpoint's list of models; None if it names none."""
        response, window = await self.server.send("/models", None, deadline_s=10.0), None
        if isinstance(response, HttpResponse):
            window = served_models(response.content).get(self.settings.model)
        elif not response.reached:
            return  # it is asked again when the server runs
        self.quirks = self.quirks | {"context_window": window}

    def body(self, messages: Sequence[Message], decoding: Decoding) -> dict[str, Any]:
        """Return the JSON body of a request, arranged as the quirks say."""
        settings, max_tokens = self.settings, decoding.max_tokens
        if max_tokens is not None:
            own, learnt = settings.context_window, self.quirks.get("context_window")
            max_tokens = reply_tokens(max_tokens, own or learnt, OWN_PART if own else LEARNT_PART)
        options = {
            "temperature": None if settings.temperature is None else decoding.temperature,
            "max_tokens": max_tokens,
            # A server that caches by seed would repeat the first draw.
            "seed": decoding.sample or None,
        }
        body = {
            "model": settings.model,
            "messages": apply_layout(messages, *self._arrangement()),
            **{name: value for name, value in options.items() if value is not None},
        }
        for name, new_name in self.quirks.get("parameters", {}).items():
            value = body.pop(name, None)
            if new_name and value is not None:
                body[new_name] = value
        return body | settings.extra_body

    def read(self, response: HttpResponse, quirks: Mapping[str, Any]) -> Reply:
        """Turn the response to a request that was sent with ``quirks`` into a reply.

        Whatever fails in it is ``malformed``; every string is redacted.
        """
        clean, parsed = self.server.clean, None
        raw = clean(response.content.decode("utf-8", "replace"))
        with suppress(ValueError, RecursionError):
            parsed = msgspec.json.decode(response.content)
        try:
            if response.status != 200 or json_get(parsed, "error"):
                reply = self._read_error(response, parsed, raw, quirks)
            elif isinstance(parsed, dict):
                reply = read_completion(parsed)
            else:
                reply = Reply("malformed", detail=f"the reply is no JSON: {raw[:80]!r}")
        except Exception as error:
            detail = f"the reply cannot be read: {type(error).__name__}: {error}"
            reply = Reply("malformed", detail=detail)
        return replace(
            reply,
            text=clean(reply.text),
            finish_reason=reply.finish_reason and clean(reply.finish_reason),
            detail=clean(reply.detail)[:500],
            raw=raw,
            status=reply.status or response.status,
            retry_after_s=0.0 if reply.outcome == "malformed" else reply.retry_after_s,
            fatal=reply.fatal and clean(f"{self.where} {reply.fatal}"),
            sent=self.quirks if reply.adapted else quirks,
        )

    def _read_error(
        self, response: HttpResponse, parsed: Any, raw: str, quirks: Mapping[str, Any]
    ) -> Reply:
        code, message, parameter = read_refusal(parsed, raw)
        text, status = f"{code} {message}", response.status
        says = {name for name, wording in _PATTERNS.items() if wording.search(text)}
        if status == 200:  # an error object in disguise
            numbers = [int(part) for part in code.split() if part.isdigit()]
            is_final = any(_PATTERNS[name].search(code) for name in ("filtered", "overflow"))
            status = next((n for n in numbers if 400 <= n < 600), 400 if is_final else 500)
        passing = status in (408, 409, 425, 429) or "rate" in says
        # The request itself may be at fault.
        refused = 400 <= status < 500 and not passing and status not in (401, 402, 404)
        detail = f"HTTP {status}: {message}".removesuffix(": ")
        reply = Reply("transport", detail=detail, status=status)
        if refused and "filtered" in says and "account" not in says:
            return replace(reply, outcome="filtered")
        if refused and status != 403 and (status == 413 or "overflow" in says):
            sizes = [int(size) for size in _PATTERNS["window"].findall(message)]
            window = next((size for size in sizes if size >= SMALLEST_WINDOW), None)
            if not window or self.settings.context_window or self.quirks.get("context_window"):
                return replace(reply, outcome="overflow")
            self.quirks = self.quirks | {"context_window": window}  # for a shorter reply
            return replace(reply, retry_after_s=0.0, adapted=True)
        adaptable = refused or (status == 500 and "template" in says)
        if adaptable and self._adapt(text, parameter, says, quirks):
            return replace(reply, retry_after_s=0.0, adapted=True)
        if 300 <= status < 400:
            target = public_url(response.headers.get("location", "")) or "elsewhere"
            fatal = f"redirects to {target}: not followed; correct its base_url"
            return replace(reply, fatal=fatal)
        if (
            status in (401, 402, 404)
            or (status == 403 and not passing)
            or ("quota" in says and not (passing and "rate" in says))
            or (status == 400 and "account" in says and not passing)
            or (refused and "model" in says)
        ):
            fatal = f"cannot be used: {detail}; check its model, key, account and base_url"
            return replace(reply, fatal=fatal)
        if passing or status >= 500:
            return replace(reply, retry_after_s=retry_after_s(response.headers))
        return reply

    def _adapt(self, text: str, parameter: str, says: set[str], quirks: Mapping[str, Any]) -> bool:
        """Leave out, rename or rearrange what is refused; return whether anything is new to try."""
        if quirks is not self.quirks:  # another call has learnt since this one was sent
            return True
        known: dict[str, str | None] = quirks.get("parameters", {})
        for name in _OPTIONAL:
            is_named = "unsupported" in says and re.search(rf"(?i)\b{name}\b", text)
            if name not in known and (is_named or parameter == name):
                renamed = name == "max_tokens" and "max_completion_tokens" in text
                new_name = "max_completion_tokens" if renamed else None
                self.quirks = self.quirks | {"parameters": known | {name: new_name}}
                return True
        now, allowed = self._arrangement(), self._arrangements
        later = allowed[allowed.index(now) + 1 :] if now in allowed else []
        if "no_system" in says and now[1] == "system":
            later = [pair for pair in later if pair[1] == "system-in-user"] or later
        if not later or not {"no_system", "alternate"} & says:
            return False
        self.quirks = self.quirks | {"layout": later[0][0], "system": later[0][1]}
        return True

    def _arrangement(self) -> tuple[str, str]:
        """Return layout and place of the system prompt: as learnt, or the first allowed."""
        layout, system = self._arrangements[0]
        return self.quirks.get("layout") or layout, self.quirks.get("system") or system


def read_refusal(parsed: Any, raw: str) -> tuple[str, str, str]:
    """Return codes and types, the message in one line, and the parameter that an error names."""
    if isinstance(parsed, list) and parsed:  # Google wraps it
        parsed = parsed[0]
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else None
    if not isinstance(error, dict):
        error = {"message": error if isinstance(error, str) else raw[:200]}
    message = error.get("message") or error.get("detail") or ""
    if not isinstance(message, str):
        message = msgspec.json.encode(message).decode()
    codes = [error.get(name) for name in ("code", "type", "status", "error_type")]
    code = " ".join(str(part) for part in codes if isinstance(part, str | int) and part != "")
    return code, " ".join(message.split()), str(error.get("param") or "").split(".")[0]


def read_completion(parsed: Mapping[str, Any]) -> Reply:
    """Read a chat completion; any field may be missing, null or of another type."""
    choices, usage = parsed.get("choices"), parsed.get("usage")
    listed = [c for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []
    choice = next((c for c in listed if c.get("index") in (0, None)), {})
    # A reply whose end is null has not ended; many servers leave the field out.
    finish = str(choice["finish_reason"] or "null") if "finish_reason" in choice else None
    # A completion of no choices is how some providers say that they filtered them all.
    if choices == [] or json_get(parsed, "promptFeedback", "blockReason") is not None:
        finish = "content_filter"
    reasons = (finish or "stop", str(choice.get("native_finish_reason")))
    end, native_end = (_ENDS.get(reason.lower()) for reason in reasons)
    text, refusal = _text(choice.get("message")), json_get(choice, "message", "refusal")
    refusal = refusal if isinstance(refusal, str) and refusal.strip() else None
    outcome: Outcome = "truncated" if "truncated" in (end, native_end) else "ok"
    detail = "" if outcome == "ok" else f"finish_reason {finish}"
    if "filtered" in (end, native_end):
        outcome, detail = "filtered", f"finish_reason {finish}"
    elif refusal or "refused" in (end, native_end):
        outcome, detail, text = "refused", "refusal", refusal or text
    elif text is None:
        outcome, detail = "malformed", "the reply holds no choice with a message"
    elif end is None:
        # Half a sentence of a server that broke down is no answer.
        outcome, detail = "malformed", f"finish_reason {finish}"
    elif not visible(text):
        outcome, detail = "empty", f"no text (finish_reason {finish})"
    return Reply(
        outcome,
        text or "",
        finish,
        usage=token_usage(usage),
        billed_usd=reported_cost(usage),
        detail=detail,
    )


def _text(message: Any) -> str | None:
    """Return a message's text, a string or a list of parts; None if it is neither."""
    content = message.get("content") or "" if isinstance(message, dict) else None
    if isinstance(content, list):
        texts: list[Any] = [p.get("text", "") if isinstance(p, dict) else None for p in content]
        content = "".join(texts) if all(isinstance(text, str) for text in texts) else None
    return content if isinstance(content, str) else None


def json_get(value: Any, *path: str) -> Any:
    """Return the value at this place of parsed JSON; None if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def served_models(content: bytes) -> dict[str, int | None]:
    """Return the models of a server's list, each with its context window if it names one."""
    models: dict[str, int | None] = {}
    with suppress(Exception):  # what cannot be read names none
        for model in msgspec.json.decode(content)["data"]:
            keys = ("max_model_len", "context_length")
            sizes = map(token_count, [json_get(model, "meta", "n_ctx"), *map(model.get, keys)])
            models[str(model["id"])] = next((n for n in sizes if n and n >= SMALLEST_WINDOW), None)
    return models


def token_usage(usage: Any) -> Usage:
    """Read the tokens that the endpoint counted; an impossible count is unknown."""

    def count(*path: str) -> int | None:
        number = json_get(usage, *path)
        whole = isinstance(number, float) and number.is_integer()
        return token_count(int(number) if whole else number)

    n_prompt, n_reply, total = map(count, ("prompt_tokens", "completion_tokens", "total_tokens"))
    cached = count("prompt_tokens_details", "cached_tokens")
    if cached is None:
        cached = count("prompt_cache_hit_tokens")
    if not n_prompt:  # no prompt is empty: a server that counts zero tokens counts none
        return Usage(None, n_reply or None, cached)
    # Some providers count reasoning in the total only; they bill it as completion.
    n_reply = n_reply if total is None else max(n_reply or 0, total - n_prompt)
    return Usage(n_prompt, n_reply, cached and min(cached, n_prompt))


def reported_cost(usage: Any) -> float | None:
    """Read the USD in a router's field ``cost``; None if it reports none."""
    cost = json_get(usage, "cost")
    cost = json_get(cost, "total_cost") if isinstance(cost, dict) else cost
    is_fee = json_get(usage, "is_byok") is True  # the router's own fee only
    if is_fee or isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    return float(cost) if 0 <= cost < 1e9 else None


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Read the header Retry-After in seconds; 0 if there is none or it is no number."""
    with suppress(KeyError, ValueError):
        seconds = float(headers["retry-after"])
        # NaN compares false, so it ends as 0 too.
        return min(seconds, LONGEST_PAUSE_S) if seconds > 0 else 0.0
    return 0.0

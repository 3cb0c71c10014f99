"""A model behind OpenAI's chat completions: one attempt a call, typed, redacted, adapted.

What an error means is in `botchat.models.faults`; here is what is done about it. An answer is
``ok``, ``truncated`` at the token limit, ``empty`` without visible text, ``refused`` by the model,
or ``filtered``. A reply without visible text that ended at its limit, or has reasoning, says that
the model thinks: it is asked again with room for that, and later calls have it from the start.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from botchat.interfaces import Decoding, Layout, Message, Quirks, Reply, Sent, SystemRole, visible
from botchat.models import reader
from botchat.models.attempts import (
    Adapted,
    Again,
    Answered,
    Attempt,
    Call,
    Refused,
    map_replies,
)
from botchat.models.connection import Failure, HttpResponse, Server
from botchat.models.faults import (
    WORDINGS,
    Fault,
    classify,
    is_renamed,
    named_parameter,
    refuses_order,
    refuses_system,
    window_of,
)
from botchat.models.learnt import Learnt
from botchat.models.reader import Completion, ErrorBody
from botchat.models.self_chat import ARRANGEMENTS, LEARNT_PART, OWN_PART, apply_layout, reply_tokens
from botchat.records import Outcome
from botchat.thoughts import strip_thoughts
from botchat.workspace.model_settings import ModelSettings
from botchat.workspace.secrets import public_url

_ENDS: dict[str, Outcome] = {
    reason: outcome for outcome, reasons in WORDINGS["finish"].items() for reason in reasons
}
_LONGEST_DETAIL = 500
_WINDOW_TIMEOUT_S = 10.0


def identity(settings: ModelSettings) -> dict[str, Any]:
    """Return what decides an endpoint model's answers besides the request; free of secrets."""
    plain = {name: value for name, value in settings.headers.items() if "$" not in value}
    known = {
        "model": settings.model,
        "base_url": settings.identity or public_url(settings.base_url),
        "temperature": settings.temperature is not None,
        "layout": settings.message_layout,
        "system": settings.system_role,
        "extra": settings.extra_body,
    }
    # Only where they are set: ledgers made before these existed keep their keys.
    if settings.revision is not None:
        known["revision"] = settings.revision
    if plain:
        known["headers"] = plain
    return known


def reasoning_room(settings: ModelSettings, quirks: Quirks) -> int:
    """Return the tokens that a model would have for reasoning: at most half of its window."""
    window = settings.context_window or quirks.window
    if window is None:
        return settings.reasoning_tokens
    return min(settings.reasoning_tokens, window // 2)


@dataclass(eq=False)
class EndpointModel:
    """A `botchat.models.attempts.Sender` on a server."""

    name: str
    settings: ModelSettings
    server: Server
    learnt: Learnt

    def __post_init__(self) -> None:
        """Derive what callers ask for."""
        self.identity: Mapping[str, Any] = identity(self.settings)
        self.parallel = self.settings.max_concurrency
        self.where = f"{self.name} at {self.server.name}"
        self._was_window_asked = False
        layout, system = self.settings.message_layout, self.settings.system_role
        self._arrangements: list[tuple[Layout, SystemRole]] = [
            p for p in ARRANGEMENTS if layout in ("auto", p[0]) and system in ("auto", p[1])
        ]

    @property
    def quirks(self) -> Quirks:
        """Refusals of its endpoint, as far as they are known."""
        return self.learnt.of(self.identity)

    @property
    def context_window(self) -> int | None:
        """Tokens of prompt and reply together: as set, or as the endpoint says."""
        return self.settings.context_window or self.quirks.window

    @property
    def room(self) -> int:
        """Tokens of a reply that are for reasoning."""
        return self.most_room if self.quirks.thinks else 0

    @property
    def most_room(self) -> int:
        """Tokens of a reply that would be for reasoning, if the model thinks."""
        return reasoning_room(self.settings, self.quirks)

    async def attempt(self, call: Call) -> Attempt:
        """Send a request once."""
        await self._find_window()
        started = time.monotonic()
        sent = self._sent()
        body = msgspec.json.encode(self.body(call.messages, call.decoding))
        response = await self.server.send("/chat/completions", body, self.settings.timeout_s)
        latency_s = time.monotonic() - started
        if isinstance(response, Failure):
            return self._finished(self._failed(response), "", sent, latency_s)
        return self.read(response, sent, latency_s)

    def _sent(self) -> Sent:
        """Return how a request is sent now."""
        return Sent(**msgspec.structs.asdict(self.quirks), room=self.room)

    async def _find_window(self) -> None:
        """Learn the context window from the endpoint's list of models, if it has one."""
        is_known = not isinstance(self.quirks.context_window, msgspec.UnsetType)
        if self.settings.context_window or is_known or self._was_window_asked:
            return
        self._was_window_asked = True
        response = await self.server.send("/models", None, _WINDOW_TIMEOUT_S)
        # Whatever is no list and no "there is none" may be one when the server has started.
        if isinstance(response, Failure) or response.status not in (200, 404):
            return
        window = None
        for model in reader.read_models(response.content):
            if model.id == self.settings.model:
                window = model.window
        self._learn(Quirks(context_window=window))

    def _learn(self, news: Quirks) -> None:
        self.learnt.add(self.name, self.identity, news)

    def body(self, messages: Sequence[Message], decoding: Decoding) -> dict[str, Any]:
        """Return the JSON body of a request, arranged as the quirks say."""
        settings = self.settings
        layout, system = self._arrangement()
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": apply_layout(messages, layout, system),
        }
        if settings.temperature is not None and decoding.temperature is not None:
            body["temperature"] = decoding.temperature
        if decoding.max_tokens is not None:
            part = OWN_PART if settings.context_window else LEARNT_PART
            longest = reply_tokens(decoding.max_tokens, self.context_window, part)
            body["max_tokens"] = longest + self.room
        if decoding.sample:
            # A server that caches by seed would repeat the first draw.
            body["seed"] = decoding.sample
        # Some servers stream unless they are told.
        body["stream"] = False
        for name, new_name in self.quirks.parameters.items():
            value = body.pop(name, None)
            if new_name and value is not None:
                body[new_name] = value
        return body | settings.extra_body

    def read(self, response: HttpResponse, sent: Sent, latency_s: float = 0.0) -> Attempt:
        """Turn the response to a request that was sent so into what came of it.

        Whatever fails in it is ``malformed``; every string is redacted.
        """
        try:
            attempt = self._read(response, sent)
        except Exception as error:  # a body that no branch foresees
            fault = f"the reply cannot be read: {type(error).__name__}: {error}"
            attempt = self._unreadable(fault)
        raw = self.server.redactor.clean(response.content.decode("utf-8", "replace"))
        return self._finished(attempt, raw, sent, latency_s)

    def _read(self, response: HttpResponse, sent: Sent) -> Attempt:
        parsed = reader.read_json(response.content)
        is_success = 200 <= response.status < 300
        if not is_success or reader.has_error(parsed):
            return self._read_error(response, reader.read_error(response.content, parsed), sent)
        if isinstance(parsed, dict):
            return self._read_completion(reader.read_completion(parsed), parsed, sent)
        error = reader.read_error(response.content, parsed)
        if error.is_page:
            return self._unreadable(f"{error.message} in the place of JSON; correct its base_url")
        return self._unreadable(f"the reply is no JSON: {error.message[:80]!r}")

    # ---------------------------------------------------------------------------- completions

    def _read_completion(
        self, completion: Completion, parsed: Mapping[str, Any], sent: Sent
    ) -> Attempt:
        """Type a completion."""
        end = _end(completion.finish or "stop")
        native_end = _end(completion.native_finish)
        finish = f"finish_reason {completion.finish}"
        reply = Reply(
            "ok",
            completion.text or "",
            completion.finish,
            completion.usage,
            cost_usd=completion.reported_usd,
            model=completion.model,
        )
        if completion.blocked or "filtered" in (end, native_end):
            return Answered(replace(reply, outcome="filtered", detail=finish))
        if completion.refusal.strip() or "refused" in (end, native_end):
            text = completion.refusal.strip() and completion.refusal
            return Answered(
                replace(reply, outcome="refused", text=text or reply.text, detail="refusal")
            )
        if completion.text is None:
            keys = ", ".join(sorted(parsed))[:120]
            none = self._unreadable(f"the reply holds no choice with a message (it has {keys})")
            if completion.is_counted_empty:
                return Again(none.reply, Fault.SERVER, status=200)  # it costs nothing
            return none
        if "malformed" in (end, native_end):
            return self._unreadable(finish)
        if "truncated" in (end, native_end):
            reply = replace(reply, outcome="truncated", detail=finish)
        is_marked = strip_thoughts(completion.text) != completion.text.strip()
        has_reasoning = completion.reasons or completion.reasoning_tokens > 0 or is_marked
        is_cut = reply.outcome == "truncated"
        if visible(strip_thoughts(completion.text)):
            if is_cut and has_reasoning and self._makes_room(sent):
                return Adapted(reply, status=200, billed=True)
            if end is None:
                # Half a sentence of a server that broke down may be no answer.
                fault = replace(reply, outcome="malformed", text="", detail=f"unknown {finish}")
                kept = replace(reply, detail=f"unknown {finish}")
                return Again(fault, Fault.UNREADABLE, kept=kept, status=200)
            return Answered(reply)
        reply = replace(reply, outcome="empty")
        if not (is_cut or has_reasoning):
            reply = replace(reply, detail=f"no text (finish_reason {completion.finish})")
            if completion.is_counted_empty:
                return Again(reply, Fault.UNREADABLE, kept=reply, status=200)
            return Answered(reply)
        reply = replace(reply, detail=self._reasoning_detail(completion, sent))
        if self._makes_room(sent):
            return Adapted(reply, status=200, billed=True)
        return Answered(reply)

    def _makes_room(self, sent: Sent) -> bool:
        """Learn that the model thinks; return whether it had no room for that."""
        if sent.room > 0 or self.most_room == 0:
            return False
        self._learn(Quirks(thinks=True))
        return True

    def _reasoning_detail(self, completion: Completion, sent: Sent) -> str:
        """Return how many tokens went into reasoning, and what to set."""
        count = completion.reasoning_tokens or completion.usage.completion_tokens
        tokens = f"all {count:,} tokens" if count else "all of it"
        room = f"reasoning_tokens = {max(sent.room, 1) * 4}" if sent.room else "reasoning_tokens"
        if _end(completion.finish or "stop") == "truncated":
            return (
                f"{self.name}: no visible text within its limit: {tokens} went into reasoning; "
                f"set {room} in its [models] entry, or raise max_tokens"
            )
        return (
            f"{self.name}: no visible text: {tokens} went into the field for reasoning; switch "
            "the server's reasoning parser off, or set reasoning_tokens in its [models] entry"
        )

    # --------------------------------------------------------------------------------- errors

    def _read_error(self, response: HttpResponse, error: ErrorBody, sent: Sent) -> Attempt:
        """Say what is done about an error."""
        status = response.status
        fault = classify(status, error)
        message = error.message
        if error.code and error.code not in (str(status), error.message):
            message = f"{message} ({error.code[:80]})"
        reply = Reply("transport", detail=f"HTTP {status}: {message}")
        match fault:
            case Fault.FILTERED:
                return Answered(replace(reply, outcome="filtered"))
            case Fault.OVERFLOW:
                return self._overflowed(reply, error, sent, status)
            case Fault.PARAMETER | Fault.LAYOUT:
                if self._adapt(fault, error, sent):
                    return Adapted(reply, status)
                if status >= 500:
                    return Again(reply, Fault.SERVER, status=status)
                return self._refused(reply, Fault.REQUEST, error, status)
            case Fault.BUSY | Fault.LOADING | Fault.SERVER:
                wait_s = seconds_to_wait(response.headers, error)
                return Again(reply, fault, wait_s, status=status)
            case Fault.REDIRECT:
                target = public_url(response.headers.get("location", "")) or "elsewhere"
                advice = "not followed; correct its base_url"
                detail = f"{self.where} redirects to {target}: {advice}"
                return Refused(replace(reply, detail=detail), fault, status)
            case _:
                return self._refused(reply, fault, error, status)

    def _refused(self, reply: Reply, fault: Fault, error: ErrorBody, status: int) -> Refused:
        """Return a refusal with what to do about it."""
        if fault.ends_the_model:
            advice = "check its model, key, account and base_url"
            detail = f"{self.where} cannot be used: {reply.detail}; {advice}"
            return Refused(replace(reply, detail=detail), fault, status)
        sent = ("max_tokens", "temperature", "seed", *self.settings.extra_body)
        for name in sent:
            if error.parameter == name or re.search(rf"\b{re.escape(name)}\b", error.text):
                key = "extra_body" if name in self.settings.extra_body else name
                advice = f"change {key} in its [models] entry of botchat.toml"
                return Refused(replace(reply, detail=f"{reply.detail}; {advice}"), fault, status)
        return Refused(reply, fault, status)

    def _overflowed(self, reply: Reply, error: ErrorBody, sent: Sent, status: int) -> Attempt:
        """Learn the window where it was not known, for a shorter reply; else it is an answer."""
        window = window_of(error)
        was_known = self.settings.context_window or sent.window
        if window and not was_known:
            if self.quirks.window is None:
                self._learn(Quirks(context_window=window))
            return Adapted(reply, status)
        return Answered(replace(reply, outcome="overflow"), billed=False)

    def _adapt(self, fault: Fault, error: ErrorBody, sent: Sent) -> bool:
        """Leave out, rename or rearrange what is refused; return whether anything is new to try."""
        if self._sent() != sent:  # another call has learnt since this one was sent
            return True
        if fault is Fault.PARAMETER:
            return self._leave_out(error, sent)
        now = self._arrangement()
        if now not in self._arrangements or not refuses_order(error):
            return False
        later = self._arrangements[self._arrangements.index(now) + 1 :]
        if refuses_system(error) and now[1] == "system":
            later = [pair for pair in later if pair[1] == "system-in-user"] or later
        if not later:
            return False
        layout, system = later[0]
        self._learn(Quirks(layout=layout, system=system))
        return True

    def _leave_out(self, error: ErrorBody, sent: Sent) -> bool:
        """Leave out or rename the parameter that is refused; return whether it was sent."""
        name = named_parameter(error)
        if name is None or name in sent.parameters:
            return False
        new_name = None
        if name == "max_tokens" and is_renamed(error):
            new_name = "max_completion_tokens"
        self._learn(Quirks(parameters={name: new_name}))
        return True

    def _arrangement(self) -> tuple[Layout, SystemRole]:
        """Return layout and place of the system prompt: as learnt, or the first allowed."""
        layout, system = self._arrangements[0]
        return self.quirks.layout or layout, self.quirks.system or system

    def _failed(self, failure: Failure) -> Attempt:
        """Return what comes of an exchange without a response."""
        if failure.fault.ends_the_model:
            reply = Reply("transport", detail=f"{self.where} cannot be used: {failure.detail}")
            return Refused(reply, failure.fault)
        outcome: Outcome = "malformed" if failure.fault is Fault.UNREADABLE else "transport"
        return Again(Reply(outcome, detail=failure.detail), failure.fault)

    def _unreadable(self, detail: str) -> Again:
        return Again(Reply("malformed", detail=detail), Fault.UNREADABLE, status=200)

    def _finished(self, attempt: Attempt, raw: str, sent: Sent, latency_s: float) -> Attempt:
        """Return an attempt without secrets, with the body and the way in which it was sent."""
        redactor = self.server.redactor

        def finish(reply: Reply) -> Reply:
            return replace(
                reply,
                text=redactor.clean_reply(reply.text),
                finish_reason=reply.finish_reason and redactor.clean(reply.finish_reason),
                detail=redactor.clean(reply.detail)[:_LONGEST_DETAIL],
                raw=raw,
                sent=sent,
                latency_s=latency_s,
            )

        return map_replies(attempt, finish)


def _end(reason: str) -> Outcome | None:
    """Return the outcome of a finish reason; None if it is unknown."""
    word = re.sub(r"[^a-z]", "", reason.lower().rpartition(".")[2])
    return _ENDS.get(word)


LONGEST_WAIT_S = 1e6
"""Seconds; no endpoint asks for more."""


def seconds_to_wait(headers: Mapping[str, str], error: ErrorBody) -> float:
    """Return the least seconds before the next attempt, as headers, fields or words ask for."""
    waits = [error.wait_s, reader.seconds_in(error.text or error.message)]
    milliseconds = _number(headers.get("retry-after-ms", ""))
    waits.append(milliseconds / 1000)
    header = headers.get("retry-after", "")
    waits.append(_number(header))
    waits.append(_seconds_until(header, headers.get("date", "")))
    known = [wait for wait in waits if wait > 0]  # NaN is not
    return min(max(known, default=0.0), LONGEST_WAIT_S)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _seconds_until(date: str, now: str) -> float:
    """Return the seconds until a date of HTTP, by the server's clock where it tells the time."""
    try:
        then = parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    try:
        return then - parsedate_to_datetime(now).timestamp()
    except (ValueError, TypeError, OverflowError):
        return then - time.time()

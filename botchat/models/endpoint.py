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
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from botchat.interfaces import (
    Decoding,
    Identity,
    Layout,
    Message,
    Quirks,
    Reply,
    Sent,
    SystemRole,
    reply_tokens,
)
from botchat.models import reader
from botchat.models.attempts import Adapted, Again, Answered, Attempt, Call, Refused, map_replies
from botchat.models.connection import HttpResponse, Server
from botchat.models.faults import Fault, classify, named_parameter, says, window_of
from botchat.models.frames import read_json
from botchat.models.layout import ARRANGEMENTS, apply_layout
from botchat.models.learnt import Learnt
from botchat.models.reader import Completion, ErrorBody
from botchat.records import Outcome
from botchat.workspace.model_settings import ModelSettings
from botchat.workspace.secrets import public_url

_LONGEST_DETAIL = 500
_LONGEST_NAME = 100
_WINDOW_TIMEOUT_S = 10.0


def identity(settings: ModelSettings) -> Identity:
    """Return what decides an endpoint model's answers besides the request; free of secrets."""
    plain = {name: value for name, value in settings.headers.items() if "$" not in value}
    known: Identity = {
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
        self.identity = identity(self.settings)
        self.parallel = self.settings.max_concurrency
        self._was_window_asked = False
        self._odd_end: str | None = None
        """Unknown end of the last reply, if it was unknown."""
        layout = self.settings.message_layout
        system = self.settings.system_role
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
        if isinstance(response, HttpResponse):
            return self.read(response, sent, latency_s)
        attempt = _unanswered(response.fault, response.detail)
        return self._finished(attempt, "", sent, latency_s)

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
        if not isinstance(response, HttpResponse) or response.status not in (200, 404):
            return
        windows = {model.id: model.window for model in reader.read_models(response.content)}
        self._learn(Quirks(context_window=windows.get(self.settings.model)))

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
            body["max_tokens"] = reply_tokens(self, decoding.max_tokens)
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
            detail = f"the reply cannot be read: {type(error).__name__}: {error}"
            attempt = _unanswered(Fault.UNREADABLE, detail, 200)
        raw = response.content.decode("utf-8", "replace")
        return self._finished(attempt, raw, sent, latency_s)

    def _read(self, response: HttpResponse, sent: Sent) -> Attempt:
        parsed = read_json(response.content)
        if isinstance(parsed, list) and len(parsed) == 1:
            (parsed,) = parsed
        is_success = 200 <= response.status < 300
        if is_success and isinstance(parsed, dict) and not reader.has_error(parsed):
            return self._read_completion(reader.read_completion(parsed), sent)
        error = reader.read_error(response.content)
        if is_success and not error.is_json:
            place = f"{error.message[:120] or 'nothing'} in the place of JSON"
            if error.is_page:
                place += "; correct its base_url"
            return _unanswered(Fault.UNREADABLE, f"HTTP {response.status}: {place}", 200)
        return self._read_error(response, error, sent)

    def _read_completion(self, completion: Completion, sent: Sent) -> Attempt:
        """Say what comes of a completion."""
        reply = completion.reply
        is_empty = reply.outcome == "empty"
        if reply.outcome == "malformed":
            fault = Fault.UNREADABLE
            if completion.is_counted_empty:  # it costs nothing
                fault = Fault.SERVER
            return Again(reply, fault, status=200)
        is_thought = completion.has_reasoning and reply.outcome == "truncated"
        if is_empty:
            is_thought = completion.has_reasoning or completion.is_cut
        if is_thought:
            if is_empty:
                reply = replace(reply, detail=self._reasoning_detail(completion, sent))
            if sent.room == 0 and self.most_room > 0:
                self._learn(Quirks(thinks=True))
                return Adapted(reply, 200, billed=True)
            return Answered(reply)
        # Half a sentence of a server that broke down may be no answer, nor what counts no token;
        # an end that all replies have is none of a breakdown.
        odd_end = None
        if reply.outcome == "ok" and not completion.is_end_known:
            odd_end = reply.finish_reason
        is_doubtful = odd_end not in (None, self._odd_end)
        self._odd_end = odd_end
        if is_empty:
            is_doubtful = completion.is_counted_empty or not completion.is_end_known
        if is_doubtful:
            fault_reply = replace(reply, outcome="malformed", text="")
            return Again(fault_reply, Fault.UNREADABLE, kept=reply, status=200)
        return Answered(reply)

    def _reasoning_detail(self, completion: Completion, sent: Sent) -> str:
        """Return how many tokens went into reasoning, and what to set."""
        count = completion.reply.usage.completion_tokens
        tokens = f"all {count:,} tokens" if count else "all of it"
        setting = f"reasoning_tokens above {sent.room:,}" if sent.room else "reasoning_tokens"
        advice = f"set {setting} in its [models] entry, or raise max_tokens"
        if not completion.is_cut:
            advice = f"switch the server's parser of reasoning off, or {advice}"
        return f"{self.name}: no visible text: {tokens} went into reasoning; {advice}"

    def _read_error(self, response: HttpResponse, error: ErrorBody, sent: Sent) -> Attempt:
        """Say what is done about an error."""
        status = response.status
        fault = classify(status, error)
        detail = f"HTTP {status}: {error.message}"
        if self._adapts(fault, error, sent):
            return Adapted(Reply("transport", detail=detail), status)
        if fault is Fault.FILTERED:
            return Answered(Reply("filtered", detail=detail))
        if fault is Fault.OVERFLOW:
            return Answered(Reply("overflow", detail=detail), billed=False)
        if fault in (Fault.PARAMETER, Fault.LAYOUT):
            fault = Fault.REQUEST
            if status >= 500:
                fault = Fault.SERVER
        wait_s = seconds_to_wait(response.headers, error)
        if fault is Fault.REQUEST:
            detail += self._parameter_advice(error)
        target = public_url(response.headers.get("location", "")) or "elsewhere"
        detail += fault.facts.advice.format(target=target)
        return _unanswered(fault, detail, status, wait_s)

    def _parameter_advice(self, error: ErrorBody) -> str:
        """Return which key to change; empty where the error names none."""
        for name in ("max_tokens", "temperature", "seed", *self.settings.extra_body):
            if error.parameter == name or re.search(rf"\b{re.escape(name)}\b", error.text):
                key = name
                if name in self.settings.extra_body:
                    key = "extra_body"
                return f"; change {key} in its [models] entry of botchat.toml"
        return ""

    def _learns_window(self, error: ErrorBody, sent: Sent) -> bool:
        """Learn the window where it was not known; return whether a shorter reply may help."""
        window = window_of(error)
        if window is None or self.settings.context_window or sent.window:
            return False
        if self.quirks.window is None:
            self._learn(Quirks(context_window=window))
        return True

    def _adapts(self, fault: Fault, error: ErrorBody, sent: Sent) -> bool:
        """Learn from what is refused; return whether anything is new to try."""
        if fault is Fault.OVERFLOW:
            return self._learns_window(error, sent)
        if fault not in (Fault.PARAMETER, Fault.LAYOUT):
            return False
        if self._sent() != sent:  # another call has learnt since this one was sent
            return True
        if fault is Fault.LAYOUT:
            return self._rearranges(error)
        name = named_parameter(error)
        if name is None or name in sent.parameters:
            return False
        new_name = None
        if name == "max_tokens" and "max_completion_tokens" in error.text:
            new_name = "max_completion_tokens"
        self._learn(Quirks(parameters={name: new_name}))
        return True

    def _rearranges(self, error: ErrorBody) -> bool:
        """Learn the next arrangement of messages; return whether there is one."""
        now = self._arrangement()
        refuses_system = says("no_system", error)
        if now not in self._arrangements or not (refuses_system or says("alternate", error)):
            return False
        later = self._arrangements[self._arrangements.index(now) + 1 :]
        if refuses_system and now[1] == "system":
            later = [pair for pair in later if pair[1] == "system-in-user"] or later
        for layout, system in later[:1]:
            self._learn(Quirks(layout=layout, system=system))
        return bool(later)

    def _arrangement(self) -> tuple[Layout, SystemRole]:
        """Return layout and place of the system prompt: as learnt, or the first allowed."""
        layout, system = self._arrangements[0]
        return self.quirks.layout or layout, self.quirks.system or system

    def _finished(self, attempt: Attempt, raw: str, sent: Sent, latency_s: float) -> Attempt:
        """Return an attempt without secrets, with the body and the way in which it was sent."""
        redactor = self.server.redactor
        is_fatal = isinstance(attempt, Refused) and attempt.fatal

        def finish(reply: Reply) -> Reply:
            detail = reply.detail
            if is_fatal:
                detail = f"{self.name} at {self.server.name} cannot be used: {detail}"
            return replace(
                reply,
                text=redactor.clean_reply(reply.text),
                finish_reason=reply.finish_reason and redactor.clean(reply.finish_reason),
                detail=redactor.clean(detail)[:_LONGEST_DETAIL],
                model=_one_line(redactor.clean(reply.model))[:_LONGEST_NAME],
                raw=redactor.clean_reply(raw) if reply.usable else redactor.clean(raw),
                sent=sent,
                latency_s=latency_s,
            )

        return map_replies(attempt, finish)


def _unanswered(
    fault: Fault, detail: str, status: int | None = None, after_s: float = 0.0
) -> Again | Refused:
    """Return what comes of an attempt that has no answer: another one, if that may help."""
    outcome: Outcome = "transport"
    if fault is Fault.UNREADABLE:
        outcome = "malformed"
    reply = Reply(outcome, detail=detail)
    if fault.facts.attempts == 1:
        return Refused(reply, fault, status)
    return Again(reply, fault, after_s, status=status)


def _one_line(text: str) -> str:
    """Return the printable characters of a text."""
    return "".join([char for char in text if char.isprintable()])


LONGEST_WAIT_S = 1e6
"""Seconds; no endpoint asks for more."""


def seconds_to_wait(headers: Mapping[str, str], error: ErrorBody) -> float:
    """Return the least seconds before the next attempt, as headers, fields or words ask for."""
    header = headers.get("retry-after", "")
    header_ms = headers.get("retry-after-ms", "")
    waits = [
        error.wait_s,
        reader.seconds_in(f"retry after {header}"),
        reader.seconds_in(f"retry after {header_ms}ms"),
    ]
    with suppress(ValueError):
        waits.append(float(header))
    date = _timestamp(header)
    if date is not None:
        # By the server's clock, where it tells the time.
        now = _timestamp(headers.get("date", "")) or time.time()
        waits.append(date - now)
    return min(max([wait for wait in waits if wait >= 0]), LONGEST_WAIT_S)  # NaN is not


def _timestamp(date: str) -> float | None:
    """Return the seconds of a date of HTTP or ISO, in Greenwich's time unless it says otherwise."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError):
            moment = parse(date)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            return moment.timestamp()
    return None

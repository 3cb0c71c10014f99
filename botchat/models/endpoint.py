"""A model behind OpenAI's chat completions: one attempt a call, typed, redacted, adapted.

What an error means is in `botchat.models.faults`; here is what is done about it. An answer is
``ok``, ``truncated`` at the token limit, ``empty`` without visible text, ``refused`` by the model,
or ``filtered``. A reply without visible text that ended at its limit, or has reasoning, says that
the model thinks: it is asked again with room for that, and later calls have it from the start.
"""

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from itertools import product
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from botchat.errors import log
from botchat.frames import fill_text, read_json
from botchat.interfaces import (
    Decoding,
    Layout,
    Message,
    Quirks,
    Reply,
    Sent,
    SystemRole,
    reply_tokens,
)
from botchat.models.attempts import (
    Adapted,
    Again,
    Answered,
    Attempt,
    Call,
    EndpointFacts,
    Refused,
    map_replies,
)
from botchat.models.connection import Failure, HttpResponse, Response, Server
from botchat.models.faults import FACTS, Fault, classify, named_parameter, window_of
from botchat.models.reader import (
    Completion,
    ErrorBody,
    has_error,
    read_completion,
    read_error,
    read_models,
    seconds_in,
)
from botchat.records import NO_ROOM
from botchat.workspace.secrets import public_url

_LONGEST_DETAIL = 500
_LONGEST_NAME = 100
_WINDOW_TIMEOUT_S = 10.0


@dataclass(eq=False)
class EndpointModel(EndpointFacts):
    """A `botchat.models.attempts.Sender` on a server."""

    server: Server

    def __post_init__(self) -> None:
        """Ask nothing yet."""
        super().__post_init__()
        self._was_window_asked = False
        self._odd_end: str | None = None  # of the last reply, if it was unknown
        self._arrangements = [
            (layout, system)
            for layout, system in ARRANGEMENTS
            if self.settings.message_layout in ("auto", layout)
            and self.settings.system_role in ("auto", system)
        ]

    async def attempt(self, call: Call) -> Attempt:
        """Send a request once."""
        await self._find_window()
        started = time.monotonic()
        sent = self._sent()
        body = msgspec.json.encode(self.body(call.messages, call.decoding))
        response = await self.server.send("/chat/completions", body, self.settings.timeout_s)
        return self.read(response, sent, time.monotonic() - started)

    def _sent(self) -> Sent:
        """Return how a request is sent now."""
        return Sent(**msgspec.structs.asdict(self.quirks), room=self.room)

    async def _find_window(self) -> None:
        """Learn the context window from the endpoint's list of models, if it has one."""
        is_known = self.settings.context_window or self.quirks.context_window is not msgspec.UNSET
        if self._was_window_asked or is_known:
            return
        self._was_window_asked = True
        response = await self.server.send("/models", None, _WINDOW_TIMEOUT_S)
        # Whatever is no list and no "there is none" may be one when the server has started.
        if response.status in (200, 404):
            windows = {model.id: model.window for model in read_models(response.content)}
            self._learn(replace(self.quirks, context_window=windows.get(self.settings.model)))

    def _learn(self, quirks: Quirks) -> None:
        """Keep what is known now; what changes the meaning of requests is told once."""
        changes = [change for change in quirks.changes if change not in self.quirks.changes]
        self.ledger.set_quirks(self.identity_key, quirks)
        if changes:
            how = " and ".join(changes)
            log.warning(f"{self.name} is asked {how} from now on: its endpoint refuses otherwise")

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
            if name in body:
                value = body.pop(name)
                if new_name:
                    body[new_name] = value
        return body | settings.extra_body

    def read(self, response: Response, sent: Sent, latency_s: float = 0.0) -> Attempt:
        """Turn the response to a request that was sent so into what came of it.

        Whatever fails in it is ``malformed``; every string is redacted.
        """
        try:
            attempt = self._read(response, sent)
        except Exception as error:  # a body that no branch foresees
            detail = f"the reply cannot be read: {type(error).__name__}: {error}"
            attempt = self._failed("unreadable", detail, 200)
        raw = response.content.decode("utf-8", "replace")
        return map_replies(attempt, partial(self._clean, raw, sent, latency_s))

    def _clean(self, raw: str, sent: Sent, latency_s: float, reply: Reply) -> Reply:
        """Return a reply without secrets, with the body and the way in which it was sent."""
        redactor = self.server.redactor
        clean_raw = redactor.clean
        if reply.usable:
            clean_raw = redactor.clean_reply
        model = [char for char in redactor.clean(reply.model) if char.isprintable()]
        return replace(
            reply,
            text=redactor.clean_reply(reply.text),
            finish_reason=reply.finish_reason and redactor.clean(reply.finish_reason),
            detail=redactor.clean(reply.detail)[:_LONGEST_DETAIL],
            model="".join(model[:_LONGEST_NAME]),
            raw=clean_raw(raw),
            sent=sent,
            latency_s=latency_s,
        )

    def _read(self, response: Response, sent: Sent) -> Attempt:
        if isinstance(response, Failure):
            return self._failed(response.fault, response.detail)
        parsed = read_json(response.content)
        if isinstance(parsed, list) and len(parsed) == 1:
            (parsed,) = parsed
        is_success = 200 <= response.status < 300
        if is_success and isinstance(parsed, dict) and not has_error(parsed):
            return self._read_completion(read_completion(parsed), sent)
        return self._read_error(response, sent)

    def _read_completion(self, completion: Completion, sent: Sent) -> Attempt:
        """Say what comes of a completion."""
        reply = completion.reply
        is_empty = reply.outcome == "empty"
        if reply.outcome == "malformed":
            fault: Fault = "unreadable"
            if completion.is_counted_empty:  # it costs nothing
                fault = "server"
            return Again(reply, fault, status=200)
        is_thought = completion.has_reasoning or (is_empty and completion.is_cut)
        if is_thought and reply.outcome in NO_ROOM:
            if not sent.thinks:
                self._learn(replace(self.quirks, thinks=True))
                return Adapted(reply, 200, billed=True)
            if is_empty:
                detail = fill_text(
                    "models/reasoning.txt",
                    name=self.name,
                    count=reply.usage.completion_tokens,
                    is_cut=completion.is_cut,
                    room=sent.room,
                )
                reply = replace(reply, detail=detail)
            return Answered(reply)
        # Half a sentence of a server that broke down may be no answer, nor what counts no token;
        # an end that all replies have is none of a breakdown.
        odd_end = None
        if not completion.is_end_known and reply.outcome in ("ok", "empty"):
            odd_end = reply.finish_reason
        is_odd = odd_end not in (None, self._odd_end)
        self._odd_end = odd_end
        if is_odd or (is_empty and completion.is_counted_empty):
            fault_reply = replace(reply, outcome="malformed", text="")
            return Again(fault_reply, "unreadable", kept=reply, status=200)
        return Answered(reply)

    def _read_error(self, response: HttpResponse, sent: Sent) -> Attempt:
        """Say what is done about an error."""
        error = read_error(response.content)
        fault = classify(response.status, error)
        reason = error.message
        if response.status < 300 and not error.is_json:
            fault = "unreadable"
            reason = f"{reason[:120] or 'nothing'} in the place of JSON"
            if error.is_page:
                reason += "; correct its base_url"
        detail = f"HTTP {response.status}: {reason}"
        if self._adapts(fault, error, sent):
            return Adapted(Reply("transport", detail=detail), response.status)
        if fault == "layout" and response.status >= 500:
            fault = "server"
        target = public_url(response.headers.get("location", "")) or "elsewhere"
        detail += FACTS[fault].advice.format(target=target, change=self._change(error))
        return self._failed(
            fault, detail, response.status, seconds_to_wait(response.headers, error)
        )

    def _failed(
        self, fault: Fault, detail: str, status: int | None = None, after_s: float = 0.0
    ) -> Attempt:
        """Return what a fault makes of an attempt: some are an answer for good."""
        facts = FACTS[fault]
        if facts.ends_the_model:
            detail = f"{self.name} at {self.server.name} cannot be used: {detail}"
        reply = Reply(facts.outcome, detail=detail)
        if reply.answered:
            return Answered(reply, facts.may_be_billed)
        if facts.attempts == 1:
            return Refused(reply, fault, status)
        return Again(reply, fault, after_s, status=status)

    def _change(self, error: ErrorBody) -> str:
        """Return which key to change; empty where the error names none."""
        for name in ("max_tokens", "temperature", "seed", *self.settings.extra_body):
            if re.search(rf"(?a)\b{re.escape(name)}\b", error.text):
                key = name
                if name in self.settings.extra_body:
                    key = "extra_body"
                return f"; change {key} in its [models] entry of botchat.toml"
        return ""

    def _adapts(self, fault: Fault, error: ErrorBody, sent: Sent) -> bool:
        """Learn from what is refused; return whether anything is new to try."""
        if fault not in ("overflow", "parameter", "layout"):
            return False
        if self._sent() == sent:  # else another call has learnt since this one was sent
            self._learn(self._quirks_after(fault, error))
        return self._sent() != sent

    def _quirks_after(self, fault: Fault, error: ErrorBody) -> Quirks:
        """Return the quirks with what an error refuses, if there is another form to try."""
        quirks = self.quirks
        if fault == "layout":
            at = self._arrangements.index(self._arrangement())
            for layout, system in self._arrangements[at + 1 : at + 2]:
                return replace(quirks, layout=layout, system=system)
        window = window_of(error)
        if fault == "overflow" and window and self.context_window is None:
            return replace(quirks, context_window=window)
        name = named_parameter(error)
        if fault == "parameter" and name and name not in quirks.parameters:
            new_name = None
            if name == "max_tokens" and "max_completion_tokens" in error.text:
                new_name = "max_completion_tokens"
            return replace(quirks, parameters=quirks.parameters | {name: new_name})
        return quirks

    def _arrangement(self) -> tuple[Layout, SystemRole]:
        """Return layout and place of the system prompt: as learnt, or the first allowed."""
        layout, system = self._arrangements[0]
        return self.quirks.layout or layout, self.quirks.system or system


# ------------------------------------------------------------------ layouts of messages


ARRANGEMENTS: Sequence[tuple[Layout, SystemRole]] = tuple(
    product(get_args(Layout), get_args(SystemRole))
)
"""Layout and place of the system prompt, in the order in which they are tried."""


def apply_layout(messages: Sequence[Message], layout: Layout, system: SystemRole) -> list[Message]:
    """Rearrange ``messages``, which are in the natural layout, as an endpoint takes them.

    Of layouts, ``natural`` changes nothing, ``merge-leading`` puts a leading assistant message
    before the text of the user after it, and ``placeholder-user`` lets the user say ``...`` first.
    ``system``: ``system-in-user`` puts the system prompt before the first user message.
    """
    result = list(messages)
    first = [message["role"] for message in messages].index("user")
    if layout != "natural" and result[first - 1]["role"] == "assistant":
        first -= 1
        if layout == "placeholder-user":
            result.insert(first, Message(role="user", content="..."))
        else:
            text = result.pop(first)["content"]
            _put_before(f"[You said before:] {text}", result, first)
    if system == "system-in-user" and result[0]["role"] == "system":
        prompt = result.pop(0)["content"]
        _put_before(prompt, result, first - 1)
    return result


def _put_before(text: str, messages: list[Message], at: int) -> None:
    """Put a text before what a user says."""
    messages[at] = Message(role="user", content=f"{text}\n\n{messages[at]['content']}")


# ------------------------------------------------------------------------------- waits

LONGEST_WAIT_S = 1e6
"""Seconds; no endpoint asks for more."""


def seconds_to_wait(headers: Mapping[str, str], error: ErrorBody) -> float:
    """Return the least seconds before the next attempt, as headers, fields or words ask for."""
    header = headers.get("retry-after", "")
    # By the server's clock, where it tells the time.
    now = _timestamp(headers.get("date", ""), time.time())
    waits = [
        error.wait_s,
        seconds_in(f"retry after {header}"),
        seconds_in(f"retry after {headers.get('retry-after-ms')}ms"),
        _timestamp(header, now) - now,
    ]
    return min(max(waits), LONGEST_WAIT_S)


def _timestamp(date: str, default: float) -> float:
    """Return the seconds of a date of HTTP or ISO, in Greenwich's time unless it says otherwise."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError):
            moment = parse(date)
            return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    return default

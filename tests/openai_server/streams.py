"""Answers as streams of server-sent events, in OpenAI's layout.

with Server(streamed(converse)) as server:   # a stream to whom asks for one
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from tests.openai_server.answers import Answer, Call, Script, completed

HEADERS = (("content-type", "text/event-stream; charset=utf-8"),)
CREATED = 1_700_000_000
PIECE = 7
"""Characters of the content in a chunk."""


def sse(events: Iterable[Any], *, end: str = "\n", done: bool = True) -> bytes:
    """``events`` as the bytes of a stream, with a comment before each as gateways send them."""
    lines = []
    for event in events:
        data = event if isinstance(event, str) else msgspec.json.encode(event).decode()
        lines += [": keep-alive", "", f"data: {data}", ""]
    lines += ["data: [DONE]", ""] if done else []
    return "".join(line + end for line in lines).encode()


def stream(events: Iterable[Any], **how: Any) -> Answer:
    """A stream as an answer, in an unknown length."""
    return Answer(200, sse(events, **how), HEADERS, chunked=True)


def streamed(script: Script | Answer) -> Script:
    """``script``, whose chat completions are streams where these are asked for."""

    def answer(call: Call) -> Answer:
        given = script(call) if callable(script) else script
        body = given.body
        if not call.body.get("stream") or not isinstance(body, Mapping) or "choices" not in body:
            return given
        with_usage = (call.body.get("stream_options") or {}).get("include_usage") is True
        events = chunks(completed(body, call, CREATED), usage=with_usage)
        return replace(given, body=sse(events), headers=HEADERS, chunked=True)

    return answer


def chunks(body: Mapping[str, Any], *, usage: bool = True) -> Iterator[dict[str, Any]]:
    """The chunks of a chat completion, in OpenAI's order: role, text, end, usage."""
    head = {**body, "object": "chat.completion.chunk"}
    head.pop("usage", None)
    for choice in body["choices"] or ():
        message = choice.get("message") or {}
        n, end = choice.get("index", 0), choice.get("finish_reason")

        def chunk(delta: Any, finish: str | None = None, n: int = n, **more: Any) -> dict[str, Any]:
            one = {"index": n, "delta": delta, "finish_reason": finish, **more}
            return {**head, "usage": None, "choices": [one]}

        yield chunk({"role": "assistant", "content": ""})
        for name in ("reasoning_content", "refusal"):
            for piece in pieces(message.get(name)):
                yield chunk({name: piece})
        tokens = (choice.get("logprobs") or {}).get("content") or []
        for token in tokens:
            yield chunk({"content": token["token"]}, logprobs={"content": [token]})
        for piece in pieces(None if tokens else message.get("content")):
            yield chunk({"content": piece})
        yield chunk({}, end)
    if usage and "usage" in body:
        yield {**head, "choices": [], "usage": body["usage"]}


def pieces(text: Any) -> list[str]:
    """``text`` in the portions of a stream."""
    text = text if isinstance(text, str) else ""
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]

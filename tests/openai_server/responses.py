"""The Responses API in front of a script, held to the schema that OpenAI publishes.

    with ResponsesServer(converse) as server:    # POST /v1/responses, streams included

Requests may hold only fields of the published schema, and what is answered is checked by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from pydantic import TypeAdapter

from tests.openai_server import faults
from tests.openai_server.answers import Answer, Call, completed
from tests.openai_server.server import Server
from tests.openai_server.streams import CREATED, HEADERS, pieces, sse

KNOWN = {*ResponseCreateParamsBase.__annotations__, "stream"}
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
FINISHED = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ResponsesServer(Server):
    """An endpoint that has nothing but ``/responses``; its script sees chat completions."""

    def answer(self, call: Call) -> Answer:
        """Translate the request for the script and its completion for the client."""
        body = call.body
        if self.is_stranger(call):
            return faults.unauthorized()
        if call.method != "POST" or call.path.partition("?")[0] != "/v1/responses":
            return faults.not_found()
        if unknown := set(body) - KNOWN:
            name = min(unknown)
            return faults.error(400, f"Unknown parameter: '{name}'.", param=name)
        if body.get("max_output_tokens", 16) < 16:
            message = "Invalid 'max_output_tokens': integer below minimum value."
            return faults.error(400, message, param="max_output_tokens")
        messages = [{"role": one["role"], "content": one["content"]} for one in body["input"]]
        if "instructions" in body:
            messages.insert(0, {"role": "system", "content": body["instructions"]})
        form = (body.get("text") or {}).get("format")
        asked = {
            "model": body["model"],
            "messages": messages,
            "response_format": form,
            "logprobs": "message.output_text.logprobs" in body.get("include", ()),
        }
        asked_as_chat = replace(call, body=asked)
        given = self._script(asked_as_chat)
        if not isinstance(given.body, Mapping) or "choices" not in given.body:
            return given
        whole = response(completed(given.body, asked_as_chat, CREATED))
        if body.get("stream"):
            return replace(given, body=sse(events(whole), done=False), headers=HEADERS)
        return replace(given, body=whole)


def response(chat: Mapping[str, Any]) -> dict[str, Any]:
    """A chat completion as a response object."""
    (choice,) = chat["choices"]
    message, end = choice["message"], choice["finish_reason"]
    logprobs = (choice.get("logprobs") or {}).get("content") or []
    parts: list[dict[str, Any]] = []
    if message.get("content") is not None:
        text = {"type": "output_text", "text": message["content"], "annotations": []}
        parts.append({**text, "logprobs": logprobs})
    if message.get("refusal"):
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    status = "incomplete" if end in FINISHED else "completed"
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": status}
    output = [{"type": "reasoning", "id": "rs_1", "summary": []}]
    output += [{**said, "content": parts}] if parts else []
    used = chat.get("usage") or {}
    usage = {
        "input_tokens": used.get("prompt_tokens", 0),
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": used.get("completion_tokens", 0),
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": used.get("total_tokens", 0),
    }
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": CREATED,
        "model": chat["model"],
        "status": status,
        "error": None,
        "incomplete_details": {"reason": FINISHED[end]} if end in FINISHED else None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "service_tier": "default",
        "usage": usage if chat.get("usage") else None,
    }
    Response.model_validate(whole)
    return whole


def events(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a response's stream."""
    started = {**whole, "status": "in_progress", "output": [], "usage": None}
    listed: list[dict[str, Any]] = [
        {"type": "response.created", "response": started},
        {"type": "response.in_progress", "response": started},
    ]
    for n, item in enumerate(whole["output"]):
        listed.append({"type": "response.output_item.added", "output_index": n, "item": item})
        for k, part in enumerate(item.get("content", ())):
            where = {"item_id": item["id"], "output_index": n, "content_index": k}
            for piece in pieces(part.get("text")):
                told = {"type": "response.output_text.delta", "delta": piece, "logprobs": []}
                listed.append({**told, **where})
        listed.append({"type": "response.output_item.done", "output_index": n, "item": item})
    listed.append({"type": f"response.{whole['status']}", "response": whole})
    for number, event in enumerate(listed):
        event["sequence_number"] = number
        EVENT.validate_python(event)
        yield event

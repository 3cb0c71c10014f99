"""One constructor for each way in which an endpoint fails; error texts as real servers word them.

`TRANSIENT` are those that a second try may cure; every other fault of a whole answer is final.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from email.utils import formatdate
from functools import cache
from typing import Any

import msgspec

from tests.openai_server.answers import Answer, Cut, completion, text
from tests.openai_server.gates import Gate

MEGABYTE = 1_000_000

# --- errors with a status ------------------------------------------------------------------------


def error(
    status: int,
    message: str,
    *,
    kind: str = "invalid_request_error",
    code: str | int | None = None,
    param: str | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> Answer:
    """An error object in OpenAI's layout."""
    body = {"error": {"message": message, "type": kind, "param": param, "code": code}}
    return Answer(status, body, headers)


def vllm_error(message: str, status: int = 400) -> Answer:
    """An error object in vLLM's first layout: flat, the status as its code."""
    body = {
        "object": "error",
        "message": message,
        "type": "BadRequestError",
        "param": None,
        "code": status,
    }
    return Answer(status, body)


def rate_limited(
    retry_after: str | None = None,
    *,
    message: str = "Rate limit reached for requests per min (RPM). Please try again later.",
) -> Answer:
    """429; ``retry_after`` is sent as it is: ``"2"``, ``"0.5"``, a date, nonsense."""
    headers = []
    if retry_after is not None:
        headers.append(("retry-after", retry_after))
    return error(429, message, kind="requests", code="rate_limit_exceeded", headers=tuple(headers))


def http_date(seconds_from_now: float) -> str:
    """A Retry-After date; negative seconds are past."""
    return formatdate(time.time() + seconds_from_now, usegmt=True)


def insufficient_quota() -> Answer:
    """429 that no waiting cures."""
    message = (
        "You exceeded your current quota, please check your plan and billing details. For more "
        "information on this error, read the docs."
    )
    return error(429, message, kind="insufficient_quota", code="insufficient_quota")


def context_overflow(
    wording: str = "openai", *, window: int = 4096, n_prompt: int = 5000, n_reply: int = 0
) -> Answer:
    """400: the prompt does not fit; ``wording`` is ``openai``, ``vllm`` or ``llama.cpp``."""
    if wording == "llama.cpp":
        fields = {
            "code": 400,
            "message": "the request exceeds the available context size, try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": n_prompt,
            "n_ctx": window,
        }
        return Answer(400, {"error": fields})
    limit = f"This model's maximum context length is {window} tokens. However, "
    if wording == "vllm" or n_reply:
        limit += f"you requested {n_prompt + n_reply} tokens ({n_prompt} in the messages, "
        limit += f"{n_reply} in the completion). Please reduce the length of the messages or "
        limit += "completion."
    else:
        limit += f"your messages resulted in {n_prompt} tokens. Please reduce the length of the "
        limit += "messages."
    if wording == "vllm":
        return vllm_error(limit)
    if wording == "openai":
        return error(400, limit, code="context_length_exceeded", param="messages")
    raise ValueError(f"no such wording of a context overflow: {wording}")


def roles_refused(message: str, layout: str = "vllm") -> Answer:
    """400 by a chat template; ``message`` from `templates`, ``layout`` ``openai`` or ``vllm``."""
    return vllm_error(message) if layout == "vllm" else error(400, message)


def unsupported_parameter(name: str, instead: str | None = None) -> Answer:
    """400: the model does not know a parameter; ``instead`` is the one it knows."""
    hint = f" Use '{instead}' instead." if instead else ""
    message = f"Unsupported parameter: '{name}' is not supported with this model.{hint}"
    return error(400, message, code="unsupported_parameter", param=name)


def unsupported_value(name: str, value: Any) -> Answer:
    """400: the model takes only the default of a parameter."""
    message = (
        f"Unsupported value: '{name}' does not support {value} with this model. Only the default "
        "(1) value is supported."
    )
    return error(400, message, code="unsupported_value", param=name)


def unauthorized(echo: str = "sk-ab******yz") -> Answer:
    """401; real servers echo part of the key, careless ones all of it (``echo``)."""
    message = f"Incorrect API key provided: {echo}."
    return error(401, message, code="invalid_api_key")


def forbidden() -> Answer:
    """403."""
    return error(403, "Country, region, or territory not supported", kind="request_forbidden")


def model_not_found(model: str = "no-such-model") -> Answer:
    """404 for the model, not for the address."""
    message = f"The model `{model}` does not exist or you do not have access to it."
    return error(404, message, code="model_not_found")


def not_found() -> Answer:
    """404 for the address, as a web framework words it."""
    return Answer(404, {"detail": "Not Found"})


def server_error(status: int = 500, *, retry_after: str | None = None) -> Answer:
    """5xx with an error object."""
    headers = (("retry-after", retry_after),) if retry_after is not None else ()
    message = "The server had an error while processing your request. Sorry about that!"
    return error(status, message, kind="server_error", headers=headers)


def bad_gateway(status: int = 502) -> Answer:
    """5xx with a proxy's HTML page."""
    return html(status, "Bad Gateway")


def content_policy() -> Answer:
    """400: the prompt itself was filtered."""
    message = (
        "The response was filtered due to the prompt triggering the content management policy. "
        "Please modify your prompt and retry."
    )
    return error(400, message, kind="invalid_request_error", code="content_filter", param="prompt")


# --- the connection ------------------------------------------------------------------------------


def reset_before_headers() -> Answer:
    """The connection is reset after the request, with no answer."""
    return replace(text("never seen"), cut=Cut(None))


def reset_in_body(after: int = 20) -> Answer:
    """The connection is reset after ``after`` bytes of the body."""
    return replace(text("a text that is cut"), cut=Cut(after))


def closed_before_headers() -> Answer:
    """The connection is closed after the request, with no answer."""
    return replace(text("never seen"), cut=Cut(None, reset=False))


def closed_in_body(after: int = 20) -> Answer:
    """The connection is closed after ``after`` bytes of the body; Content-Length promised more."""
    return replace(text("a text that is cut"), cut=Cut(after, reset=False))


def hang(gate: Gate | None = None) -> Answer:
    """Nothing is sent until ``gate`` opens, or ever."""
    return text("late, but here").held(gate or Gate())


def slow_drip(pace: Gate | float, content: str = "drop by drop") -> Answer:
    """Headers at once, then the body byte by byte: as ``pace`` is released, or every so many s."""
    return replace(text(content), pace=pace)


def duplicated(content: str, again: str | None = None, *, gate: Gate | None = None) -> Answer:
    """An answer sent twice on one connection: at once, or the second when ``gate`` opens.

    A client that keeps the connection and does not notice takes the second, whose text is
    ``again``, for the answer to its next request.
    """
    second = text(content if again is None else again)
    return replace(text(content), then=second.held(gate) if gate else second)


def redirect(location: str, status: int = 307) -> Answer:
    """A redirect that asks for the same POST elsewhere."""
    return Answer(status, b"", (("location", location),))


def not_http() -> Answer:
    """Bytes that are no HTTP at all."""
    return Answer(body=b"SSH-2.0-OpenSSH_9.6\r\n\r\n", raw=True)


def long_header(n_bytes: int = 100_000) -> Answer:
    """A good answer with a header longer than clients accept."""
    return replace(text("behind a long header"), headers=(("x-trace", "a" * n_bytes),))


# --- bodies with status 200 ----------------------------------------------------------------------


def invalid_json() -> Answer:
    """JSON that breaks off."""
    return Answer(200, b'{"object": "chat.completion", "choices": [{"index": 0, "mess')


def invalid_utf8() -> Answer:
    """JSON whose text is not UTF-8."""
    return _around(text("caf@"), b"@", b"\xe9\xff")


def deeply_nested(depth: int = 100_000) -> Answer:
    """Well-formed JSON that exhausts a recursive parser."""
    return Answer(200, b"[" * depth + b"]" * depth)


def html(status: int = 200, title: str = "Sign in") -> Answer:
    """A web page in the place of JSON."""
    page = f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{title}</body></html>"
    return Answer(status, page.encode(), (("content-type", "text/html; charset=utf-8"),))


def error_object(message: str = "Provider returned error", code: str | int = 502) -> Answer:
    """An error object with status 200, as routers send."""
    return Answer(200, {"error": {"message": message, "code": code}})


def no_choices(choices: Any = None) -> Answer:
    """A completion with ``choices`` null or ``[]``."""
    return completion(choices)


def null_message() -> Answer:
    """A choice whose message is null."""
    return completion([{"index": 0, "message": None, "finish_reason": "stop"}])


def not_an_object(body: bytes = b'["a", "list"]') -> Answer:
    """JSON that is no object."""
    return Answer(200, body)


def null_content() -> Answer:
    """A message whose content is null."""
    return text(None)


def empty() -> Answer:
    """A message that says nothing."""
    return text("")


def parts(*texts: str) -> Answer:
    """A message whose content is a list of text parts."""
    return text([{"type": "text", "text": part} for part in texts])


def truncated(content: str = "This sentence has no") -> Answer:
    """Cut at the token limit."""
    return text(content, finish_reason="length")


def content_filtered(content: str | None = None) -> Answer:
    """Cut by the content filter, with what was said before, if anything."""
    return text(content, finish_reason="content_filter")


def refused(refusal: str = "I can't help with that.") -> Answer:
    """The refusal field in the place of content."""
    return text(None, refusal=refusal)


def thinking_only(reasoning_tokens: int = 64) -> Answer:
    """A reasoning model that used up its tokens before it said anything."""
    return text(
        None,
        finish_reason="length",
        reasoning_content="Let me see",
        reasoning_tokens=reasoning_tokens,
    )


def no_usage(content: str = "fine, thanks") -> Answer:
    """A completion without ``usage``."""
    return text(content, usage=None)


def huge(n_bytes: int = 50 * MEGABYTE, *, chunked: bool = False) -> Answer:
    """A well-formed completion with a body of about ``n_bytes``."""
    return replace(_around(text("@"), b"@", b"a" * n_bytes), chunked=chunked)


def gzip_bomb(n_bytes: int = 200 * MEGABYTE) -> Answer:
    """A well-formed completion of about ``n_bytes``, gzipped to a thousandth of them."""
    body = _around(text("@"), b"@", b"@").body
    assert isinstance(body, bytes)
    start, _, end = body.partition(b"@")
    bomb = _gzipped(start, n_bytes // MEGABYTE, end)
    return Answer(200, bomb, (("content-encoding", "gzip"),))


@cache
def _gzipped(start: bytes, n_megabytes: int, end: bytes) -> bytes:
    """Gzip of ``start``, so many megabytes of ``a`` and ``end``; the same block over and over."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = b"a" * MEGABYTE
    crc, packed = zlib.crc32(start), deflate.compress(start) + deflate.flush(zlib.Z_FULL_FLUSH)
    packed_block = deflate.compress(block) + deflate.flush(zlib.Z_FULL_FLUSH)
    for _ in range(n_megabytes):
        crc = zlib.crc32(block, crc)
    packed += packed_block * n_megabytes
    packed += deflate.compress(end) + deflate.flush()
    crc, size = zlib.crc32(end, crc), len(start) + n_megabytes * MEGABYTE + len(end)
    header = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    return header + packed + crc.to_bytes(4, "little") + (size % 2**32).to_bytes(4, "little")


def _around(answer: Answer, mark: bytes, filling: bytes) -> Answer:
    """A completion as bytes, with ``mark`` in its text replaced by raw ``filling``."""
    body = answer.body
    assert isinstance(body, Mapping)
    known = {
        "id": "chatcmpl-0",
        "created": 0,
        "model": "any",
        **body,
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    return Answer(200, msgspec.json.encode(known).replace(mark, filling, 1))


TRANSIENT: Mapping[str, Callable[[], Answer]] = {
    "rate_limited": lambda: rate_limited("0.01"),
    "rate_limited_bare": rate_limited,
    "server_error": server_error,
    "bad_gateway": bad_gateway,
    "overloaded": lambda: server_error(503, retry_after="0.01"),
    "reset_before_headers": reset_before_headers,
    "reset_in_body": reset_in_body,
    "closed_before_headers": closed_before_headers,
    "closed_in_body": closed_in_body,
    "invalid_json": invalid_json,
    "invalid_utf8": invalid_utf8,
    "html": html,
    "error_object": error_object,
    "no_choices": no_choices,
}
"""Faults that pass, waits in milliseconds."""

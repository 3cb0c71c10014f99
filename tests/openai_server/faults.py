"""Constructors of answers by which an endpoint fails; error texts as real servers word them."""

import zlib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import msgspec

from tests.openai_server.answers import Answer, Cut, completion, text
from tests.openai_server.gates import Gate

MEGABYTE = 1_000_000


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


def vllm_error(message: str) -> Answer:
    """A 400 in vLLM's first layout: flat, the status as its code."""
    body = {"object": "error", "message": message, "type": "BadRequestError", "param": None}
    return Answer(400, body | {"code": 400})


def rate_limited(retry_after: str | None = None) -> Answer:
    """429; ``retry_after`` is sent as it is: ``"2"``, ``"0.5"``, a date, nonsense."""
    headers = () if retry_after is None else (("retry-after", retry_after),)
    message = "Rate limit reached for requests per min (RPM). Please try again later."
    return error(429, message, kind="requests", code="rate_limit_exceeded", headers=headers)


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
    return error(400, limit, code="context_length_exceeded", param="messages")


def unsupported_parameter(name: str, instead: str | None = None) -> Answer:
    """400: the model does not know a parameter; ``instead`` is the one it knows."""
    hint = f" Use '{instead}' instead." if instead else ""
    message = f"Unsupported parameter: '{name}' is not supported with this model.{hint}"
    return error(400, message, code="unsupported_parameter", param=name)


def unauthorized(echo: str = "sk-ab******yz") -> Answer:
    """401; real servers echo part of the key, careless ones all of it (``echo``)."""
    return error(401, f"Incorrect API key provided: {echo}.", code="invalid_api_key")


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


def server_error(status: int = 500) -> Answer:
    """5xx with an error object."""
    message = "The server had an error while processing your request. Sorry about that!"
    return error(status, message, kind="server_error")


def content_policy() -> Answer:
    """400: the prompt itself was filtered."""
    message = (
        "The response was filtered due to the prompt triggering the content management policy. "
        "Please modify your prompt and retry."
    )
    return error(400, message, code="content_filter", param="prompt")


def cut(after: int | None = None, *, reset: bool = True) -> Answer:
    """A reset or a quiet close after so many bytes of the body; ``None``: before the headers."""
    return replace(text("a text that is cut"), cut=Cut(after, reset=reset))


def hang(gate: Gate) -> Answer:
    """Nothing is sent until ``gate`` opens."""
    return text("late, but here").held(gate)


def redirect(location: str) -> Answer:
    """A redirect that asks for the same POST elsewhere."""
    return Answer(307, b"", (("location", location),))


def invalid_utf8() -> Answer:
    """JSON whose text is not UTF-8."""
    return _around(text("caf@"), b"@", b"\xe9\xff")


def html(status: int = 200, title: str = "Sign in") -> Answer:
    """A web page in the place of JSON."""
    page = f"<!DOCTYPE html><html><head><title>{title}</title></head><body>{title}</body></html>"
    return Answer(status, page.encode(), (("content-type", "text/html; charset=utf-8"),))


def no_choices(choices: object = None) -> Answer:
    """A completion with ``choices`` null or ``[]``."""
    return completion(choices)


def truncated(content: str = "This sentence has no") -> Answer:
    """Cut at the token limit."""
    return text(content, finish_reason="length")


def content_filtered() -> Answer:
    """Cut by the content filter."""
    return text(None, finish_reason="content_filter")


def refused(refusal: str = "I can't help with that.") -> Answer:
    """The refusal field in the place of content."""
    return text(None, refusal=refusal)


def no_usage(content: str = "fine, thanks") -> Answer:
    """A completion without ``usage``."""
    return text(content, usage=None)


def huge(n_bytes: int = 5 * MEGABYTE, *, chunked: bool = False) -> Answer:
    """A well-formed completion with a body of about ``n_bytes``."""
    return replace(_around(text("@"), b"@", b"a" * n_bytes), chunked=chunked)


def gzip_bomb(n_bytes: int = 20 * MEGABYTE) -> Answer:
    """A well-formed completion of about ``n_bytes``, gzipped to a thousandth of them."""
    body = _around(text("@"), b"@", b"@").body
    assert isinstance(body, bytes)
    start, _, end = body.partition(b"@")
    bomb = _gzipped(start, n_bytes // MEGABYTE, end)
    return Answer(200, bomb, (("content-encoding", "gzip"),))


@cache
def _gzipped(start: bytes, n_megabytes: int, end: bytes) -> bytes:
    """Gzip of ``start``, so many megabytes of ``a`` and ``end``; the same block over and over."""
    gzip = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    block = b"a" * MEGABYTE
    packed = gzip.compress(start)
    packed += b"".join(gzip.compress(block) for _ in range(n_megabytes))
    return packed + gzip.compress(end) + gzip.flush()


def _around(answer: Answer, mark: bytes, filling: bytes) -> Answer:
    """A completion as bytes, with ``mark`` in its text replaced by raw ``filling``."""
    assert isinstance(answer.body, Mapping)
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    known = {"id": "chatcmpl-0", "created": 0, "model": "any", **answer.body, "usage": usage}
    return Answer(200, msgspec.json.encode(known).replace(mark, filling, 1))

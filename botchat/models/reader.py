"""The reader of whatever a server says: completions, errors, lists of models, lines of a batch.

It is lenient in what it takes and typed in what it gives, and asks for no frame that it does not
need. Names of fields are data, in ``fields.toml``; a new layout has an example in
``tests/integration/test_frames.py``.
"""

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from math import inf
from typing import NamedTuple

from botchat.frames import (
    JsonObject,
    Leaf,
    Tables,
    first_choice,
    json_get,
    leaves,
    message_text,
    of_kind,
    package_toml,
    read_json,
)
from botchat.interfaces import MOST_TOKENS, Reply, Usage, visible
from botchat.records import Outcome
from botchat.thoughts import strip_thoughts

_FIELDS = package_toml("models/fields.toml", Tables)
_ENDS: dict[str, Outcome] = _FIELDS["finish"]
_PAGE = r"(?i)<(?:!doctype|html|head|body|\?xml|h1|center|pre|title)\b"
_TITLE = r"(?is)(?<= a web page: ).*?<(title|h1|message|pre)\b[^>]*>(.*?)</\1>.*"
_UNITS = _FIELDS["units"]
_UNIT = "|".join(_UNITS)
_NUMBER = r"(\d+(?:\.\d+)?|\bone|\ba)"
_PART = rf"(?i){_NUMBER}\s*({_UNIT})?(?![a-z])"
_SPAN = rf"((?:{_NUMBER}\s*(?:{_UNIT})(?![a-z])\s*(?:and\s*)?)+)"
# Characters of a reason
_LONGEST = 400
SMALLEST_WINDOW = 256
"""Tokens; a smaller window that an endpoint names is a mistake of it."""


def _named(parsed: object, field: str) -> list[Leaf]:
    """Return the leaves whose names stand in a list of ``fields.toml``."""
    return [leaf for leaf in leaves(parsed) if leaf.key in _FIELDS[field]]


def _texts(parsed: object, field: str) -> list[str]:
    """Return the values with names of ``fields.toml`` as texts."""
    return [str(leaf.value) for leaf in _named(parsed, field)]


def _counts(parsed: object, field: str) -> list[int]:
    """Return the numbers of tokens above 0 with names of ``fields.toml``."""
    counts = [_count(leaf.value) for leaf in _named(parsed, field)]
    return [count for count in counts if count]


def _count(number: object) -> int | None:
    """Return a number of tokens, also one in a text; None if it cannot be one."""
    amount = _amount(number)
    if amount.is_integer() and amount <= MOST_TOKENS:
        return int(amount)
    return None


# --------------------------------------------------------------------------------- completions


class Completion(NamedTuple):
    """A chat completion; any field may have been missing, null or of another type."""

    reply: Reply
    is_cut: bool
    """Whether it ended at the limit of tokens."""
    has_reasoning: bool
    """Whether it holds reasoning, in a field, a part, a count, or between marks."""
    is_counted_empty: bool
    """Whether the endpoint says that it generated no token."""
    is_end_known: bool


def read_completion(parsed: JsonObject) -> Completion:
    """Read a chat completion."""
    choice = first_choice(parsed)
    message = choice.get("message")
    usage = parsed.get("usage")
    text = message_text(message)
    plain = (text or "").strip()
    spoken = strip_thoughts(plain)
    finish = None
    if "finish_reason" in choice:
        finish = str(choice["finish_reason"] or "null")
    end = _end(finish or "stop")
    ends = (end, _end(str(choice.get("native_finish_reason"))))
    filters = str([choice.get("content_filter_results"), parsed.get("prompt_filter_results")])
    is_blocked = "'filtered': True" in filters
    refusal = of_kind(str, message, "refusal").strip()
    signs = {
        "filtered": is_blocked or json_get(parsed, "promptFeedback.blockReason"),
        "refused": refusal,
        "no_message": text is None,
        "empty": not visible(spoken),
        "odd_end": end is None,
        "ok": True,
    }
    # The first one counts.
    kind = next(kind for kind in _FIELDS["kinds"] if kind in ends or signs.get(kind))
    outcome, detail = _FIELDS["kinds"][kind]
    reply = Reply(
        outcome,
        refusal or text or "",
        finish,
        token_usage(usage),
        cost_usd=reported_cost(usage),
        detail=detail.format(finish=finish, names=", ".join(sorted(parsed))[:120]),
        model=of_kind(str, parsed, "model"),
    )
    return Completion(
        reply,
        "truncated" in ends,
        has_reasoning=spoken != plain or _has_reasoning(message, usage),
        is_counted_empty=json_get(usage, "completion_tokens") == 0,
        is_end_known=end is not None,
    )


def _end(reason: str) -> Outcome | None:
    """Return the outcome of a finish reason; None if it is unknown."""
    return _ENDS.get(re.sub(r".*\.|:.*|[^a-z]", "", reason.lower()))


def _has_reasoning(message: object, usage: object) -> bool:
    """Return whether a message has reasoning beside its text, or was billed some."""
    signs = [json_get(message, field) for field in _FIELDS["reasoning"]]
    types = [json_get(part, "type") for part in of_kind(list, message, "content")]
    signs += [re.search("think|reason", str(types)), _counts(usage, "reasoning_tokens")]
    return any(signs)


def token_usage(usage: object) -> Usage:
    """Read the tokens that the endpoint counted; an impossible count is unknown."""
    n_prompt, n_reply, total, cached, hit = [
        _count(json_get(usage, path)) for path in _FIELDS["usage"]
    ]
    if cached is None:
        cached = hit
    if not n_prompt and total is not None:  # a server that counts the sum alone
        n_prompt = max(0, total - (n_reply or 0))
    if not n_prompt:  # no prompt is empty: a server that counts zero tokens counts none
        return Usage(None, n_reply or None, cached)
    if total is not None:
        # Some providers count reasoning in the total only; they bill it as completion.
        n_reply = max(n_reply or 0, total - n_prompt)
    if cached is not None:
        cached = min(cached, n_prompt)
    return Usage(n_prompt, n_reply, cached)


def reported_cost(usage: object) -> float | None:
    """Read the USD in a router's field ``cost``; None if it reports none."""
    usd = min([_amount(json_get(usage, path)) for path in _FIELDS["cost"]])
    if usd >= 1e9 or json_get(usage, "is_byok") is True:  # the router's own fee only
        return None
    return usd


def _amount(value: object) -> float:
    """Return a number from 0, also one in a text; infinite if it is none."""
    with suppress(ValueError):
        number = float(str(value))
        if number >= 0:
            return number
    return inf


def reasoning_tokens(raw: str) -> int:
    """Return the tokens of reasoning that a stored body tells; 0 if it tells none."""
    usage = json_get(read_json(raw), "usage")
    return max(_counts(usage, "reasoning_tokens"), default=0)


# ------------------------------------------------------------------------------------- errors


class ErrorBody(NamedTuple):
    """An error, wherever its parts stand in a body."""

    message: str
    """The deepest reason, in one line; of a web page its title."""
    text: str
    """All reasons, joined by blanks."""
    code: str
    """All codes and types, joined by blanks."""
    parameter: str
    """Parameter that it names."""
    is_json: bool
    is_page: bool
    """Whether it is a web page."""
    window: int
    """Context window in tokens, in a field of its own."""
    prompt_tokens: int
    """Tokens of the prompt, in a field of its own."""
    wait_s: float
    """Seconds to wait, in a field or in words."""


def read_error(content: bytes) -> ErrorBody:
    """Read an error from a body."""
    parsed = read_json(content)
    text = content[:100_000].decode("utf-8-sig", "replace")
    if isinstance(parsed, str):
        text = parsed
    deepest = max(
        _named(parsed, "reasons"),
        key=lambda leaf: (leaf.depth, leaf.key not in _FIELDS["names"]),
        default=Leaf(0, "", text),
    )
    message = _reason(str(deepest.value))
    parameter = ""
    for path in _texts(parsed, "parameters"):  # the last one of a path
        parameter = path.split(".")[0]
    if parameter not in message:
        message = f"{parameter}: {message}"
    reasons_text = "\n".join([message, *_texts(parsed, "reasons")[1:]])
    waits = [seconds_in(reasons_text)]
    for leaf in _named(parsed, "waits"):
        unit = _FIELDS["waits"][leaf.key]
        waits.append(seconds_in(f"retry after {leaf.value}{unit}"))
    return ErrorBody(
        message,
        reasons_text,
        " ".join(_texts(parsed, "codes")),
        parameter,
        is_json=isinstance(parsed, dict | list),
        is_page=re.search(_PAGE, text) is not None,
        window=max(_counts(parsed, "windows"), default=0),
        prompt_tokens=max(_counts(parsed, "prompt_tokens"), default=0),
        wait_s=max(waits),
    )


def has_error(parsed: JsonObject) -> bool:
    """Return whether a body of status 200 is an error: it says so, or has nothing of an answer."""
    if parsed.get("error") or first_choice(parsed).get("error"):
        return True
    if parsed.get("choices"):
        return False
    is_other = "choices" not in parsed and "promptFeedback" not in parsed
    return is_other or _texts(parsed, "reasons") != []


def _reason(text: str) -> str:
    """Return a text in one line; of a web page, that it is one, and its title."""
    if re.search(_PAGE, text):
        text = re.sub(_PAGE, r" a web page: \g<0>", text, count=1)
        text = re.sub(_TITLE, r"\2", text)
        text = unescape(re.sub(r"(?s)<!--.*?-->|<[^>]*>|\ufeff", " ", text))
    return " ".join(text.split())[:_LONGEST]


def seconds_in(text: str) -> float:
    """Return the seconds that a text asks to wait, as in ``retry in 1m30.5s``; 0 if none."""
    seconds = 0.0
    for pattern in _FIELDS["wait_words"]:
        match = re.search(pattern.replace("SPAN", _SPAN), text)
        if match is not None:
            for number, unit in re.findall(_PART, match[1]):
                value = _UNITS.get(unit.lower(), 1.0)
                if not number.isalpha():  # "one minute"
                    value *= float(number)
                seconds += value
            break
    if seconds > _EPOCH_MS:
        seconds /= 1000
    if seconds > _EPOCH:
        seconds -= time.time()
    return seconds


# Seconds; more are a point in time, in seconds or in milliseconds since 1970
_EPOCH = 1e9
_EPOCH_MS = 1e11


# ------------------------------------------------------------------- lists of models, batches


class ServedModel(NamedTuple):
    """A row of a server's list of models; prices in USD per million tokens."""

    id: str
    window: int | None
    price_input: float | None
    price_output: float | None


def read_models(content: bytes) -> list[ServedModel]:
    """Read a list of models, in a field or bare; rows that name none are left."""
    parsed = read_json(content)
    listed: object = of_kind(list, parsed)
    for path in _FIELDS["lists"]:
        listed = json_get(parsed, path) or listed
    rows = of_kind(list, listed)
    for name, facts in of_kind(dict, listed).items():
        if isinstance(facts, dict):
            rows.append({"id": name} | facts)
    models = []
    for row in rows:
        if isinstance(row, str):
            row = {"id": row}
        label = of_kind(str, row, "name")
        name = of_kind(str, row, "id") or label
        if "/" in label and "/" not in name:
            name = label  # the id is a number of the provider's own
        # A provider behind a router may have less than the model.
        windows = [count for count in _counts(row, "windows") if count >= SMALLEST_WINDOW]
        if name.strip():
            models.append(
                ServedModel(
                    name,
                    min(windows, default=None),
                    _price(row, "price_input"),
                    _price(row, "price_output"),
                )
            )
    return models


def _price(row: object, field: str) -> float | None:
    """Return USD per million tokens.

    A text is per token (OpenRouter), a number above a thousandth is per million (Together).
    """
    for path in _FIELDS[field]:
        listed = json_get(row, path)
        price = _amount(listed)
        if isinstance(listed, str) or price < 1e-3:
            price *= 1e6
        if price < 1e6:
            return round(price, 6)
    return None


def read_batch_lines(content: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Yield ``custom_id``, status and body of the lines of a batch's output or error file.

    What has no status counts as 200, and what has no body as the line's own error.
    """
    for line in content.splitlines():
        parsed = read_json(line)
        body = json_get(parsed, "response.body")
        if not body:
            body = {"error": json_get(parsed, "error") or json_get(parsed, "response")}
        if not isinstance(body, str):
            body = json.dumps(body)
        status = _count(json_get(parsed, "response.status_code")) or 200
        yield of_kind(str, parsed, "custom_id"), status, body.encode("utf-8", "surrogatepass")


class BatchState(NamedTuple):
    """A batch as the endpoint describes it; empty where it says nothing."""

    id: str
    status: str
    """State in small letters."""
    name: str
    """The file's name in its metadata; empty where the server keeps none."""
    files: list[str]
    """Ids of its output and error files."""
    fault: str
    """Reasons why it was refused."""


def read_batches(content: bytes) -> list[BatchState]:
    """Read one batch, or a page of the list of batches."""
    parsed = read_json(content)
    batches = []
    for row in of_kind(list, parsed, "data") or [parsed]:
        reasons = _texts(json_get(row, "errors"), "reasons")
        batches.append(
            BatchState(
                of_kind(str, row, "id"),
                of_kind(str, row, "status").lower(),
                of_kind(str, row, "metadata.botchat"),
                _texts(row, "batch_files"),
                _reason("; ".join(reasons)),
            )
        )
    return batches

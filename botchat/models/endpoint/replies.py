"""What is in the body of a reply: ends, counts, errors, pauses.

Any field may be missing, ``null`` or of another type.
"""

from __future__ import annotations

import contextlib
import email.utils
import math
import time
import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, NamedTuple

import msgspec

from botchat.interfaces import Reply, Usage, token_count, visible
from botchat.records import Outcome

LONGEST_PAUSE_S = 600.0
"""Longest Retry-After that is kept; a call gives up long before, and the next run asks again."""


class Refusal(NamedTuple):
    """What the body of an error says."""

    code: str
    """Codes and types, with a blank between them; of digits only: an HTTP status."""
    message: str
    """In one line."""
    parameter: str
    """Field of the request that it is about; empty: it names none."""


WORDINGS: Mapping[str, Any] = tomllib.loads(
    resources.files(__package__).joinpath("refusals.toml").read_text("utf-8")
)
"""How endpoints end a reply and word what they refuse."""

_ENDS: dict[str, Outcome] = {
    reason: outcome for outcome, reasons in WORDINGS["finish"].items() for reason in reasons
}


def ended(
    text: str | None,
    finish: str | None,
    *,
    also: Any = None,
    refusal: str = "",
    usage: Usage,
    billed_usd: float | None = None,
    raw: str,
) -> Reply:
    """A reply by how it ended.

    ``text``: ``None``, there is none at all; ``finish``: why the model stopped, ``None``: it is not
    said; ``also``: the same in the words of a router's provider.
    """
    reasons = [reason.lower() for reason in (finish, also) if isinstance(reason, str)]
    ends = [_ENDS.get(reason) for reason in reasons]
    outcome: Outcome = "ok"
    detail = ""
    if "filtered" in ends:
        outcome, detail = "filtered", f"finish_reason {reasons[ends.index('filtered')]}"
    elif refusal.strip() or "refused" in ends:
        outcome, detail, text = "refused", "refusal", refusal or text
    elif text is None:
        outcome, detail = "malformed", "the reply holds no choice with a message"
    elif finish is not None and ends[0] is None:
        # Half a sentence of a server that broke down is no answer.
        outcome, detail = "malformed", f"finish_reason {finish}"
    elif not visible(text):
        outcome, detail = "empty", f"no text (finish_reason {finish})"
    elif "truncated" in ends:
        outcome, detail = "truncated", f"finish_reason {finish}"
    return Reply(
        outcome,
        text or "",
        finish,
        usage=usage,
        billed_usd=billed_usd,
        detail=detail,
        raw=raw,
        status=200,
        retry_after_s=0.0 if outcome == "malformed" else None,
    )


def joined(value: Any) -> str | None:
    """Text of a message's content: a string, or a list of parts, some of them text.

    ``None``: where text must be there is something else; an answer that says nothing is not that.
    """
    if isinstance(value, list):
        parts = [part for part in value if isinstance(part, dict)]
        texts = [part.get("text", "") for part in parts]
        whole = len(parts) == len(value) and all(isinstance(text, str) for text in texts)
        return "".join(texts) if whole else None
    return value if isinstance(value, str) else "" if value is None else None


def at(value: Any, *path: str) -> Any:
    """What is at this place of parsed JSON; ``None``: nothing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def count(value: Any, *path: str) -> int | None:
    """A number of tokens; ``None``: there is none, or one that cannot be."""
    found = at(value, *path)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    return token_count(found)


def used_tokens(used: Any) -> Usage:
    """Tokens that the endpoint counts."""
    n_prompt = count(used, "prompt_tokens")
    n_reply, total = count(used, "completion_tokens"), count(used, "total_tokens")
    if n_prompt is not None and total is not None:
        # Some providers count thoughts in the total only; they bill them as completion.
        n_reply = max(n_reply or 0, total - n_prompt)
    cached = count(used, "prompt_tokens_details", "cached_tokens")
    hits = count(used, "prompt_cache_hit_tokens")
    return Usage(n_prompt, n_reply, hits if cached is None else cached)


def money(value: Any, *path: str) -> float | None:
    """USD in the field ``cost`` at this place, a number or an object with a total."""
    cost = at(value, *path, "cost")
    if isinstance(cost, dict):
        cost = cost.get("total_cost")
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    if at(value, *path, "is_byok") is True:  # then this is the router's own fee only
        upstream = at(value, *path, "cost_details", "upstream_inference_cost")
        cost += upstream if isinstance(upstream, int | float) and upstream > 0 else 0
    with contextlib.suppress(OverflowError):  # an integer of hundreds of digits
        return float(cost) if 0 <= cost < math.inf else None
    return None


def error_parts(parsed: Any, raw: str) -> Refusal:
    """Code, one-line message and parameter of an error body of any shape."""
    if isinstance(parsed, list) and parsed:  # Google wraps it
        parsed = parsed[0]
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else None
    if not isinstance(error, dict):
        error = {"message": error if isinstance(error, str) else raw[:200]}
    message = error.get("message") or error.get("detail") or ""
    if not isinstance(message, str):
        message = msgspec.json.encode(message).decode()
    codes = [error.get(name) for name in ("code", "type", "status", "error_type")]
    told = [str(code) for code in codes if isinstance(code, str | int) and code not in ("", None)]
    parameter = error.get("param")
    return Refusal(
        told[0] if told and told[0].isdigit() and len(told) == 1 else " ".join(told),
        " ".join(message.split()),
        parameter if isinstance(parameter, str) else "",
    )


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Seconds in ``retry-after-ms`` or ``retry-after`` (number or date); 0 if there are none."""
    ways: tuple[tuple[str, Callable[[str], float]], ...] = (
        ("retry-after-ms", lambda value: float(value) / 1000),
        ("retry-after", float),
        ("retry-after", lambda v: email.utils.parsedate_to_datetime(v).timestamp() - time.time()),
    )
    for name, read in ways:
        with contextlib.suppress(KeyError, ValueError, TypeError, OverflowError):
            seconds = read(headers[name].strip())
            # NaN compares false, so it ends as 0 too.
            return min(seconds, LONGEST_PAUSE_S) if seconds > 0 else 0.0
    return 0.0

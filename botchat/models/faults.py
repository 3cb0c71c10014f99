"""Faults of an endpoint: what an error means, apart from what we do about it.

| fault | what the endpoint does | what becomes of the call |
| --- | --- | --- |
| ``redirect`` | 3xx | ends the model: no redirect is followed |
| ``account`` | 401, 402, 403; a quota used up, an account blocked | ends the model |
| ``busy`` | 429, or words about a rate | waited for up to ten minutes |
| ``loading`` | 423, 424, 425, 503, 529 | waited for up to ten minutes |
| ``server`` | any other 5xx; 408, 409, 499 | made three times |
| ``absent`` | 404; the model is unknown | ends the model |
| ``filtered`` | a 4xx of a content filter: its code, or words about the prompt | an answer |
| ``overflow`` | a 4xx about a prompt that is too long | an answer |
| ``parameter`` | a 4xx that refuses a parameter that can be left out | adapted, made again |
| ``layout`` | a chat template that refuses roles or their order | adapted, made again |
| ``request`` | any other 4xx | not made again in this run |
| ``unreadable`` | a body that is no completion, an unknown end | made twice |
| ``timeout`` | no reply within ``timeout_s`` | made twice |
| ``lost`` | the connection is lost behind the request | made three times |
| ``unreachable`` | nothing was sent: refused, no such host, proxy down | made six times |
| ``setting`` | nothing can be sent: TLS, certificate, proxy, key, worker | ends the model |

What may have been billed is made least often. An outcome that is kept for good needs a code, or the
words of an error in JSON whose subject is the prompt: never a web page, a 5xx, a rate limit or the
account. A new wording is a line of ``refusals.toml``, with an example in
``tests/integration/test_finality.py``.
"""

from __future__ import annotations

import re
import tomllib
from enum import Enum
from importlib import resources
from typing import Any

from botchat.models.reader import ErrorBody

WORDINGS: dict[str, Any] = tomllib.loads(
    resources.files(__package__).joinpath("refusals.toml").read_text("utf-8")
)
_PATTERNS = {
    name: re.compile(pattern, re.IGNORECASE) for name, pattern in WORDINGS["errors"].items()
}
OPTIONAL = ("max_tokens", "temperature", "seed", "stream")
"""Fields of a request that an endpoint may refuse."""
_VALUED = ("temperature", "seed")
"""Fields that are left out also where only their value is refused: there is no better one."""


class Fault(Enum):
    """Rows of the module's table."""

    REDIRECT = "redirect"
    ACCOUNT = "account"
    BUSY = "busy"
    LOADING = "loading"
    SERVER = "server"
    ABSENT = "absent"
    FILTERED = "filtered"
    OVERFLOW = "overflow"
    PARAMETER = "parameter"
    LAYOUT = "layout"
    REQUEST = "request"
    UNREADABLE = "unreadable"
    TIMEOUT = "timeout"
    LOST = "lost"
    UNREACHABLE = "unreachable"
    SETTING = "setting"

    @property
    def ends_the_model(self) -> bool:
        """Whether no other request to the model would be answered."""
        return self in (Fault.REDIRECT, Fault.ACCOUNT, Fault.ABSENT, Fault.SETTING)

    @property
    def may_be_billed(self) -> bool:
        """Whether the endpoint may have charged for an attempt that ends so."""
        return self in (
            Fault.SERVER, Fault.FILTERED, Fault.UNREADABLE, Fault.TIMEOUT, Fault.LOST,
        )  # fmt: skip

    @property
    def is_patient(self) -> bool:
        """Whether it is waited for as long as patience lasts: nothing was paid."""
        return self in (Fault.BUSY, Fault.LOADING)

    @property
    def attempts(self) -> int:
        """Attempts of a call that ends so, where it is not waited for."""
        if self is Fault.UNREACHABLE:
            return 6
        if self in (Fault.SERVER, Fault.LOST):
            return 3
        return 2


def classify(status: int, error: ErrorBody) -> Fault:
    """Return what an error means; the first row that fits wins.

    A 200 is an error, too, where its body is one: then the code in it counts as the status.
    """
    if status < 300:
        status = _status_in_disguise(error)
    if 300 <= status < 400:
        return Fault.REDIRECT
    if status >= 500:
        return _fault_of_server(status, error)
    if status in (423, 424, 425):
        return Fault.LOADING
    if status == 429 or _says("rate", error):
        return _fault_of_rate(error)
    if status in (408, 409, 499):
        return Fault.SERVER
    if status in (401, 402):
        return Fault.ACCOUNT
    if status == 404:
        return Fault.ABSENT
    if error.is_json:
        fault = _fault_of_request(status, error)
        if fault is not None:
            return fault
    return Fault.ACCOUNT if status == 403 else Fault.REQUEST


def _fault_of_rate(error: ErrorBody) -> Fault:
    """Return the fault of a 429, or of another 4xx that is about a rate."""
    if _code_says("quota", error):
        return Fault.ACCOUNT
    # A quota by the minute names both: it passes.
    if _says("rate", error):
        return Fault.BUSY
    is_spent = _says("quota", error) or _says("quota_word", error)
    return Fault.ACCOUNT if is_spent else Fault.BUSY


def _fault_of_server(status: int, error: ErrorBody) -> Fault:
    """Return the fault of a 5xx: never the prompt's, and fatal by no single word."""
    if status in (503, 529):
        return Fault.LOADING
    if _says("template", error):
        return Fault.LAYOUT
    if _says("rate", error):
        return Fault.BUSY
    if error.is_json and _says("quota", error):
        return Fault.ACCOUNT
    return Fault.SERVER


def _fault_of_request(status: int, error: ErrorBody) -> Fault | None:
    """Return the fault that the words of a 4xx in JSON name; None if they name none."""
    is_account = _says("account", error)
    if _says("filtered", error) and not is_account:
        return Fault.FILTERED
    if status == 403:
        return None
    if is_overflow(error):
        return Fault.OVERFLOW
    if named_parameter(error):
        return Fault.PARAMETER
    if refuses_order(error):
        return Fault.LAYOUT
    if is_account or _says("quota", error) or _says("quota_word", error):
        return Fault.ACCOUNT
    return Fault.ABSENT if _says("model", error) else None


def _status_in_disguise(error: ErrorBody) -> int:
    """Return the status that an error in a body of status 200 stands for."""
    for number in re.findall(r"\b[45]\d\d\b", error.code):
        return int(number)
    if _code_says("filtered", error) or (error.is_json and is_overflow(error)):
        return 400
    return 404 if error.is_json and _says("model", error) else 500


def is_overflow(error: ErrorBody) -> bool:
    """Return whether an error says that the prompt is too long: in words, sizes or fields."""
    if error.prompt_tokens and error.window and error.prompt_tokens > error.window:
        return True
    # One about the longest reply alone is a setting's fault.
    about_reply = _says("reply_limit", error) and not _says("prompt", error)
    if about_reply or _says("rate", error):
        return False
    if _says("overflow", error):
        return True
    sizes = [int(size.replace(",", "")) for size in re.findall(r"\d[\d,]{2,10}", error.message)]
    return len(sizes) > 1 and _says("prompt", error) and "token" in error.text.lower()


def window_of(error: ErrorBody) -> int | None:
    """Return the context window that an overflow names, in tokens; None if it names none."""
    if error.window is not None:
        return error.window
    for size in _PATTERNS["window"].findall(error.text):
        number = int(size.replace(",", ""))
        if number >= SMALLEST_WINDOW:
            return number
    return None


SMALLEST_WINDOW = 256
"""Tokens; a smaller window that an endpoint names is a mistake of it."""


def named_parameter(error: ErrorBody) -> str | None:
    """Return the optional parameter that an error refuses; None if it refuses none."""
    for name in OPTIONAL:
        is_named = error.parameter == name or re.search(rf"\b{name}\b", error.text)
        if is_named and (name in _VALUED or _says("unsupported", error)):
            return name
    return None


def refuses_system(error: ErrorBody) -> bool:
    """Return whether an error refuses the system prompt's role."""
    return _says("no_system", error)


def refuses_order(error: ErrorBody) -> bool:
    """Return whether an error is about the roles of messages, or their order."""
    return _says("no_system", error) or _says("alternate", error)


def is_renamed(error: ErrorBody) -> bool:
    """Return whether an error names the parameter that max_tokens is called today."""
    return "max_completion_tokens" in error.text


def _says(name: str, error: ErrorBody) -> bool:
    return _PATTERNS[name].search(f"{error.code} {error.text}") is not None


def _code_says(name: str, error: ErrorBody) -> bool:
    return _PATTERNS[name].search(error.code) is not None

"""Faults of an endpoint: what an error means, apart from what we do about it.

| fault | what the endpoint does | what becomes of the call |
| --- | --- | --- |
| ``redirect`` | 3xx | ends the model: no redirect is followed |
| ``account`` | 401, 402, 403; a quota used up, an account blocked | ends the model |
| ``busy`` | 420, 429, or words about a rate | waited for up to ten minutes |
| ``loading`` | 423 to 425, 503, 529; words that it is loading | waited for up to ten minutes |
| ``server`` | any other 5xx; 408, 409, 499 | made three times |
| ``absent`` | 404, 405; HTTP to a port of TLS; the model is unknown | ends the model |
| ``filtered`` | a 4xx of a content filter: its code, or words about the prompt | an answer |
| ``overflow`` | a 413, or a 4xx about a prompt that is too long | an answer |
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

import re
from typing import Literal, TypeAlias

import msgspec

from botchat.frames import Tables, TomlTable, package_toml
from botchat.models.reader import SMALLEST_WINDOW, ErrorBody
from botchat.records import Names, Outcome

_WORDINGS = package_toml("models/refusals.toml", Tables)
_PATTERNS = _WORDINGS["errors"]
_OPTIONAL = _WORDINGS["optional"]
_PROMPT_FIELDS = ("", "prompt", "messages", "input", "content", "message")


Fault: TypeAlias = Literal[
    "redirect",
    "account",
    "busy",
    "loading",
    "server",
    "absent",
    "filtered",
    "overflow",
    "parameter",
    "layout",
    "request",
    "unreadable",
    "timeout",
    "lost",
    "unreachable",
    "setting",
]
"""Rows of the module's table; ``refusals.toml`` has what they are."""


class FaultFacts(TomlTable, frozen=True):
    """Treatment of a fault."""

    outcome: Outcome = "transport"
    """Outcome of a call that ends so."""
    attempts: int = 2
    """Attempts of a call that ends so, where it is not waited for; 1: no other would help."""
    may_be_billed: bool = False
    """Whether the endpoint may have charged for an attempt that ends so."""
    ends_the_model: bool = False
    """Whether no other request to the model would be answered."""
    is_patient: bool = False
    """Whether it is waited for as long as patience lasts: nothing was paid."""
    advice: str = ""
    """End of a message: what to do about it."""


class _Rule(TomlTable, frozen=True):
    """One way to know a fault, or the status that an error stands for."""

    fault: Fault | int
    status: str
    says: Names = ("anything",)
    code: str = "anything"
    json: bool = False


FACTS = msgspec.convert(_WORDINGS["faults"], dict[Fault, FaultFacts])
"""Fault -> its treatment."""
_RULES = msgspec.convert(_WORDINGS["rules"], list[_Rule])


def classify(status: int, error: ErrorBody) -> Fault:
    """Return what an error means; the first rule that fits wins.

    A 200 is an error, too, where its body is one: then the code in it counts as the status.
    """
    number = re.search(r"\b[45]\d\d\b", error.code)
    if status < 300 and number is not None:
        status = int(number[0])
    for rule in _RULES:
        is_known = (
            re.fullmatch(rule.status, str(status))
            and (error.is_json or not rule.json)
            and re.search(_PATTERNS[rule.code], error.code, re.IGNORECASE)
            and any(says(name, error) for name in rule.says)
        )
        if not is_known:
            continue
        if not isinstance(rule.fault, int):
            return rule.fault
        status = rule.fault
    return "server"


def says(name: str, error: ErrorBody) -> bool:
    """Return whether an error says something: a pattern of ``refusals.toml``, or computed."""
    if name == "refused":
        return named_parameter(error) is not None
    if name == "too_long":
        return _is_overflow(error)
    if name == "filtered_prompt":
        is_prompt = error.parameter in _PROMPT_FIELDS and not says("account", error)
        return is_prompt and says("filtered", error)
    if name == "unsupported_value":
        return re.search(r"\d", error.text) is None and says("unsupported", error)
    return re.search(_PATTERNS[name], f"{error.code}\n{error.text}", re.IGNORECASE) is not None


def _is_overflow(error: ErrorBody) -> bool:
    """Return whether an error says that the prompt is too long: in words, sizes or fields."""
    if error.prompt_tokens > error.window > 0:
        return True
    # One about the longest reply alone is a setting's fault.
    about_reply = says("reply_limit", error) and not says("prompt", error)
    if about_reply or says("rate", error):
        return False
    return says("overflow", error) or (says("sizes", error) and says("prompt", error))


def window_of(error: ErrorBody) -> int | None:
    """Return the context window that an overflow names, in tokens; None if it names none."""
    sizes = [str(error.window)]
    for words in _WORDINGS["windows"]:
        pattern = (
            rf"(?i){words}(?:(?! by )[^\d\n]){{0,40}}?"
            r"(\d[\d,]{2,10})(?![\d,]| ?(?:char|byte|字))"
        )
        sizes += re.findall(pattern, error.text)
    for size in sizes:
        n_tokens = int(size.replace(",", ""))
        if n_tokens >= SMALLEST_WINDOW:
            return n_tokens
    return None


def named_parameter(error: ErrorBody) -> str | None:
    """Return the optional parameter that an error refuses; None if it refuses none."""
    for name in _OPTIONAL:
        is_named = error.parameter == name or re.search(rf"(?ai)\b{name}(?:ing)?\b", error.text)
        if is_named and any(says(sign, error) for sign in _OPTIONAL[name]):
            return str(name)
    return None

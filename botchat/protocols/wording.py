"""How a dialogue is shown to a judge, and how a verdict is found in what the judge says.

Contestants write the judged text and a judge may quote it. So a dialogue cannot break out of its
frame, and only the last well-formed verdict counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

END = "<chat_end>"

_END_LIKE = re.compile(r"<\s*(/?)\s*chat[_\s-]*end\s*>", re.IGNORECASE)
_SPEAKER_LIKE = re.compile(r"^([ \t>*_#-]*)([AB])([*_]*)\s*[:\uff1a]", re.MULTILINE)
_VERDICT_LIKE = re.compile(
    r"\b(choice|index|reason)([\"'*_ \t]*)[:\uff1a]|^([ \t>*_#]*)(conversation)([ \t]*)([12])\b",
    re.IGNORECASE | re.MULTILINE,
)
_BREAKS = re.compile(r"[\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


def conversation(utterances: Sequence[str]) -> str:
    """Utterances as ``A: … <chat_end>`` and ``B: … <chat_end>`` lines (BotChat Appendix B)."""
    return "\n".join(f"{'AB'[i % 2]}: {neutral(text)} {END}" for i, text in enumerate(utterances))


@lru_cache(maxsize=1 << 16)
def neutral(utterance: str) -> str:
    """An utterance that cannot be taken for the frame around it, its words unchanged.

    ``<chat_end>`` loses its brackets, a speaker mark at a line start and a verdict-like mark their
    colon, and control characters that end a line become plain newlines.
    """
    text = _BREAKS.sub("\n", utterance).replace("\0", "")
    text = _END_LIKE.sub(r"(\1chat end)", text)
    text = _SPEAKER_LIKE.sub(r"\1\2\3 -", text)
    return _VERDICT_LIKE.sub(_defused, text)


def _defused(match: re.Match[str]) -> str:
    if match[1]:
        return f"{match[1]}{match[2]} -"
    return f"{match[3]}({match[4]} {match[6]})"


_MARKS = r"[\"'`*_~\s]*"
_CHOICE = re.compile(
    rf"\bchoice{_MARKS}[:\uff1a=]{_MARKS}"
    r"(?P<choice>(?:(?!\b(?:index|reason)\b)[^\n;,.(\uff1b}\"'`*\u2013\u2014])*)",
    re.IGNORECASE,
)
_INDEX = re.compile(
    rf"\bindex{_MARKS}[:\uff1a=]{_MARKS}(?P<index>-?\d+|none|null|n/?a|[^\n;,}}]*)", re.IGNORECASE
)
_FENCE = re.compile(r"^```\w*\s*|\s*```$")
_JSON_VALUE = re.compile(
    # Inside a text of the object the quotation marks would be escaped.
    r"(?<!\\)\"(?P<key>choice|index)\"\s*:\s*\"?(?P<value>[^\",}\n]*)",
    re.IGNORECASE,
)
_REASON = re.compile(rf"\breason{_MARKS}[:\uff1a=]\s*(?P<reason>.*)", re.IGNORECASE | re.DOTALL)


def read_choice(text: str, meaning: Callable[[str], str | None]) -> tuple[str | None, str, str]:
    """The last well-formed ``Choice: …`` of a reply, or the choice of a reply that is JSON.

    Returns (verdict or ``None``, reason, the text from the verdict on). ``meaning``: normalised
    words after ``Choice:`` -> a verdict, ``None`` if they offer none. In JSON only the fields of
    the object count, whatever the reason quotes.
    """
    fields = json_fields(text)
    if "choice" in fields:
        match = _CHOICE.search(f"choice: {fields['choice']}")
        said = " ".join(str(fields.get("reason") or "").split())
        return _verdict(match, meaning), said, f"index: {fields.get('index')}"
    found = [match for match in _CHOICE.finditer(text) if _verdict(match, meaning) is not None]
    rest = text[found[-1].start() :] if found else ""
    return _verdict(found[-1] if found else None, meaning), reason(rest or text), rest


def verdict_words(
    text: str, meaning: Callable[[str], str | None], *, index: bool = False
) -> list[tuple[int, int]]:
    """(start, end) of the words that `read_choice`, and `read_index`, read the verdict from."""
    fields = json_fields(text)
    if "choice" in fields:
        values = {match["key"].lower(): match.span("value") for match in _JSON_VALUE.finditer(text)}
        named = ("choice", "index") if index else ("choice",)
        return [values[name] for name in named if name in values]
    found = [match for match in _CHOICE.finditer(text) if _verdict(match, meaning) is not None]
    if not found:
        return []
    start, end = found[-1].span("choice")
    spans = [(start, end - len(text[start:end]) + len(text[start:end].rstrip()))]
    after = _INDEX.search(text, end) if index else None
    return spans if after is None else [*spans, after.span("index")]


def json_fields(text: str) -> dict[str, Any]:
    """The fields of a reply that is one JSON object, fenced or not, by lower-case name."""
    bare = _FENCE.sub("", text.strip())
    if not bare.startswith("{"):
        return {}
    try:
        fields = json.loads(bare)
    except (ValueError, RecursionError):
        return {}
    return {name.lower(): value for name, value in fields.items()}


def choice_schema(choices: Sequence[str], *, index: bool = False) -> dict[str, Any]:
    """JSON schema of a reply with one of ``choices``, perhaps an index, and a reason."""
    fields: dict[str, Any] = {"choice": {"type": "string", "enum": list(choices)}}
    if index:
        fields["index"] = {"type": ["integer", "null"]}
    fields["reason"] = {"type": "string"}
    return object_schema(fields)


def object_schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    """JSON schema of an object with all of these fields and no other, as strict endpoints want."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


def read_index(text: str, n: int) -> int | None:
    """The first ``Index: i`` of ``text``, if 1 ≤ i ≤ n."""
    match = _INDEX.search(text)
    if not match or not re.fullmatch(r"\d{1,9}", match["index"].strip()):
        return None
    index = int(match["index"])
    return index if 1 <= index <= n else None


def reason(text: str) -> str:
    """What follows ``Reason:``, or the whole text where the mark is missing; white space joined."""
    match = _REASON.search(text)
    said = match["reason"] if match else text
    return " ".join(said.strip().lstrip('"`*').rstrip('"}`*').split())


def _verdict(match: re.Match[str] | None, meaning: Callable[[str], str | None]) -> str | None:
    return None if match is None else meaning(normal(match["choice"]))


def normal(words: str) -> str:
    """Words of a judge without case, marks and surplus white space."""
    return " ".join(re.sub(r"[^\w\s/]+", " ", words).lower().split())

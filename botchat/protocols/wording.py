"""How a dialogue is shown to a judge, and how a verdict is found in what the judge says.

Contestants write the judged text and a judge may quote it. So a dialogue cannot break out of its
frame, and only the last well-formed verdict counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
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


@dataclass(frozen=True, eq=False)
class Wording:
    """The frame around what a judge is shown, and the patterns of its verdict, in one language."""

    end: str = END
    _: KW_ONLY
    choice: re.Pattern[str] = _CHOICE
    index: re.Pattern[str] = _INDEX
    reason: re.Pattern[str] = _REASON
    json_value: re.Pattern[str] = _JSON_VALUE
    fields: Mapping[str, str] = field(default_factory=dict)
    """Name of a JSON field -> choice, index or reason."""
    names: tuple[str, str, str] = ("choice", "index", "reason")
    """How JSON fields of these are asked for."""
    numerals: Mapping[str, int] = field(default_factory=dict)
    plain: Mapping[int, Any] = field(default_factory=dict)
    """Character -> the plain one that it is read as."""
    frame_like: re.Pattern[str] | None = None
    """What a dialogue may not hold; of English `neutral` knows it."""
    spaced: bool = True
    """Whether blanks part words."""

    def conversation(self, utterances: Sequence[str]) -> str:
        """Utterances as ``A: … <chat_end>`` and ``B: … <chat_end>`` lines (BotChat Appendix B)."""
        return "\n".join(
            f"{'AB'[i % 2]}: {self.neutral(text)} {self.end}" for i, text in enumerate(utterances)
        )

    def neutral(self, utterance: str) -> str:
        """As the function `neutral`; each mark of the language's own frame is made harmless too."""
        text = neutral(utterance)
        if self.frame_like is None:
            return text
        parts, at = [], 0
        for match in self.frame_like.finditer(self.folded(text)):
            start, end = match.span()
            said = text[start:end]
            if match["colon"]:
                said = f"{said[:-1]} -"
            elif match["label"]:
                label = text[slice(*match.span("label"))]
                said = f"{said[: -len(label)]}({label})"
            else:
                said = f"({said[1:-1]})"
            parts += [text[at:start], said]
            at = end
        return "".join([*parts, text[at:]])

    def folded(self, text: str) -> str:
        """The text with plain digits and marks, as long as it was."""
        return text.translate(self.plain) if self.plain else text

    def key(self, match: re.Match[str]) -> str:
        """Which field a match of ``json_value`` is of."""
        named = match.groupdict()
        if "key" in named:
            return str(named["key"]).lower()
        return "choice" if named["choice"] else "index"

    def normal(self, words: str) -> str:
        """Words of a judge without case, marks and surplus white space."""
        found = " ".join(re.sub(r"[^\w\s/]+", " ", self.folded(words)).lower().split())
        return found if self.spaced else found.replace(" ", "")


ENGLISH = Wording()


def conversation(utterances: Sequence[str]) -> str:
    """`Wording.conversation` in English."""
    return ENGLISH.conversation(utterances)


def read_choice(
    text: str, meaning: Callable[[str], str | None], w: Wording = ENGLISH
) -> tuple[str | None, str, str]:
    """The last well-formed ``Choice: …`` of a reply, or the choice of a reply that is JSON.

    Returns (verdict or ``None``, reason, the text from the verdict on). ``meaning``: normalised
    words after ``Choice:`` -> a verdict, ``None`` if they offer none. In JSON only the fields of
    the object count, whatever the reason quotes.
    """
    fields = _fields(text, w)
    if "choice" in fields:
        match = w.choice.search(w.folded(f"choice: {fields['choice']}"))
        said = " ".join(str(fields.get("reason") or "").split())
        return _verdict(match, meaning, w), said, f"index: {fields.get('index')}"
    folded = w.folded(text)
    found = [
        match for match in w.choice.finditer(folded) if _verdict(match, meaning, w) is not None
    ]
    start = found[-1].start() if found else len(text)
    rest = text[start:]
    return _verdict(found[-1] if found else None, meaning, w), reason(rest or text, w), rest


def verdict_words(
    text: str, meaning: Callable[[str], str | None], w: Wording = ENGLISH, *, index: bool = False
) -> list[tuple[int, int]]:
    """(start, end) of the words that `read_choice`, and `read_index`, read the verdict from."""
    fields = _fields(text, w)
    if "choice" in fields:
        values = {w.key(match): match.span("value") for match in w.json_value.finditer(text)}
        named = ("choice", "index") if index else ("choice",)
        return [values[name] for name in named if name in values]
    text = w.folded(text)
    found = [match for match in w.choice.finditer(text) if _verdict(match, meaning, w) is not None]
    if not found:
        return []
    start, end = found[-1].span("choice")
    spans = [(start, end - len(text[start:end]) + len(text[start:end].rstrip()))]
    after = w.index.search(text, end) if index else None
    return spans if after is None else [*spans, after.span("index")]


def _fields(text: str, w: Wording) -> dict[str, Any]:
    """`json_fields` under their English names."""
    found = json_fields(text)
    return {w.fields.get(name, name): value for name, value in found.items()}


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


def choice_schema(
    choices: Sequence[str], w: Wording = ENGLISH, *, index: bool = False
) -> dict[str, Any]:
    """JSON schema of a reply with one of ``choices``, perhaps an index, and a reason."""
    of_choice, of_index, of_reason = w.names
    fields: dict[str, Any] = {of_choice: {"type": "string", "enum": list(choices)}}
    if index:
        fields[of_index] = {"type": ["integer", "null"]}
    fields[of_reason] = {"type": "string"}
    return object_schema(fields)


def object_schema(fields: Mapping[str, Any]) -> dict[str, Any]:
    """JSON schema of an object with all of these fields and no other, as strict endpoints want."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(fields),
        "additionalProperties": False,
    }


def read_index(text: str, n: int, w: Wording = ENGLISH) -> int | None:
    """The first ``Index: i`` of ``text``, if 1 ≤ i ≤ n."""
    match = w.index.search(w.folded(text))
    said = match["index"].strip() if match else ""
    index = w.numerals.get(said)
    if index is None and re.fullmatch(r"\d{1,9}", said):
        index = int(said)
    return index if index is not None and 1 <= index <= n else None


def reason(text: str, w: Wording = ENGLISH) -> str:
    """What follows ``Reason:``, or the whole text where the mark is missing; white space joined."""
    match = w.reason.search(w.folded(text))
    said = text[match.start("reason") :] if match else text
    marks = "" if w is ENGLISH else "\u201c\u201d\u300c\u300d\u300e\u300f"
    return " ".join(said.strip().lstrip(f'"`*{marks}').rstrip(f'"}}`*{marks}').split())


def _verdict(
    match: re.Match[str] | None, meaning: Callable[[str], str | None], w: Wording
) -> str | None:
    return None if match is None else meaning(w.normal(match["choice"]))


def normal(words: str) -> str:
    """Words of a judge without case, marks and surplus white space."""
    return ENGLISH.normal(words)

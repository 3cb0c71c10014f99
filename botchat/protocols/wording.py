"""How a dialogue is shown to a judge, and how a verdict is found in what the judge says.

Both sides of the same danger: the judged text is written by the contestants, and a judge may quote
it. So a dialogue cannot break out of its frame, and only the last well-formed verdict counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

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
    colon, and control characters that end a line become plain newlines. (Cached: in an Arena each
    utterance is shown to every opponent, in both orders.)
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
_REASON = re.compile(rf"\breason{_MARKS}[:\uff1a=]\s*(?P<reason>.*)", re.IGNORECASE | re.DOTALL)


def read_choice(text: str, meaning: Callable[[str], str | None]) -> tuple[str | None, str, str]:
    """The last well-formed ``Choice: …`` of a reply.

    Args:
        text: what the judge said; bold, case, JSON fences and ``;`` for newlines are all taken.
        meaning: normalised words after ``Choice:`` -> a verdict, ``None`` if they offer none.

    Returns:
        (verdict or ``None``, reason, the text from the verdict on). A later mention that is no
        verdict, such as a repeated format line, does not undo an earlier one that is.
    """
    verdict, rest = None, ""
    for match in _CHOICE.finditer(text):
        words = " ".join(re.sub(r"[^\w\s/]+", " ", match["choice"]).lower().split())
        found = meaning(words)
        if found is not None:
            verdict, rest = found, text[match.start() :]
    return verdict, reason(rest or text), rest


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

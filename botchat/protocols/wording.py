"""How a dialogue is shown to a judge.

Contestants write the judged text and a judge may quote it, so a dialogue cannot break out of its
frame. How a verdict is found in what the judge says: `botchat.protocols.verdicts`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import cycle

from botchat.languages import PLAIN, Language
from botchat.protocols.own_words import any_of

END = "<chat_end>"

_END_LIKE = re.compile(r"<\s*(/?)\s*chat[_\s-]*end\s*>", re.IGNORECASE)
_SPEAKER_LIKE = re.compile(r"^([ \t>*_#-]*)([AB])([*_]*)\s*[:\uff1a]", re.MULTILINE)
_MARKS = ("choice", "index", "reason")
_VERDICT_LIKE = re.compile(
    rf"\b({'|'.join(_MARKS)})([\"'*_ \t]*)[:\uff1a]|^([ \t>*_#]*)(conversation)([ \t]*)([12])\b",
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


class Wording:
    """The frame around what a judge is shown, in one language; English marks are in every one."""

    def __init__(self, language: Language) -> None:
        labels, self.end = language.labels, language.labels.end
        self._frame_like: re.Pattern[str] | None = None
        if language.english:
            return  # `neutral` knows its marks
        before = r"(?<![^\W\d_])" if language.pack.units == "words" else "(?<![A-Za-z])"
        mark = any_of((*_MARKS, *labels.choice, *labels.index, *labels.reason))
        shown = any_of(word for word in (*labels.first, *labels.second) if len(word) > 1)
        end = re.escape(labels.end.strip("<>[]() "))
        self._frame_like = re.compile(
            rf"<\s*/?\s*(?:{end}|chat[_\s-]*end)\s*>"
            rf"|(?P<colon>{before}(?:{mark})[\"'*_ \t\]]*"
            r"|^[ \t>*_#-]*[AB][*_]*[ \t]*):"
            rf"|^[ \t>*_#]*(?P<label>{shown})(?=[ \t]*(?::|$))",
            re.IGNORECASE | re.MULTILINE,
        )

    def conversation(self, utterances: Sequence[str]) -> str:
        """Utterances as ``A: … <chat_end>`` and ``B: … <chat_end>`` lines (BotChat Appendix B)."""
        return "\n".join(
            f"{speaker}: {self.neutral(text)} {self.end}"
            for speaker, text in zip(cycle("AB"), utterances, strict=False)
        )

    def neutral(self, utterance: str) -> str:
        """As the function `neutral`; each mark of the language's own frame is made harmless too."""
        text = neutral(utterance)
        found = self._frame_like.finditer(text.translate(PLAIN)) if self._frame_like else ()
        for match in reversed([*found]):  # so that the places before it stay
            start, end = match.span()
            said = text[start:end]
            if match["colon"]:
                said = f"{said[:-1]} -"
            elif match["label"]:
                label = text[slice(*match.span("label"))]
                said = f"{said[: -len(label)]}({label})"
            else:
                said = f"({said[1:-1]})"
            text = f"{text[:start]}{said}{text[end:]}"
        return text


wording = lru_cache(maxsize=16)(Wording)

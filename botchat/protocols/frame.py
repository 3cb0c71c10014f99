"""The frame in which a dialogue is shown to a judge.

Contestants write the judged text and a judge may quote it, so a dialogue cannot break out of its
frame. Its reply is read by `botchat.protocols.verdicts`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import cycle

from botchat.languages import PLAIN, Language
from botchat.protocols.replies import any_of

END = "<chat_end>"

_END_LIKE = re.compile(r"<\s*(/?)\s*chat[_\s-]*end\s*>", re.IGNORECASE)
_SPEAKER_LIKE = re.compile(r"^([ \t>*_#-]*)([AB])([*_]*)\s*[:\uff1a]", re.MULTILINE)
_MARKS = ("choice", "index", "reason")
_VERDICT_LIKE = re.compile(
    rf"\b({'|'.join(_MARKS)})([\"'*_ \t]*)[:\uff1a]|^([ \t>*_#]*)(conversation)([ \t]*)([12])\b",
    re.IGNORECASE | re.MULTILINE,
)
_TEMPLATE_LIKE = re.compile(
    r"<\s*\|([^|<>\n]{0,60})\|\s*>|<\uff5c([^\uff5c<>\n]{0,60})\uff5c>"
    r"|<(/?(?:start_of_turn|end_of_turn|s|bos|eos|pad|unk|think|tool_call|tool_response))>"
    r"|\[(/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS))\]|<<(/?SYS)>>",
)
"""Marks of chat templates, which some servers read as control tokens."""
_BREAKS = re.compile(r"[\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


@lru_cache(maxsize=1 << 16)
def neutralise(utterance: str) -> str:
    """Return an utterance that cannot be taken for the frame around it, its words unchanged.

    ``<chat_end>`` and template marks lose their brackets, a speaker mark at a line start and a
    verdict-like mark their colon, and control characters that end a line become plain newlines.
    """
    text = neutralise_template(_BREAKS.sub("\n", utterance).replace("\0", ""))
    text = _END_LIKE.sub(r"(\1chat end)", text)
    text = _SPEAKER_LIKE.sub(r"\1\2\3 -", text)
    return _VERDICT_LIKE.sub(
        lambda m: f"{m[1]}{m[2]} -" if m[1] else f"{m[3]}({m[4]} {m[6]})", text
    )


def template_mark(text: str) -> str:
    """Return the first mark of a chat template in a text, or ''."""
    match = _TEMPLATE_LIKE.search(text)
    return match[0] if match else ""


def neutralise_template(text: str) -> str:
    """Return a text in which no mark of a chat template can be a control token for the judge."""
    return _TEMPLATE_LIKE.sub(lambda match: f"({next(filter(None, match.groups()), '')})", text)


class PromptFrame:
    """The frame around what a judge is shown, in one language; English marks are in every one."""

    def __init__(self, language: Language) -> None:
        labels, self.end = language.labels, language.labels.end
        self._frame_like: re.Pattern[str] | None = None
        if language.english:
            return  # `neutralise` knows its marks
        left = r"(?<![^\W\d_])" if language.pack.units == "words" else "(?<![A-Za-z])"
        mark = any_of((*_MARKS, *labels.choice, *labels.index, *labels.reason))
        label = any_of(word for word in (*labels.first, *labels.second) if len(word) > 1)
        end = re.escape(labels.end.strip("<>[]() "))
        self._frame_like = re.compile(
            rf"<\s*/?\s*(?:{end}|chat[_\s-]*end)\s*>"
            rf"|(?P<colon>{left}(?:{mark})[\"'*_ \t\]]*"
            r"|^[ \t>*_#-]*[AB][*_]*[ \t]*):"
            rf"|^[ \t>*_#]*(?P<label>{label})(?=[ \t]*(?::|$))",
            re.IGNORECASE | re.MULTILINE,
        )

    def conversation(self, utterances: Sequence[str]) -> str:
        """Return lines ``A: … <chat_end>`` and ``B: … <chat_end>`` (BotChat Appendix B)."""
        return "\n".join(
            f"{speaker}: {self.neutralise(text)} {self.end}"
            for speaker, text in zip(cycle("AB"), utterances, strict=False)
        )

    def neutralise(self, utterance: str) -> str:
        """Neutralise the marks of the language's own frame as well as the English ones."""
        text = neutralise(utterance)
        matches = self._frame_like.finditer(text.translate(PLAIN)) if self._frame_like else ()
        for match in reversed([*matches]):  # so that the places before it stay
            mark = text[slice(*match.span())]
            label = text[slice(*match.span("label"))] if match["label"] else ""
            if match["colon"]:
                mark = f"{mark[:-1]} -"
            else:
                mark = f"{mark[: -len(label)]}({label})" if label else f"({mark[1:-1]})"
            text = f"{text[: match.start()]}{mark}{text[match.end() :]}"
        return text


prompt_frame = lru_cache(maxsize=16)(PromptFrame)

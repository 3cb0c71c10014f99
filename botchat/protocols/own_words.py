"""What of a reply is its own: not a thought, a supposition, what others said, or withdrawn.

What does not count is blanked out, so that places in the text stay the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from botchat.languages import ENGLISH, PLAIN, Language, built_in

_THOUGHTS = re.compile(r"\A.*</think(?:ing)?>|<think(?:ing)?>.*", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(
    r"</?(?:(?P<block>p|div|br|li|ul|ol|tr|table|body|html|h[1-6]|tool_call)"
    r"|b|i|u|em|strong|span|font|code|mark|td|th)(?:\s[^<>\n]*)?/?>",
    re.IGNORECASE,
)
_SENTENCE = r"(?:\A|(?<=\n)|(?<=[.!?;]))[\s*_`>#(-]{0,20}"


def own(text: str, language: Language = ENGLISH) -> str:
    """The reply without thoughts, HTML and what is only supposed, as long as it was."""
    if "think" in text.lower():
        text = _THOUGHTS.sub(lambda match: _blank(match[0]), text)
    if "<" in text:
        text = _TAG.sub(lambda match: _blank(match[0], "\n" if match["block"] else " "), text)
    found = _phrases(language).supposed.finditer(text.translate(language.plain))
    for start, end in [match.span() for match in found]:
        text = f"{text[:start]}{_blank(text[start:end])}{text[end:]}"
    return text


def without_others(text: str, language: Language = ENGLISH) -> str:
    """The same without what others are quoted with: behind "said", and on lines that quote."""
    told = _phrases(language).told
    text = told.sub(lambda match: _blank(match[0]), text)
    lines = text.splitlines(keepends=True)
    if all(line.lstrip().startswith(">") or not line.strip() for line in lines):
        return text
    return "".join(_blank(line) if line.lstrip().startswith(">") else line for line in lines)


def withdrawn(plain: str, after: int, language: Language = ENGLISH) -> int | None:
    """Where words end that take back the verdict that ends at ``after``; ``None``: none do."""
    for match in _phrases(language).withdrawn.finditer(plain, after):
        start = match.start("cue")
        line = plain[max(after, plain.rfind("\n", 0, start) + 1) : start]
        at_once = not re.search(r"[^\W_]", plain[after:start])
        begins = match["begins"] is not None and (plain[start].isalnum() or not line.strip())
        if (at_once or begins) and line.count('"') % 2 == 0:
            return match.end("cue")
    return None


def answered_in(text: str, language: Language) -> Language:
    """The language that a reply is marked in, where a built-in one that writes without blanks is.

    Else it is the one that was asked in.
    """
    if text.isascii() or language.pack.units == "characters":
        return language
    others = (one for one in built_in().values() if one.pack.units == "characters")
    marked = (one for one in others if _phrases(one).marks.search(text.translate(one.plain)))
    return next(marked, language)


def any_of(words: Iterable[str]) -> str:
    """A pattern of the words, longest first; blanks in them may be any, or none."""
    plain = sorted({word.translate(PLAIN) for word in words}, key=lambda word: (-len(word), word))
    return "|".join(re.sub(r"(?:\\\s)+", r"\\s*", re.escape(word)) for word in plain) or "(?!)"


@dataclass(frozen=True)
class _OwnPatterns:
    """Of texts with plain marks."""

    withdrawn: re.Pattern[str]
    supposed: re.Pattern[str]
    told: re.Pattern[str]
    """A quotation, and who is said to have said it."""
    marks: re.Pattern[str]
    """What only an answer in this language has."""


@lru_cache(maxsize=16)
def _phrases(language: Language) -> _OwnPatterns:
    packs = list(dict.fromkeys((language, ENGLISH)))

    def of(key: str) -> str:
        return any_of(word for one in packs for word in getattr(one.reading, key))

    def compiled(pattern: str) -> re.Pattern[str]:
        return re.compile(pattern, re.IGNORECASE)

    others = any_of(word for one in packs for word in one.labels.others)
    names = any_of(word for one in language.reading.names.values() for word in one)
    labels = language.labels
    own_marks = any_of((*labels.choice, *labels.index, *labels.reason, *labels.first))
    edge, line = r"(?![A-Za-z])", r"\n[^\n:]{0,40}[:=][ \t]*[^\s:][^\n]*"
    sentence = r"(?:[^\n.!?;]|[.](?=\d)){0,400}"
    return _OwnPatterns(
        compiled(
            rf"(?P<begins>{_SENTENCE}(?:\w{{1,8}}[,.!\u2026]+\s*){{0,2}})?(?P<cue>{of('withdrawn')})"
        ),
        compiled(
            rf"{_SENTENCE}(?!(?:{of('insists')}){edge})(?:{of('supposed')}){edge}{sentence}"
            rf"(?:{of('would')}){edge}"
            rf"(?:{sentence}(?:{of('say')})[ \t]*:?[ \t]*(?:{line})+|{sentence})"
        ),
        compiled(rf'(?:{others}){edge}[^\n".]{{0,20}}"[^"]*"'),
        compiled(rf"(?:{own_marks}|{of('withdrawn')})[\"'`*_~\s]*:|(?:{names})[ \t]*[12]"),
    )


def _blank(words: str, first: str = " ") -> str:
    blank = re.sub(r"[^\n]", " ", words)
    return first + blank[1:]

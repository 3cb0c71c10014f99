"""What is found in one utterance by itself: words, phrases, marks of a document, stems.

`_LAYOUT` and `EMOJI` are searched in the text as it is, the other patterns in lower case with
straight apostrophes; all in linear time.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib import resources
from itertools import chain

_DATA = tomllib.loads(resources.files(__package__).joinpath("english.toml").read_text("utf-8"))


def _words(name: str) -> frozenset[str]:
    return frozenset(_DATA[name].split())


def _phrases(name: str) -> str:
    """A pattern of all phrases of a list."""
    return "|".join(_DATA[name].strip("\n").splitlines())


IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{IDEOGRAPHS}]|[^\W_{IDEOGRAPHS}]+(?:'[^\W_{IDEOGRAPHS}]+)*")
"""A word, a number, or one Chinese or Japanese character."""

ASCII_WORD = re.compile(r"[a-z0-9]++(?:'[a-z0-9]++)*+")
"""`WORD` for lower-case ASCII, in half the time."""

_SENTENCE_END = re.compile(r"[.!?\n\u3002\uff01\uff1f](?:(?<![.!?])|\s)")
"""A stop before a blank, a line break, or a Chinese or Japanese stop; fast as it begins."""

EMOJI = re.compile("[\u2600-\u27bf\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff]")
_CONTRACTION = re.compile(
    r"\w+(?:n't|'(?:m|re|ve|ll|d))|(?:it|that|what|he|she|there|here|who|where|how|let)'s"
)
_FULL_FORM = re.compile(rf"\b(?:{_phrases('full_form')})\b(?=\s\w)")
"""Not before punctuation, where nobody contracts ("Yes, I am.")."""

_LAYOUT = re.compile(
    r"\r\n?|\n+"
    r"|^[ \t]{0,8}(?:[-*\u2022+]|\d{1,2}[.)])[ \t]"
    r"|^[ \t]{0,8}#{1,6}[ \t]"
    r"|\*\*[^*\n]{1,80}\*\*|```|`[^`\n]{1,80}`"
    r"|</?[a-z][^<>\n]{0,40}>"
    r"|^[ \t]{0,8}(?:(?:speaker )?[ab]|user|assistant|human|ai|bot|system)[ \t]?:"
    r"|^[ \t]{0,8}[\[(][^\[\]()\n]{1,60}[\])]"
    r"|(?<!\*)\*[a-z][^*\n]{1,60}\*(?!\*)",
    re.IGNORECASE | re.MULTILINE,
)
"""Marks of a document or script: line breaks, list items, headings, bold and italic, code, tags,
speaker labels and stage directions."""

_LAYOUT_SIGN = re.compile(r"[\r\n*`<:]")
_LAYOUT_START = re.compile(r"[-+\u2022#\[(\d]")
"""A text with a mark of `_LAYOUT` has this sign or this start; these searches are much faster."""

_PROGRAM = (
    rf"(?:{_phrases('program')})"
    r"(?:(?: large)?(?: language)?(?: model| assistant| chat ?bot| bot| program| system| agent))?"
    # "I'm an AI engineer" is not meant: no further noun may follow.
    r"(?=\s{0,3}(?:$|[^\w\s'-]|-\s|\b(?:and|but|so|or|that|who|which|with|without|not|here|too|as"
    r"|like|by|from|i|i'm|my|we|you|designed|created|trained|developed|built|made|programmed"
    r"|myself)\b))"
)
_NO_PREPOSITION = r"(?!about|with|on|for|of|in|at|to|from)\w{1,20}"
_SELF = _phrases("ai").replace("<program>", _PROGRAM).replace("<no preposition>", _NO_PREPOSITION)
_AI = re.compile(rf"\b(?:{_SELF})")
_AI_WORDS = _words("ai_words")
_FORMAL = re.compile(rf"\b(?:{_phrases('formal')})\b")
_FORMAL_WORDS = _words("formal_words")
_FULL_FORM_WORDS = _words("full_form_words")
_CLOSING = re.compile(rf"\b(?:{_phrases('closing')})\b")
_CLOSING_WORDS = _words("closing_words")
_FUNCTION = _words("function")
_LONG_WORD = 8
_FORMAL_PHRASE = 5
_FORMAL_DAMPING = 40


class Text:
    """One utterance read by itself."""

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.low = low = raw.lower().replace("\u2019", "'")
        find = (ASCII_WORD if low.isascii() else WORD).findall
        self.sentences = each = [find(sentence) for sentence in _SENTENCE_END.split(low)]
        """Words of each sentence."""
        self.words = words = each[0] if len(each) == 1 else list(chain.from_iterable(each))
        different = frozenset(words)
        apostrophed = [word for word in words if "'" in word] if "'" in low else []
        parts = [word.split("'") for word in apostrophed]
        self.pieces = different.union(*parts) if parts else different
        """``words``, and their parts between apostrophes."""
        self.content = frozenset(map(content, different - _FUNCTION)) - {""}
        """Stems of the words that carry a subject or a courtesy."""
        self.subject = self.content - _COURTESY
        """``content`` without courtesies."""
        self.question = "?" in raw or "\uff1f" in raw
        self.contractions = len(list(filter(_CONTRACTION.fullmatch, apostrophed)))
        self.long_words = len([word for word in words if len(word) >= _LONG_WORD])
        self.emoji = not raw.isascii() and EMOJI.search(raw) is not None

    def _found(self, words: frozenset[str], pattern: re.Pattern[str]) -> list[str]:
        """What the pattern finds; it is not searched in a text without any of the words."""
        return [] if words.isdisjoint(self.pieces) else pattern.findall(self.low)

    def ai_phrases(self) -> list[str]:
        """Phrases that call a speaker a program."""
        spelled = "a.i." in self.low or "gpt" in self.low
        return _AI.findall(self.low) if spelled else self._found(_AI_WORDS, _AI)

    def formal_phrases(self) -> list[str]:
        """Connectives and phrases of written English and of assistants."""
        return self._found(_FORMAL_WORDS, _FORMAL)

    def formality(self) -> float:
        """Formal marks in 100 words; see `botchat.measures.flags.Thresholds`."""
        marks = _FORMAL_PHRASE * len(self.formal_phrases()) + self.long_words - self.contractions
        marks += self.full_forms()
        return max(0.0, 100 * marks / (len(self.words) + _FORMAL_DAMPING))

    def full_forms(self) -> int:
        """Full forms that people contract when they speak."""
        return len(self._found(_FULL_FORM_WORDS, _FULL_FORM))

    def closes(self) -> bool:
        """Whether a phrase thanks, answers thanks, wishes well or says goodbye."""
        return bool(self._found(_CLOSING_WORDS, _CLOSING))

    def layout_marks(self) -> int:
        """Marks of a document or script."""
        raw = self.raw.strip()
        marked = _LAYOUT_SIGN.search(raw) or _LAYOUT_START.match(raw)
        return len(_LAYOUT.findall(raw)) if marked else 0


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The word without inflection, roughly: only whether two stems are equal is used."""
    shortest = 3
    found = _bare(word)[:32]
    for ending in ("ings", "ing", "edly", "ied", "ies", "ed", "es", "s", "ly"):
        if found.endswith(ending) and len(found) - len(ending) >= shortest:
            found = found[: -len(ending)]
            break
    if len(found) > shortest and found[-1] == found[-2]:
        found = found[:-1]
    return found[:-1] if len(found) > shortest and found[-1] in "eiy" else found


@lru_cache(maxsize=1 << 16)
def content(word: str) -> str:
    """Stem of a word that carries content; empty for the others."""
    return "" if _bare(word) in _FUNCTION else stem(word)


def _bare(word: str) -> str:
    """The word up to its apostrophe."""
    return word.partition("'")[0]


_COURTESY = frozenset(map(stem, _words("courtesy")))

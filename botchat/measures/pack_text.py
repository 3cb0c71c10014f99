"""`botchat.measures.english.Text` for any language pack: the same findings from its word lists.

Phrases are plain text, so every search takes linear time whatever a pack says. Where blanks part no
words (units = "characters"), each character is a word, and what carries content are the pairs of
neighbouring characters between function words, as in retrieval without segmentation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise

from botchat.errors import ConfigError
from botchat.languages import Language
from botchat.measures import english

_SENTENCE = re.compile(r"[.!?\u2026\n\u3002\uff01\uff1f\uff1b\u061f\u0964]+")
_CHARACTER = re.compile(r"[a-z0-9]+|[^\s]")
_GAP = r"[^.!?\n\u3002\uff01\uff1f,\uff0c]{0,12}?"
_PART = re.compile(r"\{(\w+)(\??)\}|(\u2026)")
_ADDRESS = re.compile(r"https?://\S{1,2000}")


class _Words(dict[int, int]):
    """Character -> itself, or a blank for punctuation and signs, of every language there is."""

    def __missing__(self, code: int) -> int:
        self[code] = code if unicodedata.category(chr(code))[0] in "LMN" else ord(" ")
        return self[code]


_ONLY_WORDS = _Words()


class PackText(english.Text):
    """One utterance read by itself, in the language of a pack."""

    def __init__(self, raw: str, language: Language) -> None:
        """``language``: one with word lists."""
        self.raw = raw
        self.low = raw.lower().replace("\u2019", "'")
        self._of = known = lists(language)
        self.sentences = [known.split(part) for part in _SENTENCE.split(self.low)]
        self.words = list(chain.from_iterable(self.sentences))
        self.pieces = frozenset(self.words)
        self.content, self.subject = known.content(self.low, self.words)
        self.question = "?" in raw or "\uff1f" in raw or "\u061f" in raw
        self.contractions = len(known.spoken.findall(self.low))
        self.long_words = len([word for word in self.words if len(word) >= known.long_word])
        self.emoji = english.EMOJI.search(raw) is not None

    def ai_phrases(self) -> list[str]:
        """As of `botchat.measures.english.Text`, as the methods below."""
        return self._of.ai.findall(self.low)

    def formal_phrases(self) -> list[str]:
        """Connectives and phrases of written language and of assistants."""
        return self._of.formal.findall(self.low)

    def full_forms(self) -> int:
        """Written forms of words that speech says otherwise."""
        return len(self._of.full.findall(self.low))

    def closes(self) -> bool:
        """Whether a phrase thanks, answers thanks, wishes well or says goodbye."""
        return self._of.closing.search(self.low) is not None


def split(text: str, spaced: bool) -> list[str]:
    """Words of a text in lower case; where blanks part none, its characters."""
    words = text.translate(_ONLY_WORDS).split()
    return words if spaced else [c for word in words for c in _CHARACTER.findall(word)]


@dataclass(frozen=True, eq=False)
class _Lists:
    """A pack's lists as patterns."""

    spaced: bool
    function: frozenset[str]
    courtesy: frozenset[str]
    cut: re.Pattern[str]
    """Of characters: a courtesy, or a function word; the longest of what is possible."""
    ai: re.Pattern[str]
    formal: re.Pattern[str]
    full: re.Pattern[str]
    spoken: re.Pattern[str]
    closing: re.Pattern[str]
    endings: tuple[str, ...]
    long_word: float

    def split(self, text: str) -> list[str]:
        """Its words, or characters."""
        return split(text, self.spaced)

    def content(self, low: str, words: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
        """What carries a subject or a courtesy, and what of it a subject."""
        if self.spaced:
            found = frozenset(map(self._stem, set(words) - self.function))
            return found, found - self.courtesy
        subject: set[str] = set()
        courtesies: set[str] = set()
        at = 0
        text = _ADDRESS.sub(" ", low).translate(_ONLY_WORDS)
        for match in chain(self.cut.finditer(text), [None]):
            end = len(text) if match is None else match.start()
            for run in text[at:end].split():
                letters = _CHARACTER.findall(run)
                subject.update(map("".join, pairwise(letters)) if len(letters) > 1 else letters)
            if match is None:
                break
            at = match.end()
            if match[0] in self.courtesy:
                courtesies.add(match[0])
        return frozenset(subject | courtesies), frozenset(subject)

    def _stem(self, word: str) -> str:
        for ending in self.endings:
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                return word[: -len(ending)]
        return word


@lru_cache(maxsize=8)
def lists(language: Language) -> _Lists:
    """The lists of a pack; raises `ConfigError` for one that is missing or names an unknown one."""
    told, spaced = language.words, language.pack.units == "words"
    endings = tuple(sorted(told.endings, key=len, reverse=True))

    def any_of(phrases: Iterable[str]) -> re.Pattern[str]:
        said = "|".join(_phrase(text.lower(), told.lists, language) for text in longest(phrases))
        around = rf"(?<!\w)(?:{said})(?!\w)" if spaced else f"(?:{said})"
        return re.compile(around if said else r"(?!)")

    made = _Lists(
        spaced,
        frozenset(told.function),
        frozenset(told.courtesy),
        any_of({*told.courtesy, *told.function}),
        any_of(told.ai),
        any_of(told.formal),
        any_of(told.full),
        any_of(told.spoken),
        any_of(told.closing),
        endings,
        told.long_word or float("inf"),
    )
    if not spaced:
        return made
    courtesies = chain.from_iterable(map(made.split, told.courtesy))
    return _Lists(**{**vars(made), "courtesy": frozenset(map(made._stem, courtesies))})


def longest(words: Iterable[str]) -> list[str]:
    """The words, longest first, so that the first that fits is the longest."""
    return sorted(words, key=lambda word: (-len(word), word))


def _phrase(text: str, named: Mapping[str, tuple[str, ...]], language: Language) -> str:
    """A pattern of a phrase with its ``{name}``s and ``…``."""
    said, at = "", 0
    for part in _PART.finditer(text):
        said += re.escape(text[at : part.start()])
        at = part.end()
        if part[3]:
            said += _GAP
        elif part[1] in named:
            said += f"(?:{'|'.join(map(re.escape, longest(named[part[1]])))}){part[2]}"
        else:
            raise ConfigError(
                f"{language.where}: words: {text!r}: no list {part[1]!r} is in [words.lists]; add "
                "it, or take the braces out"
            )
    return said + re.escape(text[at:])

"""What is found in one utterance by itself: words, phrases, marks of a document, stems.

One class for every language; the words are those of its pack. `_LAYOUT` and `EMOJI` are searched in
the text as it is, all else in lower case with straight apostrophes; all in linear time. A pack's
phrases are plain text; English's are regular expressions, each searched only in a text with one of
its words, because boards read English by the ten thousand.

Where blanks part no words (units = "characters"), each character is a word, and what carries
content are the pairs of neighbouring characters between function words, as in retrieval without
segmentation.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, pairwise
from typing import TypeAlias

from botchat.errors import ConfigError
from botchat.languages import Language, Words

IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{IDEOGRAPHS}]|[^\W_{IDEOGRAPHS}]+(?:'[^\W_{IDEOGRAPHS}]+)*")
"""A word of English, a number, or one Chinese or Japanese character."""

ASCII_WORD = re.compile(r"[a-z0-9]++(?:'[a-z0-9]++)*+")
"""`WORD` for lower-case ASCII, in half the time."""

_ASCII_BLANKS = re.sub(rb"[^a-z0-9]", b" ", bytes(range(256)))
"""A blank for what is not in words: cuts lower-case ASCII without apostrophes, again faster."""

_ENGLISH_STOP = re.compile(r"[.!?\n\u3002\uff01\uff1f](?:(?<![.!?])|\s)")
"""A stop before a blank, a line break, or a Chinese or Japanese stop; fast as it begins."""

_STOP = re.compile(r"[.!?\u2026\n\u3002\uff01\uff1f\uff1b\u061f\u0964]+")
_CHARACTER = re.compile(r"[a-z0-9]+|[^\s]")
_ADDRESS = re.compile(r"https?://\S{1,2000}")

EMOJI = re.compile("[\u2600-\u27bf\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff]")

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

_FORMAL_PHRASE = 5
_FORMAL_DAMPING = 40


class ReadText:
    """One utterance read by itself."""

    def __init__(self, raw: str, known: Known) -> None:
        """``known``: the words of its language, `known_words`."""
        self.raw = raw
        self.low = low = raw.lower().replace("\u2019", "'")
        self._known = known
        self.sentences = each = known.sentences(low)
        """Words of each sentence."""
        self.words = words = each[0] if len(each) == 1 else list(chain.from_iterable(each))
        self.apostrophed = [word for word in words if "'" in word] if "'" in low else []
        parts = [word.split("'") for word in self.apostrophed]
        self.different = different = frozenset(words)
        self.pieces = different.union(*parts) if parts else different
        """``words``, and their parts between apostrophes."""
        self.content, self.subject = known.content(self)
        """What carries a subject or a courtesy (stems of words), and what of it a subject."""
        self.question = "?" in raw or "\uff1f" in raw or "\u061f" in raw
        self.contractions = known.contractions(self)
        self.long_words = len([word for word in words if len(word) >= known.long_word])
        self.emoji = not raw.isascii() and EMOJI.search(raw) is not None

    def ai_phrases(self) -> list[str]:
        """Phrases that call a speaker a program."""
        return self._known.ai.found(self.low, self.pieces)

    def formal_phrases(self) -> list[str]:
        """Connectives and phrases of written language and of assistants."""
        return self._known.formal.found(self.low, self.pieces)

    def formality(self) -> float:
        """Formal marks in 100 words; see `botchat.measures.criteria.Thresholds`."""
        marks = _FORMAL_PHRASE * len(self.formal_phrases()) + self.long_words - self.contractions
        marks += self.full_forms()
        return max(0.0, 100 * marks / (len(self.words) + _FORMAL_DAMPING))

    def full_forms(self) -> int:
        """Written forms of words that speech says otherwise: contracts, in English."""
        return len(self._known.full.found(self.low, self.pieces))

    def closes(self) -> bool:
        """Whether a phrase thanks, answers thanks, wishes well or says goodbye."""
        return bool(self._known.closing.found(self.low, self.pieces))

    def layout_marks(self) -> int:
        """Marks of a document or script."""
        raw = self.raw.strip()
        marked = _LAYOUT_SIGN.search(raw) or _LAYOUT_START.match(raw)
        return len(_LAYOUT.findall(raw)) if marked else 0


# ------------------------------------------------------------------- what a language's pack knows


@dataclass(frozen=True)
class _Phrases:
    """A list of phrases to look for."""

    pattern: re.Pattern[str]
    signs: frozenset[str] | None = None
    """Words of which a text has one if it has a phrase; ``None``: not known."""
    inside: Words = ()
    """What may stand inside a word, or between two, instead."""

    def found(self, low: str, pieces: Iterable[str]) -> list[str]:
        """What the pattern finds; it is not searched in a text without any sign of a phrase.

        ``pieces``: the text's words, and their parts between apostrophes.
        """
        if self.signs is None or not self.signs.isdisjoint(pieces):
            return self.pattern.findall(low)
        for part in self.inside:  # a generator takes as long as the search that it saves
            if part in low:
                return self.pattern.findall(low)
        return []


Content: TypeAlias = tuple[frozenset[str], frozenset[str]]
"""What carries a subject or a courtesy, and what of it a subject."""


class Known:
    """A pack's word lists, as patterns."""

    def __init__(self, language: Language) -> None:
        """Raises `ConfigError` for a list that is missing, or a phrase that names none there is."""
        self.language, told = language, language.words
        self.stem = lru_cache(maxsize=1 << 16)(self._stem)
        self.spaced = language.pack.units == "words"
        self.function, self.courtesy = frozenset(told.function), frozenset(told.courtesy)
        self.formal, self.full, self.closing = map(self._listed, ("formal", "full", "closing"))
        self.ai = self._listed("ai", "".join(rf"(?<!\b{re.escape(one)}\s)" for one in told.denied))
        self.spoken = self._any_of(told.spoken)
        # Of characters: a courtesy, or a function word; the longest of what is possible.
        self.cut = self._any_of(() if self.spaced else {*told.courtesy, *told.function})
        self._endings = sorted(told.endings, key=len, reverse=True)
        self.long_word = told.long_word or math.inf
        if self.spaced:
            words = chain.from_iterable(map(self.split, told.courtesy))
            self.courtesy = frozenset(map(self.stem, words))

    def _listed(self, name: str, before: str = "") -> _Phrases:
        """The list of that name; ``before``: what must stand before a phrase."""
        told = self.language.words
        said = self._any_of(getattr(told, name), told.ends.get(name, "")).pattern
        signs = frozenset(told.signs[name]) if told.signs else None
        return _Phrases(re.compile(before + said), signs, told.signs.get(f"{name}_inside", ()))

    def _any_of(self, phrases: Iterable[str], end: str = "") -> re.Pattern[str]:
        lists = self.language.words.lists
        said = "|".join(_phrase(one.lower(), lists, self.language) for one in longest(phrases))
        around = r"(?<!\w)(?:{})(?!\w)" if self.spaced else "(?:{})"
        return re.compile(around.format(said) + end if said else r"(?!)")

    def split(self, text: str) -> list[str]:
        """Words of a text in lower case, or characters."""
        return split(text, self.spaced)

    def sentences(self, low: str) -> list[list[str]]:
        """Words of each sentence."""
        return [self.split(part) for part in _STOP.split(low)]

    def contractions(self, text: ReadText) -> int:
        """Marks of speech."""
        return len(self.spoken.findall(text.low))

    def content(self, text: ReadText) -> Content:
        """Of the words of a text."""
        if self.spaced:
            found = frozenset(map(self.stem, text.different - self.function)) - {""}
            return found, found - self.courtesy
        low = _ADDRESS.sub(" ", text.low).translate(_ONLY_WORDS)
        subject: set[str] = set()
        for run in self.cut.sub(" ", low).split():
            letters = _CHARACTER.findall(run)
            subject.update(map("".join, pairwise(letters)) if len(letters) > 1 else letters)
        courtesies = self.courtesy.intersection(self.cut.findall(low))
        return frozenset(subject | courtesies), frozenset(subject)

    def _stem(self, word: str) -> str:
        """The word without its inflection, roughly: only whether two stems are equal is used."""
        for ending in self._endings:
            if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
                return word[: -len(ending)]
        return word


_SHORTEST_STEM = 3


class _KnownEnglish(Known):
    """English, which is read fast, and whose phrases, stems and contractions are more exact."""

    def _any_of(self, phrases: Iterable[str], end: str = "") -> re.Pattern[str]:
        lists = self.language.words.lists
        said = "|".join(_NAME.sub(lambda name: lists[name[1]][0], one) for one in phrases)
        return re.compile(rf"\b(?:{said})" + end if said else r"(?!)")

    def split(self, text: str) -> list[str]:
        if not text.isascii():
            return WORD.findall(text)
        if "'" in text:
            return ASCII_WORD.findall(text)
        return text.encode().translate(_ASCII_BLANKS).decode().split()

    def sentences(self, low: str) -> list[list[str]]:
        return [self.split(sentence) for sentence in _ENGLISH_STOP.split(low)]

    def contractions(self, text: ReadText) -> int:
        return len(list(filter(self.spoken.fullmatch, text.apostrophed)))

    def _stem(self, word: str) -> str:
        found = word.partition("'")[0]
        if found in self.function:
            return ""
        found = super()._stem(found[:32])
        if len(found) > _SHORTEST_STEM and found[-1] == found[-2]:
            found = found[:-1]
        return found[:-1] if len(found) > _SHORTEST_STEM and found[-1] in "eiy" else found


@lru_cache(maxsize=8)
def known_words(language: Language) -> Known:
    """The lists of a pack; raises as `Known`."""
    return (_KnownEnglish if language.words.signs else Known)(language)


class _OnlyWords(dict[int, int]):
    """Character -> itself, or a blank for punctuation and signs, of every language there is."""

    def __missing__(self, code: int) -> int:
        self[code] = code if unicodedata.category(chr(code))[0] in "LMN" else ord(" ")
        return self[code]


_ONLY_WORDS = _OnlyWords()


def split(text: str, spaced: bool) -> list[str]:
    """Words of a text in lower case; where blanks part none, its characters."""
    words = text.translate(_ONLY_WORDS).split()
    return words if spaced else [c for word in words for c in _CHARACTER.findall(word)]


def longest(words: Iterable[str]) -> list[str]:
    """The words, longest first, so that the first that fits is the longest."""
    return sorted(words, key=lambda word: (-len(word), word))


_NAME = re.compile(r"\{([a-z_]+)\}")
_PART = re.compile(r"\{(\w+)(\??)\}|(\u2026)")
_GAP = r"[^.!?\n\u3002\uff01\uff1f,\uff0c]{0,12}?"


def _phrase(text: str, named: Mapping[str, Words], language: Language) -> str:
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


_COMMON = {
    "de": "und der die das ist nicht ein ich du wir mit auch was",
    "en": "the and is you to of that it was what are have not",
    "es": "que el los una por con para está pero muy qué más como",
    "fr": "le les des est une pour pas que je vous dans avec c'est",
    "it": "che il di non per una sono è con ma come anche più",
    "pt": "que não uma para com você está mas por muito isso os",
}
"""Words that every third sentence of a language has, and few of another."""


def spoken(texts: Iterable[str]) -> str:
    """The code of the language that texts are likely in; empty: it does not show."""
    words = Counter(re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", " ".join(texts).lower()))
    together = " ".join(words)
    if len(re.findall(f"[{IDEOGRAPHS}]", together)) > len(together) / 3:
        return "zh" if not re.search("[\u3040-\u30ff]", together) else "ja"
    found = {code: sum(words[w] for w in common.split()) for code, common in _COMMON.items()}
    best, second = sorted(found, key=lambda code: -found[code])[:2]
    clear = found[best] >= max(5, 0.05 * words.total()) and found[best] > 1.5 * found[second]
    return best if clear else ""

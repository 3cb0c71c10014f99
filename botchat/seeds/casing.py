"""Readable English from lower-cased, tokenised text: `detokenise`, `true_case`, and `readable`.

MuTual's raw files write ``i do n't know , mr. brown .`` where people write ``I don't know, Mr.
Brown.`` Spacing reverses the Penn Treebank tokeniser; capitals follow sentence starts, the word
lists of ``casing.toml`` and, for words such as ``may`` or ``green``, the words beside them.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Literal


def readable(text: str) -> str:
    """Undo tokenisation and lower-casing of one utterance."""
    return true_case(detokenise(text))


def detokenise(text: str) -> str:
    """Put the blanks of tokenised English back where people write them; letters stay.

    Full-width punctuation (also where its UTF-8 was read as Latin-1) becomes ASCII.
    """
    text = _MISREAD.sub(_reread, text).translate(_FULL_WIDTH)
    for pattern, replacement in _SPACING:
        text = pattern.sub(replacement, text)
    return text.strip()


def true_case(text: str) -> str:
    """Capitalise lower-case English; text that has a capital already is returned unchanged."""
    if text != text.lower():
        return text
    phrase_words = {
        match.start() + part.start()
        for match in _PHRASE.finditer(text)
        for part in _WORD.finditer(match.group())
    }
    found = list(_WORD.finditer(text))
    ends = [0, *(match.end() for match in found)]
    starts = [*(match.start() for match in found), len(text)]
    cased = [text[: starts[0]]]
    kind: _Kind = "plain"
    for n, match in enumerate(found):
        word = _Word(
            text=match.group(),
            before=text[ends[n] : starts[n]],
            after=text[ends[n + 1] : starts[n + 1]],
            previous=found[n - 1].group() if n else "",
            following=found[n + 1].group() if n + 1 < len(found) else "",
            previous_kind=kind,
        )
        kind = "phrase" if match.start() in phrase_words else _kind(word)
        cased += [_written(word, kind), word.after]
    return "".join(cased)


_DATA = tomllib.loads(resources.files(__package__).joinpath("casing.toml").read_text("utf-8"))
_FULL_WIDTH = str.maketrans(_DATA["full_width"])
_SPACING = [(re.compile(pattern), replacement) for pattern, replacement in _DATA["spacing"]]
_MISREAD = re.compile("[\u00c3-\u00ef][\u0080-\u00bf]{1,2}")


def _reread(match: re.Match[str]) -> str:
    """Decode UTF-8 that had been taken for Latin-1; other text stays."""
    try:
        return match.group().encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return match.group()


_Kind = Literal["plain", "joint", "code", "spelt", "proper", "phrase", "title", "name", "place"]
"""What a word is; ``joint`` is the ``and`` after a person's name."""

_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_CLITIC = re.compile(r"(?:n't|'(?:s|m|d|re|ve|ll))$")
_CODE = re.compile(r"[a-z]{1,2}\d[a-z0-9]*")

_LISTS = {name: frozenset(text.split()) for name, text in _DATA.items() if isinstance(text, str)}
_PHRASES = [phrase.strip() for phrase in _DATA["phrases"].split(",")]
_SPELLINGS: dict[str, str] = {
    **{word: word.upper() for word in _LISTS["initialisms"]},
    **_DATA["spellings"],
}
_NAMES = _LISTS["given_names"] | _LISTS["surnames"]
_RANKED = _NAMES | _LISTS["ambiguous_surnames"]
_PROPER = _LISTS["peoples"] | _LISTS["calendar"] | _LISTS["miscellaneous"] | {"i"}
_PROPER_PARTS = _LISTS["peoples"] | _LISTS["calendar"] | _LISTS["places"]
_PHRASE = re.compile(
    r"\b(?:"
    + "|".join(map(re.escape, sorted(_PHRASES, key=len, reverse=True)))
    + r"|(?:bank|university) of (?:"
    + "|".join(sorted(_LISTS["places"]))
    + r"))\b"
)
_SMALL = frozenset({"and", "de", "of", "the"})

_ORDINAL = re.compile(
    r"\d.*|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth"
    r"|\w+teenth|twentieth|twenty|thirtieth|thirty"
)


@dataclass(frozen=True)
class _Word:
    """A lower-case word, its neighbours, and what stands between it and them."""

    text: str
    before: str
    after: str
    previous: str
    following: str
    previous_kind: _Kind

    @property
    def base(self) -> str:
        """The word without ``'s``, ``'ll``, ``n't`` ..."""
        return _CLITIC.sub("", self.text)

    @property
    def opens_sentence(self) -> bool:
        """Whether a capital is due whatever the word is."""
        if not self.previous:
            return True
        initial = len(self.previous) == 1 and self.previous.isalpha() and self.previous not in "ai"
        if initial or self.previous in _LISTS["titles"] | {"st"}:
            return False
        return re.search(r"[.?!][\"']?\s", self.before) is not None

    @property
    def pauses(self) -> bool:
        """Whether punctuation or the end follows."""
        return not self.following or self.after[0] in ",.?!"


def _written(word: _Word, kind: _Kind) -> str:
    if kind == "code":
        return word.text.upper()
    if kind == "spelt":
        return _SPELLINGS[word.base] + word.text[len(word.base) :]
    if kind == "phrase" and word.text in _SMALL and not word.opens_sentence:
        return word.text
    if kind == "proper" and "-" in word.text and word.base not in _PROPER:
        parts = word.text.split("-")
        return "-".join(p.capitalize() if p in _PROPER_PARTS else p for p in parts)
    if kind not in ("plain", "joint") or word.opens_sentence:
        return word.text[0].upper() + word.text[1:]
    return word.text


def _kind(word: _Word) -> _Kind:
    """Classify by the word itself where that decides, else by its neighbours."""
    if _is_code(word):
        return "code"
    if word.before.endswith("@") or re.match(r"\.\w", word.after + word.following):
        return "plain"
    if word.base in _SPELLINGS:
        return "spelt"
    if word.base in _LISTS["titles"] or _is_rank_or_miss(word):
        return "title"
    if _is_name(word):
        return "name"
    if word.base in _LISTS["places"] or _is_named_place(word):
        return "place"
    parts = word.base.split("-")
    if (
        word.base in _PROPER
        or _is_month_or_country(word)
        or (len(parts) > 1 and any(part in _PROPER_PARTS for part in parts))
    ):
        return "proper"
    return "joint" if word.text == "and" and word.previous_kind == "name" else "plain"


def _is_code(word: _Word) -> bool:
    """``m25``, ``5:00 pm``, ``got an a``, ``plan b``."""
    if word.text in ("am", "pm"):
        return word.previous[-1:].isdigit() or word.previous == "o'clock"
    if word.text == "a":
        return word.previous == "an" and word.before == " "
    if len(word.text) == 1 and word.text.isalpha():
        alone = word.before[-1:] in ("", " ") and word.after[:1] in ("", " ", ",", "?")
        return alone and word.text not in "io"
    return _CODE.fullmatch(word.text) is not None


def _is_rank_or_miss(word: _Word) -> bool:
    """``professor smith``, ``miss green``; not ``the doctor`` or ``miss the boat``."""
    if word.after != " ":
        return False
    known = _CLITIC.sub("", word.following) in _RANKED
    if word.text == "miss":
        is_verb = word.previous in _LISTS["before_verb_miss"] and word.before == " "
        return known or not (is_verb or word.following in _LISTS["after_verb_miss"])
    return word.text in _LISTS["ranks"] and known and word.previous not in _LISTS["determiners"]


def _is_name(word: _Word) -> bool:
    if word.base in _NAMES:
        return True
    if word.previous_kind == "title" and word.base.isalpha():
        return True
    if word.base in _LISTS["ambiguous_surnames"] and word.before == " ":
        return word.previous_kind == "name" and not word.previous.endswith("'s")
    return word.base in _LISTS["ambiguous_given_names"] and _is_addressed_or_introduced(word)


def _is_addressed_or_introduced(word: _Word) -> bool:
    """Whether an everyday word stands where a speaker puts a name."""
    if word.before == " " and (
        word.previous_kind == "joint" or word.previous in _LISTS["before_name"]
    ):
        return True
    if word.after == " " and word.following in _LISTS["surnames"]:
        return True
    if not word.pauses:
        return False
    greeted = word.previous in _LISTS["greetings"] and word.before in (" ", ", ")
    introduced = word.previous in _LISTS["introduced"] and word.before == " "
    return greeted or introduced or (word.before == ", " and word.after[:1] != ",")


def _is_named_place(word: _Word) -> bool:
    """``brown university``, ``green street`` (both words), ``heathrow airport``."""
    if (
        word.base in _LISTS["ambiguous_surnames"]
        and word.after == " "
        and word.following in _LISTS["streets"]
    ):
        return True
    follows_name = word.before == " " and word.previous_kind in ("name", "place", "phrase")
    return (
        word.base in _LISTS["institutions"] | _LISTS["streets"]
        and follows_name
        and not word.previous.endswith("'s")
    )


def _is_month_or_country(word: _Word) -> bool:
    """``may`` and ``march`` in dates; ``turkey`` where one can be or go."""
    if word.text in ("may", "march"):
        dated = word.before == " " and word.previous in _LISTS["before_month"]
        return dated or (word.after == " " and _ORDINAL.fullmatch(word.following) is not None)
    return (
        word.base == "turkey" and word.before == " " and word.previous in _LISTS["before_country"]
    )

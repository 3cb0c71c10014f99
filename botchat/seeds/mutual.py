"""MuTual's raw test split as seeds (Cui et al., ACL 2020; BotChat §3.1).

One JSON file holds one question: ``article`` is a dialogue up to some utterance, lower-cased and
tokenised, with ``m :`` or ``f :`` before each utterance. Several files ask about one dialogue:
BotChat's published set has 547 dialogues of these 886 files. The rule that finds the same 547:

1. An item that is the beginning of another item's dialogue is left out.
2. A dialogue that two items hold in full is left out, both times.
3. Where one item's last utterance is another's first, the second continues the first and they
   become one dialogue under the second's number.

In two places the published set uses other transcripts; `_KEPT` and `_CONTINUES` name these texts.

The raw files write ``i do n't know , mr. brown .`` where people write ``I don't know, Mr. Brown.``
`detokenise` reverses the Penn Treebank tokeniser; `true_case` sets capitals by sentence starts, the
word lists of ``casing.toml`` and, for words such as ``may`` or ``green``, the words beside them.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec

from botchat.errors import DataError
from botchat.records import N_SEED, Seed

_ITEM = re.compile(r"(?:(?:.*/)?test/)?test_[0-9]+\.txt")
_MARK = re.compile(r"(?:^|\s)(?:([mf]) )?:(?=\s|$)")

_KEPT = frozenset({"d83cfd7a4908957d"})
"""Held in full by two items (18, 19) and kept nevertheless."""

_CONTINUES = {"761cf70758c73d97": "8df4be198e594d03"}
"""Continuation -> beginning, where the utterances between (of 191 and 190) are missing."""

_MIN_SHARED_WORDS = 5
"""Shorter utterances ("thank you .") end and begin unrelated dialogues."""


def is_mutual_item(name: str) -> bool:
    """Whether a file is ``test_<n>.txt``, alone or in a folder ``test``."""
    # A folder mutual_plus holds the same dialogues under the same names.
    return _ITEM.fullmatch(name) is not None and "mutual_plus" not in name.split("/")


def from_mutual(files: Mapping[str, bytes], where: str) -> list[Seed]:
    """Make seeds ``MT-<n>``, in the order of n, from raw items, name -> content.

    Utterances begin at the speaker marks and, as in BotChat's published set, at any other colon
    between blanks; `readable` restores spacing and capitals. An item with fewer than
    two utterances is left out. ``where``: the folder or archive, for messages. Raises `DataError`
    for an item that is not MuTual's layout, two items with one number, or no seed.
    """
    names: dict[int, str] = {}
    for name in filter(is_mutual_item, files):
        number = int(name.rpartition("_")[2].removesuffix(".txt"))
        if (other := names.setdefault(number, name)) != name:
            raise DataError(
                f"{where}: MuTual item {number} is there twice ({other}, {name}); remove one"
            )
    items = {number: _read(files[name], f"{where}: {name}") for number, name in names.items()}
    seeds = [
        Seed(f"MT-{number}", tuple(readable(turn.text) for turn in turns))
        for number, turns in sorted(_distinct(items).items())
        if len(turns) >= N_SEED
    ]
    if not seeds:
        raise DataError(
            f"{where}: no dialogue in MuTual's layout (test/test_<n>.txt, JSON with 'article'); "
            "give the folder or archive that holds data/mutual/test"
        )
    return seeds


class _Turn(NamedTuple):
    speaker: str
    text: str


class _MutualItem(NamedTuple):
    article: str
    turns: tuple[_Turn, ...]
    digest: str
    """16 hex digits of the article's text."""


def _read(content: bytes, place: str) -> _MutualItem:
    try:
        article = msgspec.json.decode(content)["article"]
    except (msgspec.DecodeError, UnicodeError, RecursionError, KeyError, TypeError):
        raise DataError(f"{place}: not a JSON object with 'article'; get the file again") from None
    if not isinstance(article, str) or not re.match(r"\s*[mf] :", article):
        raise DataError(
            f"{place}: 'article' begins with {str(article)[:20]!r}, not with a speaker mark "
            "('m :' or 'f :'); get the file again"
        )
    article = " ".join(article.split())
    marks = list(_MARK.finditer(article))
    ends = [*(mark.start() for mark in marks[1:]), len(article)]
    turns, speaker = [], ""
    for mark, end in zip(marks, ends, strict=True):
        speaker = mark.group(1) or speaker
        if text := article[mark.end() : end].strip():
            turns.append(_Turn(speaker, text))
    if not turns:
        raise DataError(f"{place}: 'article' has no utterance; get the file again")
    digest = hashlib.sha256(article.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return _MutualItem(article, tuple(turns), digest)


def _distinct(items: Mapping[int, _MutualItem]) -> dict[int, tuple[_Turn, ...]]:
    """Apply the rule at the head of this module: number -> utterances."""
    found = _full_and_single(items)
    distinct = {number: item.turns for number, item in found.items()}
    for number, beginning in _beginnings(found).items():
        distinct[number] = _joined(found[beginning].turns, found[number].turns)
        distinct.pop(beginning, None)
    return distinct


def _full_and_single(items: Mapping[int, _MutualItem]) -> dict[int, _MutualItem]:
    """Leave out items that begin another one, and dialogues that two items hold in full."""
    # Sorted, a text stands right before one that it begins; the blank ends a whole word.
    texts = sorted(f"{item.article} " for item in items.values())
    cuts = {a.rstrip() for a, b in pairwise(texts) if a != b and b.startswith(a)}
    copies = Counter(item.article for item in items.values())
    first = {item.article: number for number, item in sorted(items.items(), reverse=True)}
    return {
        number: item
        for number, item in items.items()
        if item.article not in cuts
        and (copies[item.article] == 1 or (item.digest in _KEPT and first[item.article] == number))
    }


def _beginnings(found: Mapping[int, _MutualItem]) -> dict[int, int]:
    """Which dialogue continues which: number -> number of its beginning."""
    by_end = {item.turns[-1]: number for number, item in found.items()}
    by_digest = {item.digest: number for number, item in found.items()}
    pairs: dict[int, int] = {}
    for number, item in found.items():
        first = item.turns[0]
        beginning = by_digest.get(_CONTINUES.get(item.digest, ""))
        if beginning is None and len(first.text.split()) >= _MIN_SHARED_WORDS:
            beginning = by_end.get(first)
        if beginning is not None and beginning != number:
            pairs[number] = beginning
    return {number: beginning for number, beginning in pairs.items() if beginning not in pairs}


def _joined(beginning: tuple[_Turn, ...], rest: tuple[_Turn, ...]) -> tuple[_Turn, ...]:
    """Join two parts of a dialogue; where they meet, one speaker's texts become one utterance."""
    last, first = beginning[-1], rest[0]
    if last == first:
        return beginning + rest[1:]
    if last.speaker == first.speaker:
        return (*beginning[:-1], _Turn(last.speaker, f"{last.text} {first.text}"), *rest[1:])
    return beginning + rest


# ------------------------------------------------------- readable English from lower-cased tokens


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
    compound = "-" in word.base and not _PROPER_PARTS.isdisjoint(word.base.split("-"))
    if word.base in _PROPER or compound or _is_month_or_country(word):
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
    led_in = word.previous_kind == "joint" or word.previous in _LISTS["before_name"]
    if word.before == " " and led_in:
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
    is_street = word.after == " " and word.following in _LISTS["streets"]
    if is_street and word.base in _LISTS["ambiguous_surnames"]:
        return True
    follows_name = word.before == " " and word.previous_kind in ("name", "place", "phrase")
    known = word.base in _LISTS["institutions"] | _LISTS["streets"]
    return known and follows_name and not word.previous.endswith("'s")


def _is_month_or_country(word: _Word) -> bool:
    """``may`` and ``march`` in dates; ``turkey`` where one can be or go."""
    if word.text in ("may", "march"):
        dated = word.before == " " and word.previous in _LISTS["before_month"]
        return dated or (word.after == " " and _ORDINAL.fullmatch(word.following) is not None)
    return (
        word.base == "turkey" and word.before == " " and word.previous in _LISTS["before_country"]
    )

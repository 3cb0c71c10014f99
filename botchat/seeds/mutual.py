"""MuTual's raw test split as seeds (Cui et al., ACL 2020; BotChat §3.1).

One JSON file holds one question: ``article`` is a dialogue up to some utterance, lower-cased and
tokenised, with ``m :`` or ``f :`` before each utterance. Several files ask about one dialogue:
BotChat's published set has 547 dialogues of these 886 files. The rule that finds the same 547:

1. An item that is the beginning of another item's dialogue is left out.
2. A dialogue that two items hold in full is left out, both times.
3. Where one item's last utterance is another's first, the second continues the first and they
   become one dialogue under the second's number.

In two places the published set uses other transcripts; `_KEPT` and `_CONTINUES` name these texts.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import msgspec

from botchat.errors import DataError
from botchat.records import N_SEED, Seed
from botchat.seeds.casing import readable

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
    between blanks; `botchat.seeds.casing` restores spacing and capitals. An item with fewer than
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

    @property
    def digest(self) -> str:
        """16 hex digits of the article's text."""
        return hashlib.sha256(self.article.encode("utf-8", "surrogatepass")).hexdigest()[:16]


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
    turns = _turns(article)
    if not turns:
        raise DataError(f"{place}: 'article' has no utterance; get the file again")
    return _MutualItem(article, turns)


def _turns(article: str) -> tuple[_Turn, ...]:
    marks = list(_MARK.finditer(article))
    ends = [*(mark.start() for mark in marks[1:]), len(article)]
    turns, speaker = [], ""
    for mark, end in zip(marks, ends, strict=True):
        speaker = mark.group(1) or speaker
        if text := article[mark.end() : end].strip():
            turns.append(_Turn(speaker, text))
    return tuple(turns)


def _distinct(items: Mapping[int, _MutualItem]) -> dict[int, tuple[_Turn, ...]]:
    """Apply the rule at the head of this module: number -> utterances."""
    found = _full_and_single(items)
    beginnings = _beginnings(found)
    return {
        number: _joined(found[beginnings[number]].turns, item.turns)
        if number in beginnings
        else item.turns
        for number, item in found.items()
        if number not in beginnings.values()
    }


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

"""What the offline bots share: hearing, drawing at random, answering, and a little English.

Clauses, content words, turning "I" into "you": by word lists (``language.toml``) and the
neighbouring words, without a parser. It makes mistakes.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from botchat.interfaces import Decoding, Message, Reply

T = TypeVar("T")

HEARD_CHARS = 4000
"""Characters of an utterance that a bot hears."""

_UNSAYABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def one_line(text: str) -> str:
    """Make ``text`` sayable: one line, no control character or surrogate."""
    return _UNSAYABLE.sub(" ", text).strip()


def attend(text: str) -> str:
    """What a bot hears of an utterance: its first `HEARD_CHARS`, with straight apostrophes."""
    return one_line(text[:HEARD_CHARS]).replace("\u2019", "'")


class Dice:
    """Random choices that depend only on ``sample`` and ``key``, on every platform and Python."""

    def __init__(self, sample: int, *key: object) -> None:
        self.sample = sample
        seed = json.dumps([sample, key]).encode("ascii")
        self._random = random.Random(int.from_bytes(hashlib.sha256(seed).digest()[:8], "big"))

    def below(self, n: int) -> int:
        """Draw an index, ``0 <= index < n``."""
        # Of `random`, only random() promises the same numbers in every version of Python.
        return int(self._random.random() * n)

    def pick(self, options: Sequence[T]) -> T:
        """Draw one of ``options``, which must not be empty."""
        return options[self.below(len(options))]

    def chance(self, probability: float) -> bool:
        """Draw true with ``probability``."""
        return self._random.random() < probability


class Bot(ABC):
    """An offline `botchat.interfaces.ChatModel`: no network, no state, no clock.

    The same utterances and ``decoding.sample`` always get the same reply; the system prompt and
    the other decoding parameters have no effect.
    """

    bot: str
    """Name after ``bot:``."""
    version: int
    """Raised with every change of any reply, because the ledger keeps replies under it."""
    context_window: int | None = None
    parallel = 8
    """Calls at once; a reply needs no waiting, so a few keep the ledger busy."""
    silence = "the bot had nothing to say"
    """Why `say` may come back empty."""

    @property
    def name(self) -> str:
        """Name of the model."""
        return f"bot:{self.bot}"

    @property
    def identity(self) -> Mapping[str, Any]:
        """All that decides its replies."""
        return {"bot": self.bot, "version": self.version}

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Continue the dialogue in ``messages``; never raises."""
        utterances = [m["content"] for m in messages if m["role"] != "system"]
        heard = tuple(map(attend, utterances))
        said = self.say(heard, Dice(decoding.sample, self.bot, utterances))
        if not said:
            return Reply(outcome="empty", finish_reason="stop", detail=self.silence)
        return Reply(outcome="ok", text=said, finish_reason="stop")

    @abstractmethod
    def say(self, heard: tuple[str, ...], draw: Dice) -> str:
        """Next utterance after ``heard`` (one line each, oldest first, possibly none)."""


# ------------------------------------------------------------------------- a little English


def read_data(name: str) -> dict[str, Any]:
    """Read ``<name>.toml`` beside this file."""
    return tomllib.loads(resources.files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))


_DATA = read_data("language")


def _words(name: str) -> frozenset[str]:
    return frozenset(_DATA[name].split())


AUXILIARIES = _words("auxiliaries")
PREPOSITIONS = _words("prepositions")
DETERMINERS = _words("determiners")
PRONOUNS = _words("pronouns")
_CONJUNCTIONS = _words("conjunctions")
FUNCTION_WORDS = (
    AUXILIARIES | PREPOSITIONS | DETERMINERS | PRONOUNS | _CONJUNCTIONS | _words("small_words")
)
"""Words that say nothing about the subject of a conversation."""

_PAST_FORMS = _words("past_forms")
_CONTENT_LETTERS = 3
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_CLAUSE = re.compile(
    r"(?<=[.!?])\s+|;|:(?=\s|$)|\s+-+\s+|\s*\u2014\s*|\.{2,}|\u2026"
    r"|,\s*(?:(?:and|but|so|or|because|then|though|although)\b\s*)?|\s+(?:but|because)\s+",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"^(?:(?:so(?! that)|well|oh|and|but|or|then|hey|hi|now|yes|no|yeah|ok|okay|anyway|also"
    r"|actually)\s+)+",
    re.IGNORECASE,
)


def words(text: str) -> list[str]:
    """Words of ``text`` in lower case, apostrophes kept."""
    return _WORD.findall(text.lower())


def clauses(text: str) -> list[str]:
    """Parts of ``text`` between punctuation marks, without a leading "so", "but" or "well".

    A question keeps its ``?``.
    """
    found = []
    for part in _CLAUSE.split(text):
        clause = _LEAD_IN.sub("", part.strip(" ,.!\"'()[]*#_`~"))
        if _WORD.search(clause):
            found.append(clause)
    return found


def content_words(text: str) -> list[str]:
    """Words that carry the subject of ``text``, as spelt there, in order, each once."""
    return list(dict.fromkeys(word for word in _WORD.findall(text) if _has_content(word)))


def _has_content(word: str) -> bool:
    return len(word) >= _CONTENT_LETTERS and word.lower() not in FUNCTION_WORDS


_NOUN_PHRASE = re.compile(
    rf"\b(?:{'|'.join(sorted(DETERMINERS))})\s+([a-z]+(?:'s)?)(?:\s+([a-z]+)\b(?!'))?",
    re.IGNORECASE,
)


def noun_phrases(text: str) -> list[str]:
    """Likely noun phrases of ``text``, in lower case without their determiner, in order, each once.

    One or two content words after an article, a demonstrative or a possessive.
    """
    found: dict[str, None] = {}
    for match in _NOUN_PHRASE.finditer(text.lower()):
        first, second = match[1], match[2]
        if not _is_nominal(first):
            continue
        if second and _is_nominal(second) and not second.endswith(("ed", "ing")):
            found[f"{first} {second}"] = None
        elif not first.endswith("'s"):
            found[first] = None
    return list(found)


def _is_nominal(word: str) -> bool:
    return _has_content(word) and word not in _PAST_FORMS and not word.endswith("ly")


_SWAP: dict[str, str] = _DATA["swap"]
_AFTER_I: dict[str, str] = _DATA["after_i"]
_BEFORE_I: dict[str, str] = _DATA["before_i"]
_AFTER_YOU: dict[str, str] = _DATA["after_you"]
_ADVERBS = _words("adverbs")
_TAKES_OBJECT = _words("takes_object")
_AFTER_OBJECT = (PREPOSITIONS | DETERMINERS | _words("after_object")) - {"no"}
_BEFORE_OBJECT = PREPOSITIONS - _words("particles")


def reflect(text: str) -> str:
    """Exchange first and second person in ``text``, with their verb forms."""
    parts = re.split(r"([A-Za-z]+(?:'[A-Za-z]+)*)", text)
    low = [part.lower() for part in parts]

    def beside(index: int, step: int) -> str:
        """Neighbouring word with only a blank between, or an empty string."""
        other, between = index + 2 * step, index + step
        return low[other] if 0 < other < len(low) and low[between].isspace() else ""

    def subject_before(index: int) -> str:
        """Word before this one or before its adverb; empty if it ends "some of you"."""
        at = index - 2 if beside(index, -1) in _ADVERBS else index
        before = beside(at, -1)
        return "" if beside(at - 2, -1) in ("of", "to", "with", "for") else before

    for i in range(1, len(parts), 2):
        before, after = subject_before(i), beside(i, 1)
        if low[i] == "you":
            parts[i] = "me" if _is_object(beside(i, -1), after, beside(i - 2, -1)) else "I"
        elif low[i] in _AFTER_I and before == "you":
            parts[i] = _AFTER_I[low[i]]
        elif low[i] in _BEFORE_I and after == "you" and before not in PRONOUNS - {"who"}:
            parts[i] = _BEFORE_I[low[i]]
        elif low[i] in _AFTER_YOU and "i" in (before, after):
            parts[i] = _AFTER_YOU[low[i]]
        else:
            parts[i] = _SWAP.get(low[i], parts[i])
    return "".join(parts)


def _is_object(before: str, after: str, before_that: str) -> bool:
    """Whether a "you" between these words becomes "me", not "I"."""
    if before == "of":
        return True
    if after in AUXILIARIES or after in _ADVERBS:
        return False
    if before in AUXILIARIES:
        return before in ("were", "was") and before_that in PRONOUNS
    taken = before in _TAKES_OBJECT and before_that not in ("that", "thing", "things")
    if not after or before in _BEFORE_OBJECT or taken:
        return True
    return bool(before) and before not in _CONJUNCTIONS and after in _AFTER_OBJECT


_OPENERS = FUNCTION_WORDS | _words("openers")


def mid_sentence(text: str) -> str:
    """Lower the first letter of ``text`` unless the word may be a name."""
    first = _WORD.match(text)
    if first is None or first[0].lower() not in _OPENERS or first[0].split("'")[0] == "I":
        return text
    return text if first[0][1:] != first[0][1:].lower() else text[0].lower() + text[1:]


@cache
def fixed_part(template: str) -> str:
    """Longest part of ``template`` between its slots, in lower case: shows that it was used."""
    return max(re.split(r"\{\d\}", template), key=len).strip().lower()


def sentence_case(text: str) -> str:
    """Raise the first letter of each sentence of ``text``."""
    return re.sub(r"(^\"?|[.!?]\s+\"?)([a-z])", lambda m: m[1] + m[2].upper(), text)

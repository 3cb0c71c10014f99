"""Offline bots: baselines for real leaderboards, and for the demo; each has its own failing.

All are deterministic and free, and talk for any number of turns. A good judge finds the failing of
each. Word lists and phrases are in ``bots.toml``.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
import tomllib
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import resources
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from botchat.errors import ConfigError, did_you_mean
from botchat.interfaces import ChatModel, Decoding, Message, Reply
from botchat.languages import ENGLISH, Language
from botchat.languages.text import split
from botchat.records import N_SEED

BASELINES: Mapping[str, str] = {
    "retrieval": "a human reply to the most similar context of the seed set, leave-one-out:"
    " human line by line, incoherent as a whole",
    "parrot": "repeats what it heard, then loops through thanks and goodbyes",
    "verbose": "assistant at its worst: long, formal, full of lists, says that it is an AI",
}
"""Name after ``bot:`` -> description."""

HEARD_CHARS = 4000
"""Characters of an utterance that a bot reads."""

_DATA: dict[str, Any] = tomllib.loads(
    resources.files(__package__).joinpath("bots.toml").read_text("utf-8")
)
_UNSAYABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


def baseline(
    name: str, human_dialogues: Sequence[tuple[str, ...]], language: Language = ENGLISH
) -> ChatModel:
    """Make ``bot:<name>``; only ``retrieval`` uses the seed set's ``human_dialogues``.

    Raises `ConfigError` for an unknown name, fewer than two dialogues, or a ``language`` that the
    bot cannot speak.
    """
    if name not in BASELINES:
        names = [f"bot:{known}" for known in BASELINES]
        meant = did_you_mean(f"bot:{name}", names)
        raise ConfigError(f"unknown bot bot:{name}{meant}: name one of {', '.join(names)}")
    if name == Retrieval.bot:
        return Retrieval(human_dialogues, language)
    if not language.english:
        raise ConfigError(
            f"bot:{name} speaks English only and this set is {language.name} ({language.code}); "
            f"name a model, or bot:{Retrieval.bot}"
        )
    return Parrot() if name == Parrot.bot else Verbose()


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

    def pick(self, options: Sequence[str]) -> str:
        """Draw one of ``options``, which must not be empty."""
        return options[self.below(len(options))]

    def chance(self, probability: float) -> bool:
        """Draw true with ``probability``."""
        return self._random.random() < probability


class Bot(ABC):
    """An offline `botchat.interfaces.ChatModel`: no network, no state, no clock.

    The same utterances and ``decoding.sample`` always get the same reply. The version is raised
    with every change of any reply, because the ledger keeps replies under it.
    """

    bot: ClassVar[str]
    version = 1
    context_window: int | None = None
    parallel = 8
    silence = "the bot had nothing to say"

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
        text = self.speak(
            tuple(map(_hear, utterances)), Dice(decoding.sample, self.bot, utterances)
        )
        if not text:
            return Reply(outcome="empty", finish_reason="stop", detail=self.silence)
        return Reply(outcome="ok", text=text, finish_reason="stop")

    @abstractmethod
    def speak(self, utterances: tuple[str, ...], dice: Dice) -> str:
        """Return the next utterance after these (one line each, oldest first, possibly none)."""


def _one_line(text: str) -> str:
    return _UNSAYABLE.sub(" ", text).strip()


def _hear(text: str) -> str:
    return _one_line(text[:HEARD_CHARS]).replace("\u2019", "'")


# ------------------------------------------------------------------------- a little English

_ENGLISH: dict[str, Any] = _DATA["english"]
_SETS = {name: frozenset(v.split()) for name, v in _ENGLISH.items() if isinstance(v, str)}
_AUXILIARIES, _PREPOSITIONS = _SETS["auxiliaries"], _SETS["prepositions"]
_DETERMINERS, _PRONOUNS, _ADVERBS = (_SETS[name] for name in ("determiners", "pronouns", "adverbs"))
_FUNCTION_WORDS = _SETS["small_words"].union(
    _AUXILIARIES, _PREPOSITIONS, _DETERMINERS, _PRONOUNS, _SETS["conjunctions"]
)
"""Words that say nothing about the subject of a dialogue."""
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
_NOUN_PHRASE = re.compile(
    rf"\b(?:{'|'.join(sorted(_DETERMINERS))})\s+([a-z]+(?:'s)?)(?:\s+([a-z]+)\b(?!'))?"
)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _has_content(word: str) -> bool:
    return len(word) >= 3 and word.lower() not in _FUNCTION_WORDS


def _is_nominal(word: str) -> bool:
    return _has_content(word) and word not in _SETS["past_forms"] and not word.endswith("ly")


def _noun_phrases(text: str) -> list[str]:
    """Return one or two content words after an article, demonstrative or possessive, each once."""
    phrases: dict[str, None] = {}
    for first, second in _NOUN_PHRASE.findall(text.lower()):
        if not _is_nominal(first):
            continue
        if second and _is_nominal(second) and not second.endswith(("ed", "ing")):
            phrases[f"{first} {second}"] = None
        elif not first.endswith("'s"):
            phrases[first] = None
    return list(phrases)


def reflect(text: str) -> str:
    """Exchange first and second person in ``text``, with their verb forms."""
    parts = re.split(r"([A-Za-z]+(?:'[A-Za-z]+)*)", text)
    low = [part.lower() for part in parts]

    def neighbour(index: int, step: int) -> str:
        """Return the neighbouring word with only a blank between, or ''."""
        other, between = index + 2 * step, index + step
        return low[other] if 0 < other < len(low) and low[between].isspace() else ""

    def subject_before(index: int) -> str:
        """Return the word before this one or before its adverb; '' if it ends "some of you"."""
        at = index - 2 if neighbour(index, -1) in _ADVERBS else index
        before = neighbour(at, -1)
        return "" if neighbour(at - 2, -1) in ("of", "to", "with", "for") else before

    for i in range(1, len(parts), 2):
        before, after, word = subject_before(i), neighbour(i, 1), low[i]
        if word == "you":
            is_object = _is_object(neighbour(i, -1), after, neighbour(i - 2, -1))
            parts[i] = "me" if is_object else "I"
        elif word in _ENGLISH["after_i"] and before == "you":
            parts[i] = _ENGLISH["after_i"][word]
        elif word in _ENGLISH["before_i"] and after == "you" and before not in _PRONOUNS - {"who"}:
            parts[i] = _ENGLISH["before_i"][word]
        elif word in _ENGLISH["after_you"] and "i" in (before, after):
            parts[i] = _ENGLISH["after_you"][word]
        else:
            parts[i] = _ENGLISH["swap"].get(word, parts[i])
    return "".join(parts)


def _is_object(before: str, after: str, before_that: str) -> bool:
    """Return whether a "you" between these words becomes "me", not "I"."""
    if before == "of":
        return True
    if after in _AUXILIARIES or after in _ADVERBS:
        return False
    if before in _AUXILIARIES:
        return before in ("were", "was") and before_that in _PRONOUNS
    has_object = before in _SETS["takes_object"] and before_that not in ("that", "thing", "things")
    if not after or before in _PREPOSITIONS - _SETS["particles"] or has_object:
        return True
    return (
        bool(before)
        and before not in _SETS["conjunctions"]
        and (after in _PREPOSITIONS | _DETERMINERS | _SETS["after_object"] and after != "no")
    )


def _mid_sentence(text: str) -> str:
    """Lower the first letter of ``text`` unless the word may be a name."""
    match = _WORD.match(text)
    word = match[0] if match else ""
    plain = word.lower() in _FUNCTION_WORDS | _SETS["openers"] and word.split("'")[0] != "I"
    return text[0].lower() + text[1:] if plain and word[1:] == word[1:].lower() else text


def _sentence_case(text: str) -> str:
    return re.sub(r"(^\"?|[.!?]\s+\"?)([a-z])", lambda m: m[1] + m[2].upper(), text)


class Parrot(Bot):
    """`bot:parrot`: an echo of the last clause ("I" and "you" exchanged), then a loop.

    Its failing: repetition, and thanks for thanks without end (BotChat's "repetitive phrasing"). A
    pleasantry always gets a pleasantry; without one, the loop begins after 4 to 8 utterances.
    """

    bot = "parrot"

    def speak(self, utterances: tuple[str, ...], dice: Dice) -> str:
        """Return a pleasantry for a pleasantry or when it is time, else an echo."""
        phrases = _DATA["parrot"]
        if not utterances:
            return dice.pick(phrases["nothing_heard"])
        seed = Dice(dice.sample, self.bot, utterances[:2])
        for loop in phrases["loops"] if len(utterances) > 4 else ():
            if re.search(rf"\b(?:{loop['cue']})", utterances[-1], re.IGNORECASE):
                return (seed if dice.chance(0.7) else dice).pick(loop["replies"])
        if len(utterances) > 4 + seed.below(5):
            return seed.pick(phrases["openings"])
        parts = [part.strip(" ,.!\"'()[]*#_`~") for part in _CLAUSE.split(utterances[-1])]
        clauses = [clause for part in parts if _WORD.search(clause := _LEAD_IN.sub("", part))]
        if not clauses:
            return dice.pick(phrases["nothing_heard"])
        clause = max(clauses[-2:], key=len)
        echo = " ".join(reflect(clause).split()[-12:])[-80:].strip()
        frame = dice.pick(phrases["question_echoes" if clause.endswith("?") else "echoes"])
        return _sentence_case(frame.replace("{0}", _mid_sentence(echo)))


class Verbose(Bot):
    """`bot:verbose`: opening, considerations, closing offer, on what the last utterance was about.

    Its failings (three of BotChat's bad cases): length, 60 to 200 words where humans use about 14;
    formality and lists, in Markdown of several lines; sometimes it says that it is an AI. It takes
    up only words that are not its own, so in self-chat it stays with the words of the ChatSEED.
    """

    bot = "verbose"
    phrases: ClassVar[dict[str, Any]] = _DATA["verbose"]
    _texts = (text if isinstance(text, str) else " ".join(text) for text in phrases.values())
    own_words = frozenset(_words(" ".join(_texts)))

    def speak(self, utterances: tuple[str, ...], dice: Dice) -> str:
        """Fill sentences that are new in this dialogue until the length drawn is reached."""
        phrases, before = self.phrases, "\n".join(utterances).lower()
        recent = next(filter(None, map(self._topics, reversed(utterances))), [phrases["any_topic"]])
        topic = dice.pick(recent)
        seed_topics = self._topics(" ".join(utterances[:N_SEED]))
        other = dice.pick([t for t in seed_topics if t != topic] or recent)

        def fill(sentences: Sequence[str]) -> str:
            new = [sentence for sentence in sentences if _fixed_part(sentence) not in before]
            return dice.pick(new or sentences).replace("{0}", topic).replace("{1}", other)

        opening = fill(phrases["openings"])
        if dice.chance(0.3):
            opening += " " + fill(phrases["identities"])
        closing = fill(phrases["closings"])
        aim = 60 + dice.below(101)
        points: list[str] = []
        length = len(f"{opening} {closing}".split())
        while len(points) < (len(phrases["links"]) if length < aim else 2):
            text = " ".join(points)
            points.append(fill([p for p in phrases["points"] if _fixed_part(p) not in text]))
            length += len(points[-1].split())
        return self._lay_out(_sentence_case(opening), points, closing, dice)

    def _topics(self, text: str) -> list[str]:
        """Return noun phrases of ``text``, else words, that are not the bot's own vocabulary."""
        nouns = [f"the {n}" for n in _noun_phrases(text) if self.own_words.isdisjoint(n.split())]
        content = dict.fromkeys(word for word in _WORD.findall(text) if _has_content(word))
        new = [word for word in content if word.lower() not in self.own_words]
        words = [word if word[0].isupper() else f'"{word}"' for word in new]
        return [topic for topic in nouns or words if len(topic) <= 40]

    def _lay_out(self, opening: str, points: Sequence[str], closing: str, dice: Dice) -> str:
        """Join the points in Markdown lines, numbered in line, or as running text."""
        if not dice.chance(0.55):
            links = [*self.phrases["links"][: len(points) - 1], self.phrases["last_link"]]
            running = (f"{link} {point}" for link, point in zip(links, points, strict=True))
            return " ".join([opening, *running, closing])
        intro = dice.pick(self.phrases["list_intros"])
        numbered = [f"{number}. {_sentence_case(point)}" for number, point in enumerate(points, 1)]
        separator = "\n" if dice.chance(0.4) else " "
        return separator.join([f"{opening} {intro}", *numbered, closing])


def _fixed_part(template: str) -> str:
    """Return the longest part between slots, in lower case: it shows that a sentence was used."""
    return max(re.split(r"\{\d\}", template), key=len).strip().lower()


class Retrieval(Bot):
    """`bot:retrieval`: a human reply from the nearest context by BM25, leave-one-out.

    Its failing: each utterance is human and more or less fits the one before it, but the dialogue
    makes no sense. It never replies from the dialogue being extended: every human dialogue that
    holds the first utterance is left out and, if the first two are no ChatSEED of the set (because
    the oldest were dropped), every one that holds any utterance. While there is another choice, it
    repeats nothing and takes at most one utterance from each human dialogue, because nearest
    contexts alone would copy a dialogue to its end. ``sample`` n gets the n-th best reply.
    """

    bot = "retrieval"
    silence = "every human dialogue of the set shares an utterance with the one being extended"

    def __init__(
        self, human_dialogues: Sequence[tuple[str, ...]], language: Language = ENGLISH
    ) -> None:
        """Index the contexts of every human utterance but the dialogues' first ones."""
        if len(human_dialogues) < 2:
            raise ConfigError(
                f"bot:retrieval needs at least 2 human dialogues to reply from, the seed set has "
                f"{len(human_dialogues)}: import a larger set or name another bot"
            )
        self._english, self._words = language.english, _words
        self._spoken = {} if language.english else {"language": language.code}
        if not language.english:
            self._words = partial(split, spaced=language.pack.units == "words")
        corpus = json.dumps(human_dialogues).encode("ascii")
        self._digest = hashlib.sha256(corpus).hexdigest()[:16]
        dialogues = [tuple(map(_hear, utterances)) for utterances in human_dialogues]
        self._seeds = {tuple(map(self._key, utterances[:N_SEED])) for utterances in dialogues}
        self._holders: dict[str, set[int]] = defaultdict(set)
        """Utterance key -> dialogues that hold it."""
        self._replies: list[tuple[str, str]] = []
        """Key and text."""
        lasts, earliers = [], []
        for number, utterances in enumerate(dialogues):
            for utterance in utterances:
                self._holders[self._key(utterance)].add(number)
            for at in range(1, len(utterances)):
                if utterances[at]:  # not only control characters
                    text = _one_line(human_dialogues[number][at])
                    self._replies.append((self._key(utterances[at]), text))
                    lasts.append(self._last_terms(utterances[at - 1]))
                    earliers.append(self._earlier_terms(utterances[: at - 1]))
        self._last, self._earlier = _Index(lasts), _Index(earliers)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Bot, version, a digest of the human dialogues it replies from, and their language."""
        return {**super().identity, "corpus": self._digest, **self._spoken}

    def speak(self, utterances: tuple[str, ...], dice: Dice) -> str:
        """Reply in the best context left, or nothing if none is left."""
        keys = [self._key(utterance) for utterance in utterances]
        known = tuple(keys[:N_SEED]) in self._seeds
        own = self._sharing(keys[:1] if known else keys)  # may be the dialogue being extended
        scores = self._last.scores(self._last_terms(utterances[-1]) if utterances else ())
        scores += 0.3 * self._earlier.scores(self._earlier_terms(utterances[:-1]))
        # Among equal scores (nothing in common at all) not always the first dialogue.
        ties = np.roll(np.arange(len(scores)), Dice(0, utterances).below(len(scores)))
        best: list[int] = np.lexsort((ties, -scores)).tolist()
        # An utterance of several human dialogues does not tell which one it was drawn from.
        used = self._sharing(key for key in keys if len(self._holders.get(key, ())) == 1)
        for barred, repeats in ((own | used, keys), (own, keys), (own, ())):
            ranked: dict[str, str] = {}
            for key, text in (self._replies[at] for at in best):
                if key not in repeats and barred.isdisjoint(self._holders[key]):
                    ranked.setdefault(key, text)
                    if len(ranked) > dice.sample:
                        break
            if ranked:
                return list(ranked.values())[dice.sample % len(ranked)]
        return ""

    def _key(self, utterance: str) -> str:
        """Return the words of an utterance, or its whole text if it has none."""
        return " ".join(self._words(utterance.lower())) or utterance

    def _last_terms(self, utterance: str) -> list[str]:
        """Return words, pairs of words, and whether it is a question."""
        words = self._words(utterance.lower())
        marks = "?" if self._english else "?\uff1f"
        is_question = not set(marks).isdisjoint(utterance[-2:])
        return words + [f"{a} {b}" for a, b in pairwise(words)] + ["?"] * is_question

    def _earlier_terms(self, utterances: Sequence[str]) -> list[str]:
        """Return content words of the three utterances before the last."""
        words = self._words(" ".join(utterances[-3:]).lower())
        return [word for word in words if not (self._english and word in _FUNCTION_WORDS)]

    def _sharing(self, keys: Iterable[str]) -> set[int]:
        return set().union(*(self._holders.get(key, set()) for key in keys))


class _Index:
    """BM25 (Robertson & Zaragoza 2009, §3.5; k1 = 1.2, b = 0.75) over documents as terms."""

    def __init__(self, documents: Sequence[Iterable[str]]) -> None:
        counts = [Counter(terms) for terms in documents]
        lengths = np.array([sum(count.values()) for count in counts], dtype=float)
        mean_length = max(float(lengths.mean()), 1.0)
        self._n = len(counts)
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, count in enumerate(counts):
            for term, n_times in count.items():
                postings[term].append((number, n_times))
        self._weights: dict[str, tuple[NDArray[np.intp], NDArray[np.float64]]] = {}
        for term, pairs in postings.items():
            where = np.array([number for number, _ in pairs], dtype=np.intp)
            times = np.array([n_times for _, n_times in pairs], dtype=float)
            idf = math.log(1 + (self._n - len(pairs) + 0.5) / (len(pairs) + 0.5))
            damped = times + 1.2 * (1 - 0.75 + 0.75 * lengths[where] / mean_length)
            self._weights[term] = where, idf * times * (1.2 + 1) / damped

    def scores(self, terms: Iterable[str]) -> NDArray[np.float64]:
        """Return the score of every document for ``terms``, shape (n_documents,), each >= 0."""
        scores = np.zeros(self._n)
        for term in dict.fromkeys(terms):  # a set's order, and so the rounding, is not fixed
            if term in self._weights:
                where, weight = self._weights[term]
                scores[where] += weight
        return scores

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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from itertools import count, pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from botchat.errors import ConfigError
from botchat.interfaces import Decoding, Identity, Message, Quirks, Reply
from botchat.languages import ENGLISH, Language
from botchat.languages.text import split
from botchat.models.attempts import Answered, Attempt, Call
from botchat.records import N_SEED

T = TypeVar("T")

_DATA: dict[str, Any] = tomllib.loads(
    resources.files(__package__).joinpath("bots.toml").read_text("utf-8")
)
BASELINES: Mapping[str, str] = _DATA["about"]
"""Name after ``bot:`` -> description."""

VERSION = 1  # raised with every change of any reply, because the ledger keeps replies under it

_UNSAYABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


class Dice:
    """Random choices that depend only on ``sample`` and ``key``, on every platform and Python."""

    def __init__(self, sample: int, *key: object) -> None:
        seed = hashlib.sha256(json.dumps([sample, key]).encode("ascii")).digest()[:8]
        self.sample = sample
        # Of `random`, only random() promises the same numbers in every version of Python.
        self.draw = random.Random(int.from_bytes(seed, "big")).random

    def pick(self, options: Sequence[T]) -> T:
        """Draw one of ``options``, which must not be empty."""
        return options[int(self.draw() * len(options))]


@dataclass(frozen=True)
class Bot:
    """An offline `ChatModel`: the same utterances and ``sample`` always get the same reply."""

    name: str
    identity: Identity
    speak: Callable[[tuple[str, ...], Dice], str]
    """Returns the next utterance after some, oldest first, each in one line."""
    context_window: int | None = None
    parallel: int = 8
    quirks = Quirks()
    room = 0

    most_room = 0

    async def attempt(self, call: Call) -> Attempt:
        """Answer a call; a bot always does."""
        return Answered(await self.chat(call.messages, call.decoding), billed=False)

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """Continue the dialogue in ``messages``; never raises."""
        utterances = [m["content"] for m in messages if m["role"] != "system"]
        dice = Dice(decoding.sample, self.identity["bot"], utterances)
        if text := self.speak(tuple(map(_hear, utterances)), dice):
            return Reply(outcome="ok", text=text, finish_reason="stop")
        return Reply(outcome="empty", finish_reason="stop", detail="the bot has nothing to say")


def baseline(
    name: str, human_dialogues: Sequence[tuple[str, ...]], language: Language = ENGLISH
) -> Bot:
    """Make ``bot:<name>``; only ``retrieval`` uses the seed set's ``human_dialogues``.

    Raises `ConfigError` for an unknown name, fewer than two dialogues, or another language.
    """
    if name not in BASELINES:
        names = ", ".join(f"bot:{known}" for known in BASELINES)
        raise ConfigError(f"unknown bot bot:{name}: name one of {names}")
    identity: Identity = {"bot": name, "version": VERSION}
    if name != "retrieval":
        if not language.english:
            raise ConfigError(f"bot:{name} speaks English only and this set is {language.name}")
        return Bot(f"bot:{name}", identity, parrot if name == "parrot" else verbose)
    corpus = hashlib.sha256(json.dumps(human_dialogues).encode("ascii")).hexdigest()[:16]
    identity["corpus"] = corpus
    if not language.english:
        identity["language"] = language.code
    return Bot(f"bot:{name}", identity, Retrieval(human_dialogues, language).speak)


def _one_line(text: str) -> str:
    return _UNSAYABLE.sub(" ", text).strip()


def _hear(text: str) -> str:
    return _one_line(text[:4000]).replace("\u2019", "'")


_ENGLISH: dict[str, Any] = _DATA["english"]
_LISTS = {name: frozenset(words.split()) for name, words in _ENGLISH["words"].items()}
_FUNCTION_WORDS = frozenset().union(*(_LISTS[name] for name in _ENGLISH["function_words"]))
"""Words that say nothing about the subject of a dialogue."""


def _compile(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which ``{name}`` is any word of a list."""
    return re.compile(re.sub(r"{(\w+)}", lambda m: f"(?:{'|'.join(_LISTS[m[1]])})", pattern))


_CLAUSE, _LEAD_IN, _NOUN_PHRASE = map(_compile, _ENGLISH["patterns"].values())
_REFLECTIONS: dict[str, list[tuple[re.Pattern[str], str]]] = {
    word: [(_compile(pattern), new) for pattern, new in rules]
    for word, rules in _ENGLISH["reflections"].items()
}
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_TOKEN = re.compile(r"([A-Za-z]+(?:'[A-Za-z]+)*)|\S")


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _has_content(word: str) -> bool:
    return len(word) >= 3 and word.lower() not in _FUNCTION_WORDS


def reflect(text: str) -> str:
    """Exchange first and second person in ``text``, with their verb forms."""
    tokens = ["|"] * 3 + [(m[1] or "|").lower() for m in _TOKEN.finditer(text)] + ["|"]
    numbers = count(3)

    def exchange(match: re.Match[str]) -> str:
        n = next(numbers)
        context = f" {' '.join(tokens[n - 3 : n])} <{tokens[n]}> {tokens[n + 1]} "
        rules = _REFLECTIONS.get(tokens[n], ())
        return next((new for pattern, new in rules if pattern.search(context)), "") or match[0]

    return _TOKEN.sub(exchange, text)


def _mid_sentence(text: str) -> str:
    """Lower the first letter of ``text`` unless the word may be a name."""
    word = match[0] if (match := _WORD.match(text)) else ""
    plain = word.lower() in _FUNCTION_WORDS | _LISTS["openers"] and word.split("'")[0] != "I"
    return text[0].lower() + text[1:] if plain and word[1:] == word[1:].lower() else text


def _sentence_case(text: str) -> str:
    return re.sub(r"(^\"?|[.!?]\s+\"?)([a-z])", lambda m: m[1] + m[2].upper(), text)


def parrot(utterances: tuple[str, ...], dice: Dice) -> str:
    """Return a pleasantry for a pleasantry, else an echo of the last clause, "I" and "you" swapped.

    Its failing: repetition without end (BotChat's "repetitive phrasing"), after 4 to 8 utterances.
    """
    phrases, seed = _DATA["parrot"], Dice(dice.sample, "parrot", utterances[:2])
    for loop in phrases["loops"] if len(utterances) > 4 else ():
        if re.search(rf"\b(?:{loop['cue']})", utterances[-1], re.IGNORECASE):
            return str((seed if dice.draw() < 0.7 else dice).pick(loop["replies"]))
    if len(utterances) > 4 + seed.pick(range(5)):
        return str(seed.pick(phrases["openings"]))
    parts = _CLAUSE.split(utterances[-1]) if utterances else ()
    clauses = [_LEAD_IN.sub("", part.strip(" ,.!\"'()[]*#_`~")) for part in parts]
    clause = max([clause for clause in clauses if _WORD.search(clause)][-2:], key=len, default="")
    if not clause:
        return str(dice.pick(phrases["nothing_heard"]))
    echo = " ".join(reflect(clause).split()[-12:])[-80:].strip()
    frame = dice.pick(phrases["question_echoes" if clause.endswith("?") else "echoes"])
    return _sentence_case(frame.replace("{0}", _mid_sentence(echo)))


_VERBOSE: dict[str, Any] = _DATA["verbose"]
_OWN_WORDS = frozenset(_words(json.dumps(list(_VERBOSE.values()))))


def verbose(utterances: tuple[str, ...], dice: Dice) -> str:
    """Return opening, considerations and closing offer on what the last utterance was about.

    Its failings: 60 to 200 words, formality, lists; sometimes it calls itself an AI. Topics are
    never its own words, so in self-chat it stays with the topics of the ChatSEED.
    """
    before = "\n".join(utterances).lower()
    recent = next(filter(None, map(_topics, reversed(utterances))), [_VERBOSE["any_topic"]])
    topic = dice.pick(recent)
    seed_topics = _topics(" ".join(utterances[:N_SEED]))
    other = dice.pick([t for t in seed_topics if t != topic] or recent)

    def fill(sentences: Sequence[str]) -> str:
        new = [sentence for sentence in sentences if _fixed_part(sentence) not in before]
        return dice.pick(new or sentences).replace("{0}", topic).replace("{1}", other)

    opening = fill(_VERBOSE["openings"])
    if dice.draw() < 0.3:
        opening += " " + fill(_VERBOSE["identities"])
    closing, aim = fill(_VERBOSE["closings"]), dice.pick(range(60, 161))
    points: list[str] = []
    length = len(f"{opening} {closing}".split())
    while len(points) < (len(_VERBOSE["links"]) if length < aim else 2):
        text = " ".join(points)
        points.append(fill([p for p in _VERBOSE["points"] if _fixed_part(p) not in text]))
        length += len(points[-1].split())
    opening = _sentence_case(opening)
    if dice.draw() >= 0.55:
        links = [*_VERBOSE["links"][: len(points) - 1], _VERBOSE["last_link"]]
        return " ".join([opening, *map("{} {}".format, links, points), closing])
    opening += " " + dice.pick(_VERBOSE["list_intros"])
    numbered = [f"{number}. {_sentence_case(point)}" for number, point in enumerate(points, 1)]
    return ("\n" if dice.draw() < 0.4 else " ").join([opening, *numbered, closing])


def _topics(text: str) -> list[str]:
    """Return noun phrases of ``text``, else words, that are not the bot's own vocabulary."""
    nouns = []
    for first, second in _NOUN_PHRASE.findall(text.lower()):
        two = _is_noun(second) and not second.endswith(("ed", "ing"))
        noun = f"{first} {second}" if two else first
        if _is_noun(first) and not noun.endswith("'s") and _OWN_WORDS.isdisjoint(noun.split()):
            nouns.append(f"the {noun}")
    new = [w for w in _WORD.findall(text) if _has_content(w) and w.lower() not in _OWN_WORDS]
    words = [word if word[0].isupper() else f'"{word}"' for word in new]
    return [topic for topic in dict.fromkeys(nouns or words) if len(topic) <= 40]


def _is_noun(word: str) -> bool:
    return _has_content(word) and word not in _LISTS["past_forms"] and not word.endswith("ly")


def _fixed_part(template: str) -> str:
    """Return the longest part between slots, in lower case: it shows that a sentence was used."""
    return max(re.split(r"{\d}", template), key=len).strip().lower()


class Retrieval:
    """A bot that replies with the human reply to the nearest context (BM25), so without coherence.

    Human dialogues that hold the first utterance are left out. If the first two are no ChatSEED of
    the set (the oldest were dropped), all that hold any utterance are, too. While there is another
    choice, it repeats nothing and takes at most one utterance from each human dialogue. Nearest
    contexts alone would copy a dialogue to its end.
    """

    def __init__(self, human_dialogues: Sequence[tuple[str, ...]], language: Language) -> None:
        """Index the contexts of every human utterance but the dialogues' first ones."""
        if len(human_dialogues) < 2:
            has = f"this set has {len(human_dialogues)}"
            raise ConfigError(f"bot:retrieval needs at least 2 human dialogues and {has}")
        self._english, other = (
            language.english,
            partial(split, spaced=language.pack.units == "words"),
        )
        self._words = _words if self._english else other
        dialogues = [tuple(map(_hear, utterances)) for utterances in human_dialogues]
        self._seeds = {tuple(map(self._key, utterances[:N_SEED])) for utterances in dialogues}
        self._holders: dict[str, set[int]] = defaultdict(set)  # dialogues that hold an utterance
        self._replies: list[tuple[str, str]] = []  # key and text
        contexts = []
        for number, utterances in enumerate(dialogues):
            for at, utterance in enumerate(utterances):
                key = self._key(utterance)
                self._holders[key].add(number)
                if at and utterance:  # not only control characters
                    self._replies.append((key, _one_line(human_dialogues[number][at])))
                    contexts.append(self._terms(utterances[:at]))
        self._last, self._earlier = map(_Index, zip(*contexts, strict=True))

    def speak(self, utterances: tuple[str, ...], dice: Dice) -> str:
        """Reply in the best context left (``sample`` n: n-th best); nothing if none is left."""
        keys = [self._key(utterance) for utterance in utterances]
        known = tuple(keys[:N_SEED]) in self._seeds
        own = self._sharing(keys[:1] if known else keys)  # may be the dialogue being extended
        last, earlier = self._terms(utterances)
        scores = self._last.scores(last) + 0.3 * self._earlier.scores(earlier)
        # Among equal scores (nothing in common at all) not always the first dialogue.
        ties = np.roll(np.arange(len(scores)), Dice(0, utterances).pick(range(len(scores))))
        ranked = [self._replies[at] for at in np.lexsort((ties, -scores)).tolist()]
        # An utterance of several human dialogues does not tell which one it was drawn from.
        used = self._sharing(key for key in keys if len(self._holders.get(key, ())) == 1)
        for barred, repeats in ((own | used, keys), (own, keys), (own, ())):
            best: dict[str, str] = {}
            for key, text in ranked:
                if key not in repeats and barred.isdisjoint(self._holders[key]):
                    best.setdefault(key, text)
                if len(best) > dice.sample:
                    break
            if best:
                return list(best.values())[dice.sample % len(best)]
        return ""

    def _key(self, utterance: str) -> str:
        """Return the words of an utterance, or its whole text if it has none."""
        return " ".join(self._words(utterance.lower())) or utterance

    def _terms(self, utterances: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return words, pairs and "?" of the last one; content words of the three before it."""
        heard, before = "".join(utterances[-1:]), " ".join(utterances[-4:-1])
        marks, barred = ("?", _FUNCTION_WORDS) if self._english else ("?\uff1f", ())
        last, asks = self._words(heard.lower()), not set(marks).isdisjoint(heard[-2:])
        earlier = [word for word in self._words(before.lower()) if word not in barred]
        return [*last, *map(" ".join, pairwise(last)), *["?"] * asks], earlier

    def _sharing(self, keys: Iterable[str]) -> set[int]:
        return set().union(*(self._holders.get(key, set()) for key in keys))


class _Index:
    """BM25 (Robertson & Zaragoza 2009, §3.5; k1 = 1.2, b = 0.75) over documents as terms."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        lengths = np.array(list(map(len, documents)), dtype=float)
        damping = 1.2 * (1 - 0.75 + 0.75 * lengths / max(float(lengths.mean()), 1.0))
        self._n = n = len(documents)
        postings: dict[str, Counter[int]] = defaultdict(Counter)
        for number, terms in enumerate(documents):
            for term in terms:
                postings[term][number] += 1
        self._weights: dict[str, tuple[NDArray[np.intp], NDArray[np.float64]]] = {}
        for term, counts in postings.items():
            where, times = np.array([*counts]), np.array([*counts.values()], dtype=float)
            idf = math.log(1 + (n - len(counts) + 0.5) / (len(counts) + 0.5))
            self._weights[term] = where, idf * times * (1.2 + 1) / (times + damping[where])

    def scores(self, terms: Iterable[str]) -> NDArray[np.float64]:
        """Return the score of every document for ``terms``, shape (n_documents,), each >= 0."""
        scores = np.zeros(self._n)
        for term in dict.fromkeys(terms):  # a set's order, and so the rounding, is not fixed
            where, weight = self._weights.get(term, ([], 0.0))
            scores[where] += weight
        return scores

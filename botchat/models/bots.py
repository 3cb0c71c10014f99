"""Offline bots: baselines for real leaderboards, and for the demo; each has its own failing.

All are deterministic and free, and talk for any number of turns. A good judge finds the failing of
each. Word lists and phrases are in ``bots.toml``.
"""

import hashlib
import json
import math
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from botchat.errors import ConfigError
from botchat.frames import Tables, package_toml
from botchat.interfaces import Identity, Quirks, Reply
from botchat.languages import ENGLISH, Language
from botchat.models.attempts import Answered, Attempt, Call
from botchat.records import N_SEED, Texts, Utterances

_DATA = package_toml("models/bots.toml", Tables)
BASELINES: Mapping[str, str] = _DATA["about"]
"""Name after ``bot:`` -> description."""

VERSION = 1  # raised with every change of any reply, because the ledger keeps replies under it

_UNSAYABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


class Dice:
    """Random choices that depend only on ``sample`` and ``key``, on every platform and Python."""

    def __init__(self, sample: int, *key: object) -> None:
        self.sample = sample
        # Of `random`, only random() promises the same numbers in every version of Python.
        self.draw = random.Random(int(_digest([sample, key]), 16)).random

    def below(self, n: int) -> int:
        """Draw one of the first ``n`` numbers from 0."""
        return int(self.draw() * n)

    def pick(self, options: Texts) -> str:
        """Draw one of ``options``, which must not be empty."""
        return options[self.below(len(options))]


def _digest(value: object) -> str:
    """Return 16 hex digits of a JSON-ready value."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Bot:
    """An offline `Sender`: the same utterances and ``sample`` always get the same reply."""

    name: str
    identity: Identity
    speak: Callable[[Utterances, Dice], str]
    """Returns the next utterance after some, oldest first, each in one line."""
    context_window = None
    parallel = 8
    quirks = Quirks()
    room = 0
    most_room = 0

    async def attempt(self, call: Call) -> Attempt:
        """Continue the dialogue of a call; never fails."""
        utterances = [m["content"] for m in call.messages if m["role"] != "system"]
        dice = Dice(call.decoding.sample, self.identity["bot"], utterances)
        text = self.speak(tuple(_hear(each) for each in utterances), dice)
        reply = Reply("ok", text, "stop")
        if not text:
            reply = Reply("empty", "", "stop", detail="the bot has nothing to say")
        return Answered(reply, billed=False)


def baseline(name: str, human_dialogues: Sequence[Utterances], language: Language = ENGLISH) -> Bot:
    """Make ``bot:<name>``; only ``retrieval`` uses the seed set's ``human_dialogues``.

    Raises `ConfigError` for an unknown name, fewer than two dialogues, or another language.
    """
    if name not in BASELINES:
        names = ", ".join(f"bot:{known}" for known in BASELINES)
        raise ConfigError(f"unknown bot bot:{name}: name one of {names}")
    identity: Identity = {"bot": name, "version": VERSION}
    speak = {"parrot": parrot, "verbose": verbose}.get(name)
    if speak is None:
        identity["corpus"] = _digest(human_dialogues)
        if not language.english:
            identity["language"] = language.code
        speak = Retrieval(human_dialogues, language).speak
    elif not language.english:
        raise ConfigError(f"bot:{name} speaks English only and this set is {language.name}")
    return Bot(f"bot:{name}", identity, speak)


def _one_line(text: str) -> str:
    return _UNSAYABLE.sub(" ", text).strip()


def _hear(text: str) -> str:
    return _one_line(text[:4000]).replace("\u2019", "'")


_WORDS = _DATA["words"]
_PATTERNS = _DATA["patterns"]
_SETS = {name: frozenset((words % _WORDS).split("|")) for name, words in _DATA["sets"].items()}
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_TOKEN = re.compile(r"([A-Za-z]+(?:'[A-Za-z]+)*|\S)")


def _words(text: str, language: Language = ENGLISH) -> list[str]:
    if language.english:
        return _WORD.findall(text.lower())
    pattern = r"[a-z0-9]+|[^\W_]"  # where blanks part no words, characters
    if language.spaced:
        pattern = r"[^\W_]+"
    return re.findall(pattern, text.lower())


def reflect(text: str) -> str:
    """Exchange first and second person in ``text``, with their verb forms."""
    parts = _TOKEN.split(text)  # every second one is a token
    heard = ["|", "|", "|"] + parts[1::2] + ["|"]
    for n, token in enumerate(parts[1::2]):
        context = f" {' '.join(heard[n : n + 3])} <{token}> {heard[n + 4]} "
        for pattern, new in _DATA["reflections"].get(token.lower(), ()):
            if re.search(f"(?ai){pattern % _WORDS}", context):
                parts[2 * n + 1] = new or token
                break
    return "".join(parts)


def _mid_sentence(text: str) -> str:
    """Lower the first letter of ``text`` unless the word may be a name."""
    word = _WORD.match(text)
    if word and word[0].lower() in _SETS["openers"] and not re.match(r"I\b|..*[A-Z]", word[0]):
        return text[0].lower() + text[1:]
    return text


def _sentence_case(text: str) -> str:
    return re.sub(r"(^\"?|[.!?]\s+\"?)([a-z])", lambda m: m[1] + m[2].upper(), text)


_PARROT = _DATA["parrot"]


def parrot(utterances: Utterances, dice: Dice) -> str:
    """Return a pleasantry for a pleasantry, else an echo of the last clause, "I" and "you" swapped.

    Its failing: repetition without end (BotChat's "repetitive phrasing"), after 4 to 8 utterances.
    """
    seed = Dice(dice.sample, "parrot", utterances[:2])
    if len(utterances) > 4:
        for cue, replies in _DATA["parrot_loops"].items():
            if re.search(cue, utterances[-1]):
                if dice.draw() < 0.7:
                    dice = seed
                return dice.pick(replies)
    if len(utterances) > 4 + seed.below(5):
        return seed.pick(_PARROT["openings"])
    clauses = []
    for part in re.split(_PATTERNS["clause"], "".join(utterances[-1:])):
        clause = re.sub(_PATTERNS["lead_in"], "", part.strip(" ,.!\"'()[]*#_`~"))
        if _WORD.search(clause):
            clauses.append(clause)
    if not clauses:
        return dice.pick(_PARROT["nothing_heard"])
    clause = max(clauses[-2:], key=len)
    echo = " ".join(reflect(clause).split()[-12:])[-80:].strip()
    frames = "echoes"
    if clause.endswith("?"):
        frames = "question_echoes"
    return _sentence_case(dice.pick(_PARROT[frames]).format(_mid_sentence(echo)))


_VERBOSE = _DATA["verbose"]
_OWN_WORDS = frozenset(_words(json.dumps(list(_VERBOSE.values()))))
_DULL = _OWN_WORDS | _SETS["function_words"]


def verbose(utterances: Utterances, dice: Dice) -> str:
    """Return opening, considerations and closing offer on what the last utterance was about.

    Its failings: 60 to 200 words, formality, lists; sometimes it calls itself an AI. Topics are
    never its own words, so in self-chat it stays with the topics of the ChatSEED.
    """
    before = "\n".join(utterances).lower()
    recent = next(
        filter(None, (_topics(each) for each in reversed(utterances))), _VERBOSE["any_topic"]
    )
    topic = dice.pick(recent)
    others = [each for each in _topics(" ".join(utterances[:N_SEED])) if each != topic]
    other = dice.pick(others or recent)
    points: list[str] = []

    def fill(kind: str) -> str:
        unused = _without(_VERBOSE[kind], " ".join(points))
        return dice.pick(_without(unused, before) or unused).format(topic, other)

    opening = fill("openings")
    if dice.draw() < 0.3:
        opening += " " + fill("identities")
    closing = fill("closings")
    aim = 60 + dice.below(101)
    marks = _VERBOSE["links"]
    for _ in marks:
        if len(points) >= 2 and len(" ".join([opening, closing, *points]).split()) >= aim:
            break
        points.append(fill("points"))
    glue = " "
    if dice.draw() >= 0.55:
        marks = marks[: len(points) - 1] + _VERBOSE["last_link"]
    else:
        marks = _VERBOSE["numbers"]
        opening += " " + dice.pick(_VERBOSE["list_intros"])
        if dice.draw() < 0.4:
            glue = "\n"
    return _sentence_case(glue.join([opening, *map("{} {}".format, marks, points), closing]))


def _without(templates: Iterable[str], text: str) -> list[str]:
    """Return the sentences whose longest part between slots, in lower case, is not in ``text``."""
    new = []
    for template in templates:
        part = max(re.split(r"{\d}", template), key=len)
        if part.strip().lower() not in text:
            new.append(template)
    return new


def _topics(text: str) -> list[str]:
    """Return noun phrases of ``text``, else words, that are not the bot's own vocabulary."""
    topics = []
    for first, second in re.findall(_PATTERNS["noun_phrase"] % _WORDS, text.lower()):
        noun = first
        if _is_noun(second) and not second.endswith(("ed", "ing")):
            noun = f"{first} {second}"
        if _is_noun(first) and not noun.endswith("'s") and _OWN_WORDS.isdisjoint(noun.split()):
            topics.append(f"the {noun}")
    if not topics:
        for word in _WORD.findall(text):
            if len(word) < 3 or word.lower() in _DULL:
                continue
            if not word[0].isupper():
                word = f'"{word}"'
            topics.append(word)
    return [topic for topic in dict.fromkeys(topics) if len(topic) <= 40]


def _is_noun(word: str) -> bool:
    return len(word) >= 3 and word not in _SETS["no_nouns"] and not word.endswith("ly")


class Retrieval:
    """A bot that replies with the human reply to the nearest context (BM25), so without coherence.

    Human dialogues that hold the first utterance are left out. If the first two are no ChatSEED of
    the set (the oldest were dropped), all that hold any utterance are, too. While there is another
    choice, it repeats nothing and takes at most one utterance from each human dialogue. Nearest
    contexts alone would copy a dialogue to its end.
    """

    def __init__(self, human_dialogues: Sequence[Utterances], language: Language) -> None:
        """Index the contexts of every human utterance but the dialogues' first ones."""
        if len(human_dialogues) < 2:
            raise ConfigError(
                "bot:retrieval needs at least 2 human dialogues and this set has "
                f"{len(human_dialogues)}"
            )
        self._language = language
        self._seeds: set[Utterances] = set()
        self._holders: dict[str, set[int]] = defaultdict(set)  # dialogues that hold an utterance
        self._replies: list[tuple[str, str]] = []  # key and text
        contexts = []
        for number, spoken in enumerate(human_dialogues):
            heard = [_hear(text) for text in spoken]
            keys = [self._key(text) for text in heard]
            self._seeds.add(tuple(keys[:N_SEED]))
            for at, key in enumerate(keys):
                self._holders[key].add(number)
                if at and heard[at]:  # not only control characters
                    self._replies.append((key, _one_line(spoken[at])))
                    contexts.append(self._terms(heard[:at]))
        self._score_last = _index([last for last, _ in contexts])
        self._score_earlier = _index([earlier for _, earlier in contexts])

    def speak(self, utterances: Utterances, dice: Dice) -> str:
        """Reply in the best context left (``sample`` n: n-th best); nothing if none is left."""
        keys = [self._key(utterance) for utterance in utterances]
        hints = keys
        if tuple(keys[:N_SEED]) in self._seeds:
            hints = keys[:1]
        own = self._sharing(hints)  # may be the dialogue being extended
        last, earlier = self._terms(utterances)
        scores = self._score_last(last) + 0.3 * self._score_earlier(earlier)
        # Among equal scores (nothing in common at all) not always the first dialogue.
        ties = np.roll(np.arange(len(scores)), Dice(0, utterances).below(len(scores)))
        ranked: list[int] = np.lexsort((ties, -scores)).tolist()
        # An utterance of several human dialogues does not tell which one it was drawn from.
        used = self._sharing([key for key in keys if len(self._holders[key]) == 1])
        for barred, repeats in ((own | used, keys), (own, keys), (own, [])):
            best: dict[str, str] = {}
            for at in ranked:
                key, text = self._replies[at]
                if key not in repeats and barred.isdisjoint(self._holders[key]):
                    best.setdefault(key, text)
                if len(best) > dice.sample:
                    break
            if best:
                return list(best.values())[dice.sample % len(best)]
        return ""

    def _key(self, utterance: str) -> str:
        """Return the words of an utterance, or its whole text if it has none."""
        return " ".join(_words(utterance, self._language)) or utterance

    def _terms(self, utterances: Texts) -> tuple[list[str], list[str]]:
        """Return terms of the last utterance, and of the three before it.

        Words, pairs and "?" of the last one; content words of the others.
        """
        heard = "".join(utterances[-1:])
        words = _words(heard, self._language)
        last = words + [" ".join(pair) for pair in pairwise(words)]
        marks = "[?\uff1f]"
        earlier = _words(" ".join(utterances[-4:-1]), self._language)
        if self._language.english:
            marks = "[?]"
            earlier = [word for word in earlier if word not in _SETS["function_words"]]
        if re.search(marks, heard[-2:]):
            last.append("?")
        return last, earlier

    def _sharing(self, keys: Iterable[str]) -> set[int]:
        """Return the dialogues that hold any utterance."""
        return set(chain.from_iterable(self._holders[key] for key in keys))


def _index(documents: Sequence[Texts]) -> Callable[[Iterable[str]], NDArray[np.float64]]:
    """Index documents, which are terms, by BM25 (Robertson & Zaragoza 2009; k1 = 1.2, b = 0.75).

    Returns a function: terms -> score of every document, shape (n_documents,), each >= 0.
    """
    lengths = np.array([len(terms) for terms in documents], dtype=float)
    damping = 1.2 * (0.25 + 0.75 * lengths / max(lengths.mean(), 1.0))
    # Term -> numbers of its documents, one for each time.
    postings = defaultdict(list)
    for number, terms in enumerate(documents):
        for term in terms:
            postings[term].append(number)

    @cache
    def weigh(term: str) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        where, times = np.unique(postings[term], return_counts=True)
        idf = math.log(1 + (len(documents) - len(where) + 0.5) / (len(where) + 0.5))
        return where, idf * times * 2.2 / (times + damping[where])

    def score(terms: Iterable[str]) -> NDArray[np.float64]:
        scores = np.zeros(len(documents))
        for term in dict.fromkeys(terms):  # a set's order, and so the rounding, is not fixed
            if term in postings:
                where, weight = weigh(term)
                scores[where] += weight
        return scores

    return score

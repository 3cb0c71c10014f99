"""`bot:retrieval`: answers with what a person once replied in the most similar context.

Its failing: each utterance is human and more or less fits the one before it, but the dialogue as a
whole makes no sense. It deceives a judge that looks at single utterances.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from botchat.errors import ConfigError
from botchat.languages import ENGLISH, Language
from botchat.languages.text import split
from botchat.models.bots.language import FUNCTION_WORDS, Bot, Dice, attend, one_line, words
from botchat.records import N_SEED

_MIN_DIALOGUES = 2
_K1, _B = 1.2, 0.75
"""BM25's usual parameters (Robertson & Zaragoza 2009, §3.5)."""
_EARLIER_WEIGHT, _EARLIER_UTTERANCES = 0.3, 3
"""Weight of the utterances before the last one, and how many of them count."""


class Retrieval(Bot):
    """Nearest human context by BM25, leave-one-out.

    It never replies from the dialogue being extended: every human dialogue that holds the first
    utterance heard is left out and, if the first two are no ChatSEED of the set (because the oldest
    were dropped), every one that holds any utterance heard. While there is another choice, it says
    no utterance twice and takes at most one from each human dialogue, because nearest contexts
    alone would copy a dialogue to its end. Dice ``sample`` is the reply in the ``sample``-th best
    context, from 0.
    """

    bot = "retrieval"
    version = 1
    silence = "every human dialogue of the set shares an utterance with the one being extended"

    def __init__(
        self, human_dialogues: Sequence[tuple[str, ...]], language: Language = ENGLISH
    ) -> None:
        """Index the contexts of every human utterance but the dialogues' first ones."""
        if len(human_dialogues) < _MIN_DIALOGUES:
            raise ConfigError(
                f"bot:retrieval needs at least {_MIN_DIALOGUES} human dialogues to reply from, the"
                f" seed set has {len(human_dialogues)}: import a larger set or name another bot"
            )
        if language.english:  # as before other languages could be spoken
            self._words, self._function, self._asks = words, FUNCTION_WORDS, "?"
            self._spoken = {}
        else:
            self._words = partial(split, spaced=language.pack.units == "words")
            self._function, self._asks = frozenset(), "?\uff1f"
            self._spoken = {"language": language.code}
        corpus = json.dumps(human_dialogues).encode("ascii")
        self._digest = hashlib.sha256(corpus).hexdigest()[:16]
        dialogues = [tuple(map(attend, utterances)) for utterances in human_dialogues]
        self._seeds = {tuple(map(self._key, utterances[:N_SEED])) for utterances in dialogues}
        self._holders: dict[str, set[int]] = defaultdict(set)
        """Utterance key -> dialogues that hold it."""
        self._replies: list[str] = []
        self._keys: list[str] = []
        lasts, earliers = [], []
        for number, utterances in enumerate(dialogues):
            for utterance in utterances:
                self._holders[self._key(utterance)].add(number)
            for at in range(1, len(utterances)):
                if not utterances[at]:  # nothing but control characters
                    continue
                self._replies.append(one_line(human_dialogues[number][at]))
                self._keys.append(self._key(utterances[at]))
                lasts.append(self._last_terms(utterances[at - 1]))
                earliers.append(self._earlier_terms(utterances[: at - 1]))
        self._last, self._earlier = _Index(lasts), _Index(earliers)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Bot, version, a digest of the human dialogues it replies from, and their language."""
        return {**super().identity, "corpus": self._digest, **self._spoken}

    def say(self, heard: tuple[str, ...], draw: Dice) -> str:
        """Reply in the best context left, or nothing if none is left."""
        said = [self._key(utterance) for utterance in heard]
        known = tuple(said[:N_SEED]) in self._seeds
        own = self._sharing(said[:1] if known else said)  # may be the dialogue being extended
        scores = self._last.scores(self._last_terms(heard[-1]) if heard else ())
        scores += _EARLIER_WEIGHT * self._earlier.scores(self._earlier_terms(heard[:-1]))
        # Among equal scores (nothing in common at all) not always the first dialogue.
        ties = np.roll(np.arange(len(scores)), Dice(0, heard).below(len(scores)))
        best: list[int] = np.lexsort((ties, -scores)).tolist()
        # An utterance of several human dialogues does not tell which one it was drawn from.
        used = self._sharing(key for key in said if len(self._holders.get(key, ())) == 1)
        for dialogues, utterances in ((own | used, said), (own, said), (own, ())):
            ranked: dict[str, str] = {}
            for key, reply in ((self._keys[at], self._replies[at]) for at in best):
                if key in utterances or not dialogues.isdisjoint(self._holders[key]):
                    continue
                ranked.setdefault(key, reply)
                if len(ranked) > draw.sample:
                    break
            if ranked:
                return list(ranked.values())[draw.sample % len(ranked)]
        return ""

    def _key(self, utterance: str) -> str:
        """Same for the same utterance: its words, or the whole text if it has none."""
        return " ".join(self._words(utterance.lower())) or utterance

    def _last_terms(self, utterance: str) -> list[str]:
        """Words, pairs of words, and whether it is a question."""
        spoken = self._words(utterance.lower())
        pairs = [f"{one} {two}" for one, two in pairwise(spoken)]
        asked = not set(self._asks).isdisjoint(utterance[-2:])
        return spoken + pairs + ["?"] * asked

    def _earlier_terms(self, utterances: Sequence[str]) -> list[str]:
        """Content words of the utterances just before the last."""
        recent = " ".join(utterances[-_EARLIER_UTTERANCES:])
        return [word for word in self._words(recent.lower()) if word not in self._function]

    def _sharing(self, said: Iterable[str]) -> set[int]:
        """Dialogues that hold any of these utterances."""
        return set().union(*(self._holders.get(key, set()) for key in said))


class _Index:
    """BM25 over documents given as terms."""

    def __init__(self, documents: Sequence[Iterable[str]]) -> None:
        counts = [Counter(terms) for terms in documents]
        lengths = np.array([sum(count.values()) for count in counts], dtype=float)
        mean_length = max(float(lengths.mean()), 1.0)
        self._n = len(counts)
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, count in enumerate(counts):
            for term, n_times in count.items():
                postings[term].append((number, n_times))
        self._postings: dict[str, tuple[NDArray[np.intp], NDArray[np.float64]]] = {}
        for term, found in postings.items():
            where = np.array([number for number, _ in found], dtype=np.intp)
            times = np.array([n_times for _, n_times in found], dtype=float)
            idf = math.log(1 + (self._n - len(found) + 0.5) / (len(found) + 0.5))
            damped = times + _K1 * (1 - _B + _B * lengths[where] / mean_length)
            self._postings[term] = where, idf * times * (_K1 + 1) / damped

    def scores(self, terms: Iterable[str]) -> NDArray[np.float64]:
        """Score of every document for ``terms``, shape (n_documents,), each >= 0."""
        scores = np.zeros(self._n)
        for term in dict.fromkeys(terms):  # a set's order, and so the rounding, is not fixed
            if term in self._postings:
                where, weight = self._postings[term]
                scores[where] += weight
        return scores

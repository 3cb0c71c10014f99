"""What tells machines in the exam without a judge: the fingerprint, and traps that know one number.

Of a machine nothing is fitted on what it is tried on: where chats of several machines are there,
each is left out in turn, and where one of two speakers is to be named, the whole source is. People
are held out by fold. Nothing fitted is kept.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from botchat.measures.fingerprint import FOLDS, RIDGE, distance, tell, too_few
from botchat.measures.form import NAMES, Form, form, matrix, usual
from botchat.papers.turing_files import Chat
from botchat.records import HUMAN
from botchat.verdicts import Flags, Floats, Indices

OTHERS, ALONE = "fingerprint", "fingerprint, fitted on people alone"


def form_of(talk: Chat, of: set[int] | None = None) -> Form:
    """Of a talk, or of some of its speakers."""
    return form(talk.utterances, speakers=talk.speakers, of=of)


def fingerprints(talks: Sequence[Chat], shuffled: int | None = None) -> dict[str, Floats]:
    """How much of a machine each talk shows, shape (talks,); empty: people are too few.

    Fitted on other people against *other* machines, where there are two, and on people alone.
    ``shuffled``: seed by which labels are shuffled first, so that there is nothing to tell.
    """
    human = np.array([not one.machines for one in talks])
    if too_few(int(human.sum())):
        return {}
    forms, fold = [form_of(one) for one in talks], np.arange(len(talks)) % FOLDS
    numbers = matrix(forms, *usual([f for f, own in zip(forms, human, strict=True) if own]))
    if shuffled is not None:
        human = np.random.default_rng(shuffled).permutation(human)
        return {OTHERS: _held_out(numbers, human, fold, np.zeros(len(talks), bool))}
    alone, form_only = np.zeros(len(talks)), numbers[:, : len(NAMES)]
    for k in range(FOLDS):
        alone[fold == k] = distance(form_only[human & (fold != k)]).scores(form_only[fold == k])
    machines = sorted({name for one in talks for name in one.machines})
    if len(machines) < 2:
        return {ALONE: alone}
    has = np.array([[name in one.machines for name in machines] for one in talks])
    by = np.array([_held_out(numbers, human, fold, one) for one in has.T])
    # Of a machine's talk by what was fitted without it, of people's by all.
    told = np.where(has | human[:, None], by.T, np.nan)
    return {ALONE: alone, OTHERS: np.nanmean(told, 1)}


def _held_out(numbers: Floats, human: Flags, fold: Indices, without: Flags) -> Floats:
    scores = np.zeros(len(numbers))
    for k in range(FOLDS):
        fitted = (fold != k) & ~without
        scores[fold == k] = tell(numbers[fitted], ~human[fitted]).scores(numbers[fold == k])
    return scores


def which_of_two(talks: Mapping[str, Sequence[Chat]]) -> dict[str, Floats]:
    """Source -> how much more of a machine the machine shows than the person, shape (talks,).

    ``talks``: of one machine and one person each. Fitted on the other sources.
    """
    by = {source: [_sides(one) for one in of] for source, of in talks.items()}
    if len(by) < 2:
        return {}
    words = usual([one for sides in by.values() for pair in sides for one in pair])
    apart = {
        source: matrix([m for m, _ in pairs], *words) - matrix([h for _, h in pairs], *words)
        for source, pairs in by.items()
    }
    found = {}
    for source, numbers in apart.items():
        others = np.concatenate([of for other, of in apart.items() if other != source])
        both = np.concatenate([others, -others])
        found[source] = tell(both, np.arange(len(both)) < len(others), RIDGE).scores(numbers)
    return found


def _sides(talk: Chat) -> tuple[Form, Form]:
    """The machine's form, and the person's."""
    person = talk.who.index(HUMAN)
    machine = next(at for at, who in enumerate(talk.who) if who != HUMAN)
    return form_of(talk, {machine}), form_of(talk, {person})


def of_sides(talks: Sequence[Chat]) -> dict[str, Floats]:
    """Trap -> 1 where it names the machine of two, the better way round; shape (talks,)."""
    found = {}
    for name, number in (("length alone", mean_words), ("contractions alone", contractions)):
        sides = [[number([t for by, t in zip(one.speakers, one.utterances, strict=True) if by == k])
                  for k in (0, 1)] for one in talks]  # fmt: skip
        found[name] = np.array([(np.sign(a - b) + 1) / 2 for a, b in sides])
    found["who speaks first"] = np.ones(len(talks))
    first = np.array([one.who[0] != HUMAN for one in talks])
    right = {name: np.where(first, points, 1 - points) for name, points in found.items()}
    return {name: p if p.mean() >= 0.5 else 1 - p for name, p in right.items()}


def mean_words(utterances: Sequence[str]) -> float:
    """Words an utterance."""
    return sum(len(text.split()) for text in utterances) / max(len(utterances), 1)


def contractions(utterances: Sequence[str]) -> float:
    """Of a hundred words, those contracted."""
    text = " ".join(utterances).replace("\u2019", "'")
    found = re.findall(r"(?i)\w'(?:s|m|re|ve|ll|d|t)\b", text)
    return 100 * len(found) / max(len(text.split()), 1)


TRAPS: Mapping[str, Callable[[Chat], float]] = {
    "length alone": lambda talk: mean_words(talk.utterances),
    "number of turns alone": lambda talk: sum(a != b for a, b in pairwise(talk.speakers)),
    "contractions alone": lambda talk: contractions(talk.utterances),
    "a constant": lambda _: 0.0,
    "a coin": lambda talk: zlib.crc32(f"{talk.source}:{talk.id}".encode()) % 1000 / 1000,
}
"""What a judge must beat -> its number of a chat as it is shown; which way round, truth says."""
EQUAL = ("number of turns alone", "a constant", "a coin")
"""Those that say nothing by construction, which one task shows."""

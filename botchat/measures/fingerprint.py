"""Told from people by form alone: no judge is asked, and nothing is learnt elsewhere.

For each model of a set two numbers, both an AUC: how often a chat of the model looks more like a
machine's than a chat of people does; .5 is not told. ``told``: a ridge logistic regression of the
set's people against its *other* models, on other seeds. ``alone``: distance from people, fitted on
people of other seeds, which sees what no other model does. Where they disagree, read the higher.
Weights learnt on other sets or years turn round, so none are kept.

It detects and does not grade. What it sees is form (`botchat.measures.form`), so people's own
lines, said again in another place, are people to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from botchat.languages import ENGLISH, Language
from botchat.measures.form import NAMES, Form, columns, form, matrix, usual
from botchat.measures.intervals import LEAST, Statistic
from botchat.measures.statistics import ratio
from botchat.records import HUMAN, N_SEED, Dialogues, Seed, eligible
from botchat.verdicts import Flags, Floats, Indices

PEOPLE = 100
"""Chats of people below which nothing is fitted."""
FOLDS = 5
RIDGE = 100.0
"""Weight of the squared coefficients, of standardised numbers; as if each number had been seen to
tell nothing. Chosen by the order of size only, with bots left out, on three sets of 2020."""
GIVEAWAYS, NOT_TOLD = 5, 0.5
CHATS, MOST = 3_500, 100
"""Chats up to which all are read, of more those on some seeds; and models up to which any are."""

_MACHINES = 2
"""Chats of machines that are fitted for each of people: more change little and take long."""
_CLIP = 3.0
"""Standard deviations at which a number is cut before distances: people have odd ones out too."""
_ACCUSED = 0.05
_ALIKE = 0.6
"""People's halves differ where an AUC of one against the other is above this, by its interval."""
_STEPS, _CLOSE = 30, 1e-4
_TINY = 1e-9


@dataclass(frozen=True, eq=False)
class FormScore:
    """By which chats are told apart; of them and of their numbers it takes shape (chats, numbers).

    ``weights``: of standardised numbers, shape (numbers,): log-odds of the second kind, up to a
    constant; or their inverse covariance, (numbers, numbers): squared Mahalanobis distances.
    """

    middle: Floats
    spread: Floats
    weights: Floats

    def parts(self, numbers: Floats) -> Floats:
        """What each number adds to the score, shape (chats, numbers)."""
        z = (numbers - self.middle) / self.spread
        if self.weights.ndim == 1:
            return np.asarray(z * self.weights)
        z = np.clip(z, -_CLIP, _CLIP)
        return np.asarray((z @ self.weights) * z, np.float64)

    def scores(self, numbers: Floats) -> Floats:
        """Shape (chats,)."""
        return np.asarray(self.parts(numbers).sum(1), np.float64)


def tell(numbers: Floats, machine: Flags, ridge: float = RIDGE) -> FormScore:
    """Ridge logistic regression by Newton's method; both kinds weigh the same together.

    ``numbers``: shape (chats, numbers). ``machine``: the second kind, shape (chats,).
    """
    middle, spread = numbers.mean(0), numbers.std(0) + _TINY
    x = np.column_stack([(numbers - middle) / spread, np.ones(len(numbers))])
    share = np.where(machine, machine.mean(), 1 - machine.mean())
    weight, penalty = 0.5 / share, np.full(x.shape[1], ridge)
    penalty[-1] = _TINY
    found = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ found, -_STEPS, _STEPS)))
        slope = x.T @ (weight * (p - machine)) + penalty * found
        bend = (x * (weight * p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(bend, slope)
        found -= step
        if np.abs(step).max() < _CLOSE:
            break
    return FormScore(middle, spread, found[:-1])


def distance(people: Floats) -> FormScore:
    """Fit to people's numbers, shape (chats, numbers); shrunk covariance (Ledoit & Wolf 2004)."""
    middle, spread = people.mean(0), people.std(0) + _TINY
    z = np.clip((people - middle) / spread, -_CLIP, _CLIP)
    z -= z.mean(0)
    n, k = z.shape
    seen = z.T @ z / n
    target = np.eye(k) * np.trace(seen) / k
    apart = float(((seen - target) ** 2).sum())
    noise = float(((z**2).sum(1) ** 2).sum() / n - (seen**2).sum()) / n
    shrunk = min(1.0, noise / apart) if apart else 1.0
    covariance = shrunk * target + (1 - shrunk) * seen + _TINY * np.eye(k)
    return FormScore(middle, spread, np.linalg.inv(covariance))


def limit(people: Floats) -> float:
    """The distance that 1 in 20 of people exceed, each held against the others."""
    fold = np.arange(len(people)) % FOLDS
    far = [distance(people[fold != k]).scores(people[fold == k]) for k in range(FOLDS)]
    return float(np.quantile(np.concatenate(far), 1 - _ACCUSED, method="higher"))


@dataclass(frozen=True)
class Giveaway:
    """One number that tells a model from people."""

    number: str
    """In words."""
    more: bool
    """Whether the model has more of it."""
    seed_id: str
    """The chat of the model that shows it most."""

    def __str__(self) -> str:
        """In words, with the chat."""
        return f"{'more' if self.more else 'fewer'}: {self.number} ({self.seed_id})"


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """What tells one model from the set's people."""

    told: Statistic | None
    """AUC against people, fitted on other models; ``None``: there is no other."""
    alone: Statistic
    """The same, fitted on people alone."""
    giveaways: tuple[Giveaway, ...] = ()
    """What moves the score that is read of its chats most from people's; none: it is not told."""
    chats: int = 0

    @property
    def read(self) -> Statistic:
        """The one to read: ``told``, or where the two disagree the higher.

        What is found on chats that were not fitted is there; what is not found proves nothing.
        """
        if self.told is None:
            return self.alone
        apart = self.told.interval[1] < self.alone.interval[0]
        return self.alone if apart else self.told


@dataclass(frozen=True, eq=False)
class Lineup:
    """The fingerprints of all models of a set."""

    models: Mapping[str, Fingerprint]
    halves: Statistic | None
    """AUC of one half of the people against the other: the line of not told."""
    people: int
    refused: str = ""
    """Why there are none, in a sentence."""


def telling(
    seeds: Sequence[Seed], dialogues: Dialogues, language: Language = ENGLISH
) -> Callable[[], Lineup]:
    """What tells every model of a set from its people when it is called, in any process.

    Nothing is read where there are too few people or too many contestants; of a large set the
    chats on some of its seeds, spread evenly, are.
    """
    people = _going_on(seeds)
    refused = too_few(len(people))
    models = [name for name in dialogues if name != HUMAN]
    if not refused and len(models) > MOST:
        refused = f"it is measured of {MOST} models at most, and here are {len(models):,}"
    if refused:
        return partial(Lineup, {}, None, len(people), refused)
    n = min(len(people), max(PEOPLE, CHATS // (len(models) + 1)))
    some = [people[i * len(people) // n] for i in range(n)]
    there = {
        name: {one.id: dialogues[name][one.id] for one in some if one.id in dialogues[name]}
        for name in models
    }
    return partial(_told, some, there, language)


def _told(*of: Any) -> Lineup:
    return lineup(forms(*of))


def _going_on(seeds: Iterable[Seed]) -> list[Seed]:
    """Those whose person's chat goes on behind the ChatSEED."""
    return [seed for seed in eligible(seeds) if len(seed.utterances) > N_SEED]


def forms(
    seeds: Sequence[Seed], dialogues: Dialogues, language: Language = ENGLISH
) -> dict[str, dict[str, Form]]:
    """Contestant -> seed id -> the form of what follows the ChatSEED, ``human`` among them.

    Chats of one seed are of equal length, the person's; of models, those that have it.
    """
    people = {seed.id: seed.utterances for seed in _going_on(seeds)}
    chats = {HUMAN: people}
    for name in [name for name in dialogues if name != HUMAN]:
        made = {i: dialogues[name][i].utterances for i in people if i in dialogues[name]}
        chats[name] = {
            i: said[: len(people[i])] for i, said in made.items() if len(said) >= len(people[i])
        }
    return {
        name: {i: form(said, language, n_seed=N_SEED) for i, said in by_seed.items()}
        for name, by_seed in chats.items()
    }


def too_few(people: int) -> str:
    """Why nothing is fitted to so many chats of people; empty: they are enough."""
    if people >= PEOPLE:
        return ""
    return f"{people} chats of people go on behind the ChatSEED, and it takes {PEOPLE}"


def lineup(found: Mapping[str, Mapping[str, Form]]) -> Lineup:
    """Tell every model from people, both as `forms` gives them, or say why not."""
    people = found[HUMAN]
    if refused := too_few(len(people)):
        return Lineup({}, None, len(people), refused)
    words, starts = usual(people.values())
    numbers = {name: _rows(by_seed, people, words, starts) for name, by_seed in found.items()}
    own = numbers.pop(HUMAN)
    fold = np.arange(len(own)) % FOLDS
    halves = _halves(own, fold)
    if halves.interval[0] > _ALIKE:
        said = f"one half of the set's people is told from the other (AUC {halves.values[0]:.2f})"
        return Lineup({}, halves, len(own), said)
    enough = {name: of for name, of in numbers.items() if _there(of).sum() >= LEAST}
    named, n = columns(words, starts), len(NAMES)
    form_only = own[:, :n]
    models, machines = {}, np.array([*enough.values()])
    for nth, (name, of) in enumerate(enough.items()):
        both = [_parts(of[:, :n], form_only, fold, lambda some: distance(form_only[some]))]
        if len(enough) > 1:
            both.append(_parts(of, own, fold, partial(_tell_others, own, machines, nth)))
        alone, *told = (auc(model.sum(1), usual_.sum(1), fold) for model, usual_ in both)
        one = Fingerprint(told[0] if told else None, alone, (), int(_there(of).sum()))
        if one.read.interval[0] > NOT_TOLD:
            model, usual_ = both[one.read is not alone]
            moved = np.nanmean(model, 0) - usual_.mean(0)
            more, ids = np.nanmean(of, 0) > own.mean(0), [*people]
            because = tuple(
                Giveaway(named[at], bool(more[at]), ids[int(np.nanargmax(model[:, at]))])
                for at in np.argsort(-moved, kind="stable")[:GIVEAWAYS].tolist()
                if moved[at] > 0
            )
            one = replace(one, giveaways=because)
        models[name] = one
    return Lineup(models, halves, len(own))


def auc(machine: Floats, people: Floats, fold: Indices) -> Statistic:
    """Share of pairs, within a fold, in which the machine's score is higher; ties count half.

    All arguments have shape (seeds,), nan where there is no chat. A seed is left out with both.
    """
    pairs = (_there(machine)[:, None] & _there(people)) & (fold[:, None] == fold)
    ahead = machine[:, None] - people
    wins = np.where(pairs, (np.sign(np.nan_to_num(ahead)) + 1) / 2, 0.0)
    won, of = (_left_out(np.asarray(table, np.float64)) for table in (wins, pairs))
    return Statistic(ratio(won, of), int(pairs.any(1).sum()))


def _left_out(table: Floats) -> Floats:
    """The sum of a square table, then without the row and column of each; (n, n) -> (n + 1,)."""
    total = table.sum()
    return np.append(total, total - table.sum(0) - table.sum(1) + table.diagonal())


def _rows(
    by_seed: Mapping[str, Form], people: Iterable[str], words: Sequence[str], starts: Sequence[str]
) -> Floats:
    """The numbers of each seed's chat, nan where there is none; shape (people, numbers)."""
    there = [at for at, seed_id in enumerate(people) if seed_id in by_seed]
    found = np.full((len([*people]), len(columns(words, starts))), np.nan)
    found[there] = matrix([by_seed[i] for i in people if i in by_seed], words, starts)
    return found


def _there(numbers: Floats) -> Flags:
    """Seeds with a chat, shape (seeds,)."""
    return ~np.isnan(numbers if numbers.ndim == 1 else numbers[:, 0])


def _halves(people: Floats, fold: Indices) -> Statistic:
    """The second half of the people told from the first, on other seeds."""
    second = np.arange(len(people)) * 2 >= len(people)
    scores = _parts(people, people, fold, lambda some: tell(people[some], second[some]))[0].sum(1)
    return auc(np.where(second, scores, np.nan), np.where(second, np.nan, scores), fold)


def _parts(
    model: Floats, people: Floats, fold: Indices, fit: Callable[[Flags], FormScore]
) -> tuple[Floats, Floats]:
    """What each number adds to the scores of the model's chats, and of people's.

    Shape (seeds, numbers) each. ``fit``: to the seeds that it is given, of all but one fold.
    """
    found = np.empty_like(model), np.empty_like(people)
    for k in range(FOLDS):
        fitted = fit(fold != k)
        for part, of in zip(found, (model, people), strict=True):
            part[fold == k] = fitted.parts(of[fold == k])
    return found


def _tell_others(people: Floats, models: Floats, but: int, some: Flags) -> FormScore:
    """Fitted to people and, on the same seeds, all ``models`` but one, (models, seeds, numbers)."""
    left = ~np.isnan(models[:, :, 0]) & some
    left[but] = False
    of_model, seed = left.nonzero()
    few = min(len(seed), _MACHINES * int(some.sum()))
    chosen = np.arange(few) * len(seed) // max(few, 1)
    numbers = np.concatenate([people[some], models[of_model[chosen], seed[chosen]]])
    return tell(numbers, np.arange(len(numbers)) >= len(numbers) - few)

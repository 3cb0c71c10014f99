"""The Arena at one N asked adaptively: batch by batch, or foreseen without asking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist

import numpy as np

from botchat.errors import ConfigError
from botchat.interfaces import Case, case_digest
from botchat.pipeline.run import Meter, Stops, work_through
from botchat.pipeline.sampled import Sampled, pairs
from botchat.pipeline.stage_file import UNANSWERED, Filing
from botchat.protocols.arena import Field
from botchat.protocols.pairs import outcome
from botchat.ratings.adaptive import ELO, AdaptiveSettings, Asked, Sampler, Target
from botchat.ratings.comparisons import LOSS, TIE, WIN, Comparisons, Floats
from botchat.records import Judgment

SPREAD = 120.0
"""Elo; standard deviation of models that nothing is known of, in a plan."""

TIES = 0.3
"""Share of ties between equals there."""


@dataclass(frozen=True, eq=False)
class Round:
    """The Arena at one N, with the stage file that it fills."""

    field: Field
    filing: Filing
    settings: AdaptiveSettings
    added: str | None
    """The model to be placed, if only comparisons with one are asked."""
    known: Comparisons | None
    """What the others' ratings then rest on."""

    def __post_init__(self) -> None:
        """Refuse what cannot be sampled, or says nothing, before anything is asked."""
        self._sampler(self.settings)
        target, m = self.settings.target, len(self.field.players)
        n_pairs = pairs(m, self.added)
        if target is not None and target.swaps >= n_pairs:
            raise ConfigError(
                f"the Arena at N = {self.field.turns}: a target of {target.swaps} swaps says "
                f"nothing of {m} models: {n_pairs} pairs are asked; give --target swaps=0"
            )

    async def run(self, stops: Stops, meter: Meter) -> Sampled:
        """Ask until the target is reached or the budget used.

        It ends before that with whatever is in ``stops``, or at a batch with cases that got no
        answer; run again, it goes on from there.
        """
        sampler = self._sampler(self.settings)
        with self.filing:
            while (asked := sampler.ask()) is not None:
                outcomes = await self._settled(asked, stops, meter)
                if outcomes is None:
                    break
                sampler.tell(outcomes)
                meter.notes[self.filing.protocol] = self._sampled(sampler).progress
        return self._sampled(sampler)

    async def foresee(self, *, most: bool) -> None:
        """Let the judge answer what a run would ask, storing nothing.

        Outcomes that are not stored are drawn: by the ratings of those that are, or with none by
        models whose ratings have the standard deviation `SPREAD`. ``most``: as much as can be asked
        in a run whose target is never reached.
        """
        if most and self.settings.budget is None:
            for case in self._all_cases():
                if self.filing.stored(case) is None:
                    await self.filing.answering.rule(case)
            return
        sampler = self._sampler(replace(self.settings, target=None) if most else self.settings)
        rng = np.random.default_rng(self.settings.seed)
        truth = None
        while (asked := sampler.ask()) is not None:
            verdicts = [await self._foreseen(case) for case in self._cases(asked)]
            if truth is None and None in verdicts:
                truth = _spread(len(self.field.players), rng)
                if sampler.state.made:
                    truth = sampler.state.rating
            drawn = np.zeros(0) if truth is None else _drawn(truth, asked, rng)
            sampler.tell(
                np.array(
                    [drawn[k] if said is None else said for k, said in enumerate(verdicts)],
                    dtype=np.float64,
                )
            )

    async def _settled(self, asked: Asked, stops: Stops, meter: Meter) -> Floats | None:
        """Outcomes of a batch; ``None`` where a case has no final answer."""
        said: list[Judgment | None] = [None] * len(asked)

        async def do(numbered: tuple[int, Case]) -> None:
            number, case = numbered
            said[number] = await self.filing.settle(case)
            meter.done += 1

        answering = self.filing.answering
        cases = list(enumerate(self._cases(asked)))
        await work_through(cases, do, answering.parallel, stops, answering.name)
        answered = [one for one in said if one is not None and one.outcome not in UNANSWERED]
        if len(answered) < len(said):
            return None
        found = [outcome(judgment.verdict) for judgment in answered]
        return np.array([np.nan if one is None else one for one in found])

    async def _foreseen(self, case: Case) -> float | None:
        """Outcome as stored, or as the ledger has it; ``None`` where it has to be asked for."""
        stored = self.filing.stored(case)
        if stored is None:
            return outcome((await self.filing.answering.rule(case)).verdict)
        known = outcome(stored.verdict)
        return np.nan if known is None else known

    def _sampler(self, settings: AdaptiveSettings) -> Sampler:
        players = self.field.players
        added = None if self.added is None else players.index(self.added)
        try:
            return Sampler(players, self.field.seeds_of, settings, self.known, added)
        except ConfigError as error:
            raise ConfigError(f"the Arena at N = {self.field.turns}: {error}") from None

    def _sampled(self, sampler: Sampler) -> Sampled:
        return Sampled(
            self.field.turns,
            self.field.players,
            sampler.state,
            self.settings.target or Target(),
            self.added,
            self.filing.judged(),
        )

    def _cases(self, asked: Asked) -> Iterator[Case]:
        for case in zip(asked.first, asked.second, asked.seed, strict=True):
            yield self.field.case(*(int(number) for number in case))

    def _all_cases(self) -> Iterator[Case]:
        players = self.field.players
        for i, j in combinations(range(len(players)), 2):
            if self.added in (None, players[i], players[j]):
                for seed in self.field.seeds_of(i, j).tolist():
                    yield self.field.case(i, j, seed)
                    yield self.field.case(j, i, seed)


def known_comparisons(field: Field, filing: Filing, added: str | None) -> Comparisons:
    """What the stage file says about the players as their dialogues are now, but for ``added``."""
    place = {name: i for i, name in enumerate(field.players) if name != added}
    number = {seed_id: i for i, seed_id in enumerate(field.seed_ids)}
    first, second, outcomes, seeds = [], [], [], []
    for judgment in filing.judgments:
        one, two = (place.get(name) for name in judgment.contestants)
        seed, said = number.get(judgment.seed_id), outcome(judgment.verdict)
        if one is None or two is None or seed is None or said is None:
            continue
        if (shown := field.shown(one, two, seed)) is None:
            continue
        a, b, n = shown
        digest = case_digest(filing.protocol, a.utterances[:n], b.utterances[:n])
        if filing.holds(judgment, digest):
            first.append(one)
            second.append(two)
            outcomes.append(said)
            seeds.append(seed)
    return Comparisons(
        field.players,
        np.array(first, dtype=np.intp),
        np.array(second, dtype=np.intp),
        np.array(outcomes, dtype=np.float64),
        np.array(seeds, dtype=np.intp),
    )


def on_board(known: Comparisons) -> set[str]:
    """The models in any of them."""
    return {known.models[i] for i in (*known.first.tolist(), *known.second.tolist())}


def _spread(m: int, rng: np.random.Generator) -> Floats:
    """Ratings at the quantiles of a normal distribution, in random order, shape (m,)."""
    normal = NormalDist(1000, SPREAD)
    return rng.permutation([normal.inv_cdf((i + 0.5) / m) for i in range(m)])


def _drawn(rating: Floats, asked: Asked, rng: np.random.Generator) -> Floats:
    """Outcomes for ``asked.first`` whose mean is Bradley-Terry's at these ratings."""
    score = 1 / (1 + np.exp((rating[asked.second] - rating[asked.first]) / ELO))
    tie = 2 * TIES * np.minimum(score, 1 - score)
    draw = rng.random(len(asked))
    return np.where(draw < tie, TIE, np.where(draw < score + tie / 2, WIN, LOSS))

"""An adaptive Arena at one N: its settings, how it is asked batch by batch or foreseen, its result.

What is asked depends on dialogues, settings and verdicts only, so no state is kept: a run that goes
on asks the same again and finds the answers in the stage file. A case without an answer ends the
run at its batch, because the next batch depends on its verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist

import numpy as np

from botchat.errors import ConfigError
from botchat.interfaces import Case, Row, Shown, case_digest
from botchat.measures.statistics import Z
from botchat.pipeline.run.ask import Filing
from botchat.pipeline.run.session import catalogue_of
from botchat.pipeline.run.work import Stops, work_through
from botchat.protocols.kinds import Field
from botchat.ratings.adaptive import (
    ELO,
    AdaptiveDesign,
    AdaptiveSettings,
    BoardSoFar,
    Chosen,
    Target,
)
from botchat.ratings.comparisons import Comparisons
from botchat.records import UNANSWERED, Judgment
from botchat.requests import Judging
from botchat.requests.meter import Meter
from botchat.requests.results import StageResult
from botchat.verdicts import LOSS, TIE, WIN, Floats
from botchat.workspace.folder import Workspace

SPREAD = 120.0
"""Elo; standard deviation of models that nothing is known of, in a plan."""

TIES = 0.3
"""Share of ties between equals there."""

ADD_BUDGET = 400
"""Comparisons that place a model, where nothing else is asked for."""

_TARGET = {"gap": float, "swaps": int, "confidence": float}

_HERE, _ELSEWHERE = "± 95 %", "± other ChatSEEDs"
"""Half the interval of a rating on this whole Arena, and on other ChatSEEDs."""

_TOP = 5
"""Models that a line of progress names."""

_MANY = 0.05
"""Share of the pairs that a target had better not allow in the wrong order."""


@dataclass(frozen=True, eq=False)
class AdaptiveArena:
    """The Arena at one N, with the stage file that it fills."""

    field: Field
    filing: Filing
    settings: AdaptiveSettings
    added: str | None
    """The model to be placed, if only comparisons with one are asked."""
    known: Comparisons | None
    """What the others' ratings then rest on."""

    def __post_init__(self) -> None:
        """Refuse what cannot be asked, and targets that say nothing, before anything is asked."""
        self._design(self.settings)
        target, m = self.settings.target, len(self.field.contestants)
        n_pairs = pairs(m, self.added)
        if target is not None and target.swaps >= n_pairs:
            raise ConfigError(
                f"the Arena at N = {self.field.protocol.n}: a target of {target.swaps} swaps says "
                f"nothing of {m} models: {n_pairs} pairs are asked; give --target swaps=0"
            )

    async def run(self, stops: Stops, meter: Meter) -> AdaptiveResult:
        """Ask until the target is reached, the budget used, or something is in ``stops``.

        A batch with cases that got no answer ends it too; run again, it goes on from there.
        """
        design = self._design(self.settings)
        meter.steps.append(self.filing.step)
        with self.filing:
            while (asked := design.ask()) is not None:
                results = await self._settled(asked, stops, meter)
                if results is None:
                    break
                design.tell(results)
                meter.notes[self.filing.protocol] = self._standing(design).progress
        return replace(self._standing(design), elsewhere=design.elsewhere)

    async def foresee(self, *, most: bool) -> None:
        """Let the judge answer what a run would ask, storing nothing.

        Results that are not stored are drawn: by the ratings of those that are, or with none by
        models whose ratings have the standard deviation `SPREAD`. ``most``: all that may be asked.
        """
        if most and self.settings.budget is None:
            for case in self._all_cases():
                if self.filing.stored(case) is None:
                    await self.filing.answering.answer(case)
            return
        design = self._design(replace(self.settings, target=None) if most else self.settings)
        rng = np.random.default_rng(self.settings.seed)
        truth = None
        while (asked := design.ask()) is not None:
            verdicts = [await self._foreseen(case) for case in self._cases(asked)]
            if truth is None and None in verdicts:
                # Quantiles of a normal distribution, in random order.
                normal, m = NormalDist(1000, SPREAD), len(self.field.contestants)
                truth = rng.permutation([normal.inv_cdf((i + 0.5) / m) for i in range(m)])
                if design.state.made:
                    truth = design.state.rating
            drawn = np.zeros(0) if truth is None else _drawn(truth, asked, rng)
            design.tell(
                np.array(
                    [drawn[k] if said is None else said for k, said in enumerate(verdicts)],
                    dtype=np.float64,
                )
            )

    async def _settled(self, asked: Chosen, stops: Stops, meter: Meter) -> Floats | None:
        """Results of a batch; ``None`` where a case has no final answer."""
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
        # What cannot be read is None here, and nan in the array.
        found = [self.field.protocol.result(judgment.verdict) for judgment in answered]
        return np.array(found, dtype=np.float64)

    async def _foreseen(self, case: Case) -> float | None:
        """Result as stored, or as the ledger has it; ``None`` where it has to be asked for."""
        stored = self.filing.stored(case)
        if stored is None:
            answer = await self.filing.answering.answer(case)
            return self.field.protocol.result(answer.verdict)
        known = self.field.protocol.result(stored.verdict)
        return np.nan if known is None else known

    def _design(self, settings: AdaptiveSettings) -> AdaptiveDesign:
        contestants = self.field.contestants
        added = None if self.added is None else contestants.index(self.added)
        try:
            return AdaptiveDesign(contestants, self.field.seeds_of, settings, self.known, added)
        except ConfigError as error:
            raise ConfigError(f"the Arena at N = {self.field.protocol.n}: {error}") from None

    def _standing(self, design: AdaptiveDesign) -> AdaptiveResult:
        return AdaptiveResult(
            **vars(self.filing.result()),
            turns=self.field.protocol.n,
            models=self.field.contestants,
            state=design.state,
            target=self.settings.target or Target(),
            added=self.added,
        )

    def _cases(self, asked: Chosen) -> Iterator[Case]:
        for case in zip(asked.first, asked.second, asked.seed, strict=True):
            yield self.field.case(*(int(number) for number in case))

    def _all_cases(self) -> Iterator[Case]:
        contestants = self.field.contestants
        for i, j in combinations(range(len(contestants)), 2):
            if self.added in (None, contestants[i], contestants[j]):
                for seed in self.field.seeds_of(i, j).tolist():
                    yield self.field.case(i, j, seed)
                    yield self.field.case(j, i, seed)


def known_comparisons(field: Field, filing: Filing, added: str | None) -> Comparisons:
    """What the stage file says of the contestants, dialogues as they are now; not of ``added``."""
    place = {name: i for i, name in enumerate(field.contestants) if name != added}
    number = {seed_id: i for i, seed_id in enumerate(field.seed_ids)}
    rows = []
    for judgment in filing.have.values():
        one, two = (place.get(name) for name in judgment.contestants)
        seed, said = number.get(judgment.seed_id), field.protocol.result(judgment.verdict)
        if one is None or two is None or seed is None or said is None:
            continue
        if (shown := field.shown(one, two, seed)) is None:
            continue
        a, b, n = shown
        digest = case_digest(filing.protocol, *(Shown.of(one, n) for one in (a, b)))
        if filing.holds(judgment, digest):
            rows.append((one, two, seed, said))
    *places, results = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    first, second, seeds = (each.astype(np.intp) for each in places)
    return Comparisons(field.contestants, first, second, results, seeds)


def _drawn(rating: Floats, asked: Chosen, rng: np.random.Generator) -> Floats:
    """Results for ``asked.first`` whose mean is Bradley-Terry's at these ratings."""
    score = 1 / (1 + np.exp((rating[asked.second] - rating[asked.first]) / ELO))
    tie = 2 * TIES * np.minimum(score, 1 - score)
    draw = rng.random(len(asked))
    return np.where(draw < tie, TIE, np.where(draw < score + tie / 2, WIN, LOSS))


@dataclass(frozen=True, eq=False, kw_only=True)
class AdaptiveResult(StageResult):
    """The Arena at one N after an adaptive run, or while it goes on."""

    turns: int | None
    models: tuple[str, ...]
    state: BoardSoFar
    target: Target
    """What ``state.swaps`` and ``state.probability`` are about."""
    added: str | None
    """The model that was placed; pairs and comparisons are then those with it."""
    elsewhere: BoardSoFar | None = None
    """What the ratings are worth on other ChatSEEDs; ``None`` while the run goes on."""

    @property
    def saved(self) -> float:
        """Share of the whole Arena's comparisons that were not made."""
        return 1 - self.state.made / self.state.population

    @property
    def rows(self) -> list[Row]:
        """A model each, best first: ``place``, ``model``, ``rating``, ``error`` (standard).

        ``error_other_seeds``: the same, for other ChatSEEDs.
        """
        rating, error = self.state.rating, self.state.error
        other = self.elsewhere.error if self.elsewhere else None
        order = np.argsort(-rating, kind="stable")
        return [
            {
                "place": place,
                "model": self.models[i],
                "rating": round(float(rating[i]), 2),
                "error": round(float(error[i]), 2),
                **({} if other is None else {"error_other_seeds": round(float(other[i]), 2)}),
            }
            for place, i in enumerate(order.tolist(), 1)
        ]

    @property
    def board(self) -> list[Row]:
        """The same for people."""
        shown = []
        for row in self.rows:
            one = {key: row[key] for key in ("place", "model")} | {"rating": f"{row['rating']:.0f}"}
            for key, heading in (("error", _HERE), ("error_other_seeds", _ELSEWHERE)):
                if key in row:
                    one[heading] = f"{Z * row[key]:.0f}"
            shown.append(one)
        return shown

    @property
    def placed(self) -> Row | None:
        """The added model's row, ``of`` how many, and who is next ``above`` and ``below``."""
        if self.added is None:
            return None
        names = [None, *(row["model"] for row in self.rows), None]
        i = names.index(self.added)
        beside = {"above": names[i - 1], "below": names[i + 1]}
        return {**self.rows[i - 1], "of": len(self.models), **beside}

    @property
    def row(self) -> Row:
        """All of it, JSON-ready."""
        state, other = self.state, self.elsewhere
        return {
            **self.shown,
            "made": state.made,
            "population": state.population,
            "saved": round(self.saved, 4),
            "gap": self.target.gap,
            "confidence": self.target.confidence,
            "swaps": state.swaps,
            "probability": round(state.probability, 4),
            "swaps_other_seeds": other.swaps if other else None,
            "probability_other_seeds": round(other.probability, 4) if other else None,
            "stopped": state.finished,
            "warning": state.warning,
            "ratings": self.rows,
            "placed": self.placed,
            **self.account,
        }

    @property
    def parts(self) -> list[str | list[Row]]:
        """The board and what it comes to, in the order in which people read them."""
        return [self.board, *self.sentences, *self.lines, ""]

    @property
    def sentences(self) -> list[str]:
        """What it comes to."""
        state, target, other = self.state, self.target, self.elsewhere
        scope = f" with {self.added}" if self.added else ""
        wrong = ("no pair", "at most 1 pair", f"at most {state.swaps} pairs")[min(state.swaps, 2)]
        elsewhere = other and (
            f"; on other ChatSEEDs of the same kind at most {other.swaps} (at most {target.swaps}: "
            f"{_percent(other.probability)}), which more comparisons on these change little"
        )
        said = [
            f"Arena at N = {self.turns}: {state.made:,} of {state.population:,} comparisons{scope} "
            f"made, {100 * self.saved:.1f} % saved; {state.finished or 'not finished'}",
            f"With {100 * target.confidence:g} % confidence, {wrong}{scope} more "
            f"than {target.gap:g} Elo apart on the whole Arena "
            f"{'are' if state.swaps > 1 else 'is'} in the wrong order "
            f"(at most {target.swaps}: {_percent(state.probability)}){elsewhere or ''}",
        ]
        if (placed := self.placed) is not None:
            between = {"below": placed["above"], "above": placed["below"]}
            beside = [f"{where} {name}" for where, name in between.items() if name]
            error = placed.get("error_other_seeds")
            also = f"; ± {Z * error:.0f} on other ChatSEEDs" if error is not None else ""
            said.append(
                f"{self.added}: {placed['rating']:.0f} ± {Z * placed['error']:.0f} (95 %{also}), "
                f"place {placed['place']} of {placed['of']}, {' and '.join(beside)}"
            )
            if len(beside) == 1:
                end = "worst" if placed["above"] else "best"
                said.append(
                    f"Warning: {self.added} is the {end} of all: nobody beyond it tells how far it "
                    "is from the others, so its rating may be further out than its error says"
                )
        n_pairs = pairs(len(self.models), self.added)
        if target.swaps > _MANY * n_pairs and state.finished == "target reached":
            said.append(
                f"Warning: the target allows {target.swaps} of {n_pairs} pairs in the wrong order; "
                "so few models need --target swaps=0"
            )
        return [*said, *([f"Warning: {state.warning}"] if state.warning else [])]

    @property
    def progress(self) -> str:
        """How it stands, in one line."""
        state, target = self.state, self.target
        best = self.board[:_TOP]
        top = ", ".join(f"{row['model']} {row['rating']} ± {row[_HERE]}" for row in best)
        more = ", …" if len(self.models) > _TOP else ""
        return (
            f"N = {self.turns}: {state.made:,} of {state.population:,} "
            f"({100 * self.saved:.1f} % saved) · up to {state.swaps} swaps "
            f"(at most {target.swaps}: {_percent(state.probability)}) · {top}{more}"
        )


def pairs(n_models: int, added: str | None) -> int:
    """Pairs of models that a run asks about."""
    return n_models * (n_models - 1) // 2 if added is None else n_models - 1


def _percent(probability: float) -> str:
    """Nothing is certain: draws end at a few in a thousand."""
    return "over 99 %" if probability > 0.99 else f"{100 * probability:.0f} %"


def settings_of(request: Judging, workspace: Workspace) -> AdaptiveSettings | None:
    """How the request's Arena is to choose what is asked; ``None``: everything is asked.

    Raises `ConfigError` for what does not go together, or a target that is none.
    """
    add, target, budget = request.add, request.target, request.budget
    given = {"--target": target, "--budget": budget, "--seed": request.rng_seed}
    named = [flag for flag, value in given.items() if value is not None]
    how = "--add" if add is not None else "--adaptive"
    if add is None and not request.adaptive and request.settings is None:
        if named and (request.bridge_from is None or target is not None):
            raise ConfigError(
                f"{named[0]} belongs to an adaptive Arena; give --adaptive or --add too"
            )
        return None
    if request.limit is not None:
        raise ConfigError(
            "--limit is for asking everything about the first seeds; an adaptive Arena chooses "
            "what to ask: give --budget K in its place"
        )
    if request.bridge_from is not None:
        raise ConfigError(f"--bridge-from draws cases at random, {how} does not; give one")
    protocol = catalogue_of(workspace).named(request.protocol)
    if protocol.shows != "pair":
        raise ConfigError(
            f"{how} is for the arena: {protocol.name} judges each dialogue by itself or "
            f"beside its human one; leave {how} out"
        )
    if request.control:
        raise ConfigError(
            f"--control does not go with {how}: cases are chosen by the panel's own verdicts; "
            "leave one of the two out"
        )
    if request.settings is not None:
        return request.settings
    if budget is None and target is None and add is not None:
        budget = ADD_BUDGET
    return AdaptiveSettings(
        target=read_target(target) if budget is None or target is not None else None,
        budget=budget,
        seed=request.rng_seed or 0,
    )


def read_target(text: str | None) -> Target:
    """``gap=10,swaps=2,confidence=0.95``, or a part of that, as a target; ``None``: the default.

    Raises `ConfigError`, which names what, for anything else.
    """
    found: dict[str, float | int] = {}
    where = f"--target {text if text is None or len(text) < 60 else f'{text[:60]}…'!r}"
    for part in () if text is None else text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key not in _TARGET or not equals or key in found:
            what = "is given twice" if key in found else "is not known"
            raise ConfigError(
                f"{where}: {part.strip()!r} {what}; write it like gap=10,swaps=2,confidence=0.95"
            )
        try:
            found[key] = _TARGET[key](value)
        except ValueError:
            kind = "a whole number" if key == "swaps" else "a number"
            raise ConfigError(f"{where}: {key} {value[:60]!r} is not {kind}") from None
    try:
        return Target(**found)  # type: ignore[arg-type]
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None

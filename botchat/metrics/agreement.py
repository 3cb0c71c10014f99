"""Agreement of judges with people and with each other, on comparisons and on scores.

Judges whose name starts with the truth prefix are people (annotators). Their common verdict is the
sign of the mean vote, as PRD's gold label (Li et al. 2023): the side that more of them prefer, else
a tie. Votes for a tie count for neither side: first, tie, tie is a verdict for the first.

A judge's verdicts are labels ``1``, ``2`` and ``tie`` in the order shown; an unreadable one is
counted but has no label. Intervals are those of `botchat.metrics.intervals`, by item.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np

from botchat.errors import MissingDataError
from botchat.interfaces import Row
from botchat.metrics import statistics
from botchat.metrics.annotations import NOBODY, Annotation, Opinions, accused_index
from botchat.metrics.intervals import Items, Statistic, by_seed, differences, figures
from botchat.metrics.judge_bias import facts
from botchat.metrics.statistics import ratio
from botchat.records import Judgment, natural_sort_key
from botchat.verdicts import ABSENT, TIED, UNREADABLE, Codes, Flags, Floats


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The comparison of judges: rows of tables, JSON-ready, figures with their intervals."""

    rows: Sequence[Row] = ()
    """One a judge: ``judge``; ``n`` readable verdicts where people have one too; ``verdicts``
    readable and ``unreadable`` of all; ``accuracy_worst`` and ``accuracy_best``, with every
    unreadable verdict taken as wrong or as right; and

    - ``accuracy``, ``kappa`` (Cohen), ``fleiss_kappa`` (of two raters): against people.
    - what `botchat.metrics.judge_bias` says of a judge alone.
    - ``spearman``, ``kendall``: between the contestants' mean results (win 1, tie ½, loss 0) by the
      judge and by people on the same comparisons.
    - ``length_preference``: mean result of the longer text by the judge, less that by people on the
      same comparisons; -1 to 1, 0 is no preference.
    - ``self_preference``: the same for the judge's own texts, on comparisons readable in both
      orders, so that position has no effect.
    """
    pairs: Sequence[Row] = ()
    """One a pair of judges, on the ``n`` that both have a readable verdict on: ``judge_a``,
    ``judge_b``; ``agreement``, ``agreement_kappa`` and ``ranking_kendall`` between them; every
    figure's ``<figure>_difference``, a less b (``unreadable_rate`` over all verdicts of each);
    ``only_a_right``, ``only_b_right`` and ``sign_flip_p`` (`statistics.sign_flip` of what either is
    more often right on each item), where people have a verdict."""
    groups: Sequence[Row] = ()
    """``group`` (``judges``, ``annotators``), ``raters``, ``units`` that at least two rated,
    ``fleiss_kappa``, ``krippendorff_alpha``."""
    annotators: Sequence[Row] = ()
    """Rows of people, each against the majority of the others."""
    rankings: Sequence[Row] = ()
    """``judge``, ``contestant``, ``n`` comparisons, ``rank``, ``score`` (mean result), best first;
    people together under the truth prefix."""


def compare(
    annotations: Iterable[Annotation] | Opinions,
    truth_prefix: str | None = "human",
    *,
    resamples: int = 1000,
    lengths: Mapping[tuple[str, str], float] | None = None,
    selves: Mapping[str, str] | None = None,
    ungrouped: tuple[str, ...] = (),
) -> Agreement:
    """Compare judges on comparisons; at most one verdict a judge, item and order of showing.

    ``truth_prefix``: ``None`` where there are no annotators. ``lengths``: (item, contestant) ->
    length of the text. ``selves``: judge -> the contestant that is itself; default: the one of the
    same name. ``ungrouped``: endings of names of judges who count to no group. Raises
    `MissingDataError` without a judge, or without an annotator where a prefix is given, and
    `DataError` for two verdicts of one judge on one item in one order.
    """
    grid = annotations
    if not isinstance(grid, Opinions):
        grid = Opinions.of(grid, truth_prefix)
    if not grid.judges:
        raise MissingDataError(
            f"no judge to compare ({', '.join(grid.people) or 'no verdicts'}): give verdicts of "
            "at least one whose name does not start like the annotators'"
        )
    if truth_prefix is not None and not grid.people:
        raise MissingDataError(
            f"no annotator: no judge's name starts with {truth_prefix!r} "
            f"({', '.join(grid.judges)}); give the prefix of the people's names"
        )
    truth = grid.majority(grid.people)
    itself = {judge: judge for judge in grid.judges} | dict(selves or {})
    tables = _Tables(grid, resamples, lengths or {}, itself)
    ranked = [(judge, grid.said[judge]) for judge in grid.judges]
    if truth_prefix is not None:
        # The majority is one verdict, held by both columns: count it once.
        ranked.insert(0, (truth_prefix, np.where([True, False], truth, ABSENT).astype(np.int8)))
    rows = [tables.row(judge, truth) for judge in grid.judges]
    return Agreement(
        rows=rows,
        annotators=[
            tables.row(person, grid.majority([p for p in grid.people if p != person]))
            for person in grid.people
        ],
        pairs=[tables.pair(a, b, truth) for a, b in combinations(grid.judges, 2)],
        groups=list(tables.groups(ungrouped)),
        rankings=[row for name, said in ranked for row in tables.ranking(name, said)],
    )


class _Tables:
    """The rows of an `Agreement`."""

    def __init__(
        self,
        grid: Opinions,
        resamples: int,
        lengths: Mapping[tuple[str, str], float],
        selves: Mapping[str, str],
    ) -> None:
        """``resamples``: of the bootstrap, for correlations of rankings."""
        self._grid, self._resamples, self._selves = grid, resamples, selves
        self._items = Items(len(grid.items), np.repeat(grid.item[:, None], 2, axis=1))
        self._once = Items(len(grid.items), grid.item)
        self._proper = np.array([name != NOBODY for name in grid.contestants], bool)
        self._longer = np.zeros(len(grid.item))
        for i, sides in enumerate(grid.sides if lengths else ()):
            item = grid.items[grid.item[i]]
            one, two = (lengths.get((item, grid.contestants[side])) for side in sides)
            if one is not None and two is not None:
                self._longer[i] = np.sign(one - two)

    @cached_property
    def _kinds(self) -> tuple[Items, Flags, statistics.Counts]:
        """Items of which everybody said the same of the same contestants are of one kind.

        The rows of the first item of each, which of all rows they are, and how often each counts in
        each resample: of a large set there are fewer kinds than items.
        """
        grid = self._grid
        told = [*grid.sides.T, *(column for said in grid.said.values() for column in said.T)]
        row = np.zeros(len(grid.item), np.intp)
        for column in told:
            row = np.unique(
                row * (np.ptp(column) + 1) + column - column.min(), return_inverse=True
            )[1]
        order = np.lexsort((row, grid.item))
        ends = np.searchsorted(grid.item[order], np.arange(self._items.n + 1)) * row.itemsize
        data = row[order].tobytes()
        first: dict[bytes, int] = {}
        kind = np.array(
            [first.setdefault(data[low:high], len(first)) for low, high in pairwise(ends.tolist())],
            np.intp,
        )
        leads = np.zeros(self._items.n, bool)
        leads[np.unique(kind, return_index=True)[1]] = True
        counts = np.bincount(kind, minlength=len(first))
        return (
            Items(len(first), np.repeat(kind[grid.item][:, None], 2, axis=1)),
            leads[grid.item][:, None],
            statistics.kind_weights(counts, self._resamples, 0),
        )

    def row(self, judge: str, truth: Codes) -> Row:
        """One judge against the truth."""
        said = self._grid.said[judge]
        known = truth < UNREADABLE
        readable, unreadable = said < UNREADABLE, said == UNREADABLE
        asked = int((known & (readable | unreadable)).sum())
        right = int((known & (said == truth)).sum())
        row: Row = {
            "judge": judge,
            "n": int((known & readable).sum()),
            "verdicts": int(readable.sum()),
            "unreadable": int(unreadable.sum()),
            "accuracy_worst": right / asked if asked else None,
            "accuracy_best": int((known & unreadable).sum() + right) / asked if asked else None,
            **figures(self._figures(judge, said, truth)),
        }
        return row

    def pair(self, a: str, b: str, truth: Codes) -> Row:
        """Two judges on what both have a readable verdict on."""
        all_a, all_b = self._grid.said[a], self._grid.said[b]
        common = (all_a < UNREADABLE) & (all_b < UNREADABLE)
        said_a, said_b = (np.where(common, said, ABSENT).astype(np.int8) for said in (all_a, all_b))
        of_a, of_b = (
            self._figures(judge, said, truth)
            | {"unreadable_rate": facts(all_, self._grid.item)["unreadable_rate"]}
            for judge, said, all_ in ((a, said_a, all_a), (b, said_b, all_b))
        )
        between = {
            "agreement": self._items.share(said_a == said_b, common),
            "agreement_kappa": self._kappas(said_a, said_b, common)[0],
            "ranking_kendall": self._of_rankings(said_a, said_b, common)["kendall"],
        }
        known = common & (truth < UNREADABLE)
        right_a, right_b = (said_a == truth)[known], (said_b == truth)[known]
        only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
        lead = np.zeros(self._items.n)
        np.add.at(lead, self._items.item[known], right_a.astype(np.float64) - right_b)
        return {
            "judge_a": a,
            "judge_b": b,
            "n": int(common.sum()),
            **figures(between),
            **differences(of_a, of_b),
            "only_a_right": only_a,
            "only_b_right": only_b,
            "sign_flip_p": statistics.sign_flip(lead) if known.any() else None,
        }

    def groups(self, ungrouped: tuple[str, ...]) -> Iterator[Row]:
        """Agreement of all judges, and of all people, whichever order each of them saw."""
        grid = self._grid
        judges = [judge for judge in grid.judges if not judge.endswith(ungrouped)]
        if len(judges) > 1:
            said = np.stack([grid.said[judge] for judge in judges])
            yield {"group": "judges", **self._group(said, self._items)}
        if len(grid.people) > 1:
            said = np.stack([grid.seen_by(person) for person in grid.people])
            yield {"group": "annotators", **self._group(said, self._once)}

    def ranking(self, name: str, said: Codes) -> list[Row]:
        """Contestants by their mean score with one judge, best first."""
        judged = said < UNREADABLE
        sides, score = self._grid.sides, (1 + said[judged].astype(np.float64)) / 2
        shown = np.concatenate([sides[judged], sides[:, ::-1][judged]])
        item, m = np.tile(self._items.item[judged], 2), len(self._grid.contestants)
        found = by_seed(shown, item, np.concatenate([score, 1 - score]), m)
        n, ranked = np.bincount(shown, minlength=m), np.flatnonzero(self._proper)
        ranked = ranked[n[ranked] > 0]
        return [
            {
                "judge": name,
                "contestant": self._grid.contestants[i],
                "n": int(n[i]),
                "rank": 1 + int((found.value[ranked] > found.value[i]).sum()),
                **found.row(i, "score"),
            }
            for i in ranked[np.argsort(-found.value[ranked], kind="stable")].tolist()
        ]

    def _group(self, said: Codes, items: Items) -> Row:
        """Agreement of the raters on axis 0 of ``said``; the other axes are those of ``items``."""
        counts = np.stack([(said == code).sum(0) for code in (1, -1, TIED)], -1)
        rated = counts.sum(-1) > 1
        units, n = counts[rated].astype(np.float64), items.count(rated)
        pairs = items.mean(statistics.agreeing_pairs(units), rated).values
        labels = items.sums(units, rated)
        coincidences = items.sums(statistics.coincidences(units).reshape(-1, 9), rated)
        square = coincidences.reshape(-1, 3, 3)
        free = items.freedom(rated)
        if len(units):
            each = n / (free + 1)  # more where few items decide
            more = each * statistics.unmet(labels[0], labels[0].sum() / len(units))
            agree = pairs[0] * len(units) + each * statistics.accuracy(more)
            pairs = np.append(pairs, agree / (len(units) + each))
            labels = np.concatenate([labels, labels[0] + more.sum(1)])
            square = np.concatenate([square, square[0] + more])
        least = max(float(statistics.fleiss_kappa(0.0, labels[0])), -1.0)
        fleiss = Statistic(statistics.fleiss_kappa(pairs, labels), n, least, freedom=free)
        least = max(float(statistics.krippendorff_alpha(square[0], 0)), -1.0)
        alpha = Statistic(statistics.krippendorff_alpha(square), n, least, freedom=free)
        told = figures({"fleiss_kappa": fleiss, "krippendorff_alpha": alpha})
        return {"raters": len(said), "units": int(rated.sum()), **told}

    def _kappas(self, one: Codes, two: Codes, judged: Flags) -> tuple[Statistic, Statistic]:
        """Cohen's and Fleiss' kappa of two raters."""
        cell = np.eye(9)[one[judged] % 3 * 3 + two[judged] % 3]
        confusion, n = self._items.sums(cell, judged).reshape(-1, 3, 3), self._items.count(judged)
        free = self._items.freedom(judged)
        if n:
            both = confusion[0].sum(0) + confusion[0].sum(1)
            more = statistics.unmet(both, 2) * n / (free + 1) / 2
            confusion = np.concatenate([confusion, confusion[0] + more])
        labels = confusion.sum(-1) + confusion.sum(-2)
        fleiss = statistics.fleiss_kappa(statistics.accuracy(confusion), labels)
        of_two = max(float(statistics.cohen_kappa(confusion[0], 0)), -1.0)
        least = max(float(statistics.fleiss_kappa(0.0, labels[0])), -1.0)
        kappa = Statistic(statistics.cohen_kappa(confusion), n, of_two, freedom=free)
        return kappa, Statistic(fleiss, n, least, freedom=free)

    def _figures(self, judge: str, said: Codes, truth: Codes) -> dict[str, Statistic]:
        """The figures of `Agreement.rows` of one judge's verdicts."""
        readable = said < UNREADABLE
        judged = readable & (truth < UNREADABLE)
        both = readable & readable[:, ::-1]
        kappa, fleiss = self._kappas(truth, said, judged)
        return {
            "accuracy": self._items.share(said == truth, judged),
            "kappa": kappa,
            "fleiss_kappa": fleiss,
            **facts(said, self._grid.item),
            **self._of_rankings(said, truth, judged),
            "length_preference": self._preference(said, truth, judged, self._longer),
            "self_preference": self._preference(said, truth, judged & both, self._own(judge)),
        }

    def _of_rankings(self, one: Codes, two: Codes, judged: Flags) -> dict[str, Statistic]:
        items, chosen, weights = self._kinds
        n, points = self._points(one, judged & chosen, items)
        ranked = (n.sum(0) > 0) & self._proper
        if ranked.sum() < 2:
            nothing = Statistic(np.array([math.nan]), kind="drawn")
            return {"spearman": nothing, "kendall": nothing}
        others = self._points(two, judged & chosen, items)[1]
        sums = np.hstack([part[:, ranked] for part in (n, points, others)])
        n, points, others = np.split(statistics.resampled(weights, sums), 3, axis=1)
        x, y = ratio(points, n), ratio(others, n)
        return {
            "spearman": Statistic(statistics.spearman(x, y), kind="drawn"),
            "kendall": Statistic(statistics.kendall(x, y), kind="drawn"),
        }

    def _preference(self, said: Codes, truth: Codes, judged: Flags, favoured: Floats) -> Statistic:
        """Mean result of the favoured side (1: the first in column 0, -1, 0), less people's."""
        sign = favoured[:, None] * np.array([1, -1])
        kept = judged & (sign != 0)
        beyond = (said[kept].astype(np.float64) - truth[kept]) * sign[kept] / 2
        return self._items.difference(beyond, kept)

    def _own(self, judge: str) -> Floats:
        """For `_preference`: the side that is the judge itself."""
        name = self._selves.get(judge)
        own: Floats = np.array([float(contestant == name) for contestant in self._grid.contestants])
        return np.subtract(own[self._grid.sides[:, 0]], own[self._grid.sides[:, 1]])

    def _points(self, said: Codes, judged: Flags, items: Items) -> tuple[Floats, Floats]:
        """Comparisons and points of every contestant on each item, both (items, contestants)."""
        n, points = np.zeros((2, items.n, len(self._grid.contestants)))
        score = (1 + said[judged].astype(np.float64)) / 2
        sides = self._grid.sides
        for shown, gained in ((sides, score), (sides[:, ::-1], 1 - score)):
            at = (items.item[judged], shown[judged])
            np.add.at(n, at, 1)
            np.add.at(points, at, gained)
        return n, points


_UNKNOWN = -1
"""No readable verdict; otherwise 0 for No, or the index accused."""


def detection(
    judgments: Iterable[Judgment], first_ai: Callable[[Judgment], int | None]
) -> tuple[dict[str, Row], dict[tuple[str, str], Row]]:
    """Judge -> figures, and two judges -> their differences on what both of them answered.

    Shares of readable verdicts: ``machines_caught``, generated dialogues accused;
    ``exact_index_rate``, generated dialogues accused at exactly their first AI utterance;
    ``people_accused``, human dialogues accused. ``judgments``: of
    UniEval, at most one a judge, seed and contestant. ``first_ai``: 1-based, ``None`` for a human
    dialogue. Intervals are by seed. Raises `DataError` for a verdict that UniEval does not offer.
    """
    rows = list(judgments)
    ordered = sorted({row.seed_id for row in rows}, key=natural_sort_key)
    seeds = {seed_id: i for i, seed_id in enumerate(ordered)}
    asked = dict.fromkeys((row.seed_id, row.contestants[0]) for row in rows)
    cases = {case: i for i, case in enumerate(asked)}
    judges = list(dict.fromkeys(row.judge for row in rows))
    said = {judge: np.full(len(cases), _UNKNOWN, np.intp) for judge in judges}
    true = np.zeros(len(cases), np.intp)
    for row in rows:
        place = cases[row.seed_id, row.contestants[0]]
        true[place] = first_ai(row) or 0
        if row.verdict is not None:
            whose = f"{row.judge} on seed {row.seed_id}"
            said[row.judge][place] = accused_index(row.verdict, whose)
    item = np.array([seeds[seed_id] for seed_id, _ in cases], np.intp)
    items = Items(len(seeds), item)

    def measured(judge: str, on: Flags) -> dict[str, Statistic]:
        accused, generated, human = said[judge] > 0, on & (true > 0), on & (true == 0)
        return {
            "machines_caught": items.share(accused, generated),
            "exact_index_rate": items.share(said[judge] == true, generated),
            "people_accused": items.share(accused, human),
        }

    pairs = {}
    for a, b in combinations(judges, 2):
        both = (said[a] > _UNKNOWN) & (said[b] > _UNKNOWN)
        pairs[a, b] = differences(measured(a, both), measured(b, both))
    found = {judge: figures(measured(judge, said[judge] > _UNKNOWN)) for judge in judges}
    return found, pairs

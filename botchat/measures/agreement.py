"""Agreement of judges with people and with each other, on comparisons and on scores.

Judges whose name starts with the truth prefix are people (annotators). Their common verdict is the
sign of the mean vote, as PRD's gold label (Li et al. 2023): the side that more of them prefer, else
a tie. Votes for a tie count for neither side: first, tie, tie is a verdict for the first.

A judge's verdicts are labels ``1``, ``2`` and ``tie`` in the order shown; an unreadable one is
counted but has no label. Intervals are percentiles of a bootstrap over items; all judges are
measured on the same resamples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from botchat.errors import DataError, MissingError
from botchat.interfaces import Row
from botchat.measures import statistics
from botchat.measures.annotations import (
    ABSENT,
    NOBODY,
    TIE,
    UNREADABLE,
    Annotation,
    Codes,
    Grid,
    accused_index,
    is_person,
)
from botchat.measures.statistics import Flags, Floats, Indices, differences, figures, ratio
from botchat.records import Judgment, natural_key


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The comparison of judges: rows of tables, JSON-ready, figures with their intervals."""

    rows: Sequence[Row] = ()
    """One a judge: ``judge``; ``n`` readable verdicts where people have one too; ``verdicts``
    readable and ``unreadable`` of all; ``accuracy_worst`` and ``accuracy_best``, with every
    unreadable verdict taken as wrong or as right; where a judge's probabilities are known, their
    mean ``confidence``, and ``overconfidence``, confidence less the share that is right; and

    - ``accuracy``, ``kappa`` (Cohen), ``fleiss_kappa`` (of two raters): against people.
    - ``consistency``: share of the comparisons readable in both orders on which both verdicts name
      the same side.
    - ``position_preference``: share of the verdicts on those, ties left out, that name the side
      shown first; ½ is no preference.
    - ``tie_rate``: share of the readable verdicts. ``unreadable_rate``: share of all verdicts.
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
    ``only_a_right``, ``only_b_right`` and ``mcnemar_p``, where people have a verdict."""
    groups: Sequence[Row] = ()
    """``group`` (``judges``, ``annotators``), ``raters``, ``units`` that at least two rated,
    ``fleiss_kappa``, ``krippendorff_alpha``; for judges ``error_correlation`` (mean over pairs) and
    ``effective_votes``, how many independent judges they are worth together."""
    annotators: Sequence[Row] = ()
    """Rows of people, each against the majority of the others."""
    rankings: Sequence[Row] = ()
    """``judge``, ``contestant``, ``n`` comparisons, ``rank``, ``score`` (mean result), best first;
    people together under the truth prefix."""


def compare(
    annotations: Iterable[Annotation],
    truth_prefix: str | None = "human",
    *,
    resamples: int = 1000,
    seed: int = 0,
    lengths: Mapping[tuple[str, str], float] | None = None,
    selves: Mapping[str, str] | None = None,
) -> Agreement:
    """Compare judges on comparisons; at most one verdict a judge, item and order of showing.

    ``truth_prefix``: ``None`` where there are no annotators. ``lengths``: (item, contestant) ->
    length of the text. ``selves``: judge -> the contestant that is itself; default: the one of the
    same name. Raises `MissingError` without a judge, or without an annotator where a prefix is
    given, and `DataError` for two verdicts of one judge on one item in one order.
    """
    grid = Grid.of(annotations, truth_prefix)
    if not grid.judges:
        raise MissingError(
            f"no judge to compare ({', '.join(grid.people) or 'no verdicts'}): give verdicts of "
            "at least one whose name does not start like the annotators'"
        )
    if truth_prefix is not None and not grid.people:
        raise MissingError(
            f"no annotator: no judge's name starts with {truth_prefix!r} "
            f"({', '.join(grid.judges)}); give the prefix of the people's names"
        )
    truth = grid.majority(grid.people)
    weights = statistics.item_weights(len(grid.items), resamples, seed)
    itself = {judge: judge for judge in grid.judges} | dict(selves or {})
    tables = _Tables(grid, weights, lengths or {}, itself)
    ranked = [(judge, grid.said[judge]) for judge in grid.judges]
    if truth_prefix is not None:
        # The majority is one verdict, held by both columns: count it once.
        ranked.insert(0, (truth_prefix, np.where([True, False], truth, ABSENT).astype(np.int8)))
    return Agreement(
        rows=[tables.row(judge, truth) for judge in grid.judges],
        annotators=[
            tables.row(person, grid.majority([p for p in grid.people if p != person]))
            for person in grid.people
        ],
        pairs=[tables.pair(a, b, truth) for a, b in combinations(grid.judges, 2)],
        groups=list(tables.groups(truth)),
        rankings=[row for name, said in ranked for row in tables.ranking(name, said)],
    )


def _sums(weights: Floats, item: Indices, values: Floats) -> Floats:
    """Sums over rows in every resample; ``values`` (rows, k) -> (resamples + 1, k)."""
    by_item = np.zeros((weights.shape[1], values.shape[1]))
    np.add.at(by_item, item, values)
    return weights @ by_item


def _mean(weights: Floats, item: Indices, values: Floats) -> Floats:
    """Mean over rows in every resample, both (rows,) -> (resamples + 1,)."""
    sums = _sums(weights, item, np.stack([values, np.ones_like(values)], -1))
    return ratio(sums[:, 0], sums[:, 1])


def _share(weights: Floats, item: Indices, hit: Flags, of: Flags) -> Floats:
    """Share of ``hit`` among the rows ``of`` in every resample, shape (resamples + 1,)."""
    return _mean(weights, item[of], hit[of].astype(np.float64))


class _Tables:
    """The rows of an `Agreement`. Figures have shape (resamples + 1,) until they enter a row."""

    def __init__(
        self,
        grid: Grid,
        weights: Floats,
        lengths: Mapping[tuple[str, str], float],
        selves: Mapping[str, str],
    ) -> None:
        self._grid, self._weights, self._selves = grid, weights, selves
        self._item = np.repeat(grid.item[:, None], 2, axis=1)
        self._share = partial(_share, weights, self._item)
        self._proper = np.array([name != NOBODY for name in grid.contestants], bool)
        self._longer = np.zeros(len(grid.item))
        for i, sides in enumerate(grid.sides):
            item = grid.items[grid.item[i]]
            one, two = (lengths.get((item, grid.contestants[side])) for side in sides)
            if one is not None and two is not None:
                self._longer[i] = np.sign(one - two)

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
        if judge in self._grid.confidence:
            row |= figures(self._calibration(self._grid.confidence[judge], said, truth))
        return row

    def pair(self, a: str, b: str, truth: Codes) -> Row:
        """Two judges on what both have a readable verdict on."""
        all_a, all_b = self._grid.said[a], self._grid.said[b]
        common = (all_a < UNREADABLE) & (all_b < UNREADABLE)
        said_a, said_b = (np.where(common, said, ABSENT).astype(np.int8) for said in (all_a, all_b))
        of_a, of_b = (
            self._figures(judge, said, truth) | {"unreadable_rate": self._unreadable_rate(all_)}
            for judge, said, all_ in ((a, said_a, all_a), (b, said_b, all_b))
        )
        confusion = self._confusion(said_a, said_b, common)
        between = {
            "agreement": statistics.accuracy(confusion),
            "agreement_kappa": statistics.cohen_kappa(confusion),
            "ranking_kendall": self._of_rankings(said_a, said_b, common)["kendall"],
        }
        known = common & (truth < UNREADABLE)
        right_a, right_b = (said_a == truth)[known], (said_b == truth)[known]
        only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
        return {
            "judge_a": a,
            "judge_b": b,
            "n": int(common.sum()),
            **figures(between),
            **differences(of_a, of_b),
            "only_a_right": only_a,
            "only_b_right": only_b,
            "mcnemar_p": statistics.mcnemar_exact(only_a, only_b) if known.any() else None,
        }

    def groups(self, truth: Codes) -> Iterator[Row]:
        """Agreement of all judges, and of all people, whichever order each of them saw."""
        grid = self._grid
        if len(grid.judges) > 1:
            said = np.stack([grid.said[judge] for judge in grid.judges])
            correlations = [self._error_correlation(a, b, truth) for a, b in combinations(said, 2)]
            errors: Floats = np.stack(correlations).mean(0)
            votes = statistics.effective_votes(len(said), errors)
            worth = figures({"error_correlation": errors, "effective_votes": votes})
            yield {"group": "judges", **self._group(said, self._item), **worth}
        if len(grid.people) > 1:
            said = np.stack([grid.seen_by(person) for person in grid.people])
            yield {"group": "annotators", **self._group(said, grid.item)}

    def ranking(self, name: str, said: Codes) -> list[Row]:
        """Contestants by their mean score with one judge, best first."""
        n, points = self._points(said, said < UNREADABLE)
        score = ratio(points, n)
        ranked = np.flatnonzero((n[0] > 0) & self._proper)
        return [
            {
                "judge": name,
                "contestant": self._grid.contestants[i],
                "n": int(n[0, i]),
                "rank": 1 + int((score[0, ranked] > score[0, i]).sum()),
                **figures({"score": score[:, i]}),
            }
            for i in ranked[np.argsort(-score[0, ranked], kind="stable")].tolist()
        ]

    def _group(self, said: Codes, item: Indices) -> Row:
        """Agreement of the raters on axis 0 of ``said``; the other axes are those of ``item``."""
        counts = np.stack([(said == code).sum(0) for code in (1, -1, TIE)], -1).reshape(-1, 3)
        rated = counts.sum(1) > 1
        units, of = counts[rated].astype(np.float64), item.reshape(-1)[rated]
        pairs = _mean(self._weights, of, statistics.agreeing_pairs(units))
        kappa = statistics.fleiss_kappa(pairs, _sums(self._weights, of, units))
        coincidences = statistics.coincidences(units).reshape(-1, 9)
        alpha = statistics.krippendorff_alpha(
            _sums(self._weights, of, coincidences).reshape(-1, 3, 3)
        )
        return {
            "raters": len(said),
            "units": int(rated.sum()),
            **figures({"fleiss_kappa": kappa, "krippendorff_alpha": alpha}),
        }

    def _figures(self, judge: str, said: Codes, truth: Codes) -> dict[str, Floats]:
        """The figures of `Agreement.rows` of one judge's verdicts."""
        readable = said < UNREADABLE
        judged = readable & (truth < UNREADABLE)
        both = readable & readable[:, ::-1]
        confusion = self._confusion(truth, said, judged)
        accuracy, labels = statistics.accuracy(confusion), confusion.sum(-1) + confusion.sum(-2)
        return {
            "accuracy": accuracy,
            "kappa": statistics.cohen_kappa(confusion),
            "fleiss_kappa": statistics.fleiss_kappa(accuracy, labels),
            "consistency": self._share(said == -said[:, ::-1], both),
            "position_preference": self._share(said == 1, both & (said != TIE)),
            "tie_rate": self._share(said == TIE, readable),
            "unreadable_rate": self._unreadable_rate(said),
            **self._of_rankings(said, truth, judged),
            "length_preference": self._preference(said, truth, judged, self._longer),
            "self_preference": self._preference(said, truth, judged & both, self._own(judge)),
        }

    def _calibration(self, confidence: Floats, said: Codes, truth: Codes) -> dict[str, Floats]:
        known = ~np.isnan(confidence)
        judged = known & (said < UNREADABLE) & (truth < UNREADABLE)
        beyond = (confidence - (said == truth).astype(np.float64))[judged]
        return {
            "confidence": _mean(self._weights, self._item[known], confidence[known]),
            "overconfidence": _mean(self._weights, self._item[judged], beyond),
        }

    def _unreadable_rate(self, said: Codes) -> Floats:
        return self._share(said == UNREADABLE, said != ABSENT)

    def _of_rankings(self, one: Codes, two: Codes, judged: Flags) -> dict[str, Floats]:
        n, points = self._points(one, judged)
        ranked = (n[0] > 0) & self._proper
        x = ratio(points, n)[:, ranked]
        y = ratio(self._points(two, judged)[1], n)[:, ranked]
        return {"spearman": statistics.spearman(x, y), "kendall": statistics.kendall(x, y)}

    def _preference(self, said: Codes, truth: Codes, judged: Flags, favoured: Floats) -> Floats:
        """Mean result of the favoured side (1: the first in column 0, -1, 0), less people's."""
        sign = favoured[:, None] * np.array([1, -1])
        kept = judged & (sign != 0)
        beyond = (said[kept].astype(np.float64) - truth[kept]) * sign[kept] / 2
        return _mean(self._weights, self._item[kept], beyond)

    def _own(self, judge: str) -> Floats:
        """For `_preference`: the side that is the judge itself."""
        name = self._selves.get(judge)
        own: Floats = np.array([float(contestant == name) for contestant in self._grid.contestants])
        return np.subtract(own[self._grid.sides[:, 0]], own[self._grid.sides[:, 1]])

    def _error_correlation(self, a: Codes, b: Codes, truth: Codes) -> Floats:
        judged = (a < UNREADABLE) & (b < UNREADABLE) & (truth < UNREADABLE)
        wrong_a, wrong_b = (a != truth)[judged], (b != truth)[judged]
        marks = np.stack([wrong_a & wrong_b, wrong_a, wrong_b, np.ones_like(wrong_a)], -1)
        both, of_a, of_b, n = _sums(self._weights, self._item[judged], marks.astype(float)).T
        return statistics.correlation(both, of_a, of_b, n)

    def _points(self, said: Codes, judged: Flags) -> tuple[Floats, Floats]:
        """Comparisons and points of every contestant, both (resamples + 1, contestants)."""
        n, points = np.zeros((2, len(self._grid.items), len(self._grid.contestants)))
        score = (1 + said[judged].astype(np.float64)) / 2
        sides = self._grid.sides
        for shown, gained in ((sides, score), (sides[:, ::-1], 1 - score)):
            at = (self._item[judged], shown[judged])
            np.add.at(n, at, 1)
            np.add.at(points, at, gained)
        return self._weights @ n, self._weights @ points

    def _confusion(self, one: Codes, two: Codes, judged: Flags) -> Floats:
        """Tables of counts, shape (resamples + 1, 3, 3)."""
        cell = np.eye(9)[one[judged] % 3 * 3 + two[judged] % 3]
        return _sums(self._weights, self._item[judged], cell).reshape(-1, 3, 3)


_UNKNOWN = -1
"""No readable verdict; otherwise 0 for No, or the index accused."""


def detection(
    judgments: Iterable[Judgment],
    first_ai: Callable[[Judgment], int | None],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[dict[str, Row], dict[tuple[str, str], Row]]:
    """Judge -> figures, and two judges -> their differences on what both of them answered.

    Shares of readable verdicts: ``detection_rate``, generated dialogues accused;
    ``exact_index_rate``, generated dialogues accused at exactly their first AI utterance;
    ``false_alarm_rate``, human dialogues accused. ``judgments``: of UniEval, at most one a judge,
    seed and contestant. ``first_ai``: 1-based, ``None`` for a human dialogue. The bootstrap is over
    seeds. Raises `DataError` for a verdict that UniEval does not offer.
    """
    rows = list(judgments)
    ordered = sorted({row.seed_id for row in rows}, key=natural_key)
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
    weights = statistics.item_weights(len(seeds), resamples, seed)

    def measured(judge: str, on: Flags) -> dict[str, Floats]:
        accused, generated, human = said[judge] > 0, on & (true > 0), on & (true == 0)
        return {
            "detection_rate": _share(weights, item, accused, generated),
            "exact_index_rate": _share(weights, item, said[judge] == true, generated),
            "false_alarm_rate": _share(weights, item, accused, human),
        }

    pairs = {}
    for a, b in combinations(judges, 2):
        both = (said[a] > _UNKNOWN) & (said[b] > _UNKNOWN)
        pairs[a, b] = differences(measured(a, both), measured(b, both))
    return {judge: figures(measured(judge, said[judge] > _UNKNOWN)) for judge in judges}, pairs


@dataclass(frozen=True, slots=True)
class Rating:
    """One score that one judge gave to one text."""

    item: str
    """What the text belongs to (a story, a conversation); an item may have many texts."""
    contestant: str
    judge: str
    score: float | None
    """``None``: unreadable."""


def compare_scores(
    ratings: Iterable[Rating],
    truth_prefix: str = "human",
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Agreement:
    """Correlate judges' scores with people's: the mean of the readable scores of a text.

    The bootstrap is over items. Each row has the readable (``n``) and ``unreadable`` scores of
    texts that people scored too, and ``spearman`` and ``kendall`` (tau-b); each pair their
    differences on the ``n`` texts that both scored.
    Raises `MissingError` without a judge or a person, `DataError` if a judge scored a text twice.
    """
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for rating in ratings:
        of_judge = scores.setdefault(rating.judge, {})
        key = (rating.item, rating.contestant)
        if key in of_judge:
            raise DataError(
                f"{rating.judge} has scored {rating.contestant or 'the text'} on item "
                f"{rating.item} twice; keep one of the two"
            )
        of_judge[key] = math.nan if rating.score is None else rating.score
    judges = [name for name in scores if not is_person(name, truth_prefix)]
    votes: dict[tuple[str, str], list[float]] = {}
    for person in [name for name in scores if name not in judges]:
        for key, score in scores[person].items():
            if not math.isnan(score):
                votes.setdefault(key, []).append(score)
    truth = {key: math.fsum(given) / len(given) for key, given in votes.items()}
    if not judges or not truth:
        raise MissingError(
            f"scores need judges and people (names that start with {truth_prefix!r}) with readable "
            f"scores; found {', '.join(scores) or 'none'}"
        )
    gold = np.array(list(truth.values()))
    given = {
        judge: np.array([scores[judge].get(key, math.nan) for key in truth]) for judge in judges
    }
    ordered = sorted({item for item, _ in truth}, key=natural_key)
    items = {item: i for i, item in enumerate(ordered)}
    weights = statistics.item_weights(len(items), resamples, seed)
    by_text = weights[:, [items[item] for item, _ in truth]]

    def correlations(judge: str, kept: Flags) -> dict[str, Floats]:
        # The work grows with the square of the entries: texts with equal scores are one entry.
        x_y = np.stack([given[judge][kept], gold[kept]])
        (x, y), group = np.unique(x_y, axis=1, return_inverse=True)
        members = np.zeros((x_y.shape[1], len(x)))
        members[np.arange(len(members)), group.reshape(-1)] = 1
        counts = by_text[:, kept] @ members
        return {
            "spearman": statistics.spearman(x, y, counts),
            "kendall": statistics.kendall(x, y, counts),
        }

    rows: list[Row] = []
    for judge in judges:
        readable = np.isfinite(given[judge])
        n = int(readable.sum())
        counts = {"n": n, "unreadable": sum(key in scores[judge] for key in truth) - n}
        rows.append({"judge": judge, **counts, **figures(correlations(judge, readable))})
    pairs: list[Row] = []
    for a, b in combinations(judges, 2):
        both = np.isfinite(given[a]) & np.isfinite(given[b])
        apart = differences(correlations(a, both), correlations(b, both))
        pairs.append({"judge_a": a, "judge_b": b, "n": int(both.sum()), **apart})
    return Agreement(rows=rows, pairs=pairs)

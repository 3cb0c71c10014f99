"""Judges against people and against each other: how often right, how steady, how far apart.

Judges whose name starts with the truth prefix are annotators. Their verdict on a comparison is the
side that more of them prefer, a tie where the sides are level: votes for a tie count for neither.
So three annotators who say first, tie, tie prefer the first, and one vote each way is a tie. (That
is PRD's gold label, Li et al. 2023: the sign of the mean vote.) It does not depend on the order of
the annotators, and it holds in both orders of showing, mirrored.

Every verdict of a judge is compared in the order it was shown, with the labels ``1``, ``2`` and
``tie``; a tie is a label like the others. An unreadable verdict is no label: it is counted, never
scored. Intervals are percentiles of a bootstrap over items, the same resamples for all judges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from botchat.errors import DataError, MissingError
from botchat.interfaces import Row
from botchat.measures import statistics
from botchat.measures.annotations import ABSENT, NOBODY, TIE, UNREADABLE, Annotation, Codes, Grid
from botchat.measures.statistics import Flags, Floats, Indices, figure, ratio
from botchat.records import Judgment, natural_key

FIGURES = (
    "accuracy",
    "kappa",
    "fleiss_kappa",
    "consistency",
    "position_preference",
    "tie_rate",
    "unreadable_rate",
    "spearman",
    "kendall",
    "length_preference",
    "self_preference",
)
"""What `compare` says of a judge.

- ``accuracy``, ``kappa`` (Cohen), ``fleiss_kappa`` (two raters): against people.
- ``consistency``: of the comparisons with a readable verdict in both orders, the share in which
  both say the same.
- ``position_preference``: of the decided verdicts on those comparisons, the share for the side
  shown first; ½ is none, since each side is first once.
- ``tie_rate``: of the readable verdicts. ``unreadable_rate``: of all.
- ``spearman``, ``kendall``: of the contestants' mean scores (win 1, tie ½, loss 0) with people's
  on the same comparisons.
- ``length_preference``: mean score that the judge gives the longer text, less what people give it
  on the same comparisons; -1 to 1, 0 is none.
- ``self_preference``: the same for the judge's own texts, over comparisons with a readable verdict
  in both orders, so that position is out of it.
"""


@dataclass(frozen=True)
class Agreement:
    """The comparison of judges, with the settings it was made with."""

    rows: tuple[Row, ...]
    """One a judge: ``judge``; ``n`` readable verdicts where people have one too; ``verdicts``
    readable and ``unreadable`` of all; `FIGURES`; ``accuracy_worst`` and ``accuracy_best``, with
    every unreadable verdict taken as wrong or as right; where a judge's probabilities are known,
    ``confidence``, their mean, and ``overconfidence``, by how much it is above the share of the
    same verdicts that is right."""
    annotators: tuple[Row, ...]
    """The same for each person, against the majority of the others."""
    pairs: tuple[Row, ...]
    """One a pair of judges, on what both have a readable verdict on: ``judge_a``, ``judge_b``,
    ``n``; ``agreement``, ``agreement_kappa`` and ``ranking_kendall`` between them; every figure's
    ``<figure>_difference``, a less b (``unreadable_rate`` over all verdicts of each);
    ``only_a_right``, ``only_b_right`` and ``mcnemar_p``, where people have a verdict."""
    groups: tuple[Row, ...]
    """``group`` (``judges``, ``annotators``), ``raters``, ``units`` that at least two rated,
    ``fleiss_kappa``, ``krippendorff_alpha``; for judges ``error_correlation`` (mean over pairs) and
    ``effective_votes``, how many independent judges they are worth together."""
    rankings: tuple[Row, ...]
    """``judge``, ``contestant``, ``n`` comparisons, ``rank``, ``score`` (mean of win 1, tie ½,
    loss 0), best first; people together under the truth prefix."""
    truth_prefix: str | None
    resamples: int
    seed: int


def compare(
    annotations: Iterable[Annotation],
    truth_prefix: str | None = "human",
    *,
    resamples: int = 1000,
    seed: int = 0,
    lengths: Mapping[tuple[str, str], float] | None = None,
    selves: Mapping[str, str] | None = None,
) -> Agreement:
    """Compare judges on comparisons.

    Args:
        annotations: verdicts, at most one a judge, item and order of showing.
        truth_prefix: what the names of annotators start with; ``None``: there are none.
        resamples: of the bootstrap.
        seed: of the bootstrap.
        lengths: (item, contestant) -> length of the text, for ``length_preference``.
        selves: judge -> the contestant that is itself; by default the one of the same name.

    Raises:
        MissingError: no judge, or no annotator where a prefix is given.
        DataError: two verdicts of one judge on one item in one order.
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
    weigher = _Weigher(
        grid,
        statistics.item_weights(len(grid.items), resamples, seed),
        lengths or {},
        {judge: judge for judge in grid.judges} | dict(selves or {}),
    )
    ranked = [(judge, grid.said[judge]) for judge in grid.judges]
    if truth_prefix is not None:
        # Both columns hold the one verdict that people have.
        ranked.insert(0, (truth_prefix, np.where([True, False], truth, ABSENT).astype(np.int8)))
    return Agreement(
        rows=tuple(weigher.row(judge, truth) for judge in grid.judges),
        annotators=tuple(
            weigher.row(person, grid.majority([p for p in grid.people if p != person]))
            for person in grid.people
        ),
        pairs=tuple(weigher.pair(a, b, truth) for a, b in combinations(grid.judges, 2)),
        groups=(
            *([weigher.judges_together(truth)] if len(grid.judges) > 1 else []),
            *([weigher.annotators_together()] if len(grid.people) > 1 else []),
        ),
        rankings=tuple(row for name, said in ranked for row in weigher.ranking(name, said)),
        truth_prefix=truth_prefix,
        resamples=resamples,
        seed=seed,
    )


class _Weigher:
    """Rows of the tables: sums by item, weighted for every resample, then divided."""

    def __init__(
        self,
        grid: Grid,
        weights: Floats,
        lengths: Mapping[tuple[str, str], float],
        selves: Mapping[str, str],
    ) -> None:
        self._grid = grid
        self._weights = weights
        self._selves = selves
        self._item = np.repeat(grid.item[:, None], 2, axis=1)
        self._proper = np.array([name != NOBODY for name in grid.contestants], bool)
        self._longer = np.zeros(len(grid.item))
        for i, (item, sides) in enumerate(
            zip(grid.item.tolist(), grid.sides.tolist(), strict=True)
        ):
            one, two = (lengths.get((grid.items[item], grid.contestants[j])) for j in sides)
            if one is not None and two is not None:
                self._longer[i] = np.sign(one - two)

    def row(self, judge: str, truth: Codes) -> Row:
        """One judge against the truth."""
        said = self._grid.said[judge]
        known = truth < UNREADABLE
        n = int((known & (said < UNREADABLE)).sum())
        unreadable = int((known & (said == UNREADABLE)).sum())
        right = int((known & (said == truth)).sum())
        asked = n + unreadable
        row: Row = {
            "judge": judge,
            "n": n,
            "verdicts": int((said < UNREADABLE).sum()),
            "unreadable": int((said == UNREADABLE).sum()),
            "accuracy_worst": right / asked if asked else None,
            "accuracy_best": (right + unreadable) / asked if asked else None,
        }
        for name, values in self._figures(judge, said, truth).items():
            row |= figure(name, values)
        if judge in self._grid.confidence:
            row |= self._calibration(self._grid.confidence[judge], said, truth)
        return row

    def pair(self, a: str, b: str, truth: Codes) -> Row:
        """Two judges on what both have a readable verdict on."""
        all_a, all_b = self._grid.said[a], self._grid.said[b]
        common = (all_a < UNREADABLE) & (all_b < UNREADABLE)
        said_a, said_b = (np.where(common, said, ABSENT).astype(np.int8) for said in (all_a, all_b))
        of_a, of_b = self._figures(a, said_a, truth), self._figures(b, said_b, truth)
        of_a["unreadable_rate"] = self._unreadable_rate(all_a)
        of_b["unreadable_rate"] = self._unreadable_rate(all_b)
        confusion = self._confusion(said_a, said_b, common)
        row: Row = {"judge_a": a, "judge_b": b, "n": int(common.sum())}
        row |= figure("agreement", statistics.accuracy(confusion))
        row |= figure("agreement_kappa", statistics.cohen_kappa(confusion))
        row |= figure("ranking_kendall", self._of_rankings(said_a, said_b, common)["kendall"])
        for name in FIGURES:
            row |= figure(f"{name}_difference", of_a[name] - of_b[name])
        known = common & (truth < UNREADABLE)
        right_a, right_b = (said_a == truth)[known], (said_b == truth)[known]
        only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
        return row | {
            "only_a_right": only_a,
            "only_b_right": only_b,
            "mcnemar_p": statistics.mcnemar_exact(only_a, only_b) if known.any() else None,
        }

    def judges_together(self, truth: Codes) -> Row:
        """Agreement of all judges, and what the correlation of their errors leaves of them."""
        judges = self._grid.judges
        said = np.stack([self._grid.said[judge] for judge in judges])
        errors: Floats = np.stack(
            [self._error_correlation(a, b, truth) for a, b in combinations(said, 2)]
        ).mean(0)
        return {
            "group": "judges",
            **self._group(said, self._item),
            **figure("error_correlation", errors),
            **figure("effective_votes", statistics.effective_votes(len(judges), errors)),
        }

    def annotators_together(self) -> Row:
        """Agreement of all people, whichever order each of them saw."""
        said = np.stack([self._grid.seen_by(person) for person in self._grid.people])
        return {"group": "annotators", **self._group(said, self._grid.item)}

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
                **figure("score", score[:, i]),
            }
            for i in ranked[np.argsort(-score[0, ranked], kind="stable")].tolist()
        ]

    def _group(self, said: Codes, item: Indices) -> Row:
        """Agreement of the raters on axis 0 of ``said``; the other axes are those of ``item``."""
        counts = np.stack([(said == code).sum(0) for code in (1, -1, TIE)], -1).reshape(-1, 3)
        rated = counts.sum(1) > 1
        units, of = counts[rated].astype(np.float64), item.reshape(-1)[rated]
        pairs = self._mean(of, statistics.agreeing_pairs(units))
        coincidences = self._sums(of, statistics.coincidences(units).reshape(-1, 9))
        alpha = statistics.krippendorff_alpha(coincidences.reshape(-1, 3, 3))
        return {
            "raters": len(said),
            "units": int(rated.sum()),
            **figure("fleiss_kappa", statistics.fleiss_kappa(pairs, self._sums(of, units))),
            **figure("krippendorff_alpha", alpha),
        }

    def _figures(self, judge: str, said: Codes, truth: Codes) -> dict[str, Floats]:
        """`FIGURES` of one judge's verdicts, each of shape (resamples + 1,)."""
        readable = said < UNREADABLE
        judged = readable & (truth < UNREADABLE)
        both = readable & readable[:, ::-1]
        confusion = self._confusion(truth, said, judged)
        return {
            "accuracy": statistics.accuracy(confusion),
            "kappa": statistics.cohen_kappa(confusion),
            "fleiss_kappa": statistics.fleiss_kappa_of_two(confusion),
            "consistency": self._share(said == -said[:, ::-1], both),
            "position_preference": self._share(said == 1, both & (said != TIE)),
            "tie_rate": self._share(said == TIE, readable),
            "unreadable_rate": self._unreadable_rate(said),
            **self._of_rankings(said, truth, judged),
            "length_preference": self._preference(said, truth, judged, self._longer),
            "self_preference": self._preference(said, truth, judged & both, self._own(judge)),
        }

    def _calibration(self, confidence: Floats, said: Codes, truth: Codes) -> Row:
        known = ~np.isnan(confidence)
        judged = known & (said < UNREADABLE) & (truth < UNREADABLE)
        right = (said == truth).astype(np.float64)
        beyond = self._mean(self._item[judged], (confidence - right)[judged])
        mean = self._mean(self._item[known], confidence[known])
        return figure("confidence", mean) | figure("overconfidence", beyond)

    def _unreadable_rate(self, said: Codes) -> Floats:
        return self._share(said == UNREADABLE, said != ABSENT)

    def _of_rankings(self, one: Codes, two: Codes, judged: Flags) -> dict[str, Floats]:
        n, points = self._points(one, judged)
        ranked = (n[0] > 0) & self._proper
        x = ratio(points, n)[:, ranked]
        y = ratio(self._points(two, judged)[1], n)[:, ranked]
        return {"spearman": statistics.spearman(x, y), "kendall": statistics.kendall(x, y)}

    def _preference(self, said: Codes, truth: Codes, judged: Flags, favoured: Floats) -> Floats:
        """Mean score of the favoured side less people's.

        ``favoured``, shape (c,): 1 the side of column 0, -1 the other, 0 none of them.
        """
        sign = favoured[:, None] * np.array([1, -1])
        kept = judged & (sign != 0)
        return self._mean(
            self._item[kept], (said[kept].astype(np.float64) - truth[kept]) * sign[kept] / 2
        )

    def _own(self, judge: str) -> Floats:
        name = self._selves.get(judge)
        own: Floats = np.array([float(contestant == name) for contestant in self._grid.contestants])
        return np.subtract(own[self._grid.sides[:, 0]], own[self._grid.sides[:, 1]])

    def _error_correlation(self, a: Codes, b: Codes, truth: Codes) -> Floats:
        judged = (a < UNREADABLE) & (b < UNREADABLE) & (truth < UNREADABLE)
        wrong_a, wrong_b = (a != truth)[judged], (b != truth)[judged]
        marks = np.stack([wrong_a & wrong_b, wrong_a, wrong_b, np.ones_like(wrong_a)], -1)
        both, of_a, of_b, n = self._sums(self._item[judged], marks.astype(np.float64)).T
        return statistics.correlation(both, of_a, of_b, n)

    def _points(self, said: Codes, judged: Flags) -> tuple[Floats, Floats]:
        """Comparisons and points of every contestant, both (resamples + 1, contestants)."""
        n, points = np.zeros((2, len(self._grid.items), len(self._grid.contestants)))
        score = (1 + said[judged].astype(np.float64)) / 2
        for sides, gained in (
            (self._grid.sides, score),
            (self._grid.sides[:, ::-1], 1 - score),
        ):
            at = (self._item[judged], sides[judged])
            np.add.at(n, at, 1)
            np.add.at(points, at, gained)
        return self._weights @ n, self._weights @ points

    def _confusion(self, one: Codes, two: Codes, judged: Flags) -> Floats:
        """Tables of counts, shape (resamples + 1, 3, 3)."""
        counts = np.zeros((len(self._grid.items), 9))
        np.add.at(counts, (self._item[judged], one[judged] % 3 * 3 + two[judged] % 3), 1)
        return (self._weights @ counts).reshape(-1, 3, 3)

    def _share(self, hit: Flags, of: Flags) -> Floats:
        return self._mean(self._item[of], hit[of].astype(np.float64))

    def _mean(self, item: Indices, values: Floats) -> Floats:
        sums = self._sums(item, np.stack([values, np.ones_like(values)], -1))
        return ratio(sums[:, 0], sums[:, 1])

    def _sums(self, item: Indices, values: Floats) -> Floats:
        """Sums over rows, (rows,) and (rows, k) -> (resamples + 1, k)."""
        by_item = np.zeros((len(self._grid.items), values.shape[1]))
        np.add.at(by_item, item, values)
        return self._weights @ by_item


DETECTION_FIGURES = ("detection_rate", "exact_index_rate", "false_alarm_rate")
"""What is said of a judge, of its readable verdicts: generated dialogues accused, generated
dialogues accused from their first AI utterance on, human dialogues accused."""

_UNKNOWN = -1
"""No readable verdict; else 0 for No, or the index accused."""


def detection(
    judgments: Iterable[Judgment],
    first_ai: Callable[[Judgment], int | None],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[dict[str, Row], dict[tuple[str, str], Row]]:
    """`DETECTION_FIGURES` of every judge, and the differences of every two where both are readable.

    Args:
        judgments: of UniEval, at most one a judge, seed and contestant.
        first_ai: index of the first AI utterance of a judged dialogue, from 1; ``None``: human.
        resamples: of the bootstrap over seeds.
        seed: of the bootstrap.

    Returns:
        judge -> `DETECTION_FIGURES`; (judge, judge) -> ``<figure>_difference``, all with intervals.
    """
    rows = list(judgments)
    seeds = sorted({row.seed_id for row in rows}, key=natural_key)
    items = {seed_id: i for i, seed_id in enumerate(seeds)}
    cases: dict[tuple[str, str], int] = {}
    for row in rows:
        cases.setdefault((row.seed_id, row.contestants[0]), len(cases))
    judges = list(dict.fromkeys(row.judge for row in rows))
    said = {judge: np.full(len(cases), _UNKNOWN, np.intp) for judge in judges}
    true = np.zeros(len(cases), np.intp)
    for row in rows:
        place = cases[row.seed_id, row.contestants[0]]
        true[place] = first_ai(row) or 0
        said[row.judge][place] = _index(row)
    item = np.array([items[seed_id] for seed_id, _ in cases], np.intp)
    weights = statistics.item_weights(len(items), resamples, seed)

    def measured(judge: str, on: Flags) -> dict[str, Floats]:
        return _figures(said[judge], true, on, item, weights)

    found = {judge: _row(measured(judge, said[judge] > _UNKNOWN), "{}") for judge in judges}
    differences = {}
    for a, b in combinations(judges, 2):
        both = (said[a] > _UNKNOWN) & (said[b] > _UNKNOWN)
        of_a, of_b = measured(a, both), measured(b, both)
        differences[a, b] = _row({name: of_a[name] - of_b[name] for name in of_a}, "{}_difference")
    return found, differences


def _figures(
    said: Indices, true: Indices, on: Flags, item: Indices, weights: Floats
) -> dict[str, Floats]:
    """Each of shape (resamples + 1,)."""

    def share(hit: Flags, of: Flags) -> Floats:
        n = weights.shape[1]
        hits = np.bincount(item[hit & of], minlength=n)
        return ratio(weights @ hits, weights @ np.bincount(item[of], minlength=n))

    generated, human = on & (true > 0), on & (true == 0)
    values = (share(said > 0, generated), share(said == true, generated), share(said > 0, human))
    return dict(zip(DETECTION_FIGURES, values, strict=True))


def _row(values: dict[str, Floats], form: str) -> Row:
    row: Row = {}
    for name, each in values.items():
        row |= figure(form.format(name), each)
    return row


def _index(judgment: Judgment) -> int:
    verdict = judgment.verdict
    if verdict is None:
        return _UNKNOWN
    if verdict == "No":
        return 0
    if verdict.isascii() and verdict.isdigit() and int(verdict) > 0:
        return int(verdict)
    raise DataError(
        f"verdict {verdict!r} of {judgment.judge} on seed {judgment.seed_id} is neither No nor an "
        "index from 1; delete that line and judge again"
    )

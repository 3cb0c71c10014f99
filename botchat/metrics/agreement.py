"""Agreement of judges with annotators and with each other, on comparisons and on scores.

Judges whose name starts with the truth prefix are annotators. Their common label is the sign of the
mean vote, as PRD's gold label (Li et al. 2023): the side that more of them prefer, else a tie.
Votes for a tie count for neither side: first, tie, tie is a label for the first.

A judge's verdicts are ``1``, ``2`` and ``tie`` in the order shown; an unreadable one is counted but
has no value. Intervals are those of `botchat.metrics.intervals`, clustered by item.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from botchat.errors import DataError, MissingDataError
from botchat.interfaces import Row
from botchat.metrics import statistics
from botchat.metrics.annotations import NOBODY, Annotation, VerdictArrays, is_annotator
from botchat.metrics.intervals import (
    Shares,
    bootstrap_ci,
    clustered_proportions,
    proportion_ci,
)
from botchat.metrics.judge_bias import verdict_rates
from botchat.metrics.statistics import ratio
from botchat.records import natural_sort_key
from botchat.verdicts import ABSENT, TIED, UNREADABLE, Codes, Flags, Floats, Indices


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The comparison of judges: rows of tables, JSON-ready, figures with their intervals."""

    judges: Sequence[Row] = ()
    """One a judge: ``judge``; ``n`` readable verdicts with a label; ``unreadable``; ``accuracy``,
    ``accuracy_decided`` (where neither is a tie) and Cohen's ``kappa`` against the labels;
    ``spearman``, ``kendall`` between the contestants' mean results (win 1, tie ½, loss 0) by the
    judge and by the labels; what `verdict_rates` says of the judge alone; ``longer_preferred``. Of
    single dialogues ``true_positive_rate`` and ``false_positive_rate``, positive: AI-involved."""
    pairs: Sequence[Row] = ()
    """One a pair of judges, on the ``n`` that both have a readable verdict on: ``judge_a``,
    ``judge_b``; ``agreement`` and ``kappa`` between them; ``accuracy_difference``, a less b, and
    its ``p`` (`statistics.sign_flip` by item)."""
    annotators: Sequence[Row] = ()
    """Rows of annotators, each against the majority of the others."""
    annotator_kappa: Row | None = None
    """``raters``, ``units`` that at least two labelled, Fleiss' ``kappa``."""
    rankings: Sequence[Row] = ()
    """``judge``, ``contestant``, ``n`` comparisons, ``rank``, ``score`` (mean result), best first;
    the labels under the truth prefix."""


def compare(
    annotations: Iterable[Annotation] | VerdictArrays,
    truth_prefix: str | None = "human",
    lengths: Mapping[tuple[str, str], float] | None = None,
) -> Agreement:
    """Compare judges on comparisons; at most one verdict a judge, item and order of showing.

    ``truth_prefix``: None where there are no annotators. ``lengths``: (item, contestant) -> length
    of the text. Raises `MissingDataError` without a judge, or without an annotator where a prefix
    is given, and `DataError` for two verdicts of one judge on one item in one order.
    """
    arrays = annotations
    if not isinstance(arrays, VerdictArrays):
        arrays = VerdictArrays.of(arrays, truth_prefix)
    if not arrays.judges:
        raise MissingDataError(
            f"no judge to compare ({', '.join(arrays.annotators) or 'no verdicts'}): give verdicts "
            "of at least one whose name does not start like the annotators'"
        )
    if truth_prefix is not None and not arrays.annotators:
        raise MissingDataError(
            f"no annotator: no judge's name starts with {truth_prefix!r} "
            f"({', '.join(arrays.judges)}); give the prefix of the annotators' names"
        )
    people = arrays.annotators
    truth = arrays.majority(people)
    tables = _Tables(arrays, _longer(arrays, lengths or {}))
    ranked = [(judge, arrays.verdicts[judge]) for judge in arrays.judges]
    if truth_prefix is not None:
        # The majority is one label, held by both columns: count it once.
        ranked.insert(0, (truth_prefix, np.where([True, False], truth, ABSENT).astype(np.int8)))
    return Agreement(
        judges=[tables.judge(judge, truth) for judge in arrays.judges],
        annotators=[
            tables.judge(name, arrays.majority([other for other in people if other != name]))
            for name in people
        ],
        pairs=[tables.pair(a, b, truth) for a, b in combinations(arrays.judges, 2)],
        annotator_kappa=tables.annotator_kappa() if len(people) > 1 else None,
        rankings=[row for name, codes in ranked for row in tables.ranking(name, codes)],
    )


@dataclass(frozen=True, eq=False)
class _Tables:
    """The rows of an `Agreement`; ``longer``: see `_longer`."""

    arrays: VerdictArrays
    longer: Floats

    @property
    def item(self) -> Indices:
        """Item of each verdict, shape (c, 2)."""
        return np.repeat(self.arrays.item[:, None], 2, axis=1)

    def judge(self, name: str, truth: Codes) -> Row:
        """One judge against the labels."""
        codes, item = self.arrays.verdicts[name], self.item
        readable = codes < UNREADABLE
        known = readable & (truth < UNREADABLE)
        decided = known & (codes != TIED) & (truth != TIED)
        side = self.longer[:, None] * np.array([1, -1])
        unequal = readable & (codes != TIED) & (side != 0)
        row: Row = {
            "judge": name,
            "n": int(known.sum()),
            "unreadable": int((codes == UNREADABLE).sum()),
            **proportion_ci((codes == truth)[known], item[known], "accuracy"),
            **proportion_ci((codes == truth)[decided], item[decided], "accuracy_decided"),
            **_kappa(codes[known], truth[known], item[known]),
            **self._rank_correlations(codes, truth, known),
            **verdict_rates(codes, self.arrays.item),
            **proportion_ci((codes == side)[unequal], item[unequal], "longer_preferred"),
        }
        if NOBODY in self.arrays.contestants:
            for label, key in ((-1, "true_positive_rate"), (1, "false_positive_rate")):
                of = known & (truth == label)
                row |= proportion_ci((codes == -1)[of], item[of], key)
        return row

    def pair(self, a: str, b: str, truth: Codes) -> Row:
        """Two judges on what both have a readable verdict on."""
        codes_a, codes_b = self.arrays.verdicts[a], self.arrays.verdicts[b]
        both = (codes_a < UNREADABLE) & (codes_b < UNREADABLE)
        known, item = both & (truth < UNREADABLE), self.item
        lead: Floats = (codes_a == truth)[known].astype(np.float64) - (codes_b == truth)[known]
        place = statistics.distinct(item[known])[1]
        leads = np.asarray(np.bincount(place, lead), np.float64)
        return {
            "judge_a": a,
            "judge_b": b,
            "n": int(both.sum()),
            **proportion_ci((codes_a == codes_b)[both], item[both], "agreement"),
            **_kappa(codes_a[both], codes_b[both], item[both]),
            **bootstrap_ci(
                place,
                [lead, np.ones_like(lead)],
                lambda sums: {"accuracy_difference": ratio(sums[:, 0], sums[:, 1])},
            ),
            "p": statistics.sign_flip(leads) if len(leads) else None,
        }

    def annotator_kappa(self) -> Row:
        """Fleiss' kappa of the annotators; of both orders each gives the side that it prefers."""
        labels = np.stack([self.arrays.majority([name]) for name in self.arrays.annotators])
        counts = np.stack([(labels[..., 0] == code).sum(0) for code in (1, -1, TIED)], -1)
        units = counts[rated := counts.sum(-1) > 1].astype(np.float64)
        columns = [statistics.agreeing_pairs(units), np.ones(len(units)), *units.T]
        return {
            "raters": len(labels),
            "units": len(units),
            **bootstrap_ci(
                self.arrays.item[rated],
                columns,
                lambda s: {"kappa": statistics.fleiss_kappa(ratio(s[:, 0], s[:, 1]), s[:, 2:])},
            ),
        }

    def ranking(self, name: str, codes: Codes) -> list[Row]:
        """Contestants by their mean result with one judge, best first."""
        arrays, judged = self.arrays, codes < UNREADABLE
        score = (1 + codes[judged].astype(np.float64)) / 2
        side = np.concatenate([arrays.sides[judged], arrays.sides[:, ::-1][judged]])
        item, m = np.tile(self.item[judged], 2), len(arrays.contestants)
        shares: Shares = clustered_proportions(side, item, np.concatenate([score, 1 - score]), m)
        n = np.bincount(side, minlength=m)
        ranked = np.array([i for i in np.flatnonzero(n) if arrays.contestants[i] != NOBODY], int)
        order = ranked[np.argsort(-shares.value[ranked], kind="stable")]
        return [
            {
                "judge": name,
                "contestant": arrays.contestants[i],
                "n": int(n[i]),
                "rank": 1 + int((shares.value[ranked] > shares.value[i]).sum()),
                **shares.row(i, "score"),
            }
            for i in order.tolist()
        ]

    def _rank_correlations(self, codes: Codes, truth: Codes, known: Flags) -> Row:
        """Between the contestants' mean results by the judge and by the labels."""
        sides = self.arrays.sides[known.any(1)]
        compared = [i for i in np.unique(sides) if self.arrays.contestants[i] != NOBODY]
        if len(compared) < 2:
            return {}

        def columns() -> Iterator[Floats]:
            """Comparisons of each contestant, and its results by the judge and by the labels."""
            for i in compared:
                side = ((self.arrays.sides == i) * np.array([1.0, -1.0])).sum(1, keepdims=True)
                sign = (side * np.array([1, -1]))[known]
                yield np.abs(sign)
                yield np.abs(sign) / 2 + sign * codes[known] / 2
                yield np.abs(sign) / 2 + sign * truth[known] / 2

        def figures(sums: Floats) -> dict[str, Floats]:
            n, by_judge, by_label = sums.reshape(len(sums), -1, 3).transpose(2, 0, 1)
            x, y = ratio(by_judge, n), ratio(by_label, n)
            return {"spearman": statistics.spearman(x, y), "kendall": statistics.kendall(x, y)}

        return bootstrap_ci(self.item[known], columns(), figures)


def _longer(arrays: VerdictArrays, lengths: Mapping[tuple[str, str], float]) -> Floats:
    """1 where the first side of column 0 is longer, -1 where the second is, else 0; (c,)."""
    longer = np.zeros(len(arrays.item))
    for i, sides in enumerate(arrays.sides if lengths else ()):
        item = arrays.items[arrays.item[i]]
        first, second = (lengths.get((item, arrays.contestants[side])) for side in sides)
        if first is not None and second is not None:
            longer[i] = np.sign(first - second)
    return longer


def _kappa(codes: Codes, others: Codes, item: Indices) -> Row:
    """Cohen's kappa of two raters, with its interval."""
    cell = codes % 3 * 3 + others % 3
    return bootstrap_ci(
        item,
        (cell == number for number in range(9)),
        lambda sums: {"kappa": statistics.cohen_kappa(sums.reshape(-1, 3, 3))},
    )


@dataclass(frozen=True, slots=True)
class ItemScore:
    """One score that one judge gave to one text."""

    item: str
    """What the text belongs to (a story, a conversation); an item may have many texts."""
    contestant: str
    judge: str
    score: float | None
    """None: unreadable."""


def compare_scores(scores: Iterable[ItemScore], truth_prefix: str = "human") -> Agreement:
    """Correlate judges' scores with the mean of the annotators' readable scores of a text.

    Rows have the readable (``n``) and ``unreadable`` scores of texts with a label, ``spearman`` and
    ``kendall`` (tau-b); pairs their differences on the ``n`` texts that both scored. Raises
    `MissingDataError` without a judge or an annotator, `DataError` if a judge scored a text twice.
    """
    by_judge: dict[str, dict[tuple[str, str], float]] = {}
    for score in scores:
        of_judge, key = by_judge.setdefault(score.judge, {}), (score.item, score.contestant)
        if key in of_judge:
            raise DataError(
                f"{score.judge} has scored {score.contestant or 'the text'} on item {score.item} "
                "twice; keep one of the two"
            )
        of_judge[key] = math.nan if score.score is None else score.score
    judges = [name for name in by_judge if not is_annotator(name, truth_prefix)]
    labels: dict[tuple[str, str], list[float]] = {}
    for name in by_judge:
        for key, value in by_judge[name].items() if name not in judges else ():
            if not math.isnan(value):
                labels.setdefault(key, []).append(value)
    if not judges or not labels:
        raise MissingDataError(
            f"scores need judges and annotators (names that start with {truth_prefix!r}) with "
            f"readable scores; found {', '.join(by_judge) or 'none'}"
        )
    gold = np.array([math.fsum(values) / len(values) for values in labels.values()])
    order = {item: i for i, item in enumerate(sorted({i for i, _ in labels}, key=natural_sort_key))}
    item = np.array([order[name] for name, _ in labels], np.intp)
    values = {j: np.array([by_judge[j].get(key, math.nan) for key in labels]) for j in judges}
    rows: list[Row] = []
    for judge in judges:
        n = int(np.isfinite(values[judge]).sum())
        counts = {"n": n, "unreadable": sum(key in by_judge[judge] for key in labels) - n}
        rows.append({"judge": judge, **counts, **_correlations([values[judge]], gold, item)})
    pairs: list[Row] = [
        {
            "judge_a": a,
            "judge_b": b,
            "n": int((np.isfinite(values[a]) & np.isfinite(values[b])).sum()),
            **_correlations([values[a], values[b]], gold, item),
        }
        for a, b in combinations(judges, 2)
    ]
    return Agreement(judges=rows, pairs=pairs)


def _correlations(judges: Sequence[Floats], gold: Floats, item: Indices) -> Row:
    """Rank correlations with ``gold`` of one judge, or what they differ by of two.

    On the texts that all scored; shape of each judge's scores, ``gold`` and ``item``: (texts,).
    """
    known = np.isfinite(np.stack(judges)).all(0)
    end = "_difference" if len(judges) > 1 else ""

    def figures(drawn: Floats) -> dict[str, Floats]:
        columns: dict[str, list[Floats]] = {"spearman": [], "kendall": []}
        for scores in judges:
            # The work grows with the square of the entries: texts with equal scores are one entry.
            (x, y), entry = np.unique(
                np.stack([scores[known], gold[known]]), axis=1, return_inverse=True
            )
            counts = drawn[:, place] @ np.eye(len(x))[entry.reshape(-1)]
            columns["spearman"].append(statistics.spearman(x, y, counts))
            columns["kendall"].append(statistics.kendall(x, y, counts))
        return {f"{key}{end}": a - sum(rest) for key, (a, *rest) in columns.items()}

    numbers, place = statistics.distinct(item[known])
    each = np.arange(len(numbers))
    return bootstrap_ci(each, np.eye(len(numbers)), figures) if len(numbers) else {}

"""Agreement of judges with annotators and with each other, on comparisons and on scores.

Judges whose name starts with the truth prefix are annotators. Their common label is the side that
more of them prefer, else a tie, as PRD's gold label (Li et al. 2023); votes for a tie count for
neither side. An unreadable verdict is counted but has no value. Intervals are clustered by item.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from botchat.errors import DataError, MissingDataError
from botchat.interfaces import Row
from botchat.metrics import statistics
from botchat.metrics.annotations import NO_CONTESTANT, Annotation, VerdictArrays, is_annotator
from botchat.metrics.statistics import bootstrap_ci, clustered_proportions, proportion_ci, ratio
from botchat.records import natural_sort_key
from botchat.verdicts import ABSENT, TIED, UNREADABLE, Codes, Flags, Floats, Indices


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The comparison of judges: rows of tables, JSON-ready, figures with their intervals."""

    judges: Sequence[Row] = ()
    """``judge``, ``n`` readable verdicts with a label, ``unreadable`` ones, ``accuracy``,
    ``accuracy_decided`` (neither is a tie) and Cohen's ``kappa`` against the labels; ``spearman``,
    ``kendall`` of the contestants' mean results (win 1, tie ½, loss 0) by judge and labels;
    `verdict_rates`; ``longer_preferred``; of single dialogues ``true_positive_rate`` and
    ``false_positive_rate``, positive: AI-involved."""
    pairs: Sequence[Row] = ()
    """``judge_a``, ``judge_b``, ``n`` that both have a readable verdict on, ``agreement``,
    ``kappa``; ``accuracy_difference``, a less b, and its ``p`` (`statistics.sign_flip`)."""
    annotators: Sequence[Row] = ()
    """Rows of annotators, each against the majority of the others."""
    annotator_kappa: Row | None = None
    """``raters``, ``units`` that at least two labelled, Fleiss' ``kappa``."""
    rankings: Sequence[Row] = ()
    """``judge`` (or the truth prefix), ``contestant``, ``n``, ``rank``, ``score``, best first."""


def compare(
    annotations: Iterable[Annotation] | VerdictArrays,
    truth_prefix: str | None = "human",
    lengths: Mapping[tuple[str, str], float] | None = None,
    topics: Mapping[str, str] | None = None,
) -> Agreement:
    """Compare judges on comparisons; at most one verdict a judge, item and order of showing.

    ``truth_prefix``: None where there are no annotators. ``lengths``: (item, contestant) -> length
    of the text. ``topics``: item -> topic, which is the cluster in its place. Raises
    `MissingDataError` without a judge, or without an annotator where a prefix is given, and
    `DataError` as `VerdictArrays.of`.
    """
    arrays = annotations
    if not isinstance(arrays, VerdictArrays):
        arrays = VerdictArrays.of(arrays, truth_prefix)
    annotators = arrays.annotators
    if not arrays.judges or (truth_prefix is not None and not annotators):
        raise _too_few(truth_prefix, arrays.verdicts)
    truth = arrays.majority(annotators)
    tables = _Tables(arrays.by_topic(topics or {}), _longer(arrays, lengths or {}))
    ranked = [(judge, arrays.verdicts[judge]) for judge in arrays.judges]
    if truth_prefix is not None:
        # The majority is one label, held by both columns: count it once.
        ranked.insert(0, (truth_prefix, np.where([True, False], truth, ABSENT).astype(np.int8)))
    return Agreement(
        judges=[tables.judge(judge, truth) for judge in arrays.judges],
        annotators=[
            tables.judge(name, arrays.majority([other for other in annotators if other != name]))
            for name in annotators
        ],
        pairs=[tables.pair(a, b, truth) for a, b in combinations(arrays.judges, 2)],
        annotator_kappa=tables.annotator_kappa() if len(annotators) > 1 else None,
        rankings=[row for name, codes in ranked for row in tables.ranking(name, codes)],
    )


def _too_few(truth_prefix: str | None, names: Iterable[str]) -> MissingDataError:
    needed = (
        f"verdicts of judges and of annotators (names that start with {truth_prefix or 'human'!r})"
    )
    present = ", ".join(names) or "none"
    return MissingDataError(f"nothing to compare: give {needed}; found {present}")


@dataclass(frozen=True, eq=False)
class _Tables:
    """Maker of the rows of an `Agreement`; ``longer`` is the array of `_longer`."""

    arrays: VerdictArrays
    longer: Floats

    @property
    def item(self) -> Indices:
        """Item of each verdict, shape (c, 2)."""
        return np.repeat(self.arrays.item[:, None], 2, axis=1)

    def judge(self, name: str, truth: Codes) -> Row:
        """Return one judge's row against the labels."""
        codes, item = self.arrays.verdicts[name], self.item
        readable = codes < UNREADABLE
        known = readable & (truth < UNREADABLE)
        decided = known & (codes != TIED) & (truth != TIED)
        unequal = readable & (codes != TIED) & (self.longer != 0)
        row: Row = {
            "judge": name,
            "n": int(known.sum()),
            "unreadable": int((codes == UNREADABLE).sum()),
            **proportion_ci((codes == truth)[known], item[known], "accuracy"),
            **proportion_ci((codes == truth)[decided], item[decided], "accuracy_decided"),
            **_kappa(codes[known], truth[known], item[known]),
            **self._rank_correlations(known, codes, truth),
            **verdict_rates(codes, self.arrays.item),
            **proportion_ci((codes == self.longer)[unequal], item[unequal], "longer_preferred"),
        }
        if NO_CONTESTANT in self.arrays.contestants:
            for label, key in ((-1, "true_positive_rate"), (1, "false_positive_rate")):
                labelled = known & (truth == label)
                row |= proportion_ci((codes == -1)[labelled], item[labelled], key)
        return row

    def pair(self, a: str, b: str, truth: Codes) -> Row:
        """Return the row of two judges, on what both have a readable verdict on."""
        codes_a, codes_b = self.arrays.verdicts[a], self.arrays.verdicts[b]
        both = (codes_a < UNREADABLE) & (codes_b < UNREADABLE)
        known, item = both & (truth < UNREADABLE), self.item
        lead: Floats = (codes_a == truth)[known].astype(np.float64) - (codes_b == truth)[known]
        leads = np.asarray(np.bincount(item[known], lead), np.float64)
        return {
            "judge_a": a,
            "judge_b": b,
            "n": int(both.sum()),
            **proportion_ci((codes_a == codes_b)[both], item[both], "agreement"),
            **_kappa(codes_a[both], codes_b[both], item[both]),
            **bootstrap_ci(
                item[known],
                [lead, np.ones_like(lead)],
                lambda sums: {"accuracy_difference": ratio(sums[:, 0], sums[:, 1])},
            ),
            "p": statistics.sign_flip(leads) if len(leads) else None,
        }

    def annotator_kappa(self) -> Row:
        """Return Fleiss' kappa of the annotators, each with the side preferred in both orders."""
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
        """Return the contestants by their mean result with one judge, best first."""
        side, item, (score,) = self._results(codes < UNREADABLE, codes)
        shares = clustered_proportions(side, item, score, len(self.arrays.contestants))
        order = sorted(self._contestants(side), key=lambda i: -shares.value[i])
        return [
            {
                "judge": name,
                "contestant": self.arrays.contestants[i],
                "n": int((side == i).sum()),
                "rank": 1 + int((shares.value[order] > shares.value[i]).sum()),
                **shares.row(i, "score"),
            }
            for i in order
        ]

    def _rank_correlations(self, known: Flags, codes: Codes, truth: Codes) -> Row:
        """Correlate the contestants' mean results by the judge and by the labels."""
        side, item, results = self._results(known, codes, truth)
        contestants = self._contestants(side)

        def figures(sums: Floats) -> dict[str, Floats]:
            n, by_judge, by_label = sums.reshape(len(sums), -1, 3).transpose(2, 0, 1)
            return _ranks(ratio(by_judge, n), ratio(by_label, n))

        columns = ((side == i) * each for i in contestants for each in (1.0, *results))
        return bootstrap_ci(item, columns, figures) if len(contestants) > 1 else {}

    def _results(self, judged: Flags, *judges: Codes) -> tuple[Indices, Indices, Floats]:
        """Contestant and item of both sides, shape (2n,), and results, shape (judges, 2n)."""
        sides, codes = self.arrays.sides, np.stack(judges)[:, judged].astype(np.float64)
        side = np.concatenate([sides[judged], sides[:, ::-1][judged]])
        return side, np.tile(self.item[judged], 2), (1 + np.concatenate([codes, -codes], 1)) / 2

    def _contestants(self, side: Indices) -> list[int]:
        return [i for i in np.unique(side).tolist() if self.arrays.contestants[i] != NO_CONTESTANT]


def verdict_rates(codes: Codes, item: Indices) -> Row:
    """Return rates of verdicts on comparisons in both orders, shape (c, 2), of items (c,).

    - ``unreadable_rate``: of all verdicts. ``ties``: of the readable ones.
    - ``consistency``: of the comparisons readable in both orders, share with the same verdict.
    - ``first_preferred``: of the decided verdicts on comparisons readable in both orders, share for
      the side shown first; ½ is no preference. Only both orders tell position from contestant.
    """
    twice = np.repeat(item[:, None], 2, axis=1)
    readable, asked = codes < UNREADABLE, codes != ABSENT
    both: Flags = readable[:, 0] & readable[:, 1]
    decided = readable & (codes != TIED) & both[:, None]
    same: Flags = codes[:, 0] == -codes[:, 1]
    return {
        **proportion_ci(same[both], item[both], "consistency"),
        **proportion_ci((codes == 1)[decided], twice[decided], "first_preferred"),
        **proportion_ci((codes == TIED)[readable], twice[readable], "ties"),
        **proportion_ci((codes == UNREADABLE)[asked], twice[asked], "unreadable_rate"),
    }


def _longer(arrays: VerdictArrays, lengths: Mapping[tuple[str, str], float]) -> Floats:
    """1 where the side shown first is longer, -1 where the other is, else 0; shape (c, 2)."""
    longer = np.zeros(len(arrays.item))
    for i, sides in enumerate(arrays.sides if lengths else ()):
        names = ((arrays.items[arrays.item[i]], arrays.contestants[side]) for side in sides)
        first, second = (lengths.get(name, math.nan) for name in names)
        longer[i] = np.nan_to_num(np.sign(first - second))
    return np.stack([longer, -longer], 1)


def _kappa(codes: Codes, others: Codes, item: Indices) -> Row:
    """Cohen's kappa of two raters, with its interval."""
    cell = codes % 3 * 3 + others % 3
    return bootstrap_ci(
        item,
        (cell == number for number in range(9)),
        lambda sums: {"kappa": statistics.cohen_kappa(sums.reshape(-1, 3, 3))},
    )


class ItemScore(NamedTuple):
    """One score that one judge gave to one text."""

    item: str  # what the text belongs to (a story, a conversation); it may have many texts
    contestant: str
    judge: str
    score: float | None  # None: unreadable


def compare_scores(scores: Iterable[ItemScore], truth_prefix: str = "human") -> Agreement:
    """Correlate judges' scores with the mean of the annotators' readable scores of a text.

    Rows have the readable (``n``) and ``unreadable`` scores of texts with a label, ``spearman`` and
    ``kendall`` (tau-b). Raises `MissingDataError` without a judge or an annotator, `DataError` if a
    judge scored a text twice.
    """
    by_judge: dict[str, dict[tuple[str, str], float]] = {}
    labels: dict[tuple[str, str], list[float]] = {}
    for item_name, contestant, judge, score in scores:
        of_judge, key = by_judge.setdefault(judge, {}), (item_name, contestant)
        if key in of_judge:
            fault = f"{judge} has scored {contestant or 'the text'} on item {item_name} twice"
            raise DataError(f"{fault}; keep one of the two")
        of_judge[key] = math.nan if score is None else score
        if score is not None and is_annotator(judge, truth_prefix):
            labels.setdefault(key, []).append(score)
    judges = [name for name in by_judge if not is_annotator(name, truth_prefix)]
    if not judges or not labels:
        raise _too_few(truth_prefix, by_judge)
    gold = np.array([math.fsum(values) / len(values) for values in labels.values()])
    order = {item: i for i, item in enumerate(sorted({i for i, _ in labels}, key=natural_sort_key))}
    item = np.array([order[name] for name, _ in labels], np.intp)
    rows: list[Row] = []
    for judge in judges:
        values = np.array([by_judge[judge].get(key, math.nan) for key in labels])
        n = int(np.isfinite(values).sum())
        counts = {"n": n, "unreadable": len(by_judge[judge].keys() & labels.keys()) - n}
        rows.append({"judge": judge, **counts, **_correlations(values, gold, item)})
    return Agreement(judges=rows)


def _correlations(scores: Floats, gold: Floats, item: Indices) -> Row:
    """Rank correlations of a judge's scores with ``gold``, shape (texts,) each."""
    known = np.isfinite(scores)
    if not known.any():
        return {}
    # The work grows with the square of the entries: texts with equal scores are one entry.
    both = np.stack([scores[known], gold[known]])
    (x, y), entry = np.unique(both, axis=1, return_inverse=True)
    return bootstrap_ci(
        item[known],
        (entry.reshape(-1) == number for number in range(len(x))),
        lambda counts: _ranks(x, y, counts),
    )


def _ranks(x: Floats, y: Floats, counts: Floats | None = None) -> dict[str, Floats]:
    names = {"spearman": statistics.spearman, "kendall": statistics.kendall}
    return {name: correlation(x, y, counts) for name, correlation in names.items()}

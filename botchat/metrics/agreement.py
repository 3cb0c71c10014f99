"""Agreement of judges with annotators and with each other, on comparisons and on scores.

Judges that the truth names are annotators (`JudgeId.is_annotator`). Their common label is the side
that more of them prefer, else a tie, as PRD's gold label (Li et al. 2023); votes for a tie count
for neither side. An unreadable verdict is counted, without a value. Intervals are by item.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, permutations
from statistics import fmean
from typing import NamedTuple, TypeAlias

import numpy as np

from botchat.errors import DataError, MissingDataError
from botchat.estimates import UNKNOWN, Codes, Estimate, Flags, Floats, Indices
from botchat.metrics.statistics import (
    LEVEL,
    ClusteredCases,
    SkillDifference,
    agreeing_pairs,
    bootstrap,
    cohen_kappa,
    fleiss_kappa,
    proportion,
    rank_correlations,
    ratio,
    skill,
    skill_difference,
)
from botchat.metrics.verdicts import (
    NO_CONTESTANT,
    JudgedPairs,
    Numbers,
    PairOutcome,
    PairVerdicts,
)
from botchat.records import HUMAN, JudgeId, natural_sort_key

TextNumbers: TypeAlias = Mapping[tuple[str, str], float]
"""(item, contestant) -> a number of the text."""

GUESSING = ""
"""The judge that calls everything a tie; its skill is 0."""

SkillDifferences: TypeAlias = Mapping[tuple[str, str], SkillDifference]
"""(judge a, judge b or `GUESSING`) -> skill of a less that of b."""


@dataclass(frozen=True, kw_only=True)
class JudgeAgreement:
    """One judge, or annotator, against the labels, and what its verdicts say by themselves."""

    judge: str
    n: int
    """Readable verdicts with a label."""
    unreadable: int
    n_decided: int
    """Verdicts with a label that is no tie, unreadable ones among them."""
    skill: Estimate
    """Half of the mean verdict (1, -1; 0 for a tie or an unreadable one) where the label is 1, less
    that where it is -1. A label is 1 for the side shown first, or a human dialogue."""
    accuracy: Estimate
    accuracy_decided: Estimate
    """Accuracy where neither is a tie."""
    kappa: Estimate
    """Cohen's kappa; not known where the verdicts, or the labels, are all alike."""
    spearman: Estimate | None
    kendall: Estimate | None
    """Correlations of the contestants' mean results (win 1, tie ½, loss 0) by judge and by labels;
    None of a single contestant."""
    consistency: Estimate
    first_preferred: Estimate
    """See `both_orders_rates`."""
    ties: Estimate
    """Share of the readable verdicts."""
    unreadable_rate: Estimate
    """Share of all verdicts."""
    longer_preferred: Estimate
    true_positive_rate: Estimate | None
    false_positive_rate: Estimate | None
    """Rates on single dialogues, where positive is AI-involved; None of pairs."""


@dataclass(frozen=True)
class ScoreAgreement:
    """Scores of one judge and those of annotators; None where nothing can be read."""

    judge: str
    n: int
    unreadable: int
    spearman: Estimate | None = None
    kendall: Estimate | None = None


@dataclass(frozen=True)
class PairAgreement:
    """Two judges, on what both have a readable verdict on."""

    judge_a: str
    judge_b: str
    n: int
    agreement: Estimate
    kappa: Estimate
    skill_difference: Estimate
    """Skill of a less that of b, where both were asked."""


@dataclass(frozen=True)
class AnnotatorKappa:
    """Fleiss' kappa of the annotators; ``units``: what at least two labelled."""

    raters: int
    units: int
    kappa: Estimate


@dataclass(frozen=True)
class Placed:
    """A contestant in the ranking by one judge, or by the labels."""

    judge: str
    contestant: str
    n: int
    rank: int
    score: Estimate


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """The comparison of judges."""

    judges: Sequence[JudgeAgreement] = ()
    pairs: Sequence[PairAgreement] = ()
    annotators: Sequence[JudgeAgreement] = ()
    """Each against the majority of the others."""
    annotator_kappa: AnnotatorKappa | None = None
    rankings: Sequence[Placed] = ()
    """Rankings by each judge and by the labels (under the truth's name), best first."""
    differences: SkillDifferences = field(default_factory=dict)
    """Differences of any two judges, and of each and `GUESSING`."""


def compare(
    verdicts: PairVerdicts,
    truth_name: str | None = HUMAN,
    lengths: TextNumbers | None = None,
    topics: Mapping[str, str] | None = None,
) -> Agreement:
    """Compare judges on comparisons; at most one verdict a judge, item and order of showing.

    ``truth_name``: None where there are no annotators. ``lengths``: (item, contestant) -> length
    of the text. ``topics``: item -> topic, which is the cluster in its place. Raises
    `MissingDataError` without a judge, or without an annotator where a name is given, and
    `DataError` for two verdicts of a judge on one item and order.
    """
    table = JudgedPairs.of(verdicts, truth_name, topics or {})
    annotators = table.annotators
    if not table.judges or (truth_name is not None and not annotators):
        raise _too_few(truth_name, table.outcomes)
    truth = table.majority(annotators)
    longer = _longer(table, lengths or {})
    differences = _differences(table, truth)
    rankings = []
    if truth_name is not None:
        # The majority is one label, held by both columns: count it once.
        once = np.where([True, False], truth, PairOutcome.ABSENT).astype(np.int8)
        rankings = _ranking(table, truth_name, once)
    for judge in table.judges:
        rankings += _ranking(table, judge, table.outcomes[judge])
    kappa = None
    if len(annotators) > 1:
        kappa = _annotator_kappa(table)
    return Agreement(
        judges=[_judge(table, judge, truth, longer) for judge in table.judges],
        annotators=_annotators(table, longer),
        pairs=[_pair(table, a, b, differences) for a, b in combinations(table.judges, 2)],
        annotator_kappa=kappa,
        rankings=rankings,
        differences=differences,
    )


def _verdicts(codes: Codes) -> Codes:
    """Return 1, -1, or 0 for a tie or an unreadable verdict."""
    return codes * (codes < PairOutcome.UNREADABLE)


def _too_few(truth_name: str | None, names: Iterable[str]) -> MissingDataError:
    return MissingDataError(
        "nothing to compare: give verdicts of judges and of annotators, who are called "
        f"{truth_name or HUMAN!r}, also with :NAME behind it; found {', '.join(names) or 'none'}"
    )


def _judge(table: JudgedPairs, name: str, truth: Codes, longer: Floats) -> JudgeAgreement:
    """Compare one judge with the labels; ``longer`` is the array of `_longer`."""
    codes = table.outcomes[name]
    cluster = table.cluster
    readable = codes < PairOutcome.UNREADABLE
    known = readable & (truth < PairOutcome.UNREADABLE)
    asked = codes != PairOutcome.ABSENT
    labelled = asked & (np.abs(truth) == 1)
    prefers = readable & (codes != PairOutcome.TIE)
    decided = prefers & labelled
    unequal = prefers & (longer != 0)
    consistency, first_preferred = both_orders_rates(codes, cluster)
    spearman, kendall = _rank_correlations(table, known, codes, truth)
    positives = {}
    if NO_CONTESTANT in table.contestants:
        for label in (-1, 1):
            of_class = known & (truth == label)
            positives[label] = _share(table, codes == -1, of_class)
    return JudgeAgreement(
        judge=name,
        n=int(known.sum()),
        unreadable=int((codes == PairOutcome.UNREADABLE).sum()),
        n_decided=int(labelled.sum()),
        skill=skill(_verdicts(codes[labelled]), truth[labelled], cluster[labelled]),
        accuracy=_share(table, codes == truth, known),
        accuracy_decided=_share(table, codes == truth, decided),
        kappa=_kappa(codes[known], truth[known], cluster[known]),
        spearman=spearman,
        kendall=kendall,
        consistency=consistency,
        first_preferred=first_preferred,
        ties=_share(table, codes == PairOutcome.TIE, readable),
        unreadable_rate=_share(table, ~readable, asked),
        longer_preferred=_share(table, codes == longer, unequal),
        true_positive_rate=positives.get(-1),
        false_positive_rate=positives.get(1),
    )


def _share(table: JudgedPairs, flags: Flags, among: Flags) -> Estimate:
    """Return the share of the verdicts ``among`` that have a flag."""
    return proportion(flags[among], table.cluster[among])


def _pair(table: JudgedPairs, a: str, b: str, differences: SkillDifferences) -> PairAgreement:
    codes_a = table.outcomes[a]
    codes_b = table.outcomes[b]
    both = (codes_a < PairOutcome.UNREADABLE) & (codes_b < PairOutcome.UNREADABLE)
    return PairAgreement(
        a,
        b,
        int(both.sum()),
        agreement=_share(table, codes_a == codes_b, both),
        kappa=_kappa(codes_a[both], codes_b[both], table.cluster[both]),
        skill_difference=differences[a, b].at(LEVEL),
    )


def _differences(table: JudgedPairs, truth: Codes) -> SkillDifferences:
    """Compare judges where both were asked and the label, shape (c, 2), is no tie."""
    codes = {**table.outcomes, GUESSING: np.zeros_like(truth)}
    differences = {}
    for a, b in permutations((GUESSING, *table.judges), 2):
        asked = (codes[a] != PairOutcome.ABSENT) & (codes[b] != PairOutcome.ABSENT)
        asked &= np.abs(truth) == 1
        lead = _verdicts(codes[a][asked]) - _verdicts(codes[b][asked])
        differences[a, b] = skill_difference(
            table.item[asked], table.cluster[asked], truth[asked], lead
        )
    return differences


def _annotators(table: JudgedPairs, longer: Floats) -> list[JudgeAgreement]:
    """Compare each annotator with the majority of the others."""
    compared = []
    for name in table.annotators:
        others = [other for other in table.annotators if other != name]
        compared.append(_judge(table, name, table.majority(others), longer))
    return compared


def _annotator_kappa(table: JudgedPairs) -> AnnotatorKappa:
    """Compare the annotators, each with the side preferred in both orders.

    They agree by chance as often as their labels are alike in the orders that each was shown.
    """
    labels = np.stack([table.majority([name]) for name in table.annotators])
    shown = np.stack([table.outcomes[name] for name in table.annotators]) != PairOutcome.ABSENT
    codes = np.array([PairOutcome.WIN, PairOutcome.LOSS, PairOutcome.TIE])
    is_given = labels[..., None] == codes
    counts = is_given[:, :, 0].sum(0)
    rated = counts.sum(-1) > 1
    # A label that was given in both orders is half a label in each.
    weights = shown / np.maximum(1, shown.sum(-1, keepdims=True))
    as_shown = np.einsum("acol,aco->lc", is_given, weights)
    columns = [agreeing_pairs(counts[rated]), rated[rated], *as_shown[:, rated]]
    (kappa,) = bootstrap(table.cluster[rated, 0], columns, fleiss_kappa)
    return AnnotatorKappa(len(labels), int(rated.sum()), kappa)


def _ranking(table: JudgedPairs, name: str, codes: Codes) -> list[Placed]:
    """Return the contestants by their mean result with one judge, best first."""
    side, cluster, (score,) = _results(table, codes < PairOutcome.UNREADABLE, codes)
    shares = ClusteredCases(side, cluster, len(table.contestants)).proportions(score)
    order = sorted(_contestants(table, side), key=lambda i: -shares.value[i])
    ranking = []
    for i in order:
        n = int((side == i).sum())
        rank = 1 + int((shares.value[order] > shares.value[i]).sum())
        ranking.append(Placed(name, table.contestants[i], n, rank, shares.at(i)))
    return ranking


def _rank_correlations(
    table: JudgedPairs, known: Flags, codes: Codes, truth: Codes
) -> tuple[Estimate | None, Estimate | None]:
    """Return Spearman's and Kendall's of the mean results by the judge and by the labels."""
    side, cluster, results = _results(table, known, codes, truth)
    contestants = _contestants(table, side)
    if len(contestants) < 2:
        return None, None
    # One at a time: together they are a matrix of all verdicts and contestants.
    columns = (
        np.where(side == contestant, values, 0.0)
        for values in (1.0, *results)
        for contestant in contestants
    )

    def figures(sums: Floats) -> list[Floats]:
        n, by_judge, by_label = np.split(sums, 3, axis=1)
        return rank_correlations(ratio(by_judge, n), ratio(by_label, n))

    spearman, kendall = bootstrap(cluster, columns, figures)
    return spearman, kendall


def _results(table: JudgedPairs, judged: Flags, *judges: Codes) -> tuple[Indices, Indices, Floats]:
    """Contestant and cluster of both sides, shape (2n,), and results, shape (judges, 2n)."""
    codes = np.stack(judges)[:, judged].astype(np.float64)
    side = np.concatenate([table.sides[judged], table.sides[:, ::-1][judged]])
    cluster = np.tile(table.cluster[judged], 2)
    return side, cluster, (1 + np.concatenate([codes, -codes], 1)) / 2


def _contestants(table: JudgedPairs, side: Indices) -> list[int]:
    return [i for i in np.unique(side).tolist() if table.contestants[i] != NO_CONTESTANT]


def both_orders_rates(codes: Codes, cluster: Indices) -> tuple[Estimate, Estimate]:
    """Return consistency, and how often the side shown first is preferred, of verdicts (c, 2).

    The share of the comparisons readable in both orders that have the same verdict, and of the
    decided verdicts on these the share for the side shown first; ½ is no preference. Only both
    orders tell position from contestant.
    """
    both = np.all(codes < PairOutcome.UNREADABLE, axis=1)
    codes = codes[both]
    cluster = cluster[both]
    decided = codes != PairOutcome.TIE
    consistency = proportion(codes[:, 0] == -codes[:, 1], cluster[:, 0])
    return consistency, proportion((codes == 1)[decided], cluster[decided])


def _longer(table: JudgedPairs, lengths: TextNumbers) -> Floats:
    """1 where the side shown first is longer, -1 where the other is, else 0; shape (c, 2)."""
    longer = np.zeros(len(table.item))
    for i, sides in enumerate(table.sides if lengths else ()):
        item = table.items[table.item[i, 0]]
        first, second = (lengths.get((item, table.contestants[side]), math.nan) for side in sides)
        longer[i] = np.nan_to_num(np.sign(first - second))
    return np.stack([longer, -longer], 1)


def _kappa(codes: Codes, others: Codes, item: Indices) -> Estimate:
    """Return Cohen's kappa of two raters; not known where one gave one answer to all."""
    if not ((codes != codes[:1]).any() and (others != others[:1]).any()):
        return UNKNOWN
    cells = np.equal.outer(range(9), codes % 3 * 3 + others % 3)
    return bootstrap(item, cells, lambda sums: cohen_kappa(sums.reshape(-1, 3, 3)))[0]


class ItemScore(NamedTuple):
    """One score that one judge gave to one text."""

    item: str  # what the text belongs to (a story, a conversation); it may have many texts
    contestant: str
    judge: str
    score: float | None  # None: unreadable


def compare_scores(scores: Iterable[ItemScore], truth_name: str = HUMAN) -> list[ScoreAgreement]:
    """Correlate judges' scores with the mean of the annotators' readable scores of a text.

    ``n`` and ``unreadable`` are of texts with a label; Kendall's is tau-b. Raises
    `MissingDataError` without a judge or an annotator, `DataError` if a judge scored a text twice.
    """
    by_judge = _scores_by_judge(scores)
    judges = []
    labels = defaultdict[tuple[str, str], list[float]](list)
    for name, of_judge in by_judge.items():
        if not JudgeId.parse(name).is_annotator(truth_name):
            judges.append(name)
            continue
        for key, score in of_judge.items():
            if not math.isnan(score):
                labels[key].append(score)
    if not judges or not labels:
        raise _too_few(truth_name, by_judge)
    gold = np.array([fmean(values) for values in labels.values()])
    names = [name for name, _ in labels]
    numbers = Numbers()
    numbers.of(sorted(names, key=natural_sort_key))
    item = numbers.of(names)
    compared = []
    for judge in judges:
        values = np.array([by_judge[judge].get(key, math.nan) for key in labels])
        n = int(np.isfinite(values).sum())
        n_unreadable = len(by_judge[judge].keys() & labels.keys()) - n
        correlations: list[Estimate] = []
        if n:
            correlations = _correlations(values, gold, item)
        compared.append(ScoreAgreement(judge, n, n_unreadable, *correlations))
    return compared


def _scores_by_judge(scores: Iterable[ItemScore]) -> Mapping[str, TextNumbers]:
    """Return judge -> item and contestant -> score, NaN where unreadable."""
    by_judge = defaultdict[str, dict[tuple[str, str], float]](dict)
    for item, contestant, judge, score in scores:
        of_judge = by_judge[judge]
        if (item, contestant) in of_judge:
            raise DataError(
                f"{judge} has scored {contestant or 'the text'} on item {item} twice; keep one of "
                "the two"
            )
        of_judge[item, contestant] = math.nan if score is None else score
    return by_judge


def _correlations(scores: Floats, gold: Floats, item: Indices) -> list[Estimate]:
    """Return Spearman's and Kendall's of a judge's scores with ``gold``, shape (texts,) each."""
    known = np.isfinite(scores)
    # The work grows with the square of the entries: texts with equal scores are one entry.
    (x, y), entry = np.unique([scores[known], gold[known]], axis=1, return_inverse=True)
    columns = np.equal.outer(range(len(x)), entry.reshape(-1))
    return bootstrap(item[known], columns, partial(rank_correlations, x, y))

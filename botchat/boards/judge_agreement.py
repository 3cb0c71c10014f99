"""Tables of a comparison of judges with labels and with each other, and three sentences on it.

A new column is a line of ``columns.toml``, and its value in a row of the table.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from botchat.boards.tables import COLUMNS, Column, Table, TableRow, spread, table
from botchat.estimates import UNKNOWN, Estimate, VerdictPrice
from botchat.frames import fill_lines
from botchat.interfaces import Cells, round_floats, settings_digest
from botchat.metrics.agreement import GUESSING, Agreement, JudgeAgreement, ScoreAgreement
from botchat.metrics.statistics import LEAST, LEVEL, SkillDifference
from botchat.records import SIGNED, JudgeId, JudgeRole, Texts

HUMAN_LABELS = "human labels"
"""Name of the labels where annotators gave them; no judge has such a name."""

BUILT_IN = "the truth"
"""The annotator that knows which side is human; no judge has such a name."""


def agreement_signature(
    command: str, subject: Mapping[str, str | None], data: object, truth: str | None
) -> str:
    """Sign a comparison of judges; ``data``, JSON-ready, holds every verdict."""
    labels = {None: "none", BUILT_IN: "built-in"}.get(truth, truth)
    digest = settings_digest(round_floats(data))
    parts = [f"{key}:{value}" for key, value in subject.items() if value]
    return "|".join([SIGNED, command, *parts, f"truth:{labels}", f"data:{digest}"])


# Price of a verdict of which nothing is known
_UNPRICED = VerdictPrice(math.inf, None, None, None)

# Role of a debate's control -> what it is
_CONTROLS: Mapping[JudgeRole, str] = {
    "votes_before_debate": "the same agents' votes before it",
    "equal_calls": "single judges with as many calls",
}

# Skill that a recommended judge may be behind another: 5 points of accuracy
_MARGIN = 0.10

# Items of each label below which judges are not compared
_LEAST_OF_CLASS = 5

PRICE = COLUMNS.price
"""Prices of one verdict; USD of a thousand, since one verdict's have too many decimals."""

JUDGES = COLUMNS.judges + PRICE
AS_PRINTED = [
    replace(column, detail=column.detail and column.key not in ("accuracy", "kappa"))
    for column in JUDGES
]
"""Columns of judges where a paper prints accuracy and kappa."""

# Keys of the columns on the terminal and the page, unless they are details
_PRINTED = ("judge", "n", "accuracy", "skill", "ties", "kappa", "usd_per_1000")


@dataclass(frozen=True, kw_only=True)
class AgreementReport:
    """A comparison of judges with its title and signature, and what a verdict of each costs."""

    subject: str
    """Name of the judged data, for titles."""
    labels: str
    """Labels that judges are compared with, in a few words; empty if only with each other."""
    signature: str
    agreement: Agreement = field(default_factory=Agreement)
    """Judges in the order of `by_skill`."""
    prices: Mapping[str, VerdictPrice] = field(default_factory=dict)
    """Judge -> price, where it is known."""
    one_order: Mapping[str, JudgeAgreement] = field(default_factory=dict)
    """Judge -> its results in one order, where it was asked in both."""
    singles: Mapping[str, Texts] = field(default_factory=dict)
    """Debate -> the judges without a debate that ask its models only."""
    columns: Sequence[Column] = JUDGES
    """Columns of the tables of judges; those that are no details are printed."""
    notes: Texts = ()
    """Sentences that a reader must know."""

    def price(self, judge: str) -> VerdictPrice:
        """Return the price of a judge's verdict, as far as it is known."""
        return self.prices.get(judge, _UNPRICED)

    @property
    def sentences(self) -> list[str]:
        """Sentences on the best debate's gain, on its talk, and on the judge to take.

        Where judges cannot be compared, one that says why.
        """
        names = []
        too_few = []
        for (name, other), difference in self.agreement.differences.items():
            if other != GUESSING or JudgeId.parse(name).is_annotator():
                continue
            if _is_enough(difference):
                names.append(name)
            else:
                too_few.append(difference)
        if len(names + too_few) < 2 or not self.labels:
            return []
        if len(names) < 2:
            return fill_lines(
                "boards/too_few_to_compare.txt",
                short=too_few[0],
                least=LEAST,
                least_of_class=_LEAST_OF_CLASS,
                are_pairs=all(each.true_positive_rate is None for each in self.agreement.judges),
            )
        return fill_lines(
            "boards/sentences_on_judges.txt",
            debate=_debate(self, names),
            choice=_choice(self, names),
            prices=self.prices,
            margin=round(50 * _MARGIN),
        )

    @property
    def judge_rows(self) -> list[Cells]:
        """A row a judge, with its price."""
        rows = []
        for judge in self.agreement.judges:
            row = known_fields(judge)
            if judge.judge in self.one_order:
                once = self.one_order[judge.judge]
                row["accuracy_one_order"] = once.accuracy.value
                row["kappa_one_order"] = once.kappa.value
            if judge.judge in self.prices:
                row |= vars(self.prices[judge.judge])
            rows.append(row)
        return rows

    @property
    def printed_rows(self) -> list[Cells]:
        """A row a judge, for readers: heading -> text, as far as anything is known."""
        columns = [column for column in self.columns if column.key in _PRINTED]
        rows = [with_price(row) for row in self.judge_rows]
        printed = table("judges", "", columns, rows, []).filled()
        headings = [column.heading for column in printed.headline]
        return [dict(zip(headings, cells, strict=True)) for cells in printed.cells]


def known_fields(record: JudgeAgreement | ScoreAgreement) -> Cells:
    """Return the row of a judge, without what it was not asked for."""
    return {key: value for key, value in vars(record).items() if value is not None}


def _is_enough(difference: SkillDifference) -> bool:
    """Whether two judges, or one and guessing, can be compared."""
    is_rare = min(difference.n_of_class) < _LEAST_OF_CLASS
    return difference.n_items >= LEAST and difference.n_clusters > 1 and not is_rare


def _difference(report: AgreementReport, judge: str, other: str, level: float) -> Estimate:
    """Return what a judge has more in skill than another; not known of too few items."""
    difference = report.agreement.differences.get((judge, other))
    if difference is None or not _is_enough(difference):
        return UNKNOWN
    return difference.at(level)


class _Debate(NamedTuple):
    """The best debate beside the best single judge of its models, and beside its controls."""

    name: str = ""
    single: str = ""
    gain: Estimate = UNKNOWN
    controls: Mapping[str, Estimate] = {}  # control, in words -> gain over it


def _debate(report: AgreementReport, names: Texts) -> _Debate:
    """Choose the best debate and compare it; nothing where there is none, or nothing to compare."""
    skill = {name: report.agreement.differences[name, GUESSING].value for name in names}
    debates = [name for name in names if str(JudgeId(name, "votes_before_debate")) in skill]
    if not debates:
        return _Debate()
    debate = max(debates, key=skill.__getitem__)
    controls = {}
    for role, control in _CONTROLS.items():
        gain = _difference(report, debate, str(JudgeId(debate, role)), LEVEL)
        if gain.is_known:
            controls[control] = gain
    compared = _Debate(debate, controls=controls)
    singles = []
    for name in report.singles.get(debate, ()):
        if _difference(report, debate, name, LEVEL).is_known:
            singles.append(name)
    if not singles:
        return compared
    single = max(singles, key=skill.__getitem__)
    # Both are chosen on the same items.
    level = 1 - (1 - LEVEL) / (len(debates) * len(singles))
    gain = _difference(report, debate, single, level)
    return compared._replace(single=single, gain=gain)


class _Choice(NamedTuple):
    """The judge to take."""

    n: int = 0  # items
    judge: str = ""  # empty where none beats guessing
    cheapest: str = ""  # the cheapest of all, if that is known
    usd: float | None = None
    behind: int = 0  # most verdicts of 100 in which it may be worse than another
    rival: str = ""  # the other
    is_fit: bool = False  # whether it is at most the margin behind every other


def _choice(report: AgreementReport, names: Texts) -> _Choice:
    """Choose the first, by price, that beats guessing and is at most a margin behind all others."""
    by_price, cheapest = _by_price(report, names)
    able = [name for name in by_price if _difference(report, name, GUESSING, LEVEL).low > 0]
    if not able:
        return _Choice()
    behind = {name: _behind(report, name, names) for name in able}
    fit = [name for name in able if behind[name][0] < _MARGIN]
    judge = [*fit, *able][0]
    lead, rival = behind[judge]
    return _Choice(
        report.agreement.differences[judge, GUESSING].n_items,
        judge,
        cheapest,
        report.price(judge).usd,
        math.ceil(round(50 * lead, 6)),
        rival,
        bool(fit),
    )


def _behind(report: AgreementReport, judge: str, names: Texts) -> tuple[float, str]:
    """Return how far a judge may be behind another, at most, and behind which."""
    level = 1 - 2 * (1 - LEVEL) / (len(names) - 1)  # one-sided, and for all others together
    behind = []
    for name in names:
        if name != judge:
            low = _difference(report, judge, name, level).low
            behind.append((-float(np.nan_to_num(low, nan=-2.0)), name))  # not known: all the way
    return max(behind)


def _by_price(report: AgreementReport, names: Texts) -> tuple[list[str], str]:
    """Sort judges by USD, which may be 0, then by calls, and name the cheapest.

    If the USD of one are not known, by calls, unknown ones last, and none is named.
    """
    names = sorted(names)
    prices = pd.DataFrame([vars(report.price(name)) for name in names], names)
    if prices["usd"].isna().any():
        return list(prices["calls"].sort_values(kind="stable").index), ""
    by_price = list(prices.sort_values(["usd", "calls"]).index)
    return by_price, by_price[0]


def by_skill(judges: Iterable[JudgeAgreement]) -> list[JudgeAgreement]:
    """Return judges, the highest skill first, each debate followed by its controls."""
    skill = {judge.judge: judge.skill.value for judge in judges}

    def key(judge: JudgeAgreement) -> tuple[float, str, bool]:
        name = JudgeId.parse(judge.judge).name
        if name not in skill:
            name = judge.judge
        return -np.nan_to_num(skill[name], nan=-2.0), name, name != judge.judge

    return sorted(judges, key=key)


def agreement_tables(report: AgreementReport) -> list[Table]:
    """Judges, pairs, annotators and rankings, as far as there are any."""
    agreement = report.agreement
    judges = [with_price(row) for row in report.judge_rows]
    pairs = []
    for pair in agreement.pairs:
        row = vars(pair)
        usd_a = report.price(pair.judge_a).usd
        usd_b = report.price(pair.judge_b).usd
        if usd_a and usd_b:  # how many times the price of the second the first costs
            row = {**row, "price_ratio": usd_a / usd_b}
        pairs.append(row)
    annotators = []
    if len(agreement.annotators) > 1:
        annotators = [known_fields(each) for each in agreement.annotators]
    kappa = []
    if agreement.annotator_kappa is not None:
        kappa.append(vars(agreement.annotator_kappa))
    rankings = [vars(each) for each in agreement.rankings]
    title = f"Judges against {report.labels or 'each other'}: {report.subject}"
    of_others = "Annotators against the majority of the others"
    signed = [report.signature]
    tables = [
        table("judges", title, report.columns, judges, signed, _HOW_READ),
        table("pairs", "Pairs of judges", COLUMNS.pairs, pairs, signed, _HOW_PAIRED),
        table("annotators", of_others, report.columns, annotators, signed),
        table("annotator-kappa", "Fleiss' kappa of the annotators", COLUMNS.kappa, kappa, signed),
        table("rankings", "Ranking by each judge", COLUMNS.rankings, rankings, signed),
    ]
    return [each.filled() for each in tables if len(each.frame)]


def agreement_json(report: AgreementReport) -> Cells:
    """Return the whole report, JSON-ready."""
    agreement = report.agreement
    kappa = agreement.annotator_kappa
    return {
        "sentences": report.sentences,
        "judges": [spread(row) for row in report.judge_rows],
        "pairs": [spread(vars(pair)) for pair in agreement.pairs],
        "annotators": [spread(known_fields(each)) for each in agreement.annotators],
        "annotator_kappa": None if kappa is None else spread(vars(kappa)),
        "rankings": [spread(vars(each)) for each in agreement.rankings],
        "notes": report.notes,
        "subject": report.subject,
        "signature": report.signature,
        "labels": report.labels or None,
    }


def with_price(row: dict[str, Any]) -> TableRow:
    """A judge's row with its price as tables have it: money of a thousand verdicts."""
    if row.get("usd") is None:
        return row
    return {**row, "usd_per_1000": 1000 * row["usd"]}


_HOW_READ = (
    "Skill in points of 100: 0 is guessing, 100 always right. Rates in percent; brackets are 95 % "
    "CIs clustered by item; kappa is Cohen's. Calls, tokens "
    "and seconds are of one verdict. (before debate): the same agents' votes before the debate; "
    "(control): single judges with as many calls."
)
_HOW_PAIRED = (
    "On the cases that both judged. Skill, difference: the first less the second, each pair with a "
    "95 % CI of its own; unreadable verdicts count as ties."
)

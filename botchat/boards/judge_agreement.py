"""Tables of a comparison of judges with labels and with each other, and three sentences on it.

A new column is a `Column` here, and its value in a row of the table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from botchat.boards.tables import (
    Column,
    N,
    Record,
    Table,
    TableRow,
    interval_text,
    share,
    spread,
    table,
)
from botchat.estimates import Estimate, VerdictPrice
from botchat.interfaces import round_floats, settings_digest
from botchat.metrics.agreement import (
    Agreement,
    JudgeAgreement,
    PairAgreement,
    ScoreAgreement,
    TextNumbers,
)
from botchat.metrics.lengths import mean_words
from botchat.metrics.statistics import LEVEL, holm
from botchat.records import SIGNED, Dialogues, Judged, JudgeId, JudgeRole

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


_UNPRICED = VerdictPrice(0.0, None, None, None)
"""Price of a verdict of which nothing is known."""

_CONTROLS: Mapping[JudgeRole, str] = {
    "votes_before_debate": "the same agents' votes before it",
    "equal_calls": "single judges with as many calls",
}
"""Role of a debate's control -> what it is."""


class Gain(NamedTuple):
    """Accuracy of one judge less that of another one, against the same labels."""

    estimate: Estimate
    p: float
    """Corrected for all pairs of judges (Holm)."""

    @property
    def is_significant(self) -> bool:
        """Whether it is not 0 at 95 %."""
        return self.p <= 1 - LEVEL

    @property
    def points(self) -> str:
        """``+17 points (+5 to +28)``."""
        points = self.estimate.stretched(0.0, 100.0)
        return (f"{points.value:+.0f} points ({points.low:+.0f} to {points.high:+.0f})").replace(
            "-", "−"
        )


@dataclass(frozen=True, kw_only=True)
class AgreementReport:
    """A comparison of judges with its title and signature, and what a verdict of each costs."""

    subject: str
    """Name of the judged data, for titles."""
    labels: str
    """Labels that judges are compared with, in a few words; empty if only with each other."""
    signature: str
    agreement: Agreement = field(default_factory=Agreement)
    """Judges in the order of `by_accuracy`."""
    prices: Mapping[str, VerdictPrice] = field(default_factory=dict)
    """Judge -> price, where it is known."""
    one_order: Mapping[str, JudgeAgreement] = field(default_factory=dict)
    """Judge -> its results in one order, where it was asked in both."""
    notes: Sequence[str] = ()
    """Sentences that a reader must know."""

    def price(self, judge: str) -> VerdictPrice:
        """Return the price of a judge's verdict, as far as it is known."""
        return self.prices.get(judge, _UNPRICED)

    @cached_property
    def corrected_pairs(self) -> list[PairAgreement]:
        """Pairs with ``p`` corrected for all of them (Holm)."""
        adjusted = iter(holm([pair.p for pair in self.agreement.pairs if pair.p is not None]))
        pairs = []
        for pair in self.agreement.pairs:
            if pair.p is not None:
                pair = replace(pair, p=next(adjusted))
            pairs.append(pair)
        return pairs

    @cached_property
    def gains(self) -> dict[tuple[str, str], Gain]:
        """(judge a, judge b) -> what a gains over b, where that is known."""
        gains = {}
        for pair in self.corrected_pairs:
            if pair.accuracy_difference.is_bounded and pair.p is not None:
                gains[pair.judge_a, pair.judge_b] = Gain(pair.accuracy_difference, pair.p)
                gains[pair.judge_b, pair.judge_a] = Gain(-pair.accuracy_difference, pair.p)
        return gains

    @property
    def sentences(self) -> list[str]:
        """Sentences on the best debate's gain, on the debate itself, and on the judge to take."""
        accuracy = {}
        for judge in self.agreement.judges:
            if judge.accuracy.is_known:
                accuracy[judge.judge] = judge.accuracy.value
        debates = [
            name for name in accuracy if str(JudgeId(name, "votes_before_debate")) in accuracy
        ]
        texts = []
        if debates:
            debate = max(debates, key=accuracy.__getitem__)
            others = accuracy.keys() - debates
            singles = [name for name in others if not JudgeId.parse(name).is_control]
            texts = [_debate_gain(self, singles, debate), _debate_itself(self, debate)]
        texts.append(_recommendation(self, accuracy))
        return [text for text in texts if text]

    @property
    def judge_rows(self) -> list[Record]:
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
    def printed_rows(self) -> list[Record]:
        """A row a judge: accuracy with its interval and kappa where known, and the price."""
        rows = []
        for judge in self.agreement.judges:
            row = {
                "judge": judge.judge,
                "n": judge.n,
                "accuracy (95 % CI)": "–",
                "kappa": "–",
                "USD/1000": "–",
            }
            if judge.accuracy.is_bounded:
                percent = judge.accuracy.stretched(0.0, 100.0)
                row["accuracy (95 % CI)"] = f"{percent.value:.0f} ({interval_text(percent, '.0f')})"
            if judge.kappa.is_known:
                row["kappa"] = f"{judge.kappa.value:.2f}"
            usd = self.price(judge.judge).usd
            if usd is not None:
                row["USD/1000"] = f"{1000 * usd:.2f}"
            rows.append(row)
        return rows


def known_fields(record: JudgeAgreement | ScoreAgreement) -> Record:
    """Return the row of a judge, without what it was not asked for."""
    return {key: value for key, value in vars(record).items() if value is not None}


def _debate_gain(report: AgreementReport, singles: Iterable[str], debate: str) -> str:
    """Say what a debate gains over the judge with the fewest calls that has no debate."""
    single = min(singles, key=lambda name: (report.price(name).calls, name), default="")
    gain = report.gains.get((debate, single))
    if gain is None:
        return ""
    verb = f"does not beat {single}: {gain.points}"
    if gain.is_significant:
        verb = f"gains {gain.points} over {single}"
    return f"The debate {debate} {verb}, p {gain.p:.2g} (Holm){_times(report, debate, single)}."


def _debate_itself(report: AgreementReport, debate: str) -> str:
    """Compare a debate with its agents' votes before it, and with as many calls without one."""
    parts = []
    for role, over in _CONTROLS.items():
        control = str(JudgeId(debate, role))
        gain = report.gains.get((debate, control))
        if gain is None:
            continue
        nothing = ""
        if gain.estimate.low <= 0 <= gain.estimate.high:
            nothing = "nothing measurable: "
        parts.append(f"{nothing}{gain.points} over {over}{_times(report, debate, control)}")
    if parts:
        return f"The debate itself adds {' and '.join(parts)}."
    return ""


def _recommendation(report: AgreementReport, accuracy: Mapping[str, float]) -> str:
    """Name the cheapest judge not significantly worse than the best; controls are candidates."""
    if len(accuracy) < 2:
        return ""
    best = max(accuracy, key=accuracy.__getitem__)
    price = _prices(report, accuracy)
    if not any(price.values()):
        return f"Best judge: {best} ({100 * accuracy[best]:.0f} %)."
    candidates = [best]
    for name in accuracy:
        gain = report.gains.get((best, name))
        if gain and not (gain.is_significant and gain.estimate.value > 0):
            candidates.append(name)
    candidates.sort(key=accuracy.__getitem__, reverse=True)
    cheap = min(candidates, key=price.__getitem__)
    usd = report.price(cheap).usd
    costs = ""
    if usd:
        costs = f", USD {1000 * usd:,.2f} per 1,000"
    return (
        f"Cheapest judge not significantly worse than the best: {cheap} "
        f"({100 * accuracy[cheap]:.0f} %{costs})."
    )


def _prices(report: AgreementReport, judges: Iterable[str]) -> dict[str, float]:
    """Return judge -> USD of a verdict, or its calls where those of some are all that is known."""
    calls = {name: report.price(name).calls for name in judges}
    usd = {name: report.price(name).usd or 0.0 for name in judges}
    if all(usd[name] for name in calls if usd[name] or calls[name]):
        return usd
    return calls


def _times(report: AgreementReport, judge: str, other: str) -> str:
    """Say how much more a verdict costs; empty if that is not known."""
    a = report.price(judge)
    b = report.price(other)
    for of_a, of_b, name in (
        (a.usd, b.usd, "money"),
        (a.tokens, b.tokens, "tokens"),
        (a.calls, b.calls, "calls"),
    ):
        if of_a and of_b:
            return f", for {of_a / of_b:.1f} times the {name}"
    return ""


def shown_lengths(dialogues: Dialogues, judged: Judged) -> TextNumbers:
    """Return (seed, contestant) -> words an utterance of the texts that comparisons show."""
    ends = defaultdict[tuple[str, str], int](int)
    for judgment in chain.from_iterable(judged.values()):
        if len(judgment.contestants) > 1:
            for name in judgment.contestants:
                key = (judgment.seed_id, name)
                ends[key] = max(ends[key], judgment.shown)
    shown = {}
    for (seed_id, name), end in ends.items():
        shown[seed_id, name] = mean_words(dialogues[name][seed_id].utterances[:end])
    return shown


def by_accuracy(judges: Sequence[JudgeAgreement]) -> list[JudgeAgreement]:
    """Return judges, the most accurate first, each debate followed by its controls."""
    accuracy = {judge.judge: judge.accuracy.value for judge in judges}

    def key(judge: JudgeAgreement) -> tuple[float, str, bool]:
        name = JudgeId.parse(judge.judge).name
        if name not in accuracy:
            name = judge.judge
        return -np.nan_to_num(accuracy[name], nan=-1.0), name, name != judge.judge

    return sorted(judges, key=key)


def agreement_tables(report: AgreementReport) -> list[Table]:
    """Judges, pairs, annotators and rankings, as far as there are any."""
    agreement = report.agreement
    title = f"Judges against {report.labels or 'each other'}: {report.subject}"
    judges = [with_price(row) for row in report.judge_rows]
    signed = [report.signature]
    tables = [table("judges", title, JUDGES, judges, signed, _HOW_READ)]
    pairs = []
    for pair in report.corrected_pairs:
        row = vars(pair)
        usd_a = report.price(pair.judge_a).usd
        usd_b = report.price(pair.judge_b).usd
        if usd_a and usd_b:  # how many times the price of the second the first costs
            row = {**row, "price_ratio": usd_a / usd_b}
        pairs.append(row)
    tables.append(table("pairs", "Pairs of judges", _PAIRS, pairs, signed, _HOW_PAIRED))
    if len(agreement.annotators) > 1:
        title = "Annotators against the majority of the others"
        annotators = [known_fields(each) for each in agreement.annotators]
        tables.append(table("annotators", title, JUDGES, annotators, signed))
    kappa = agreement.annotator_kappa
    if kappa is not None:
        title = "Fleiss' kappa of the annotators"
        tables.append(table("annotator-kappa", title, _KAPPA, [vars(kappa)], signed))
    rankings = [vars(each) for each in agreement.rankings]
    tables.append(table("rankings", "Ranking by each judge", _RANKINGS, rankings, signed))
    return [each.filled() for each in tables if len(each.frame)]


def agreement_json(report: AgreementReport) -> Record:
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


PRICE = (
    Column("calls", "Calls", "number"),
    Column("tokens", "Tokens", "number"),
    Column("usd_per_1000", "USD/1000", "decimal"),
    Column("seconds", "Seconds", "decimal"),
)
"""Prices of one verdict; USD of a thousand, since one verdict's have too many decimals."""

JUDGES = [
    Column("judge", "Judge", "name"),
    N,
    Column("unreadable", "Unreadable", "count"),
    share("accuracy", "Accuracy"),
    share("true_positive_rate", "True positives"),
    share("false_positive_rate", "False positives"),
    Column("kappa", "Kappa", "decimal", interval=True),
    share("accuracy_decided", "Accuracy, no ties", detail=True),
    share("consistency", "Consistency", detail=True),
    share("first_preferred", "First preferred", detail=True),
    share("longer_preferred", "Longer preferred", detail=True),
    share("ties", "Ties", detail=True),
    Column("spearman", "Spearman", "decimal", detail=True, interval=True),
    Column("kendall", "Kendall", "decimal", detail=True, interval=True),
    *PRICE,
]
_PAIRS = [
    Column("judge_a", "Judge", "name"),
    Column("judge_b", "Against", "name"),
    N,
    share("agreement", "Agreement"),
    Column("kappa", "Kappa", "decimal", interval=True),
    share("accuracy_difference", "Accuracy, difference"),
    Column("p", "p (Holm)", "exact"),
    Column("price_ratio", "Price ratio", "decimal"),
]
_KAPPA = [
    Column("raters", "Annotators", "count"),
    Column("units", "Comparisons", "count"),
    Column("kappa", "Fleiss' kappa", "decimal", interval=True),
]
_RANKINGS = [
    Column("judge", "Judge", "name"),
    Column("contestant", "Contestant", "name"),
    share("score", "Score"),
    N,
]
_HOW_READ = (
    "Rates in percent; brackets are 95 % CIs clustered by item; kappa is Cohen's. Calls, tokens "
    "and seconds are of one verdict. (before debate): the same agents' votes before the debate; "
    "(control): single judges with as many calls."
)
_HOW_PAIRED = (
    "On the cases that both judged. Accuracy, difference: the first less the second; p: a "
    "sign-flip test by item, corrected for all pairs (Holm)."
)

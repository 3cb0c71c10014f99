"""Tables of a comparison of judges with labels and with each other, and three sentences on it.

A new column is a `Column` here, and its value in a row of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from botchat.boards.tables import Column, Table, table, value_and_ci
from botchat.interfaces import Row, round_floats, settings_digest
from botchat.judges.panel import BEFORE_DEBATE, CALL_MATCHED
from botchat.metrics import lengths
from botchat.metrics.agreement import Agreement
from botchat.metrics.statistics import LEVEL, holm
from botchat.records import SIGNED, Dialogues, Judgment

HUMAN_LABELS = "human labels"
"""Name of the labels where annotators gave them; no judge has such a name."""

BUILT_IN = "the truth"
"""The annotator that knows which side is human; no judge has such a name."""


def agreement_signature(
    command: str, subject: Mapping[str, str | None], data: Any, truth: str | None
) -> str:
    """Sign a comparison of judges; ``data``, JSON-ready, holds every verdict."""
    labels = {None: "none", BUILT_IN: "built-in"}.get(truth, truth)
    parts = [f"{key}:{value}" for key, value in subject.items() if value]
    digest = settings_digest(round_floats(data))
    return "|".join([SIGNED, command, *parts, f"truth:{labels}", f"data:{digest}"])


class Gain(NamedTuple):
    """Accuracy of one judge less that of another one, against the same labels."""

    value: float
    low: float
    high: float
    p: float
    """Corrected for all pairs of judges (Holm)."""

    @property
    def is_significant(self) -> bool:
        """Whether it is not 0 at 95 %."""
        return self.p <= 1 - LEVEL

    @property
    def points(self) -> str:
        """``+17 points (+5 to +28)``."""
        value, low, high = (100 * number for number in self[:3])
        return f"{value:+.0f} points ({low:+.0f} to {high:+.0f})".replace("-", "−")


@dataclass(frozen=True, kw_only=True)
class AgreementReport(Agreement):
    """A comparison of judges with its title and signature; rows of judges have a price too."""

    subject: str
    """Name of the judged data, for titles."""
    labels: str
    """Labels that judges are compared with, in a few words; empty if only with each other."""
    signature: str
    notes: Sequence[str] = ()
    """Sentences that a reader must know."""

    @cached_property
    def corrected_pairs(self) -> list[Row]:
        """``pairs`` with ``p`` corrected for all of them (Holm)."""
        adjusted = iter(holm([pair["p"] for pair in self.pairs if pair.get("p") is not None]))
        return [
            {**pair, "p": None if pair.get("p") is None else next(adjusted)} for pair in self.pairs
        ]

    @cached_property
    def gains(self) -> dict[tuple[str, str], Gain]:
        """(judge a, judge b) -> what a gains over b, where that is known."""
        gains = {}
        for pair in self.corrected_pairs:
            a, b, p = pair["judge_a"], pair["judge_b"], pair["p"]
            value, low, high = value_and_ci(pair, "accuracy_difference")
            if None not in (value, low, high, p):
                gains[a, b], gains[b, a] = Gain(value, low, high, p), Gain(-value, -high, -low, p)
        return gains

    @property
    def sentences(self) -> list[str]:
        """Sentences on the best debate's gain, on the debate itself, and on the judge to take."""
        rows = {row["judge"]: row for row in self.judges if row.get("accuracy") is not None}
        debates = [row for name, row in rows.items() if f"{name}{BEFORE_DEBATE}" in rows]
        texts = []
        if debates:
            debate = max(debates, key=itemgetter("accuracy"))
            texts = [_debate_gain(self, rows, debate), _debate_itself(self, rows, debate)]
        return [text for text in (*texts, _recommendation(self, [*rows.values()])) if text]

    @property
    def printed_rows(self) -> list[Row]:
        """A row a judge: accuracy with its interval and kappa where known, and the price."""
        rows = []
        for judge in self.judges:
            ends = value_and_ci(judge, "accuracy")
            kappa = judge.get("kappa")
            usd = judge.get("usd")
            row = {
                "judge": judge["judge"],
                "n": judge["n"],
                "accuracy (95 % CI)": "–",
                "kappa": "–",
                "USD/1000": "–",
            }
            if None not in ends:
                value, low, high = (100 * end for end in ends)
                row["accuracy (95 % CI)"] = f"{value:.0f} ({low:.0f}–{high:.0f})"
            if kappa is not None:
                row["kappa"] = f"{kappa:.2f}"
            if usd is not None:
                row["USD/1000"] = f"{1000 * usd:.2f}"
            rows.append(row)
        return rows


def debate_of(judge: str) -> str | None:
    """The panel that a judge is a control of, by its name: its votes before, or equal calls."""
    ending = next((end for end in (BEFORE_DEBATE, CALL_MATCHED) if judge.endswith(end)), None)
    return None if ending is None else judge.removesuffix(ending)


def _debate_gain(report: AgreementReport, rows: Mapping[str, Row], debate: Row) -> str:
    """Say what a debate gains over the judge with the fewest calls that has no debate."""
    singles = [
        name for name in rows if f"{name}{BEFORE_DEBATE}" not in rows and debate_of(name) is None
    ]
    single = min(singles, key=lambda name: (rows[name].get("calls") or 0, name), default="")
    if (gain := report.gains.get((debate["judge"], single))) is None:
        return ""
    verb = f"does not beat {single}: {gain.points}"
    if gain.is_significant:
        verb = f"gains {gain.points} over {single}"
    price = _times(debate, rows[single])
    return f"The debate {debate['judge']} {verb}, p {gain.p:.2g} (Holm){price}."


def _debate_itself(report: AgreementReport, rows: Mapping[str, Row], debate: Row) -> str:
    """Compare a debate with its agents' votes before it, and with as many calls without one."""
    parts = []
    for ending, over in (
        (BEFORE_DEBATE, "the same agents' votes before it"),
        (CALL_MATCHED, "single judges with as many calls"),
    ):
        control = f"{debate['judge']}{ending}"
        if gain := report.gains.get((debate["judge"], control)):
            nothing = "nothing measurable: " if gain.low <= 0 <= gain.high else ""
            parts.append(f"{nothing}{gain.points} over {over}{_times(debate, rows[control])}")
    return f"The debate itself adds {' and '.join(parts)}." if parts else ""


def _recommendation(report: AgreementReport, rows: Sequence[Row]) -> str:
    """Name the cheapest judge not significantly worse than the best; controls are candidates."""
    if len(rows) < 2:
        return ""
    best = max(rows, key=itemgetter("accuracy"))
    priced = [row for row in rows if row.get("usd") or row.get("calls")]
    if not priced:
        return f"Best judge: {best['judge']} ({100 * best['accuracy']:.0f} %)."
    key = "usd" if all(row.get("usd") for row in priced) else "calls"
    candidates = [best]
    for row in rows:
        gain = report.gains.get((best["judge"], row["judge"]))
        if gain and not (gain.is_significant and gain.value > 0):
            candidates.append(row)
    cheap = min(candidates, key=lambda row: (row.get(key) or 0, -row["accuracy"]))
    price = f", USD {1000 * cheap['usd']:,.2f} per 1,000" if cheap.get("usd") else ""
    first = "Cheapest judge not significantly worse than the best"
    return f"{first}: {cheap['judge']} ({100 * cheap['accuracy']:.0f} %{price})."


def _times(judge: Row, other: Row) -> str:
    """Say how much more a verdict costs; empty if that is not known."""
    for key, name in (("usd", "money"), ("tokens", "tokens"), ("calls", "calls")):
        if judge.get(key) and other.get(key):
            return f", for {judge[key] / other[key]:.1f} times the {name}"
    return ""


def shown_lengths(
    dialogues: Dialogues, judged: Mapping[str, Sequence[Judgment]]
) -> dict[tuple[str, str], float]:
    """Return (seed, contestant) -> words an utterance of the texts that comparisons show."""
    ends: dict[tuple[str, str], int] = {}
    for judgment in chain.from_iterable(judged.values()):
        for name in judgment.contestants if len(judgment.contestants) > 1 else ():
            key = (judgment.seed_id, name)
            ends[key] = max(ends.get(key, 0), judgment.shown)
    texts = {(at, name): dialogues[name][at].utterances[:n] for (at, name), n in ends.items()}
    return {key: sum(map(lengths.words, each)) / max(1, len(each)) for key, each in texts.items()}


def by_accuracy(rows: Sequence[Row]) -> list[Row]:
    """Rows of judges, the most accurate first, each debate followed by its controls."""
    accuracy = {row["judge"]: row.get("accuracy") for row in rows}

    def key(row: Row) -> tuple[float, str, bool]:
        panel = debate_of(row["judge"])
        name = panel if panel in accuracy and panel is not None else row["judge"]
        value = accuracy[name]
        return 2.0 if value is None else -value, name, name != row["judge"]

    return sorted(rows, key=key)


def agreement_tables(report: AgreementReport) -> list[Table]:
    """Judges, pairs, annotators and rankings, as far as there are any."""
    usd = {row["judge"]: row.get("usd") for row in report.judges}
    pairs = [
        {**pair, "price_ratio": a / b if a and b else None}
        for pair in report.corrected_pairs
        for a, b in [(usd.get(pair["judge_a"]), usd.get(pair["judge_b"]))]
    ]
    about = f"against {report.labels}" if report.labels else "against each other"
    judges = [with_price(row) for row in report.judges]
    kinds: list[tuple[str, str, Sequence[Column], Sequence[Row], str]] = [
        ("judges", f"Judges {about}: {report.subject}", JUDGES, judges, _HOW_READ),
        ("pairs", "Pairs of judges", _PAIRS, pairs, _HOW_PAIRED),
        ("annotators", "Annotators against the majority of the others", JUDGES,
         report.annotators if len(report.annotators) > 1 else (), ""),
        ("annotator-kappa", "Fleiss' kappa of the annotators", _KAPPA,
         [report.annotator_kappa] if report.annotator_kappa else (), ""),
        ("rankings", "Ranking by each judge", _RANKINGS, report.rankings, ""),
    ]  # fmt: skip
    return [
        table(name, title, columns, rows, [report.signature], note).filled()
        for name, title, columns, rows, note in kinds
        if rows
    ]


def agreement_json(report: AgreementReport) -> dict[str, Any]:
    """Return the whole report, JSON-ready."""
    names = "sentences judges pairs annotators annotator_kappa rankings notes subject signature"
    values = {name: getattr(report, name) for name in names.split()}
    return {**values, "labels": report.labels or None}


def with_price(row: Row) -> Row:
    """A judge's row with its price as tables have it: money of a thousand verdicts."""
    return row if row.get("usd") is None else {**row, "usd_per_1000": 1000 * row["usd"]}


PRICE = (
    Column("calls", "Calls", "number"),
    Column("tokens", "Tokens", "number"),
    Column("usd_per_1000", "USD/1000", "decimal"),
    Column("seconds", "Seconds", "decimal"),
)
"""Prices of one verdict; USD of a thousand, since one verdict's have too many decimals."""

JUDGES = [
    Column("judge", "Judge", "name"),
    Column("n", "n", "count"),
    Column("unreadable", "Unreadable", "count"),
    Column("accuracy", "Accuracy", "rate", interval=True),
    Column("true_positive_rate", "True positives", "rate", interval=True),
    Column("false_positive_rate", "False positives", "rate", interval=True),
    Column("kappa", "Kappa", "decimal", interval=True),
    Column("accuracy_decided", "Accuracy, no ties", "rate", detail=True, interval=True),
    Column("consistency", "Consistency", "rate", detail=True, interval=True),
    Column("first_preferred", "First preferred", "rate", detail=True, interval=True),
    Column("longer_preferred", "Longer preferred", "rate", detail=True, interval=True),
    Column("ties", "Ties", "rate", detail=True, interval=True),
    Column("spearman", "Spearman", "decimal", detail=True, interval=True),
    Column("kendall", "Kendall", "decimal", detail=True, interval=True),
    *PRICE,
]
_PAIRS = [
    Column("judge_a", "Judge", "name"),
    Column("judge_b", "Against", "name"),
    Column("n", "n", "count"),
    Column("agreement", "Agreement", "rate", interval=True),
    Column("kappa", "Kappa", "decimal", interval=True),
    Column("accuracy_difference", "Accuracy, difference", "rate", interval=True),
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
    Column("score", "Score", "rate", interval=True),
    Column("n", "n", "count"),
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

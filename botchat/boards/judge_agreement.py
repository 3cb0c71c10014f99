"""Tables of a comparison of judges with labels and with each other, and three sentences on it.

A new column is a `Column` here, and its value in a row of the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botchat.boards.tables import Column, Table, table, value_and_ci, with_interval
from botchat.interfaces import Row
from botchat.judges.panel import BEFORE_TALK, CALL_MATCHED
from botchat.metrics import lengths
from botchat.metrics.agreement import Agreement
from botchat.metrics.statistics import LEVEL, holm
from botchat.records import Dialogues, Judgment

HUMAN_LABELS = "human labels"
"""What judges are compared with where people labelled; no judge has such a name."""


@dataclass(frozen=True, kw_only=True)
class AgreementReport(Agreement):
    """A comparison of judges with its title and signature; rows of judges have a price too."""

    subject: str
    """What was judged, for titles."""
    labels: str
    """What judges are compared with, in a few words; empty: only with each other."""
    signature: str
    notes: Sequence[str] = ()
    """What a reader must know, a sentence each."""

    @property
    def sentences(self) -> list[str]:
        """What a debate gains, what the debate itself gains, and which judge to take."""
        found = debate_gain(self), debate_itself(self), recommendation(self)
        return [sentence for sentence in found if sentence]


def debate_of(judge: str) -> str | None:
    """The panel that a judge is a control of, by its name: its votes before, or equal calls."""
    ending = next((end for end in (BEFORE_TALK, CALL_MATCHED) if judge.endswith(end)), None)
    return None if ending is None else judge.removesuffix(ending)


def compare_with_labels(report: Agreement, a: str, b: str) -> Row:
    """``gain`` of judge a over b in accuracy with its interval, and p by Holm over all pairs."""
    known = [pair for pair in report.pairs if pair["p"] is not None]
    adjusted = holm([pair["p"] for pair in known])
    for pair, p in zip(known, adjusted, strict=True):
        value, low, high = value_and_ci(pair, "accuracy_difference")
        if None not in (value, low, high):
            if (pair["judge_a"], pair["judge_b"]) == (a, b):
                return {"gain": value, "low": low, "high": high, "p": p}
            if (pair["judge_a"], pair["judge_b"]) == (b, a):
                return {"gain": -value, "low": -high, "high": -low, "p": p}
    return {}


def debate_gain(report: Agreement) -> str:
    """What the best debate gains over the best judge that asks one model once or votes alone."""
    rows = {row["judge"]: row for row in report.judges if row.get("accuracy") is not None}
    debates = [name for name in rows if f"{name}{BEFORE_TALK}" in rows]
    singles = [name for name in rows if name not in debates and debate_of(name) is None]
    if not debates or not singles:
        return ""
    debate = max(debates, key=lambda name: rows[name]["accuracy"])
    single = min(singles, key=lambda name: (rows[name].get("calls") or 0, name))
    if not (found := compare_with_labels(report, debate, single)):
        return ""
    verb = f"gains {_points(found)}" if found["p"] <= 1 - LEVEL else f"does not beat {single}"
    over = f" over {single}" if found["p"] <= 1 - LEVEL else f" ({_points(found)})"
    price = _times(rows[debate], rows[single])
    return f"The debate {debate} {verb}{over}, p {found['p']:.2g} (Holm){price}."


def debate_itself(report: Agreement) -> str:
    """What reading each other adds to the same agents' votes before it, and to as many calls."""
    rows = {row["judge"]: row for row in report.judges if row.get("accuracy") is not None}
    debates = [name for name in rows if f"{name}{BEFORE_TALK}" in rows]
    if not debates:
        return ""
    debate = max(debates, key=lambda name: rows[name]["accuracy"])
    parts = []
    for control, over in (
        (f"{debate}{BEFORE_TALK}", "the same agents' votes before it"),
        (f"{debate}{CALL_MATCHED}", "single judges with as many calls"),
    ):
        if control in rows and (found := compare_with_labels(report, debate, control)):
            nothing = "nothing measurable: " if found["low"] <= 0 <= found["high"] else ""
            parts.append(
                f"{nothing}{_points(found)} over {over}{_times(rows[debate], rows[control])}"
            )
    return f"The debate itself adds {' and '.join(parts)}." if parts else ""


def recommendation(report: Agreement) -> str:
    """The cheapest judge that is not significantly worse than the best; controls are candidates."""
    rows = [row for row in report.judges if row.get("accuracy") is not None]
    if len(rows) < 2:
        return ""
    best = max(rows, key=lambda row: row["accuracy"])
    known = [row for row in rows if row.get("usd") or row.get("calls")]
    key = "usd" if known and all(row.get("usd") for row in known) else "calls"
    level = [best]
    for row in rows:
        found = {} if row is best else compare_with_labels(report, best["judge"], row["judge"])
        if found and not (found["p"] <= 1 - LEVEL and found["gain"] > 0):
            level.append(row)
    cheap = min(level, key=lambda row: (row.get(key) or 0, -row["accuracy"]))
    accuracy = f"{100 * cheap['accuracy']:.0f} %"
    price = f", USD {1000 * cheap['usd']:,.2f} per 1,000" if cheap.get("usd") else ""
    if not known:
        return f"Best judge: {best['judge']} ({100 * best['accuracy']:.0f} %)."
    first = "Cheapest judge not significantly worse than the best"
    return f"{first}: {cheap['judge']} ({accuracy}{price})."


def _points(found: Row) -> str:
    value, low, high = (100 * found[key] for key in ("gain", "low", "high"))
    return f"{value:+.0f} points ({low:+.0f} to {high:+.0f})".replace("-", "−")


def _times(judge: Row, other: Row) -> str:
    """How much more a verdict costs; empty if that is not known."""
    for key, name in (("usd", "money"), ("tokens", "tokens"), ("calls", "calls")):
        if judge.get(key) and other.get(key):
            return f", for {judge[key] / other[key]:.1f} times the {name}"
    return ""


def shown_lengths(
    dialogues: Dialogues, judged: Mapping[str, Sequence[Judgment]]
) -> dict[tuple[str, str], float]:
    """(seed, contestant) -> words an utterance of what was shown in comparisons."""
    shown: dict[tuple[str, str], int] = {}
    for judgments in judged.values():
        for judgment in judgments:
            for name in judgment.contestants if len(judgment.contestants) > 1 else ():
                key = (judgment.seed_id, name)
                shown[key] = max(shown.get(key, 0), judgment.shown)
    found = {}
    for (seed_id, name), n in shown.items():
        utterances = dialogues[name][seed_id].utterances[:n]
        found[seed_id, name] = sum(map(lengths.words, utterances)) / max(1, len(utterances))
    return found


def ordered(rows: Sequence[Row]) -> list[Row]:
    """Rows of judges, the most accurate first, each debate followed by its controls."""
    accuracy = {row["judge"]: row.get("accuracy") for row in rows}

    def key(row: Row) -> tuple[float, str, bool]:
        panel = debate_of(row["judge"])
        name = panel if panel in accuracy and panel is not None else row["judge"]
        value = accuracy[name]
        return 2.0 if value is None else -value, name, name != row["judge"]

    return sorted(rows, key=key)


def tables(report: AgreementReport) -> list[Table]:
    """Judges, pairs, annotators and rankings, as far as there are any."""
    adjusted = iter(holm([pair["p"] for pair in report.pairs if pair.get("p") is not None]))
    price = {row["judge"]: row.get("usd") for row in report.judges}
    pairs = [
        {
            **pair,
            "p": None if pair.get("p") is None else next(adjusted),
            "price_ratio": _ratio(price.get(pair["judge_a"]), price.get(pair["judge_b"])),
        }
        for pair in report.pairs
    ]
    about = f"against {report.labels}" if report.labels else "against each other"
    kinds: list[tuple[str, str, Sequence[Column], Sequence[Row], str]] = [
        ("judges", f"Judges {about}: {report.subject}", _JUDGES, ordered(report.judges), _HOW_READ),
        ("pairs", "Pairs of judges", _PAIRS, pairs, _HOW_PAIRED),
        ("annotators", "Annotators against the majority of the others", _JUDGES,
         report.annotators if len(report.annotators) > 1 else (), ""),
        ("annotator-kappa", "Fleiss' kappa of the annotators", _KAPPA,
         [report.annotator_kappa] if report.annotator_kappa else (), ""),
        ("rankings", "Ranking by each judge", _RANKINGS, report.rankings, ""),
    ]  # fmt: skip
    made = [
        table(name, title, columns, rows, [report.signature], note)
        for name, title, columns, rows, note in kinds
    ]
    return [part.filled() for part in made if len(part.frame)]


def as_json(report: AgreementReport) -> dict[str, Any]:
    """All of it, JSON-ready."""
    names = "sentences judges pairs annotators annotator_kappa rankings notes subject signature"
    values = {name: getattr(report, name) for name in names.split()}
    return {**values, "labels": report.labels or None}


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one and other else None


PRICE = (
    Column("calls", "Calls", "number"),
    Column("tokens", "Tokens", "number"),
    Column("usd_per_1000", "USD/1000", "decimal",
           getter=lambda row: None if row.get("usd") is None else 1000 * row["usd"]),
    Column("seconds", "Seconds", "decimal"),
)  # fmt: skip
"""Of one verdict; money of a thousand, since that of one has too many decimals."""

_JUDGES = [
    Column("judge", "Judge", "name"),
    Column("n", "n", "count"),
    Column("unreadable", "Unreadable", "count"),
    *with_interval(Column("accuracy", "Accuracy", "rate")),
    *with_interval(Column("kappa", "Kappa", "decimal")),
    *with_interval(Column("accuracy_decided", "Accuracy, no ties", "rate", detail=True)),
    *with_interval(Column("true_positive_rate", "True positives", "rate")),
    *with_interval(Column("false_positive_rate", "False positives", "rate")),
    *with_interval(Column("consistency", "Consistency", "rate", detail=True)),
    *with_interval(Column("first_preferred", "First preferred", "rate", detail=True)),
    *with_interval(Column("longer_preferred", "Longer preferred", "rate", detail=True)),
    *with_interval(Column("ties", "Ties", "rate", detail=True)),
    *with_interval(Column("unreadable_rate", "Unreadable, share", "rate", detail=True)),
    *with_interval(Column("spearman", "Spearman", "decimal", detail=True)),
    *with_interval(Column("kendall", "Kendall", "decimal", detail=True)),
    *PRICE,
]
_PAIRS = [
    Column("judge_a", "Judge", "name"),
    Column("judge_b", "Against", "name"),
    Column("n", "n", "count"),
    *with_interval(Column("agreement", "Agreement", "rate")),
    *with_interval(Column("kappa", "Kappa", "decimal")),
    *with_interval(Column("accuracy_difference", "Accuracy, difference", "rate")),
    Column("p", "p (Holm)", "exact"),
    Column("price_ratio", "Price ratio", "decimal"),
]
_KAPPA = [
    Column("raters", "Annotators", "count"),
    Column("units", "Comparisons", "count"),
    *with_interval(Column("kappa", "Fleiss' kappa", "decimal")),
]
_RANKINGS = [
    Column("judge", "Judge", "name"),
    Column("rank", "Rank", "count", role="rank", of="score"),
    Column("contestant", "Contestant", "name"),
    *with_interval(Column("score", "Score", "rate")),
    Column("n", "n", "count"),
]
_HOW_READ = (
    "Rates in percent; brackets are 95 % CIs clustered by item; kappa is Cohen's. Calls, tokens "
    "and seconds are of one verdict. (before talk): the same agents' votes before the debate; "
    "(control): single judges with as many calls."
)
_HOW_PAIRED = (
    "On the cases that both judged. Accuracy, difference: the first less the second; p: a "
    "sign-flip test by item, corrected for all pairs (Holm)."
)

"""A comparison of judges as tables: who agrees with people, with whom, and at what price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from botchat.boards.judge_health import SURENESS
from botchat.boards.tables import Column, Kind, Table, table
from botchat.interfaces import Row
from botchat.judges.controls import BEFORE_TALK, CALL_MATCHED
from botchat.measures.annotations import ABSENT, NOBODY, UNREADABLE, Annotation, Codes, Grid
from botchat.measures.mateval_records import ERROR_TYPES
from botchat.protocols.answers import ASPECTS
from botchat.ratings.bradley_terry import fit
from botchat.ratings.comparisons import Comparisons


@dataclass(frozen=True)
class Findings:
    """What a comparison of judges says, row by row and JSON-ready."""

    subject: str
    """What was judged, for titles."""
    truth: str
    """What judges are measured against, a few words; empty: only against each other."""
    rows: tuple[Row, ...]
    """One a judge (`botchat.measures.agreement.Agreement.rows`), and what its verdicts cost."""
    annotators: tuple[Row, ...]
    pairs: tuple[Row, ...]
    groups: tuple[Row, ...]
    rankings: tuple[Row, ...]
    controls: tuple[Row, ...]
    """See `controls`."""
    signature: str
    notes: tuple[str, ...] = ()
    """What a reader must know, a sentence each."""


def controls(pairs: Iterable[Row]) -> list[Row]:
    """What talk, or a panel instead of one judge asked as often, changed.

    Args:
        pairs: of `botchat.measures.agreement.Agreement`.

    Returns:
        Rows ``judge``, ``control``, ``n`` cases both have a verdict on, ``changed`` share of them,
        ``wrong_to_right`` and ``right_to_wrong`` from the control to the judge (``None`` where the
        truth is not known), ``accuracy_difference`` and ``kappa_difference``, judge less control,
        ``mcnemar_p``.
    """
    found = []
    for pair in pairs:
        judge, control = pair["judge_a"], pair["judge_b"]
        if control not in (f"{judge}{BEFORE_TALK}", f"{judge}{CALL_MATCHED}"):
            continue
        known = pair["mcnemar_p"] is not None
        row: Row = {"judge": judge, "control": control, "n": pair["n"]}
        for end, other in (("", ""), ("_low", "_high"), ("_high", "_low")):
            alike = pair[f"agreement{other}"]
            row[f"changed{end}"] = None if alike is None else 1 - alike
        row["wrong_to_right"] = pair["only_a_right"] if known else None
        row["right_to_wrong"] = pair["only_b_right"] if known else None
        for name in ("accuracy", "kappa"):
            keys = [f"{name}_difference{end}" for end in ("", "_low", "_high")]
            row |= {key: pair[key] for key in keys}
        found.append(row | {"mcnemar_p": pair["mcnemar_p"]})
    return found


def ratings(
    annotations: Iterable[Annotation], truth_prefix: str | None
) -> dict[tuple[str, str], float]:
    """(judge, contestant) -> Bradley-Terry rating by that judge's verdicts, as on a leaderboard.

    People together stand under ``truth_prefix``. Empty where contestants were judged alone.
    """
    grid = Grid.of(annotations, truth_prefix)
    if NOBODY in grid.contestants or not len(grid.item):
        return {}
    said = {judge: grid.said[judge] for judge in grid.judges}
    if truth_prefix is not None and grid.people:
        once = grid.majority(grid.people)
        once[:, 1] = ABSENT
        said[truth_prefix] = once
    found = {}
    for judge, codes in said.items():
        compared = Comparisons.of(*_compared(grid, codes))
        if len(compared):
            rated = fit(compared)
            for model, rating in zip(rated.models, rated.rating.tolist(), strict=True):
                found[judge, model] = rating
    return found


def tables(found: Findings) -> list[Table]:
    """Judges, their controls, people, groups, pairs and rankings, as far as there are any."""
    by_truth = f"against {found.truth}" if found.truth else "against each other"
    judges = _JUDGES if found.truth else [column for column in _JUDGES if column.key != "n"]
    # One person alone has no others to agree with.
    people = found.annotators if len(found.annotators) > 1 else ()
    parts: list[tuple[str, str, Sequence[Column], Sequence[Row], str]] = [
        ("judges", f"Judges {by_truth}: {found.subject}", judges, priced(found.rows), _HOW_READ),
        ("controls", "What the talk changed", _CONTROLS, found.controls, _HOW_CHANGED),
        ("annotators", "People against the majority of the others", judges, people, ""),
        ("groups", "Agreement within groups", _GROUPS, found.groups, _HOW_GROUPED),
        ("pairs", "Judges against each other", _PAIRS, found.pairs, _HOW_PAIRED),
        ("rankings", "The ranking by each judge", _RANKINGS, found.rankings, ""),
    ]
    return [
        table(name, title, filled(columns, rows), rows, [found.signature], note)
        for name, title, columns, rows, note in parts
        if rows
    ]


def as_json(found: Findings) -> dict[str, Any]:
    """All of it, JSON-ready."""
    names = ("rows", "pairs", "groups", "annotators", "rankings", "controls", "notes")
    return {
        "subject": found.subject,
        "truth": found.truth or None,
        **{name: list(getattr(found, name)) for name in names},
        "signature": found.signature,
    }


def filled(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """The columns that have a value in some row, and those that hold names."""
    return [
        column
        for column in columns
        if column.kind == "name" or any(row.get(column.key) is not None for row in rows)
    ]


def with_interval(key: str, heading: str, kind: Kind, *, detail: bool = False) -> list[Column]:
    """A figure, and the ends of its interval where people read it too."""
    return [
        Column(key, heading, kind, detail),
        Column(f"{key}_low", f"{heading}, low", kind, detail),
        Column(f"{key}_high", f"{heading}, high", kind, detail),
    ]


def _without_ends(key: str, heading: str, kind: Kind, *, detail: bool = False) -> list[Column]:
    first, *ends = with_interval(key, heading, kind, detail=detail)
    return [first, *(Column(end.key, end.heading, kind, detail=True) for end in ends)]


PRICE = (
    Column("calls", "Calls", "number"),
    Column("tokens", "Tokens", "number"),
    Column("usd_per_1000", "USD / 1000", "decimal"),
    Column("seconds", "Seconds", "decimal"),
)
"""Of one verdict; of a thousand in money."""

_JUDGES = [
    Column("judge", "Judge", "name"),
    Column("n", "With truth", "count"),
    Column("verdicts", "Verdicts", "count"),
    *with_interval("accuracy", "Accuracy", "rate"),
    *with_interval("kappa", "Kappa", "decimal"),
    *_without_ends("fleiss_kappa", "Fleiss", "decimal"),
    *_without_ends("detection_rate", "AI found", "rate"),
    *_without_ends("exact_index_rate", "Right index", "rate"),
    *_without_ends("false_alarm_rate", "People accused", "rate"),
    *_without_ends("consistency", "Same in both orders", "rate"),
    *_without_ends("position_preference", "First preferred", "rate"),
    *_without_ends("tie_rate", "Ties", "rate"),
    *_without_ends("unreadable_rate", "Unreadable", "rate"),
    *_without_ends("spearman", "Spearman", "decimal"),
    *_without_ends("kendall", "Kendall", "decimal"),
    *_without_ends("length_preference", "Prefers longer", "decimal"),
    *_without_ends("self_preference", "Prefers itself", "decimal"),
    *(column for column in SURENESS if column.key != "confidence"),
    *_without_ends("confidence", "Confidence", "rate"),
    *_without_ends("overconfidence", "Overconfident", "decimal"),
    Column("accuracy_worst", "Accuracy, worst", "rate", detail=True),
    Column("accuracy_best", "Accuracy, best", "rate", detail=True),
    *PRICE,
]
_CONTROLS = [
    Column("judge", "Judge", "name"),
    Column("control", "Control", "name"),
    Column("n", "Verdicts", "count"),
    *_without_ends("changed", "Changed", "rate"),
    Column("wrong_to_right", "Wrong to right", "count"),
    Column("right_to_wrong", "Right to wrong", "count"),
    *with_interval("accuracy_difference", "Accuracy +", "decimal"),
    *_without_ends("kappa_difference", "Kappa +", "decimal"),
    Column("mcnemar_p", "McNemar p", "decimal"),
]
_GROUPS = [
    Column("group", "Group", "name"),
    Column("raters", "Raters", "count"),
    Column("units", "Units", "count"),
    *with_interval("fleiss_kappa", "Fleiss", "decimal"),
    *with_interval("krippendorff_alpha", "Alpha", "decimal"),
    *_without_ends("error_correlation", "Shared errors", "decimal"),
    *with_interval("effective_votes", "Effective votes", "number"),
]
_PAIRS = [
    Column("judge_a", "Judge", "name"),
    Column("judge_b", "Against", "name"),
    Column("n", "Verdicts", "count"),
    *with_interval("agreement", "Agreement", "rate"),
    *_without_ends("agreement_kappa", "Kappa", "decimal"),
    *_without_ends("ranking_kendall", "Rankings", "decimal"),
    *with_interval("accuracy_difference", "Accuracy +", "decimal"),
    *(
        column
        for name in (
            "kappa",
            "fleiss_kappa",
            "detection_rate",
            "exact_index_rate",
            "false_alarm_rate",
            "consistency",
            "position_preference",
            "tie_rate",
            "unreadable_rate",
            "spearman",
            "kendall",
            "length_preference",
            "self_preference",
        )
        for column in with_interval(f"{name}_difference", f"{name} +", "decimal", detail=True)
    ),
    Column("only_a_right", "Only it right", "count"),
    Column("only_b_right", "Only the other", "count"),
    Column("mcnemar_p", "McNemar p", "decimal"),
]
_RANKINGS = [
    Column("judge", "Judge", "name"),
    Column("rank", "Rank", "count"),
    Column("contestant", "Contestant", "name"),
    *with_interval("score", "Score", "rate"),
    Column("bt", "Bradley–Terry", "rating"),
    Column("n", "Comparisons", "count"),
]

_HOW_READ = (
    "Rates in percent. Same in both orders: by construction 100 where a judge is asked in both "
    "orders for every verdict. First preferred: of the decided verdicts, 50 is no preference. "
    "Prefers longer, prefers itself: score given beyond what the truth gives, -1 to 1. Calls, "
    "tokens, seconds: of one verdict. Low, high: 95 % bootstrap interval over items."
)
_HOW_CHANGED = (
    "From the control to the judge. Before talk: the same members' opening votes. Control: one "
    "judge asked as often. Accuracy +: judge less control."
)
_HOW_GROUPED = (
    "Shared errors: mean correlation of two judges' errors; effective votes: how many independent "
    "judges they are worth. Votes before a talk are not among them."
)
_HOW_PAIRED = (
    "On what both have a verdict on. Rankings: Kendall's tau of the contestants' scores. "
    "+: the first judge less the other."
)


def priced(rows: Sequence[Row]) -> list[Row]:
    """Rows with money of a thousand verdicts: of one it is lost in the decimals."""
    return [
        row if row.get("usd") is None else {**row, "usd_per_1000": 1000 * row["usd"]}
        for row in rows
    ]


def _compared(grid: Grid, said: Codes) -> tuple[list[tuple[str, str, float]], list[str]]:
    rows, seeds = [], []
    for i, (first, second) in enumerate(grid.sides.tolist()):
        for order in (0, 1):
            code = int(said[i, order])
            if code < UNREADABLE:
                sides = (first, second) if order == 0 else (second, first)
                names = [grid.contestants[side] for side in sides]
                rows.append((names[0], names[1], (1 + code) / 2))
                seeds.append(grid.items[int(grid.item[i])])
    return rows, seeds


def chateval_1(rows: Sequence[Row], signature: str) -> Table:
    """ChatEval Table 1: accuracy and kappa on FairEval, after position calibration.

    Args:
        rows: of `botchat.measures.agreement.Agreement` with ``evaluator`` and ``method``;
            ``accuracy_one_order`` and ``kappa_one_order`` beside them.
        signature: how they were made.
    """
    columns = [
        Column("evaluator", "Evaluator", "name"),
        Column("method", "Methods", "name"),
        *with_interval("accuracy", "Acc. (%)", "rate"),
        *with_interval("kappa", "Kap.", "decimal"),
        *with_interval("fleiss_kappa", "Fleiss", "decimal", detail=True),
        Column("n", "Pairs", "count"),
        Column("unreadable", "Unreadable", "count"),
        Column("tie_rate", "Ties", "rate"),
        Column("accuracy_one_order", "Acc., one order", "rate"),
        Column("kappa_one_order", "Kap., one order", "decimal"),
        Column("consistency", "Same in both orders", "rate"),
        Column("position_preference", "First preferred", "rate"),
        Column("length_preference", "Prefers longer", "decimal"),
        *PRICE,
    ]
    lines = priced(rows)
    return table(
        "chateval-table-1",
        "FairEval: agreement with people (layout of ChatEval, Table 1)",
        filled(columns, lines),
        lines,
        [signature],
        "Which answer is better by the sum of its scores in both orders. One order: by the scores "
        "of each order alone; same in both orders is 100 by construction where a judge is "
        "calibrated itself. Low, high: 95 % bootstrap interval over questions.",
    )


def chateval_2(rows: Sequence[Row], signature: str) -> Table:
    """ChatEval Table 2: rank correlations with people on Topical-Chat, remark by remark.

    Args:
        rows: of `botchat.measures.scores.ScoreAgreement`, with ``aspect``.
        signature: how they were made.
    """
    return _correlations(
        "chateval-table-2",
        "Topical-Chat: correlation with people (layout of ChatEval, Table 2)",
        Column("judge", "Metrics", "name"),
        ("aspect", {aspect: aspect.capitalize() for aspect in ASPECTS}),
        rows,
        signature,
    )


def mateval_1(rows: Sequence[Row], by: str, signature: str) -> Table:
    """MATEval Tables 1 and 2: rank correlations with people for each kind of error.

    Args:
        rows: as `botchat.measures.mateval_records.mateval` makes them.
        by: key of what is compared: ``strategy``.
        signature: how they were made.
    """
    return _correlations(
        "mateval-table-1",
        "Stories: correlation with people (layout of MATEval, Table 1)",
        Column(by, "Strategy", "name"),
        ("error_type", {code: code for code in ERROR_TYPES}),
        rows,
        signature,
    )


def _correlations(
    name: str,
    title: str,
    first: Column,
    parts: tuple[str, dict[str, str]],
    rows: Sequence[Row],
    signature: str,
) -> Table:
    """One row for each value of the first column; two columns for each part, then their means."""
    key, headings = parts
    wide: dict[str, Row] = {}
    for row in priced(rows):
        line = wide.setdefault(row[first.key], {first.key: row[first.key], "unreadable": 0})
        line["unreadable"] += row["unreadable"]
        for figure in ("spearman", "kendall"):
            line[f"{row[key]}_{figure}"] = row[figure]
        line |= {column.key: row.get(column.key) for column in PRICE}
    for line in wide.values():
        for figure in ("spearman", "kendall"):
            given = [line.get(f"{part}_{figure}") for part in headings]
            known = [value for value in given if value is not None]
            line[f"mean_{figure}"] = sum(known) / len(known) if len(known) == len(given) else None
    signs = (("spearman", "\u03c1"), ("kendall", "\u03c4"))
    columns = [
        first,
        *(
            Column(f"{part}_{figure}", f"{heading} {sign}", "decimal")
            for part, heading in {**headings, "mean": "Average"}.items()
            for figure, sign in signs
        ),
        Column("unreadable", "Unreadable", "count"),
        *PRICE,
    ]
    lines = list(wide.values())
    return table(
        name,
        title,
        filled(columns, lines),
        priced(lines),
        [signature],
        "Spearman and Kendall of all texts' scores with people's mean scores. Unreadable scores "
        "are counted and left out.",
    )

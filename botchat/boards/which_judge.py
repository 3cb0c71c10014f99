"""Which judge, at what price: the answer of a comparison in words, and the tests behind it.

Pairs are tested in three families, each with Holm's correction for itself: a panel against the
single judge of its model, a panel whose members talk against its own controls (what the talk adds),
and one judge against another. Controls are in no contest for the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from botchat.boards.tables import Column, Table, explained, table, triple, with_interval
from botchat.interfaces import Row
from botchat.judges.panel import BEFORE_TALK, CALL_MATCHED, TOKEN_MATCHED
from botchat.measures.agreement import Agreement
from botchat.measures.best import Contest
from botchat.measures.changes import holm
from botchat.measures.statistics import LEVEL

CONTROLS: Mapping[str, str] = {
    BEFORE_TALK: "its own opening vote",
    CALL_MATCHED: "the call-matched vote",
    TOKEN_MATCHED: "the token-matched vote",
}
"""Ending of a control's name -> what it is."""

SINGLE, TALK, JUDGES = (
    "panel against single judge", "panel against its controls", "judge against judge",
)  # fmt: skip
"""The families of tests."""

_COSTS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "usd": ("money", lambda value: f"{1000 * value:,.2f} USD for 1,000 verdicts"),
    "tokens": ("tokens", lambda value: f"{value:,.0f} tokens a verdict"),
    "calls": ("calls", lambda value: f"{value:,.1f} calls a verdict"),
}
"""What a verdict takes: its key, its name, and how it is said."""
_MOST = 6
"""Judges whose pairs are all shown; of more only those with the first."""


def control_of(judge: str) -> str | None:
    """The panel that a judge is a control of, by its name."""
    ending = next((end for end in CONTROLS if judge.endswith(end)), None)
    return None if ending is None else judge.removesuffix(ending)


def agreement(found: Agreement, judge: str) -> float | None:
    """How often a judge is right; where no truth is known, says the same as another, on average."""
    known = [row["accuracy"] for row in found.rows if row.get("accuracy") is not None]
    if known:
        return next(row.get("accuracy") for row in found.rows if row["judge"] == judge)
    beside = [
        pair["agreement"]
        for pair in found.pairs
        if judge in (pair["judge_a"], pair["judge_b"]) and pair["agreement"] is not None
    ]
    return sum(beside) / len(beside) if beside else None


def in_order(found: Agreement) -> list[Row]:
    """Rows of judges who agree most first, each with its controls below it."""

    def place(row: Row) -> tuple[float, str, bool]:
        panel = control_of(row["judge"])
        whose: str = panel if panel is not None and panel in there else row["judge"]
        agreed = agreement(found, whose)
        return 2.0 if agreed is None else -agreed, whose, whose != row["judge"]

    there = {row["judge"] for row in found.rows}
    return sorted(found.rows, key=place)


def in_families(pairs: Iterable[Row], family: Mapping[tuple[str, str], str]) -> list[Row]:
    """Pairs with their ``family``, if any, and ``holm_p``, corrected within it.

    ``family``: (judge, against) -> its name, a panel before its single judge or control, which
    is said as ``panel``.
    """
    rows = []
    for pair in pairs:
        two = (pair["judge_a"], pair["judge_b"])
        known = next((one for one in (two, two[::-1]) if one in family), two)
        name = family.get(known)
        panel = known[0] if name in (SINGLE, TALK) else None
        rows.append({**pair, "family": name, "panel": panel, "holm_p": None})
    for name in (SINGLE, TALK, JUDGES):
        tested = [row for row in rows if row["family"] == name and _p(row) is not None]
        for row, p in zip(tested, holm([_p(row) or 0.0 for row in tested]), strict=True):
            row["holm_p"] = p
    return rows


def _p(pair: Row) -> float | None:
    found: float | None = pair["sign_flip_p"]
    return pair.get("ranking_p") if found is None else found


# ------------------------------------------------------------------------------------ in words


def answer(found: Agreement, figure: str = "accuracy") -> list[str]:
    """Which judge to take, what it costs and what the dearer ones buy; empty of too few items.

    ``figure``: what the contest is about, in words.
    """
    rows = [row for row in found.rows if row["judge"] in found.contested]
    rows.sort(key=lambda row: agreement(found, row["judge"]) or 0.0, reverse=True)
    costs = {key: [row.get(key) for row in rows] for key in _COSTS}
    measure = next((key for key, of in costs.items() if None not in of and any(of)), "")
    if found.contest is not None:
        best = [row for row in rows if row.get("may_be_best")] or rows[:1]
        worse = [row["judge"] for row in rows if row not in best]
        held = f"The set that surely holds the best: {_few([row['judge'] for row in best])}."
        held += f" Clearly worse than the best: {_few(worse)}." if worse else ""
        return [" ".join(_by_truth(found, found.contest, best, len(rows), measure, figure)), held]
    if len(rows) > 1 and any(pair.get("ranking_p") is not None for pair in found.pairs):
        return [" ".join(_by_ranking(found, rows, measure))]
    return []


def _by_truth(
    found: Agreement, contest: Contest, best: Sequence[Row], n: int, measure: str, figure: str
) -> Iterator[str]:
    """``best``: who of ``n`` judges may be the best, who is right most often first."""
    taken = min(best, key=itemgetter(measure)) if measure else best[0]
    name, most = taken["judge"], f"{100 * taken['at_most_worse']:.1f} points"
    cost = f" It costs {_COSTS[measure][1](taken[measure])}." if measure else ""
    if len(best) == 1:
        yield f"{name} is surely the best of {n} judges.{cost}"
        return
    if measure:
        yield (
            f"{name} is the cheapest judge that is not clearly worse than the best of {n}: "
            f"at most {most} less in {figure}.{cost}"
        )
    else:
        yield (
            f"{name} is the best seen of {n} judges ({100 * taken['accuracy']:.1f} in {figure}); "
            f"another is better by at most {most}. What they cost is not known."
        )
    # What the one of the others that gains most would gain.
    i, others = found.contested.index(name), [row for row in best if row is not taken]
    place = [found.contested.index(row["judge"]) for row in others]
    gain, j, other = max(zip((contest.lead[i, j] for j in place), place, others, strict=True),
                         key=itemgetter(0))  # fmt: skip
    # Of a judge that is right less often it is asked how many items would show that.
    more = contest.more_items(i, j) or contest.more_items(j, i)
    if gain <= 0 and measure:
        yield f"None of {len(others)} dearer ones that may be the best was seen to be better."
    said = f"{other['judge']}{_price(other, taken)} {'gains' if gain > 0 else 'is next:'} "
    said += _points(gain, contest.low[i, j], -contest.low[j, i])
    if more:
        unit: int = 10 ** max(0, len(str(more)) - 2)  # two digits: no more exact than the lead
        said += f"; about {-(-more // unit) * unit:,} more labelled items would decide it"
    yield f"{said}."


def _points(value: float, low: float, high: float) -> str:
    """A difference of shares and its interval, in points."""
    return f"{100 * value:+.1f} points ({100 * low:+.1f} to {100 * high:+.1f})"


def _by_ranking(found: Agreement, rows: Sequence[Row], measure: str) -> Iterator[str]:
    """Who ranks differently from the cheapest, or from the one that agrees most with the others."""
    taken = min(rows, key=itemgetter(measure)) if measure else rows[0]
    name = taken["judge"]
    score = {(row["judge"], row["contestant"]): row["score"] for row in found.rankings}
    others = {row["judge"]: row for row in rows}
    apart, alike = [], []
    for pair in found.pairs:
        two = (pair["judge_a"], pair["judge_b"])
        other = others.get(two[name == two[0]]) if name in two else None
        if other is None or pair.get("holm_p") is None:
            continue
        said, whom = f"{other['judge']}{_price(other, taken)}", pair["ranking_most"]
        if pair["holm_p"] > 1 - LEVEL:
            alike.append(said)
        else:
            ours, theirs = (100 * score[one, whom] for one in (name, other["judge"]))
            apart.append(f"{said} (most apart on {whom}: {theirs:.0f} % by it, {ours:.0f} %)")
    if measure:
        yield f"{name} is the cheapest of {len(rows)} judges: {_COSTS[measure][1](taken[measure])}."
    else:
        yield f"{name} agrees most with the others of {len(rows)} judges."
    if apart:
        yield f"Others rank differently: {_few(apart)}."
    if alike:
        yield f"No difference to the ranking by {name} is seen in that by {_few(alike)}."


def talk_adds(pairs: Iterable[Row], rows: Iterable[Row]) -> Iterator[str]:
    """Accuracy of each panel that talks less that of its controls, paired, with prices.

    ``pairs``: of `in_families`; ``rows``: with prices. Only where the truth is known.
    """
    of = {row["judge"]: row for row in rows}
    added: dict[str, list[str]] = {}
    for pair in map(_turned, pairs):
        panel, control = pair["judge_a"], pair["judge_b"]
        if pair.get("family") != TALK or pair["accuracy_difference_low"] is None:
            continue
        points = _points(*triple(pair, "accuracy_difference"))
        price = _price(of.get(panel, {}), of.get(control, {}))
        over = CONTROLS[control.removeprefix(panel)]
        added.setdefault(panel, []).append(f"{points} over {over}{price}")
    for panel, parts in added.items():
        yield f"What the talk of {panel} adds in accuracy: {_and(parts)}."


def other_cases(found: Agreement) -> Iterator[str]:
    """Said where judges were asked about different cases."""
    asked = {row["judge"]: row["verdicts"] + row["unreadable"] for row in found.rows}
    missed = {row["judge"]: row["unreadable"] for row in found.rows}
    most = max(asked.values(), default=0)
    pairs = [(pair["n"], (pair["judge_a"], pair["judge_b"])) for pair in found.pairs]
    if any(n + missed[a] + missed[b] < max(asked[a], asked[b]) for n, (a, b) in pairs):
        fewer = [f"{name} {n:,}" for name, n in asked.items() if n < most and not control_of(name)]
        of = f" ({_few(fewer)} of up to {most:,})" if fewer else ""
        yield (
            f"The judges were not asked about the same cases{of}: each row is about its own; "
            "differences, tests and who may be best are about what both of two judges answered."
        )


def _price(judge: Row, other: Row) -> str:
    times, name = _times(judge, other)
    return f" at {times:.1f} times the {name}" if times else ""


def _times(judge: Row, other: Row) -> tuple[float | None, str]:
    """By what a verdict of a judge costs more, in the first measure that is known of both."""
    known = ((k, name) for k, (name, _) in _COSTS.items() if judge.get(k) and other.get(k))
    key, name = next(known, ("", ""))
    return (judge[key] / other[key] if key else None), name


def _few(parts: Sequence[str]) -> str:
    """The first four, and how many more."""
    left = len(parts) - 4
    return _and([*parts[:4], f"{left} more"] if left > 1 else parts)


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


# ------------------------------------------------------------------------------------- tests

_TESTS = [
    Column("family", "Question", "name"),
    Column("judge_a", "Judge", "name"),
    Column("judge_b", "Against", "name"),
    Column("n", "Verdicts", "count"),
    *with_interval(Column("accuracy_difference", "Accuracy +", "rate")),
    *with_interval(Column("ranking_kendall", "Rankings", "decimal", meaning="their tau")),
    Column("ranking_most", "Most apart on", "name"),
    Column("times", "Price, times", "number", meaning="of the judge, that of the other being 1"),
    Column("p", "p", "exact", getter=_p),
    Column("holm_p", "p (Holm)", "exact", meaning="corrected for all tests of its question"),
]


def tests(found: Agreement, signature: str) -> Table:
    """The tests of all families; of many judges' pairs those with the first row's."""
    of = {row["judge"]: row for row in found.rows}
    first = next((row["judge"] for row in found.rows if row["judge"] in found.contested), None)
    rows = []
    for pair in map(_turned, found.pairs):
        two = (pair["judge_a"], pair["judge_b"])
        kept = pair.get("family") != JUDGES or len(found.contested) <= _MOST or first in two
        if pair.get("holm_p") is not None and kept:
            rows.append({**pair, "times": _times(*(of[name] for name in two))[0]})
    rows.sort(key=lambda row: (SINGLE, TALK, JUDGES).index(row["family"]))
    by_truth = any(pair["sign_flip_p"] is not None for pair in found.pairs)
    unused = "ranking" if by_truth else "accuracy"
    columns = [column for column in _TESTS if not column.key.startswith(unused)]
    note = (
        f"Judge less other, on what both answered. {explained(columns)} p: sign flips by item, "
        "of how often both are right, else of the contestants' scores. All pairs: pairs.csv."
    )
    return table("tests", "Which differences are no chance", columns, rows, [signature], note)


def _turned(pair: Row) -> Row:
    """The same pair, a panel before what it is tested against, otherwise the better judge first."""
    panel, lead = pair.get("panel"), pair.get("accuracy_difference")
    if panel == pair["judge_a"] or (panel is None and (lead is None or lead >= 0)):
        return pair
    value, low, high = (
        None if one is None else -one for one in triple(pair, "accuracy_difference")
    )
    ends = {"accuracy_difference": value, "accuracy_difference_low": high}
    two = {"judge_a": pair["judge_b"], "judge_b": pair["judge_a"]}
    return {**pair, **two, **ends, "accuracy_difference_high": low}


def without_controls(part: Table) -> Table:
    """A table of judges without the controls, where these are not what it is about."""
    names = part.frame[[column.key for column in part.columns if column.kind == "name"]]
    controls = names.map(lambda name: str(name).endswith((*CONTROLS,)))
    kept = ~controls.any(axis=1)
    about = part.name in ("controls", "tests")
    if about or kept.all() or not kept.any():
        return part
    left = f"Controls not shown here: {int((~kept).sum())}; the files have them."
    return replace(part, frame=part.frame[kept], note=f"{part.note} {left}".strip())

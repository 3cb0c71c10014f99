"""Which judge, at what price, and what talk adds: three sentences about a comparison of judges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from botchat.boards.tables import Table, triple
from botchat.interfaces import Row
from botchat.judges.panel import BEFORE_TALK, CALL_MATCHED
from botchat.metrics.agreement import Agreement
from botchat.metrics.intervals import LEAST

CONTROLS: Mapping[str, str] = {
    BEFORE_TALK: "its own opening vote",
    CALL_MATCHED: "single judges asked as often",
}
"""Ending of a control's name -> what it is."""

_COSTS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "usd": ("money", lambda value: f"{1000 * value:,.2f} USD for 1,000 verdicts"),
    "tokens": ("tokens", lambda value: f"{value:,.0f} tokens a verdict"),
    "calls": ("calls", lambda value: f"{value:,.1f} calls a verdict"),
}
"""What a verdict takes: its key, its name, and how it is said."""


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


def answer(found: Agreement) -> list[str]:
    """Which judge agrees most, and which is the cheapest that is not clearly worse."""
    rows = [row for row in found.rows if control_of(row["judge"]) is None]
    if len(rows) < 2 or all((row.get("n") or row["verdicts"]) < LEAST for row in rows):
        return []
    rows.sort(key=lambda row: agreement(found, row["judge"]) or 0.0, reverse=True)
    best, costs = rows[0], {key: [row.get(key) for row in rows] for key in _COSTS}
    measure = next((key for key, of in costs.items() if None not in of and any(of)), "")
    if (accuracy := best.get("accuracy")) is None:
        said = f"{best['judge']} agrees most with the others of {len(rows)} judges"
        return [f"{said}{_cost(best, measure)}."]
    said = f"{best['judge']} is right most often of {len(rows)} judges"
    said += f", in {100 * accuracy:.1f} % ({_range(best, 'accuracy')}){_cost(best, measure)}."
    apart = {
        other: triple(pair, "accuracy_difference")
        for pair in map(_turned(best["judge"]), found.pairs)
        if pair["judge_a"] == best["judge"]
        for other in [pair["judge_b"]]
    }
    level = [row for row in rows[1:] if (low := apart[row["judge"]][1]) is not None and low <= 0]
    if measure and level:
        cheap = min(level, key=itemgetter(measure))
        if cheap[measure] < best[measure]:
            value, low, high = (100 * (end or 0.0) for end in apart[cheap["judge"]])
            said += (
                f" {cheap['judge']} is the cheapest that is not clearly worse: {value:.1f} points "
                f"less ({low:.1f} to {high:.1f}){_cost(cheap, measure)}."
            )
    return [said]


def _cost(row: Row, measure: str) -> str:
    return f", at {_COSTS[measure][1](row[measure])}" if measure else ""


def _range(row: Row, key: str) -> str:
    low, high = (row.get(f"{key}{end}") for end in ("_low", "_high"))
    return "–" if low is None or high is None else f"{100 * low:.1f} to {100 * high:.1f}"


def _turned(first: str) -> Callable[[Row], Row]:
    """A pair with the judge ``first`` before the other."""

    def turned(pair: Row) -> Row:
        if pair["judge_b"] != first:
            return pair
        value, low, high = (
            None if one is None else -one for one in triple(pair, "accuracy_difference")
        )
        ends = {"accuracy_difference": value, "accuracy_difference_low": high}
        two = {"judge_a": pair["judge_b"], "judge_b": pair["judge_a"]}
        return {**pair, **two, **ends, "accuracy_difference_high": low}

    return turned


def talk_adds(found: Agreement) -> Iterator[str]:
    """Accuracy of each panel that talks less that of its controls, paired, with prices.

    Only where the truth is known; a panel talks where its votes before the talk are known.
    """
    of = {row["judge"]: row for row in found.rows}
    added: dict[str, list[str]] = {}
    for pair in found.pairs:
        panel, control = pair["judge_a"], pair["judge_b"]
        if control_of(control) != panel or f"{panel}{BEFORE_TALK}" not in of:
            continue
        value, low, high = triple(pair, "accuracy_difference")
        if low is None or high is None or value is None:
            continue
        points = f"{100 * value:+.1f} points ({100 * low:+.1f} to {100 * high:+.1f})"
        over = CONTROLS[control.removeprefix(panel)]
        added.setdefault(panel, []).append(f"{points} over {over}{_price(of[panel], of[control])}")
    for panel, parts in added.items():
        yield f"What the talk of {panel} adds in accuracy: {' and '.join(parts)}."


def _price(judge: Row, other: Row) -> str:
    known = ((k, name) for k, (name, _) in _COSTS.items() if judge.get(k) and other.get(k))
    key, name = next(known, ("", ""))
    return f" at {judge[key] / other[key]:.1f} times the {name}" if key else ""


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
            "differences are about what both of two judges answered."
        )


def _few(parts: Sequence[str]) -> str:
    """The first four, and how many more."""
    left = len(parts) - 4
    shown = [*parts[:4], f"{left} more"] if left > 1 else [*parts]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def without_controls(part: Table) -> Table:
    """A table of judges without the controls, where these are not what it is about."""
    names = part.frame[[column.key for column in part.columns if column.kind == "name"]]
    controls = names.map(lambda name: str(name).endswith((*CONTROLS,)))
    kept = ~controls.any(axis=1)
    if part.name == "controls" or kept.all() or not kept.any():
        return part
    left = f"Controls not shown here: {int((~kept).sum())}; the files have them."
    return replace(part, frame=part.frame[kept], note=f"{part.note} {left}".strip())

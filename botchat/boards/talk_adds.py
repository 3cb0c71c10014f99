"""What the talk of a panel adds to votes without it, and at what price: a line in words a panel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from botchat.interfaces import Row
from botchat.judges.controls import BEFORE_TALK, CALL_MATCHED, TOKEN_MATCHED

CONTROLS: Mapping[str, str] = {
    BEFORE_TALK: "its own opening vote",
    CALL_MATCHED: "the call-matched vote",
    TOKEN_MATCHED: "the token-matched vote",
}
"""Ending of a control's name -> what it is."""

_PRICES = {"usd": "money", "tokens": "tokens", "calls": "calls"}


def lines(pairs: Iterable[Row], rows: Iterable[Row]) -> Iterator[str]:
    """Accuracy of each panel less that of its controls, paired, with intervals and prices.

    ``pairs`` and ``rows``: of `botchat.measures.agreement.Agreement`; rows with `PRICE` too. Only
    where the truth is known.
    """
    of = {row["judge"]: row for row in rows}
    added: dict[str, list[str]] = {}
    for pair in pairs:
        panel, control = pair["judge_a"], pair["judge_b"]
        ending = control.removeprefix(panel)
        if ending not in CONTROLS or pair["accuracy_difference_low"] is None:
            continue
        value, low, high = (
            100 * pair[f"accuracy_difference{end}"] for end in ("", "_low", "_high")
        )
        price = _price(of.get(panel, {}), of.get(control, {}))
        said = f"{value:+.1f} points ({low:+.1f} to {high:+.1f}) over {CONTROLS[ending]}{price}"
        added.setdefault(panel, []).append(said)
    for panel, parts in added.items():
        yield f"What the talk of {panel} adds in accuracy: {_and(parts)}."


def _price(panel: Row, control: Row) -> str:
    """By what a verdict of the panel costs more, in the first measure that is known of both."""
    for key, name in _PRICES.items():
        if panel.get(key) and control.get(key):
            return f" at {panel[key] / control[key]:.1f} times the {name}"
    return ""


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"

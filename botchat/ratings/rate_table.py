"""Published tables of pairwise rates, such as BotChat's Figure 5, turned back into comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from botchat.errors import ConfigError, DataError, UsageError
from botchat.metrics.verdicts import LOSS, TIE, WIN
from botchat.ratings.comparisons import Comparisons

MOST = 10_000_000
"""Comparisons that a table may stand for; the paper's has 40,404."""

PER_PAIR = 444
"""Comparisons a pair in the paper: 222 ChatSEEDs in both orders (BotChat §4.2)."""

COLUMNS = ("model_a", "model_b", "win_rate", "win_or_tie_rate")


class _RatedPair(NamedTuple):
    """One row of the table; ``win`` and ``win_or_tie`` of ``model_a``, ``digits`` of the two."""

    place: str
    model_a: str
    model_b: str
    win: float
    win_or_tie: float
    digits: int


def is_rates(data: bytes) -> bool:
    """Return whether a file is a csv with the columns `COLUMNS`."""
    header = data[:1000].removeprefix(b"\xef\xbb\xbf").decode(errors="replace").partition("\n")[0]
    return {name.strip(' "\r') for name in header.split(",")}.issuperset(COLUMNS)


def comparisons_from_rates(
    rows: Iterable[tuple[str, Mapping[str, Any]]], per_pair: int, where: str
) -> Comparisons:
    """Rebuild comparisons from rows (place, cells) with the columns `COLUMNS`, a pair each.

    Rates are all shares (0..1) or all percent (0..100), rounded to any digit. A pair may have one
    row, or one in each orientation, whose mean is used. The comparisons have no seeds. ``where``
    names the table in messages. Raises `ConfigError` for ``per_pair`` < 1, `DataError` for an
    invalid table.
    """
    if per_pair < 1:
        raise UsageError(f"{per_pair} comparisons a pair: give at least 1 (BotChat's Arena: 444)")
    rated, rounding = _shares([_rated_pair(*row) for row in rows], where)
    table: dict[tuple[str, str], _RatedPair] = {}
    for row in rated:
        earlier = table.setdefault((row.model_a, row.model_b), row)
        if earlier is not row:
            pair = f"{row.model_a} against {row.model_b}"
            raise DataError(f"{row.place}: {pair} occurs in {earlier.place} already: keep one")
    pairs = sorted({(min(pair), max(pair)) for pair in table})
    if len(pairs) * per_pair > MOST:
        most = MOST // len(pairs)
        raise ConfigError(f"{per_pair:,} comparisons a pair are too many: give at most {most:,}")
    models = sorted(set(chain.from_iterable(pairs)))
    number = {name: i for i, name in enumerate(models)}
    results = []
    for a, b in pairs:
        win, win_or_tie = _one_way(table.get((a, b)), table.get((b, a)), rounding)
        wins = round(win * per_pair)
        wins_or_ties = round(win_or_tie * per_pair)
        times = [wins, wins_or_ties - wins, per_pair - wins_or_ties]
        results.append(np.repeat([WIN, TIE, LOSS], times))
    return Comparisons(
        tuple(models),
        np.repeat([number[a] for a, _ in pairs], per_pair),
        np.repeat([number[b] for _, b in pairs], per_pair),
        np.concatenate(results),
    )


def _rated_pair(place: str, cells: Mapping[str, Any]) -> _RatedPair:
    model_a, model_b, *rates = (cells.get(name, "").strip() for name in COLUMNS)
    if not model_a or not model_b or model_a == model_b:
        raise DataError(f"{place}: {model_a!r} against {model_b!r}: name two different models")
    try:
        win, win_or_tie = map(float, rates)
    except ValueError:
        raise DataError(f"{place}: rates {rates!r:.90} are no numbers") from None
    digits = max(len(rate.partition(".")[2]) for rate in rates)
    return _RatedPair(place, model_a, model_b, win, win_or_tie, digits)


def _shares(rows: Sequence[_RatedPair], where: str) -> tuple[list[_RatedPair], float]:
    """Return the rows in shares (0..1) and the largest rounding error of a sum of two."""
    if not rows:
        raise DataError(f"{where}: no rows: give a line for each pair of models")
    rates = [rate for row in rows for rate in (row.win, row.win_or_tie) if rate > 0]
    # By majority, so that one wrong value does not decide the table's unit.
    is_percent = sum(rate > 1 for rate in rates) * 2 > len(rates)
    top = 1
    if is_percent:
        top = 100
    for row in rows:
        if not 0 <= row.win <= row.win_or_tie <= top:
            raise DataError(
                f"{row.place}: win_rate {row.win:g} and win_or_tie_rate {row.win_or_tie:g} are not "
                f"in order within 0..{top}, as those of this table: the second counts wins too"
            )
    digits = max(row.digits for row in rows)
    if is_percent:
        digits += 2
    shares = [row._replace(win=row.win / top, win_or_tie=row.win_or_tie / top) for row in rows]
    return shares, 10.0**-digits + 1e-9


def _one_way(
    row: _RatedPair | None, mirrored: _RatedPair | None, rounding: float
) -> tuple[float, float]:
    """Return win and win-or-tie rate of a pair's first model from one or both of its rows."""
    rates = []
    if row is not None:
        rates.append((row.win, row.win_or_tie))
    if mirrored is not None:
        rates.append((1 - mirrored.win_or_tie, 1 - mirrored.win))
    if row and mirrored and max(abs(x - y) for x, y in zip(*rates, strict=True)) > rounding:
        raise DataError(
            f"{mirrored.place}: {row.model_b} against {row.model_a} contradicts {row.place}: a win "
            "of one is a loss of the other"
        )
    wins, wins_or_ties = zip(*rates, strict=True)
    return sum(wins) / len(rates), sum(wins_or_ties) / len(rates)

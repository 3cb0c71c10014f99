"""Published tables of pairwise rates, such as BotChat's Figure 5, turned back into comparisons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from botchat.errors import ConfigError, DataError, UsageError
from botchat.estimates import Floats
from botchat.metrics.verdicts import LOSS, TIE, WIN
from botchat.ratings.comparisons import Comparisons

MOST = 10_000_000
"""Comparisons that a table may stand for; the paper's has 40,404."""

PER_PAIR = 444
"""Comparisons a pair in the paper: 222 ChatSEEDs in both orders (BotChat §4.2)."""

COLUMNS = ("model_a", "model_b", "win_rate", "win_or_tie_rate")


Rows: TypeAlias = Iterable[tuple[str, Mapping[str, object]]]
"""Place of a row for messages, and its cells."""


class _Rates(NamedTuple):
    """Win rate and win-or-tie rate of a pair's first model, shape (2,), and their most digits."""

    place: str
    values: Floats
    digits: int


def comparisons_from_rates(rows: Rows, per_pair: int, where: str) -> Comparisons:
    """Rebuild comparisons from rows (place, cells) with the columns `COLUMNS`, a pair each.

    Rates are all shares (0..1) or all percent (0..100), rounded to any digit. A pair may have one
    row, or one in each orientation, whose mean is used. The comparisons have no seeds. ``where``
    names the table in messages. Raises `ConfigError` for ``per_pair`` < 1, `DataError` for an
    invalid table.
    """
    if per_pair < 1:
        raise UsageError(f"{per_pair} comparisons a pair: give at least 1 (BotChat's Arena: 444)")
    table = _read_table(rows)
    if not table:
        raise DataError(f"{where}: no rows: give a line for each pair of models")
    top = _top(table.values())
    shares = defaultdict[tuple[str, str], list[Floats]](list)
    for (a, b), rates in table.items():
        if a < b:
            shares[a, b].append(rates.values / top)
        else:
            shares[b, a].append(1 - rates.values[::-1] / top)
    if len(shares) * per_pair > MOST:
        most = MOST // len(shares)
        raise ConfigError(f"{per_pair:,} comparisons a pair are too many: give at most {most:,}")
    rounding = 10.0 ** -max(rates.digits for rates in table.values()) / top + 1e-9
    pairs = sorted(shares)
    results = []
    for a, b in pairs:
        both = np.array(shares[a, b])
        if np.ptp(both, axis=0).max() > rounding:
            raise DataError(
                f"{table[b, a].place}: {b} against {a} contradicts {table[a, b].place}: a win "
                "of one is a loss of the other"
            )
        wins, wins_or_ties = np.rint(both.mean(axis=0) * per_pair).astype(int).tolist()
        times = [wins, wins_or_ties - wins, per_pair - wins_or_ties]
        results.append(np.repeat([WIN, TIE, LOSS], times))
    models = sorted(set(chain.from_iterable(pairs)))
    number = {name: i for i, name in enumerate(models)}
    return Comparisons(
        tuple(models),
        np.repeat([number[a] for a, _ in pairs], per_pair),
        np.repeat([number[b] for _, b in pairs], per_pair),
        np.concatenate(results),
    )


def _read_table(rows: Rows) -> dict[tuple[str, str], _Rates]:
    table: dict[tuple[str, str], _Rates] = {}
    for place, cells in rows:
        a = str(cells.get("model_a", "")).strip()
        b = str(cells.get("model_b", "")).strip()
        if not a or not b or a == b:
            raise DataError(f"{place}: {a!r} against {b!r}: name two different models")
        if not any(str(cells.get(name, "")).strip() for name in COLUMNS[2:]):
            continue  # our own tables list pairs that were never compared
        if (a, b) in table:
            earlier = table[a, b].place
            raise DataError(f"{place}: {a} against {b} occurs in {earlier} already: keep one")
        table[a, b] = _rates(place, cells)
    return table


def _rates(place: str, cells: Mapping[str, object]) -> _Rates:
    texts = [str(cells.get(name, "")).strip() for name in COLUMNS[2:]]
    try:
        values = np.array([float(text) for text in texts])
    except ValueError:
        raise DataError(f"{place}: rates {texts!r:.90} are no numbers") from None
    return _Rates(place, values, max(len(text.partition(".")[2]) for text in texts))


def _top(table: Collection[_Rates]) -> int:
    """Return 1 where rates are shares, 100 where they are in percent."""
    values = np.array([rates.values for rates in table])
    top = 1
    # By majority, so that one wrong value does not decide the table's unit.
    if (values > 1).sum() * 2 > (values > 0).sum():
        top = 100
    for rates in table:
        win, win_or_tie = rates.values.tolist()
        if not 0 <= win <= win_or_tie <= top:
            raise DataError(
                f"{rates.place}: win_rate {win:g} and win_or_tie_rate {win_or_tie:g} are not in "
                f"order within 0..{top}, as those of this table: the second counts wins too"
            )
    return top

"""Published tables of pairwise rates, such as BotChat's Figure 5, turned back into comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from botchat.errors import ConfigError, DataError
from botchat.ratings.comparisons import Comparisons
from botchat.verdicts import LOSS, TIE, WIN

MOST = 10_000_000
"""Comparisons that a table may stand for; the paper's has 40,404."""

PER_PAIR = 444
"""Comparisons a pair in the paper: 222 ChatSEEDs in both orders (BotChat §4.2)."""

COLUMNS = ("model_a", "model_b", "win_rate", "win_or_tie_rate")

Cells = Mapping[str, Mapping[str, Any]]
"""Place of a row -> its cells by the names of columns."""


def is_rates(data: bytes) -> bool:
    """Whether a file is a csv with the columns `COLUMNS`."""
    header = data[:1000].removeprefix(b"\xef\xbb\xbf").decode(errors="replace").partition("\n")[0]
    return {name.strip(' "\r') for name in header.split(",")}.issuperset(COLUMNS)


def comparisons_from_rates(
    rows_of_table: Iterable[tuple[str, Mapping[str, Any]]], per_pair: int, where: str
) -> Comparisons:
    """Rebuild comparisons from rows (place, cells) with the columns `COLUMNS`, a pair each.

    Rates are all shares (0..1) or all percent (0..100), rounded to any digit. A pair may have one
    row, or one in each orientation, whose mean is used. The comparisons have no seeds. ``where``
    names the table in messages. Raises `ConfigError` for ``per_pair`` < 1, `DataError` for an
    invalid table.
    """
    if per_pair < 1:
        raise ConfigError(f"{per_pair} comparisons a pair: give at least 1 (BotChat's Arena: 444)")
    rows, rounding = _shares(_rows(dict(rows_of_table), where), where)
    table: dict[tuple[str, str], _RatedPair] = {}
    for row in rows:
        if earlier := table.get((row.model_a, row.model_b)):
            raise DataError(
                f"{row.place}: {row.model_a} against {row.model_b} occurs in row"
                f" {earlier.row} already: keep one of them"
            )
        table[row.model_a, row.model_b] = row
    made: list[tuple[str, str, float]] = []
    pairs = sorted({(min(pair), max(pair)) for pair in table})
    if len(pairs) * per_pair > MOST:
        raise ConfigError(
            f"{per_pair:,} comparisons a pair are too many for {len(pairs)} pairs: give at most "
            f"{MOST // len(pairs):,}"
        )
    for a, b in pairs:
        win, win_or_tie = _one_way(table.get((a, b)), table.get((b, a)), rounding)
        wins, wins_or_ties = round(win * per_pair), round(win_or_tie * per_pair)
        made += [(a, b, WIN)] * wins
        made += [(a, b, TIE)] * (wins_or_ties - wins)
        made += [(a, b, LOSS)] * (per_pair - wins_or_ties)
    return Comparisons.of(made)


@dataclass(frozen=True)
class _RatedPair:
    """One line of the table; ``win`` and ``win_or_tie`` of ``model_a``, ``digits`` of the two."""

    place: str
    model_a: str
    model_b: str
    win: float
    win_or_tie: float
    digits: int

    @property
    def row(self) -> str:
        """Number of the row."""
        return self.place.rpartition(" ")[2]


def _rows(records: Cells, where: str) -> Iterator[_RatedPair]:
    for place, cells in records.items():
        if missing := [name for name in COLUMNS if name not in cells]:
            raise DataError(
                f"{where}: no column {missing[0]} among {', '.join(cells)}:"
                f" give {','.join(COLUMNS)}"
            )
        model_a, model_b, *rates = (cells[name].strip() for name in COLUMNS)
        if not model_a or not model_b or model_a == model_b:
            raise DataError(f"{place}: {model_a!r} against {model_b!r}: name two different models")
        win, win_or_tie = (_number(rate, place) for rate in rates)
        digits = max(len(rate.partition(".")[2]) for rate in rates)
        yield _RatedPair(place, model_a, model_b, win, win_or_tie, digits)


def _number(rate: str, at: str) -> float:
    try:
        return float(rate)
    except ValueError:
        raise DataError(f"{at}: rate {rate!r} is no number: give a share or a percentage") from None


def _shares(rows: Iterable[_RatedPair], where: str) -> tuple[list[_RatedPair], float]:
    """The rows in shares (0..1), checked, and the largest rounding error of a sum of two."""
    rows = list(rows)
    if not rows:
        raise DataError(f"{where}: no rows: give a line for each pair of models")
    given = [rate for row in rows for rate in (row.win, row.win_or_tie) if rate > 0]
    # By majority, so that one wrong value does not decide the table's unit.
    percent = sum(rate > 1 for rate in given) * 2 > len(given)
    top = 100 if percent else 1
    for row in rows:
        at = row.place
        for rate in (row.win, row.win_or_tie):
            if not 0 <= rate <= top:
                raise DataError(
                    f"{at}: rate {rate:g} is outside 0..{top} of this table: correct it"
                )
        if row.win > row.win_or_tie:
            raise DataError(
                f"{at}: win_rate {row.win:g} is above win_or_tie_rate {row.win_or_tie:g}:"
                " the second counts wins too"
            )
    digits = max(row.digits for row in rows) + (2 if percent else 0)
    shares = [replace(row, win=row.win / top, win_or_tie=row.win_or_tie / top) for row in rows]
    return shares, 10.0**-digits + 1e-9


def _one_way(
    row: _RatedPair | None, mirrored: _RatedPair | None, rounding: float
) -> tuple[float, float]:
    """Win and win-or-tie rate of a pair's first model from one or both of its rows."""
    seen = [] if row is None else [(row.win, row.win_or_tie)]
    seen += [] if mirrored is None else [(1 - mirrored.win_or_tie, 1 - mirrored.win)]
    if row and mirrored and max(abs(x - y) for x, y in zip(*seen, strict=True)) > rounding:
        raise DataError(
            f"{mirrored.place}: {row.model_b} against {row.model_a} contradicts row"
            f" {row.row}: win_rate of one and win_or_tie_rate of the other must add up"
            f" to 1, here {row.win:g} + {mirrored.win_or_tie:g} and"
            f" {mirrored.win:g} + {row.win_or_tie:g} (as shares)"
        )
    wins, wins_or_ties = zip(*seen, strict=True)
    return sum(wins) / len(seen), sum(wins_or_ties) / len(seen)

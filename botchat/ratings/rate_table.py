"""Published tables of pairwise rates, such as BotChat's Figure 5, turned back into comparisons."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from botchat.errors import ConfigError, DataError
from botchat.ratings.comparisons import Comparisons
from botchat.verdicts import LOSS, TIE, WIN

MOST = 10_000_000
"""Comparisons that a table may stand for; the paper's has 40,404."""

MAX_RATES_BYTES = 2**24
"""Of a table of rates."""

PER_PAIR = 444
"""Comparisons a pair in the paper: 222 ChatSEEDs in both orders (BotChat §4.2)."""

COLUMNS = ("model_a", "model_b", "win_rate", "win_or_tie_rate")


RATES = ("rates", "matrix")
"""Kinds of tables: a row a pair with the columns `COLUMNS`; a square of win rates."""


def rates_kind(data: bytes) -> str | None:
    """Which of `RATES` a file is; ``None``: neither."""
    lines = data.removeprefix(b"\xef\xbb\xbf").decode(errors="replace").splitlines()[:1002]
    rows = list(csv.reader(line for line in lines if line and not line.startswith("#")))
    header = [name.strip() for name in rows[0]] if rows else []
    if set(header).issuperset(COLUMNS):
        return "rates"
    beside = [row[0].strip() for row in rows[1:] if row]
    return "matrix" if len(header) > 2 and header[1:] == beside else None


def rates_of_matrix(text: str, where: str) -> str:
    """A square table of the win rate of each row's model against each column's, as `COLUMNS`.

    What the two rates of a pair lack of 1 are ties. The diagonal is passed over; a pair without
    rates (empty cells) was not compared, one with a single rate has no ties.
    """
    text = text.removeprefix("\ufeff")
    rows = [
        (n, [cell.strip() for cell in row])
        for n, row in enumerate(csv.reader(io.StringIO(text, newline="")), 1)
        if row and not row[0].startswith("#")
    ]
    header = rows[0][1][1:] if rows else []
    if len(rows) != len(header) + 1 or len(set(header)) != len(header) or len(header) < 2:
        raise DataError(
            f"{where}: row 1: a square of rates names the same models in row and column"
        )
    given: dict[tuple[str, str], float] = {}
    for n, (model, *cells) in rows[1:]:
        if model not in header or len(cells) != len(header):
            raise DataError(
                f"{where}: row {n}: {model!r} with {len(cells)} rates; the first row names "
                f"{len(header)} models, and each has a row"
            )
        for other, cell in zip(header, cells, strict=True):
            if other != model and cell.lower() not in ("", "nan", "-", "–"):
                given[model, other] = _number(cell, f"{where}: row {n}, column {other}")
    whole = 100.0 if sum(rate > 1 for rate in given.values()) * 2 > len(given) else 1.0
    table = io.StringIO()
    written = csv.writer(table, lineterminator="\n")
    written.writerow(COLUMNS)
    for i, a in enumerate(header):
        for b in header[i + 1 :]:
            win, lost = given.get((a, b)), given.get((b, a))
            if win is None and lost is None:
                continue
            win = whole - (lost or 0.0) if win is None else win
            beaten = whole - win if lost is None else lost
            if min(win, beaten) < 0 or win + beaten > whole * 1.011:
                raise DataError(
                    f"{where}: row {header.index(a) + 2}, column {b}: {a} wins {win:g} and {b} "
                    f"{beaten:g}; the two are at most {whole:g} together"
                )
            written.writerow([a, b, f"{win:.12g}", f"{max(win, whole - beaten):.12g}"])
    return table.getvalue()


def comparisons_from_rates(text: str, per_pair: int, where: str) -> Comparisons:
    """Rebuild comparisons from a CSV of rates with the columns `COLUMNS`.

    Rates are all shares (0..1) or all percent (0..100), rounded to any digit. A pair may have one
    row, or one in each orientation, whose mean is used. The comparisons have no seeds. ``where``
    names the table in messages. Raises `ConfigError` for ``per_pair`` < 1, `DataError` for an
    invalid table.
    """
    if per_pair < 1:
        raise ConfigError(f"{per_pair} comparisons a pair: give at least 1 (BotChat's Arena: 444)")
    rows, rounding = _shares(_rows(text, where), where)
    table: dict[tuple[str, str], _Row] = {}
    for row in rows:
        if earlier := table.get((row.model_a, row.model_b)):
            raise DataError(
                f"{where}:{row.line}: {row.model_a} against {row.model_b} stands on line"
                f" {earlier.line} already: keep one of them"
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
        win, win_or_tie = _one_way(table.get((a, b)), table.get((b, a)), rounding, where)
        wins, wins_or_ties = round(win * per_pair), round(win_or_tie * per_pair)
        made += [(a, b, WIN)] * wins
        made += [(a, b, TIE)] * (wins_or_ties - wins)
        made += [(a, b, LOSS)] * (per_pair - wins_or_ties)
    return Comparisons.of(made)


@dataclass(frozen=True)
class _Row:
    """One line of the table; ``win`` and ``win_or_tie`` of ``model_a``, ``digits`` of the two."""

    line: int
    model_a: str
    model_b: str
    win: float
    win_or_tie: float
    digits: int


def _rows(text: str, where: str) -> Iterator[_Row]:
    lines = io.StringIO(text.removeprefix("\ufeff"), newline="")
    # Our own tables end with their signature in a comment.
    reader = csv.DictReader((line for line in lines if not line.startswith("#")), strict=True)
    try:
        header = [name.strip() for name in reader.fieldnames or ()]
        reader.fieldnames = header
        if missing := [name for name in COLUMNS if name not in header]:
            raise DataError(
                f"{where}:1: no column {missing[0]} among {', '.join(header) or 'none'}:"
                f" give {','.join(COLUMNS)}"
            )
        for row in reader:
            at = f"{where}:{reader.line_num}"
            model_a, model_b, *rates = ((row[name] or "").strip() for name in COLUMNS)
            if not model_a or not model_b or model_a == model_b:
                raise DataError(f"{at}: {model_a!r} against {model_b!r}: name two different models")
            win, win_or_tie = (_number(rate, at) for rate in rates)
            digits = max(len(rate.partition(".")[2]) for rate in rates)
            yield _Row(reader.line_num, model_a, model_b, win, win_or_tie, digits)
    except csv.Error as error:
        raise DataError(
            f"{where}:{reader.reader.line_num}: not CSV ({error}): quote or fix the line"
        ) from None


def _number(rate: str, at: str) -> float:
    try:
        return float(rate)
    except ValueError:
        raise DataError(f"{at}: rate {rate!r} is no number: give a share or a percentage") from None


def _shares(rows: Iterable[_Row], where: str) -> tuple[list[_Row], float]:
    """The rows in shares (0..1), checked, and the largest rounding error of a sum of two."""
    rows = list(rows)
    if not rows:
        raise DataError(f"{where}:1: no rows: give a line for each pair of models")
    given = [rate for row in rows for rate in (row.win, row.win_or_tie) if rate > 0]
    # By majority, so that one wrong value does not decide the table's unit.
    percent = sum(rate > 1 for rate in given) * 2 > len(given)
    top = 100 if percent else 1
    for row in rows:
        at = f"{where}:{row.line}"
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
    row: _Row | None, mirrored: _Row | None, rounding: float, where: str
) -> tuple[float, float]:
    """Win and win-or-tie rate of a pair's first model from one or both of its rows."""
    seen = [] if row is None else [(row.win, row.win_or_tie)]
    seen += [] if mirrored is None else [(1 - mirrored.win_or_tie, 1 - mirrored.win)]
    if row and mirrored and max(abs(x - y) for x, y in zip(*seen, strict=True)) > rounding:
        raise DataError(
            f"{where}:{mirrored.line}: {row.model_b} against {row.model_a} contradicts line"
            f" {row.line}: win_rate of one and win_or_tie_rate of the other must add up"
            f" to 1, here {row.win:g} + {mirrored.win_or_tie:g} and"
            f" {mirrored.win:g} + {row.win_or_tie:g} (as shares)"
        )
    wins, wins_or_ties = zip(*seen, strict=True)
    return sum(wins) / len(seen), sum(wins_or_ties) / len(seen)

"""Published tables of pairwise rates, such as BotChat's Figure 5, turned back into comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

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


def comparisons_from_rates(rows: Rows, per_pair: int, where: str) -> Comparisons:
    """Rebuild comparisons from rows (place, cells) with the columns `COLUMNS`, a pair each.

    Rates are all shares (0..1) or all percent (0..100), rounded to any digit. A pair may have one
    row, or one in each orientation, whose mean is used. The comparisons have no seeds. ``where``
    names the table in messages. Raises `ConfigError` for ``per_pair`` < 1, `DataError` for an
    invalid table.
    """
    if per_pair < 1:
        raise UsageError(f"{per_pair} comparisons a pair: give at least 1 (BotChat's Arena: 444)")
    places, values, digits = _read_table(rows)
    if not places:
        raise DataError(f"{where}: no rows: give a line for each pair of models")
    top = 1
    # By majority, so that one wrong value does not decide the table's unit.
    if (values > 1).sum() * 2 > (values > 0).sum():
        top = 100
    for place, (win, win_or_tie) in zip(places.values(), values.tolist(), strict=True):
        if not 0 <= win <= win_or_tie <= top:
            raise DataError(
                f"{place}: win_rate {win:g} and win_or_tie_rate {win_or_tie:g} are not in order "
                f"within 0..{top}, as those of this table: the second counts wins too"
            )
    models, sides = np.unique(np.array(list(places), object), return_inverse=True)
    first, second = sides.reshape(-1, 2).T
    shares = np.full((len(models), len(models), 2), np.nan)
    shares[first, second] = values / top
    mirrored = 1 - shares.transpose(1, 0, 2)[..., ::-1]
    apart = np.abs(shares - mirrored).max(axis=2)
    for a, b in models[np.argwhere(apart > 10.0**-digits / top + 1e-9)].tolist():
        raise DataError(
            f"{places[b, a]}: {b} against {a} contradicts {places[a, b]}: a win of one is a loss "
            "of the other"
        )
    # Of a pair with one row, what is not known is passed over: twice its share is halved.
    mean = (np.fmin(shares, mirrored) + np.fmax(shares, mirrored)) / 2
    low, high = np.nonzero(np.triu(mean[..., 1] >= 0))
    if len(low) * per_pair > MOST:
        most = MOST // len(low)
        raise ConfigError(f"{per_pair:,} comparisons a pair are too many: give at most {most:,}")
    wins, wins_or_ties = np.rint(mean[low, high].T * per_pair).astype(np.intp)
    times = np.stack([wins, wins_or_ties - wins, per_pair - wins_or_ties], axis=1)
    return Comparisons(
        tuple(models.tolist()),
        np.repeat(low, per_pair),
        np.repeat(high, per_pair),
        np.repeat(np.tile([WIN, TIE, LOSS], len(low)), times.ravel()),
    )


def _read_table(rows: Rows) -> tuple[dict[tuple[str, str], str], Floats, int]:
    """Return the place of each pair, its rates as they stand, shape (n, 2), and most digits."""
    places: dict[tuple[str, str], str] = {}
    values = []
    decimals = [""]
    for place, cells in rows:
        a, b, *texts = (str(cells.get(name, "")).strip() for name in COLUMNS)
        if not a or not b or a == b:
            raise DataError(f"{place}: {a!r} against {b!r}: name two different models")
        if not any(texts):
            continue  # our own tables list pairs that were never compared
        if (a, b) in places:
            raise DataError(f"{place}: {a} against {b} occurs in {places[a, b]} already: keep one")
        places[a, b] = place
        try:
            values.append([float(text) for text in texts])
        except ValueError:
            raise DataError(f"{place}: rates {texts!r:.90} are no numbers") from None
        decimals += [text.partition(".")[2] for text in texts]
    return places, np.array(values), max(map(len, decimals))

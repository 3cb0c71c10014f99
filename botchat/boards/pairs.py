"""Comparisons counted: results of models and of pairs, and their rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from botchat.estimates import Floats, Indices
from botchat.metrics.statistics import clustered_proportions, distinct
from botchat.metrics.verdicts import LOSS, TIE, WIN, PairVerdicts
from botchat.ratings.comparisons import Comparisons

_RESULTS = {"win": (WIN,), "tie": (TIE,), "lose": (LOSS,), "win_or_tie": (WIN, TIE)}


def comparisons_of(readable: PairVerdicts, cluster: Indices | None) -> Comparisons:
    """Make comparisons, contestants by name, of readable verdicts and the cluster of each."""
    contestants = readable.judged_contestants
    place = {name: i for i, name in enumerate(contestants)}
    # Contestants that only unreadable verdicts name have no place, and none is asked for.
    number = np.array([place.get(name, -1) for name in readable.contestants], dtype=np.intp)
    return Comparisons(
        tuple(contestants),
        number[readable.first],
        number[readable.second],
        readable.result,
        cluster,
    )


def pair_results(comparisons: Comparisons) -> pd.DataFrame:
    """Results of each ordered pair that was compared, seen from the first; see `model_results`."""
    m = len(comparisons.models)
    names = pd.Index(comparisons.models, dtype=object)
    numbers, frame = _results(comparisons, m)
    return frame.set_axis(pd.MultiIndex.from_arrays([names[numbers // m], names[numbers % m]]))


def model_results(comparisons: Comparisons) -> pd.DataFrame:
    """Results of each model that was compared, against all others.

    Columns: ``n`` comparisons, and for ``win``, ``tie``, ``lose`` and ``win_or_tie`` the share with
    the ends of its interval.
    """
    numbers, frame = _results(comparisons, 0)
    return frame.set_axis(pd.Index(comparisons.models, dtype=object)[numbers])


def _results(comparisons: Comparisons, m: int) -> tuple[Indices, pd.DataFrame]:
    """Number of each model (``m`` = 0), or of each pair of m models, and its row."""
    side = np.concatenate([comparisons.first, comparisons.second])
    other = np.concatenate([comparisons.second, comparisons.first])
    result = np.concatenate([comparisons.result, 1 - comparisons.result])
    cluster = None if comparisons.cluster is None else np.tile(comparisons.cluster, 2)
    numbers, row = distinct(side * m + other if m else side)
    columns: dict[str, Floats | Indices] = {"n": np.bincount(row, minlength=len(numbers))}
    for key, hits in _RESULTS.items():
        values = np.isin(result, hits).astype(np.float64)
        shares = clustered_proportions(row, cluster, values, len(numbers))
        columns |= {key: shares.value, f"{key}_low": shares.low, f"{key}_high": shares.high}
    return numbers, pd.DataFrame(columns)


def with_missing(results: pd.DataFrame, names: Sequence[Any], expected: int) -> pd.DataFrame:
    """Rows of ``names``, with the number of comparisons that are ``missing`` of the expected."""
    frame = results.reindex(list(names))
    n = frame["n"].fillna(0)
    return frame.assign(n=n, missing=(expected - n).clip(lower=0))

"""Published rate tables become the comparisons they summarise, or an error that says where."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import ConfigError, DataError
from botchat.importers import tables
from botchat.ratings import rate_table
from botchat.ratings.comparisons import Comparisons
from tests.rows import rows

HEADER = "model_a,model_b,win_rate,win_or_tie_rate\n"

counts = st.integers(1, 1000).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))
)


def comparisons_from_rates(text: str, per_pair: int, where: str) -> Comparisons:
    """Comparisons of a table's text."""
    table = tables.rows(text.encode(), where)
    return rate_table.comparisons_from_rates(table, per_pair, where)


def tally(comparisons: Comparisons) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Wins, ties and losses of each pair's first model."""
    seen: dict[tuple[str, str], Counter[float]] = {}
    names = comparisons.models
    for i, j, result in zip(comparisons.first, comparisons.second, comparisons.result, strict=True):
        seen.setdefault((names[i], names[j]), Counter())[float(result)] += 1
    return {pair: (count[1.0], count[0.5], count[0.0]) for pair, count in seen.items()}


def test_rates_become_wins_ties_and_losses():
    """Shares times the comparisons a pair, rounded, are its wins and its wins and ties."""
    table = comparisons_from_rates(HEADER + "x,y,0.25,0.60\nx,z,0,1\n", 20, "t.csv")
    assert table.models == ("x", "y", "z")
    assert table.cluster is None
    assert tally(table) == {("x", "y"): (5, 7, 8), ("x", "z"): (0, 20, 0)}


def test_both_orientations_are_one_pair():
    """A pair listed both ways is the same comparisons, not twice as many."""
    once = tally(comparisons_from_rates(HEADER + "x,y,0.25,0.6\n", 20, "t.csv"))
    mirrored = tally(comparisons_from_rates(HEADER + "y,x,0.4,0.75\n", 20, "t.csv"))
    twice = tally(comparisons_from_rates(HEADER + "x,y,0.25,0.6\ny,x,0.4,0.75\n", 20, "t.csv"))
    assert once == mirrored == twice == {("x", "y"): (5, 7, 8)}


def test_orientations_that_differ_by_rounding_are_averaged():
    """Two rows that rounding alone sets apart are both used."""
    table = comparisons_from_rates(HEADER + "x,y,0.25,0.60\ny,x,0.40,0.76\n", 200, "t.csv")
    assert tally(table) == {("x", "y"): (49, 71, 80)}


@given(counts, st.booleans(), st.booleans(), st.sampled_from((2, 3, 6)))
def test_rounding_is_all_that_is_lost(count, percent, both, digits):
    """From a rounded table, wins and ties come back to within what was rounded away."""
    n, one, other = count
    wins, wins_or_ties = sorted((one, other))
    unit = 100 if percent else 1
    shown = [
        f"{rate * unit:.{digits - (2 if percent else 0)}f}"
        for rate in (wins / n, wins_or_ties / n, 1 - wins_or_ties / n, 1 - wins / n)
    ]
    text = (
        HEADER + f"x,y,{shown[0]},{shown[1]}\n" + (f"y,x,{shown[2]},{shown[3]}\n" if both else "")
    )
    # Enough of another pair for the table to show whether it is in percent.
    text += "".join(f"x,{model},{unit},{unit}\n" for model in "abc")
    won, tied, _ = tally(comparisons_from_rates(text, n, "t.csv"))["x", "y"]
    lost = n * 10.0**-digits / 2 + 0.5 + 1e-6
    assert abs(won - wins) <= lost
    assert abs(won + tied - wins_or_ties) <= lost


def test_order_of_rows_does_not_matter():
    """A shuffled table gives the same comparisons in the same order."""
    lines = ["b,a,0.2,0.5\n", "c,a,0.1,0.9\n", "a,b,0.5,0.8\n", "c,b,0.3,0.3\n"]
    plain = comparisons_from_rates(HEADER + "".join(lines), 10, "t.csv")
    random.Random(1).shuffle(lines)
    other = comparisons_from_rates(HEADER + "".join(lines), 10, "t.csv")
    assert np.array_equal(plain.first, other.first)
    assert np.array_equal(plain.result, other.result)


def test_spreadsheet_habits_are_read():
    """A byte order mark, CRLF, blanks, quotes, blank lines and further columns do no harm."""
    text = (
        "\ufeffmodel_a, model_b,note,win_rate,win_or_tie_rate\r\n\r\n"
        '"x, large",y ,hm, 25,60.0\r\ny,"x, large",,40,75\r\n'
    )
    assert tally(comparisons_from_rates(text, 20, "t.csv")) == {("x, large", "y"): (5, 7, 8)}


@pytest.mark.parametrize(
    ("text", "said"),
    rows("errors_name_line_value_and_remedy"),
)
def test_errors_name_line_value_and_remedy(text, said):
    """A table that cannot be read is refused in one line with file, line and value."""
    with pytest.raises(DataError, match=said) as error:
        comparisons_from_rates(text, 444, "t.csv")
    assert "\n" not in str(error.value)


def test_comparisons_a_pair():
    """A rate table needs at least one comparison a pair."""
    with pytest.raises(ConfigError, match="0 comparisons a pair"):
        comparisons_from_rates(HEADER + "x,y,0.5,0.5\n", 0, "t.csv")


@pytest.mark.parametrize("row", [("x", "x", 1.0), ("x", "y", 0.7), ("x", "y", None)])
def test_comparisons_refuse_what_is_none(row):
    """A comparison of a model with itself, or without a result 1, ½ or 0, is refused."""
    with pytest.raises(DataError, match="give two different models"):
        Comparisons.of([("x", "y", 1.0), row])


def test_seeds_become_clusters():
    """Comparisons on one seed share a cluster; models are sorted by name."""
    rows = [("y", "x", 1.0), ("x", "z", 0.5), ("z", "y", 0.0)]
    comparisons = Comparisons.of(rows, seeds=["MT-2", "MT-1", "MT-2"])
    assert comparisons.models == ("x", "y", "z")
    assert comparisons.first.tolist() == [1, 0, 2]
    assert comparisons.cluster is not None
    assert comparisons.cluster[0] == comparisons.cluster[2] != comparisons.cluster[1]


def test_columns_that_do_not_fit():
    """Columns of other lengths, unknown models and unknown results are programming errors."""
    first, second, result = np.array([0]), np.array([1]), np.array([1.0])
    for wrong in (
        (("a", "b"), first, second, np.array([1.0, 0.0])),
        (("a",), first, second, result),
        (("a", "b"), first, first, result),
        (("a", "b"), first, second, np.array([0.7])),
        (("a", "b"), first, second, result, np.array([-1])),
    ):
        with pytest.raises(ValueError, match=r"comparison|result|cluster"):
            Comparisons(*wrong)

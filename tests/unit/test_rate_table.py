"""Published rate tables become the comparisons they summarise, or an error with the row."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import ConfigError, DataError
from botchat.importers import tables
from botchat.ratings.comparisons import Comparisons, comparisons_from_rates
from tests.rows import cases, rows

HEADER = "model_a,model_b,win_rate,win_or_tie_rate\n"

COUNTS = st.integers(1, 1000).flatmap(
    lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(0, n))
)


def comparisons_of(text: str, per_pair: int) -> Comparisons:
    """Comparisons of a table's text."""
    return comparisons_from_rates(tables.rows(text.encode(), "t.csv"), per_pair, "t.csv")


def tally(text: str, per_pair: int) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Wins, ties and losses of each pair's first model."""
    comparisons = comparisons_of(text, per_pair)
    counts: dict[tuple[str, str], Counter[float]] = {}
    names = comparisons.models
    for i, j, result in zip(comparisons.first, comparisons.second, comparisons.result, strict=True):
        counts.setdefault((names[i], names[j]), Counter())[float(result)] += 1
    return {pair: (count[1.0], count[0.5], count[0.0]) for pair, count in counts.items()}


@pytest.mark.parametrize(("lines", "per_pair", "expected"), cases("rates_by_hand", 3))
def test_rates_become_wins_ties_and_losses(lines, per_pair, expected):
    """Shares times the comparisons a pair, rounded; a pair listed both ways counts once."""
    counts = tally(HEADER + lines, per_pair)
    assert [[*pair, *of_pair] for pair, of_pair in counts.items()] == expected
    assert comparisons_of(HEADER + lines, per_pair).cluster is None


@given(COUNTS, st.booleans(), st.booleans(), st.sampled_from((2, 3, 6)))
def test_rounding_is_all_that_is_lost(count, percent, both, digits):
    """From a rounded table, wins and ties come back to within what was rounded away."""
    n, *pair = count
    wins, wins_or_ties = sorted(pair)
    unit = 100 if percent else 1
    rates = [
        f"{rate * unit:.{digits - (2 if percent else 0)}f}"
        for rate in (wins / n, wins_or_ties / n, 1 - wins_or_ties / n, 1 - wins / n)
    ]
    text = f"{HEADER}x,y,{rates[0]},{rates[1]}\n"
    text += f"y,x,{rates[2]},{rates[3]}\n" if both else ""
    # Enough of another pair for the table to show whether it is in percent.
    text += "".join(f"x,{model},{unit},{unit}\n" for model in "abc")
    won, tied, _ = tally(text, n)["x", "y"]
    lost = n * 10.0**-digits / 2 + 0.5 + 1e-6
    assert abs(won - wins) <= lost
    assert abs(won + tied - wins_or_ties) <= lost


def test_spreadsheet_habits_are_read():
    """A byte order mark, CRLF, blanks, quotes, blank lines and further columns do no harm."""
    text = (
        "\ufeffmodel_a, model_b,note,win_rate,win_or_tie_rate\r\n\r\n"
        '"x, large",y ,hm, 25,60.0\r\ny,"x, large",,40,75\r\n'
    )
    assert tally(text, 20) == {("x, large", "y"): (5, 7, 8)}


@pytest.mark.parametrize(("text", "message"), rows("errors_name_line_value_and_remedy"))
def test_errors_name_line_value_and_remedy(text, message):
    """A table that cannot be read is refused in one line with file, line and value."""
    with pytest.raises(DataError, match=message) as error:
        comparisons_of(text, 444)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("per_pair", "message"),
    [(0, "0 comparisons a pair: give at least 1"), (10**8, "too many: give at most 10,000,000")],
)
def test_comparisons_a_pair_are_within_reason(per_pair, message):
    """At least one, and no more than fit the memory."""
    with pytest.raises(ConfigError, match=message):
        comparisons_of(HEADER + "x,y,0.5,0.5\n", per_pair)


@pytest.mark.parametrize("row", [("x", "x", 1.0), ("x", "y", 0.7), ("x", "y", None)])
def test_comparisons_refuse_what_is_none(row):
    """A comparison of a model with itself, or without a result 1, ½ or 0, is refused."""
    with pytest.raises(DataError, match="give two different models"):
        Comparisons.of([("x", "y", 1.0), row])

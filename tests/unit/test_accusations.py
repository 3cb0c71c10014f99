"""UniEval against who wrote what: detection, index, false alarms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import DataError
from botchat.measures.agreement import detection
from botchat.records import HUMAN, Judgment


def judgment(seed, contestant, verdict, judge="j"):
    """One UniEval judgment."""
    return Judgment("unieval", seed, (contestant,), judge, verdict, "", 8, "d", "s")


def first_ai(made):
    """People write all of theirs, models all but the ChatSEED."""
    return None if made.contestants == (HUMAN,) else 3


def test_every_rate_of_a_small_example_by_hand():
    """Unreadable verdicts count for nothing; an accusation of the ChatSEED is no exact index."""
    said = ["3", "3", "5", "2", "No", None]
    rows = [judgment(f"s{n}", "m", verdict) for n, verdict in enumerate(said)]
    rows += [judgment(f"s{n}", HUMAN, v) for n, v in enumerate(["No", "4", "No", None])]
    found, _ = detection(rows, first_ai)
    row = found["j"]
    assert row["machines_caught"] == pytest.approx(4 / 5)
    assert row["exact_index_rate"] == pytest.approx(2 / 5)
    assert row["people_accused"] == pytest.approx(1 / 3)
    assert row["machines_caught_low"] <= 4 / 5 <= row["machines_caught_high"]


def test_two_judges_are_compared_where_both_can_be_read():
    """The difference is paired: the dialogue that only one could judge is left out."""
    a = [
        judgment("s1", "m", "3", "a"),
        judgment("s2", "m", "No", "a"),
        judgment("s3", "m", "3", "a"),
    ]
    b = [
        judgment("s1", "m", "No", "b"),
        judgment("s2", "m", "No", "b"),
        judgment("s3", "m", None, "b"),
    ]
    _, pairs = detection([*a, *b], first_ai)
    assert list(pairs) == [("a", "b")]
    assert pairs["a", "b"]["machines_caught_difference"] == pytest.approx(1 / 2)
    assert pairs["a", "b"]["people_accused_difference"] is None


@given(st.lists(st.sampled_from(["No", "2", "3", "7", None]), min_size=1, max_size=12))
def test_the_exact_index_is_never_found_more_often_than_the_ai(said):
    """Whatever a judge says."""
    rows = [judgment(f"s{n}", "m", verdict) for n, verdict in enumerate(said)]
    (row,) = detection(rows, first_ai)[0].values()
    readable = [verdict for verdict in said if verdict is not None]
    if not readable:
        assert set(row.values()) == {None}
    else:
        assert row["exact_index_rate"] <= row["machines_caught"]
        assert row["machines_caught"] == pytest.approx(
            sum(verdict != "No" for verdict in readable) / len(readable)
        )


def test_a_verdict_of_another_protocol_is_refused():
    """One line with the judge, the seed and the value."""
    with pytest.raises(DataError, match="'both' of j on seed s1"):
        detection([judgment("s1", "m", "both")], first_ai)

"""Which way roles pull: counted from transcripts, turned with the votes, told in words."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.judges.talk import SWAPPED
from botchat.judges.voting import mirrored
from botchat.papers.polarity import AGAINST, UNCLEAR, WITH, lines, polarity
from botchat.records import HUMAN, Remark
from tests.boards import judgment

BOT = "bot:verbose"
VOTES = st.sampled_from(["1", "2", "both", "neither", None])


def judged(votes, verdict="1"):
    """A judgment for each (what A says first, then), the bot shown first, then second."""
    for n, (first, later) in enumerate(votes):
        shown = (BOT, HUMAN) if n % 2 == 0 else (HUMAN, BOT)
        talk = (
            Remark("A", "x", "", "ok", first),
            Remark("Feedback", "mind the time", "", "ok"),
            Remark("A", "y", "", "ok", later),
            Remark(f"A{SWAPPED}", "z", "", "ok", mirrored(first)),
        )
        one = judgment("probe/polarity", f"s{n // 2}", shown, verdict, 4)
        yield msgspec.structs.replace(one, judge="p", transcript=talk)


def counted(votes, verdict="1"):
    """The rows by name."""
    made = polarity("p", list(judged(votes, verdict)), "sig")
    return {row["who"]: row for row in made.records}, list(lines(made))


@settings(max_examples=40)
@given(votes=st.lists(st.tuples(VOTES, VOTES), min_size=1, max_size=30), verdict=VOTES)
def test_what_is_counted_is_what_was_said_first(votes, verdict):
    """Twice where the case was shown in the other order too; naming the other turns the pull."""
    rows, said = counted(votes, verdict)
    assert list(rows) == ["p", "A"]
    first = [one for one, _ in votes]
    assert rows["A"]["votes"] == 2 * sum(one is not None for one in first)
    assert rows["A"]["decided"] == 2 * sum(one in ("1", "2") for one in first)
    for row in rows.values():
        assert row["machine"] + row["person"] == row["decided"] <= row["votes"]
        assert row["pull"] in (WITH, AGAINST, UNCLEAR)
        if row["decided"]:
            assert row["named"] == pytest.approx(row["machine"] / row["decided"], abs=1e-4)
            assert row["named_low"] <= row["named"] <= row["named_high"]
    turned, _ = counted([(mirrored(one), two) for one, two in votes], mirrored(verdict))
    opposite = {WITH: AGAINST, AGAINST: WITH, UNCLEAR: UNCLEAR}
    assert [row["pull"] for row in turned.values()] == [
        opposite[row["pull"]] for row in rows.values()
    ]
    assert len(said) >= 1


def test_one_dialogue_is_never_enough():
    """Two votes about one ChatSEED, however clear, say nothing yet; none says nothing at all."""
    rows, said = counted([("1", "1"), ("2", "2")])
    assert (rows["A"]["machine"], rows["A"]["pull"]) == (4, UNCLEAR)
    assert "which way A pulls is not clear from 4 votes" in said
    rows, _ = counted([("both", None)], None)
    assert (rows["A"]["named"], rows["A"]["pull"], rows["p"]["votes"]) == (None, UNCLEAR, 0)


def test_a_single_judge_is_one_row():
    """Also where its reply could not be read and stands in the record as what it said."""
    one = next(judged([("1", "1")], None))
    talk = (Remark("p", "I would rather not say.", ""),)
    made = polarity("p", [msgspec.structs.replace(one, transcript=talk)], "sig")
    assert [row["who"] for row in made.records] == ["p"]
    assert made.signature == "sig"

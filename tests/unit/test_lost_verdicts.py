"""Verdicts that were withdrawn, and those that used to be lost one way: by form and direction.

`replies_lost.jsonl` was written before the reader was mended, the two others after it, one after
the other.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from botchat import languages
from botchat.errors import DataError
from botchat.judges.voting import aggregate
from botchat.metrics.annotations import NOT_SAID, accused_index
from botchat.papers.chateval import ASPECTS
from botchat.protocols.catalogue import ARENA, UNIEVAL
from botchat.protocols.items import ANSWERS
from botchat.protocols.rates import passed
from botchat.protocols.texts import MATEVAL
from botchat.records import Dialogue

DATA = Path(__file__).resolve().parents[1] / "data"
ASKED = {
    "arena": ARENA,
    "unieval": UNIEVAL,
    "answers": ANSWERS,
    "mateval": MATEVAL,
    "naturalness": ASPECTS["naturalness"],
}
MOST_MISSED = 0.03


def replies(name):
    """The table: reply, the verdict that a careful person reads in it, and its form."""
    lines = (DATA / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def direction(protocol, verdict):
    """For whom a verdict speaks."""
    if verdict is None or protocol == "naturalness":
        return "none" if verdict is None else "a number"
    if protocol == "arena":
        return {"1": "first", "2": "second"}.get(verdict, verdict)
    if protocol == "answers":
        one, two = map(float, verdict.split())
        return "equal" if one == two else "first" if one > two else "second"
    return "cleared" if verdict == "No" or set(verdict.split()) == {"0"} else "accused"


def read(each):
    """The verdict that is read, about 12 utterances."""
    spoken = ASKED[each["protocol"]].spoken(languages.built_in()[each["language"]])
    return spoken.reading(("x",) * 12).read(each["reply"])[0]


def counted(table):
    """(protocol, direction) -> how many are right, missed and wrong; and those that are not."""
    found, faults = {}, []
    for each in table:
        said = read(each)
        right = said == each["verdict"]
        how = "right" if right else "missed" if said is None else "wrong"
        where = each["protocol"], direction(each["protocol"], each["verdict"])
        found.setdefault(where, Counter())[how] += 1
        faults += [] if right else [(how, said, each)]
    return found, faults


OPPOSITE = [
    ("arena", "first", "second"),
    ("arena", "both", "neither"),
    ("unieval", "accused", "cleared"),
    ("mateval", "accused", "cleared"),
    ("answers", "first", "second"),
]


@pytest.mark.parametrize("name", ["replies_lost", "replies_fresh", "replies_third"])
def test_none_is_read_wrongly_and_hardly_any_missed_whichever_way_it_speaks(name):
    """Not one wrong; at most 3 % missed, and as many in either direction."""
    table = replies(name)
    found, faults = counted(table)
    assert [fault for fault in faults if fault[0] == "wrong"] == []
    readable = sum(each["verdict"] is not None for each in table)
    assert len(faults) <= MOST_MISSED * readable, faults
    for protocol, one, other in OPPOSITE:
        ways = [found.get((protocol, way), Counter(right=1)) for way in (one, other)]
        shares = [each["missed"] / each.total() for each in ways]
        assert abs(shares[0] - shares[1]) <= MOST_MISSED, (protocol, shares)


def said_of(verdict, n=16, turns=8):
    """Whether a generated dialogue of ``n`` utterances with this verdict passes at N."""
    return passed(Dialogue("s1", "m", ("x",) * n, 2, (), "complete", ""), verdict, turns)


def test_accusations_without_a_place_and_old_files_mean_what_they_did():
    """A failure at the end, unknown before; No, an index or none."""
    assert [said_of("Yes", turns=n) for n in (2, 3, 8, 15, 16)] == [True, None, None, None, False]
    assert said_of("Yes", n=8, turns=16) is False
    assert [accused_index(one, "x") for one in ("No", "7", "Yes")] == [0, 7, NOT_SAID]
    with pytest.raises(DataError, match="neither No, Yes nor an index"):
        accused_index("perhaps", "x")
    table = "| | Clear | True |\n|---|---|---|\n| Assistant 1 | 7 | 8 |\n| Assistant 2 | 6 | 9 |"
    assert ANSWERS.reading().read(table)[0] is None
    table = "| Assistant 1 | Assistant 2 |\n|---|---|\n| 7 | **9** |"
    assert ANSWERS.reading().read(table)[0] == "7 9"


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        ("Yes Yes 5", "Yes"),
        ("Yes 5 No", "Yes"),
        ("3 3 Yes", "3"),
        ("Yes No No", "No"),
        ("4 9 Yes", "Yes"),
        ("4 4 4 Yes No", "4"),
        ("Yes", "Yes"),
    ],
)
def test_a_panel_names_a_place_only_where_its_votes_do(votes, verdict):
    """The median, wherever the votes without a place would fall."""
    assert aggregate(votes.split(), UNIEVAL.reading(("x",) * 12).choices) == verdict

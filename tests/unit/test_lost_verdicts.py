"""Verdicts that were withdrawn, and those that used to be lost one way: by form and direction.

`replies_lost.jsonl` was written before the reader was mended, `replies_fresh.jsonl` after it.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from botchat import languages
from botchat.papers.chateval import ASPECTS
from botchat.protocols.catalogue import ARENA, UNIEVAL
from botchat.protocols.items import ANSWERS
from botchat.protocols.texts import MATEVAL

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


@pytest.mark.parametrize("name", ["replies_lost"])
def test_none_is_read_wrongly_and_hardly_any_missed_whichever_way_it_speaks(name):
    """Not one wrong; at most 3 % missed, and as many in either direction."""
    table = replies(name)
    found, faults = counted(table)
    assert [fault for fault in faults if fault[0] == "wrong"] == []
    readable = sum(each["verdict"] is not None for each in table)
    assert len(faults) <= MOST_MISSED * readable, faults
    for protocol, one, other in OPPOSITE:
        shares = [found[protocol, way]["missed"] / found[protocol, way].total() for way in (one, other)]
        assert abs(shares[0] - shares[1]) <= MOST_MISSED, (protocol, shares)


def test_the_replies_are_many_and_go_both_ways():
    """At least 200, each form of a readable one in opposite directions."""
    table = replies("replies_lost")
    assert len(table) >= 200
    assert len({each["form"] for each in table}) >= 15
    found, _ = counted(table)
    for protocol, one, other in OPPOSITE:
        assert min(found[protocol, one].total(), found[protocol, other].total()) >= 7

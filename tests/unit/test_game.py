"""What people are dealt: balanced, each seed once, the same for everybody, and blind."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.interfaces import Shown, case_digest
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL, Catalogue
from botchat.records import HUMAN, Seed, human_dialogue
from botchat.report import script_digest
from botchat.report.game import TEN, Game, build, deals, in_order, planned
from tests.boards import Made, judgment, made

MANY = made({"m": 0.4, "o": 0.7, "bot:eliza": 0.1}, 120)
JUDGES = {"the-judge": MANY.judgments, "human:bob": {"unieval": MANY.judgments["unieval"][:9]}}


def game(records: Made = MANY, plan: Any = ()) -> Game:
    """The page of some records."""
    judged = JUDGES if records is MANY else {"the-judge": records.judgments}
    return build("made-up", records.seeds, records.dialogues, judged, plan=plan)


def content(script: str) -> Any:
    """What a chunk hands over."""
    packed = re.fullmatch(r'botchat\.take\("[\w-]+","([^"]+)"\)\n', script)
    assert packed is not None
    return json.loads(zlib.decompress(base64.b64decode(packed[1])))


def about(page: str) -> dict[str, Any]:
    """What the page knows before it loads a chunk."""
    found = re.search(r'id="about">(.*?)</script>', page)
    assert found is not None
    return dict(json.loads(found[1]))


def test_a_deal_is_half_of_people_and_has_each_seed_once() -> None:
    """In all deals together too; both are cut at one line, before people say goodbye."""
    dealt = deals(UNIEVAL, MANY.seeds, MANY.dialogues)
    long = [seed for seed in MANY.seeds if len(seed.utterances) >= 6]
    assert len(dealt) == len(long) // TEN * TEN > TEN
    assert len({case.seed_id for case in dealt}) == len(dealt)
    lengths = {seed.id: len(seed.utterances) for seed in MANY.seeds}
    for first in range(0, len(dealt), TEN):
        ten = dealt[first : first + TEN]
        assert sum(case.contestants == (HUMAN,) for case in ten) == TEN // 2
    for case in dealt:
        (name,) = case.contestants
        assert 4 <= len(case.said[0]) <= lengths[case.seed_id] - 2
        assert case.said[0] == MANY.dialogues[name][case.seed_id].utterances[: len(case.said[0])]
        assert not case.exact
    # Whoever speaks, the same line is drawn for a seed.
    only = {name: by for name, by in MANY.dialogues.items() if name in (HUMAN, "m")}
    ends = {case.seed_id: len(case.said[0]) for case in dealt}
    again = deals(UNIEVAL, MANY.seeds, only)
    assert {case.seed_id: len(case.said[0]) for case in again} == ends
    assert len(set(ends.values())) > 1
    machines = Counter(case.contestants[0] for case in dealt if case.contestants != (HUMAN,))
    assert set(machines) == {"m", "o", "bot:eliza"}
    assert max(machines.values()) - min(machines.values()) <= 1


def test_people_who_talk_longer_than_any_machine_are_cut() -> None:
    """And drawn alike; such an answer is no label."""
    seeds = [Seed(f"S-{i}", tuple(f"{i} {k}" for k in range(20))) for i in range(TEN)]
    dialogues = {
        HUMAN: {seed.id: human_dialogue(seed) for seed in seeds},
        "m": {
            seed.id: msgspec.structs.replace(
                MANY.dialogues["m"]["S-1"], seed_id=seed.id, utterances=seed.utterances[:16]
            )
            for seed in seeds
        },
    }
    dealt = deals(UNIEVAL, seeds, dialogues)
    assert all(4 <= len(case.said[0]) <= 14 and not case.exact for case in dealt)


@settings(max_examples=12, deadline=None)
@given(n=st.integers(0, 30), rng_seed=st.integers(0, 99))
def test_small_sets_are_dealt_too(n: int, rng_seed: int) -> None:
    """Any number of seeds; a smaller deal is balanced; nothing is dealt twice."""
    records = made({"m": 0.5}, n, rng_seed=rng_seed)
    dealt = deals(UNIEVAL, records.seeds, records.dialogues)
    people = sum(case.contestants == (HUMAN,) for case in dealt)
    assert 2 * people == len(dealt)
    assert len({case.seed_id for case in dealt}) == len(dealt)
    assert len(dealt) < TEN or len(dealt) % TEN == 0


def test_the_order_is_everybodys() -> None:
    """A new model comes between the others and changes neither their order nor the orders shown."""
    few = made({"m": 0.4, "o": 0.7}, 30)
    more = made({"m": 0.4, "o": 0.7, "new": 0.5}, 30)
    for protocol in (UNIEVAL, ARENA.at(8), GTEVAL):
        order = [
            [
                (case.seed_id, case.contestants)
                for case in in_order(protocol, r.dialogues, {"j": r.judgments})
            ]
            for r in (few, more)
        ]
        assert [one for one in order[1] if "new" not in one[1]] == order[0]
        assert len(order[0]) >= 15
        assert order[0] != sorted(order[0])
    firsts = Counter(names[0] for _, names in order[0])
    assert min(firsts[HUMAN], len(order[0]) - firsts[HUMAN]) > 5


def test_a_pair_is_shown_in_an_order_that_was_asked_as_judges_saw_it() -> None:
    """Once, cut as they saw it; what two models said alike is one question."""
    asked = [judgment("arena-n8", "S-1", names, "1", 8) for names in (("o", "m"), ("m", "o"))]
    twin = MANY.dialogues | {"twin": MANY.dialogues["o"]}
    asked += [judgment("arena-n8", "S-1", ("m", "twin"), "1", 8)]
    cases = list(in_order(ARENA.at(8), twin, {"j": {"arena-n8": asked}}))
    assert 1 <= len(cases) <= 2
    assert len({case.key for case in cases}) == len(cases)
    only = [judgment("arena-n8", "S-1", ("o", "m"), "1", 8)]
    (case,) = in_order(ARENA.at(8), MANY.dialogues, {"j": {"arena-n8": only}})
    assert case.contestants == ("o", "m")
    said = [Shown.of(MANY.dialogues[name]["S-1"], 8) for name in ("o", "m")]
    assert list(case.said) == [one.utterances for one in said]
    assert case.key == case_digest("arena-n8", *said)


def test_a_plan_is_dealt_as_far_as_it_can_be_asked() -> None:
    """Other rows are passed over; a base name with its n will do."""
    rows = [
        {"protocol": "unieval", "seed_id": "S-2", "contestants": ["m"], "n": None},
        {"protocol": "arena", "seed_id": "S-3", "contestants": ["o", "m"], "n": 8},
        {"protocol": "arena-n16", "seed_id": "S-3", "contestants": ["m", "bot:eliza"], "n": 16},
        {"protocol": "unieval", "seed_id": "S-9999", "contestants": ["m"]},
        {"protocol": "unieval", "seed_id": "S-2", "contestants": ["m", "o"]},
        {"protocol": "none such", "seed_id": "S-2", "contestants": ["m"]},
        {},
    ]
    found = planned(rows, Catalogue(), MANY.dialogues)
    assert {(case.protocol.name, *case.contestants) for case in found} == {
        ("unieval", "m"), ("arena-n8", "o", "m"), ("arena-n16", "m", "bot:eliza"),
    }  # fmt: skip
    assert planned(rows[::-1], Catalogue(), MANY.dialogues) == found
    lists = about(game(plan=rows).page)["lists"]
    assert lists[-1] == ["plan", "", 3]


def test_nothing_tells_before_the_end() -> None:
    """No name and no verdict is in the page or in a chunk of cases, packed or not."""
    made_up = game()
    assert about(made_up.page)["lists"][0] == [
        "deals",
        "unieval",
        len(deals(UNIEVAL, MANY.seeds, MANY.dialogues)),
    ]
    blind = [content(text) for name, text in made_up.files.items() if "/game-" in name]
    told = [content(text) for name, text in made_up.files.items() if "/answers-" in name]
    assert len(blind) == len(told) > 4
    assert len(blind) + len(told) == len(made_up.files)
    said = {
        text for by in MANY.dialogues.values() for one in by.values() for text in one.utterances
    }
    for case in (case for chunk in blind for case in chunk):
        place, seed_id, key, shown = case
        assert type(place) is int
        assert re.fullmatch(r"S-\d+", seed_id)
        assert re.fullmatch(r"[0-9a-f]{16}", key)
        assert {text for one in shown for text in one} <= said
    for name in ("the-judge", "human:bob", "bot:eliza", '"human"'):
        assert name not in json.dumps(blind)
        assert name in json.dumps(told)
        assert name == '"human"' or name not in json.dumps(about(made_up.page))


def test_the_page_is_inert_and_made_alike() -> None:
    """One script, by its digest, sends to its own server alone; a set without cases has a page."""
    assert game() == game()
    page = game().page
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy is not None
    rules = policy[1].replace("&#39;", "'")
    assert rules.startswith("default-src 'none'; ")
    assert script_digest(script) in rules
    assert "unsafe-inline" not in rules.split("style-src")[0]
    assert "connect-src 'self'" in rules
    page = build("made-up", [], {HUMAN: {}}, {"rules": {}})
    assert about(page.page)["lists"] == []
    assert page.files == {}


@pytest.mark.parametrize("name", ["</script><script>alert(1)", "\u202eevil", "{{ 7 * 7 }}"])
def test_hostile_names_stay_in_their_chunk(name: str) -> None:
    """Whatever models and judges are called."""
    records = made({name: 0.4, "o": 0.5}, 30)
    page = build("made-up", records.seeds, records.dialogues, {name: records.judgments})
    assert name not in page.page
    assert all(name not in text for text in page.files.values())

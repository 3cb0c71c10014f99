"""Judges whose quality is known get the level and the sentences that they deserve."""

import random
import re
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from botchat.boards.board import Board
from botchat.boards.files import as_json
from botchat.boards.headline import headline
from botchat.boards.judge_checks import Check, Key, judge_trust, label_check, level, no_ranking
from botchat.boards.skill import SkillCases, State, alone_cases, is_misplaced, pair_cases, place
from botchat.boards.skill import second as second_word
from botchat.estimates import Estimate
from botchat.metrics.verdicts import PairVerdicts
from botchat.pipeline.leaderboard import board_result
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.protocols.protocol import preferences
from botchat.records import HUMAN, SHUFFLED, Judgment, Remark
from botchat.report import page as pages
from botchat.report.page import View
from tests.boards import judgment
from tests.judges import PROTOCOLS, USELESS, Judge, World, always
from tests.rows import rows

MODELS = {f"model-{i:02}": 0.25 + 0.06 * i for i in range(5)}
ARENA16 = ARENA.at(16)


@pytest.fixture(scope="module")
def world() -> World:
    """Seven contestants, two of them floor bots, on 25 seeds."""
    return World.of(25, {"bot:verbose": 0.0, "bot:parrot": 0.0, **MODELS})


@pytest.fixture(scope="module")
def ideal(world: World) -> Board:
    """The board of an ideal judge."""
    return world.board(world.ideal())


def check_of(key: Key, state: State, ends: list[float], protocol: str, more: Any) -> Check:
    """A check of 40 cases, of which a judge says the same in each hundred."""
    asked = {"unieval": UNIEVAL, "gteval": GTEVAL}[protocol]
    shares = {"noticed": more.get("good", 0), "blamed": more.get("bad", 0)}
    found = {key: np.arange(100) < round(100 * share) for key, share in shares.items()}
    cases = SkillCases(habit=more.get("habit", ""), **found)
    return Check(key, state, Estimate(*ends), 40, asked, cases)


@pytest.mark.parametrize(("check", "reason"), rows("what_each_check_says"))
def test_what_each_check_says(check, reason):
    """By its state, its ends and its rates."""
    assert check_of(*check).detail == reason


@pytest.mark.parametrize(("checks", "sentence"), rows("failing_checks"))
def test_the_worst_failing_check_ranks_nobody(checks, sentence):
    """What cannot be read comes first, then the lowest skill."""
    assert no_ranking([check_of(*check) for check in checks]) == sentence


@pytest.mark.parametrize(("states", "capped", "expected"), rows("levels_of_states"))
def test_the_level_is_the_worst_of_its_states(states, capped, expected):
    """Less asked never says more, and a cap saves no failing judge."""
    assert level(states, capped=capped) == expected


NOTICES_NOT = "It does not notice shuffled dialogues: "


@pytest.mark.parametrize(
    ("name", "protocols", "reason"),
    [
        ("never accuses", PROTOCOLS, "it answers No to 50 of 50, human and shuffled alike."),
        ("always accuses", (UNIEVAL,), "it answers Yes to 50 of 50, human and shuffled alike."),
        ("always tie", (GTEVAL,), "it calls 50 of 50 pairs a tie."),
        ("always first", (GTEVAL,), "it takes the first text for AI in 100 % of decided pairs."),
        ("always second", (ARENA16,), "it takes the second text for AI in 100 % of decided pairs."),
    ],
)  # fmt: skip
def test_a_judge_that_does_not_look_ranks_nobody(world, name, protocols, reason, tmp_path):
    """In no file, on no screen: rows by name, no rank, no rating, no leader; rates stay."""
    view = View.of(world.board(USELESS[name], protocols))
    assert view.trust.sentence("j").startswith(f"Judge j: do not trust. {NOTICES_NOT}{reason}")
    sentence = "No ranking: the judge does not notice shuffled dialogues."
    assert view.headline.sentence == sentence
    assert (view.headline.leader, view.headline.lead) == (None, "")
    data = as_json(view.board, view.headline, view.trust)
    printed = board_result(view, data, [], tmp_path / "index.html").lines
    assert printed[0] == data["headline"] == sentence
    names = [row["model"] for row in data["rows"]]
    assert names == sorted(names)
    tables = [data["rows"], *[each["rows"] for each in data["tables"].values()]]
    for row in [row for each in tables for row in each]:
        ratings = {key for key in row if key.startswith(("rank", "bt", "elo"))}
        assert all(row[key] is None for key in ratings)
    page = pages.files([view])["index.html"]
    assert sentence.removesuffix(".") in page
    assert 'data-key="bt' not in page


def test_an_ideal_judge_has_no_fault(ideal):
    """What it is good at, the three checks, and the bots'."""
    trust = judge_trust(ideal)
    assert trust.sentence("j") == (
        "Judge j: no fault found as a reader. It notices 100 of 100 shuffled dialogues and blames "
        "0 of 100 human ones; in pairs right in 100 %, wrong in 0 %."
    )
    data = trust.as_json
    assert (data["trust"], data["tested"], data["of"]) == ("no fault found", 5, 5)
    first = data["checks"][0]
    assert (first["key"], first["protocol"], first["value"], first["line"], first["n"]) == (
        "skill", "unieval", 1.0, 0.5, 25,
    )  # fmt: skip
    row = ideal.judge_table.frame.set_index("protocol").loc["unieval"]
    rates = ("skill", "skill_n", "true_positive_rate", "false_positive_rate", "place")
    assert [row[key] for key in rates] == [1, 25, 1, 0, pytest.approx(0.28, abs=0.3)]


@pytest.mark.parametrize(
    ("protocols", "name", "sentence"),
    [
        ((UNIEVAL, ARENA16), "ideal", "no fault found as a reader. It notices 100 of 100"),
        ((ARENA16,), "ideal", "no fault found as a reader. In pairs right in 100 %, wrong in 0 %."),
        ((ARENA16,), "always tie", "not tested. It decides 0 of 50 pairs; the test needs 20."),
        ((), "ideal", "not tested. The test is part of UniEval, GTEval and the Arena; none of them "
         "was judged."),
    ],
)  # fmt: skip
def test_what_was_asked_is_what_is_told(world, protocols, name, sentence):
    """The Arena alone is a test of its decided pairs."""
    judge = {**USELESS, "ideal": world.ideal()}[name]
    trust = judge_trust(world.board(judge, protocols))
    assert trust.sentence("j").startswith(f"Judge j: {sentence}")


def test_a_protocol_without_its_test_is_no_pass(world):
    """UniEval was tested, GTEval was judged before."""
    judged = world.judgments(world.ideal(), (UNIEVAL, GTEVAL))
    judged["gteval"] = [each for each in judged["gteval"] if SHUFFLED not in each.contestants]
    assert judge_trust(world.board_of(judged)).reasons == ["GTEval was not tested."]


@pytest.fixture(scope="module")
def untested(world: World) -> Board:
    """The board of an ideal judge that saw no shuffled dialogue, without its bots."""
    judged = {name: [each for each in judgments if SHUFFLED not in each.contestants]
              for name, judgments in world.judgments(world.ideal()).items()}  # fmt: skip
    return without_bots(world.board_of(judged))


@pytest.mark.parametrize(("test", "sentence"), rows("why_a_judge_is_not_tested"))
def test_why_a_judge_is_not_tested(untested, test, sentence):
    """And what to do."""
    n_seeds = test.pop("n_seeds", 25)
    board = replace(untested, test=untested.test._replace(**test), n_seeds=n_seeds)
    trust = judge_trust(board)
    assert trust.level == "not tested"
    assert trust.sentence("j") == f"Judge j: not tested. {sentence}"


def without_bots(board: Board) -> Board:
    """The board without its bots, whose checks need no shuffled dialogue."""
    verdicts = {name: part for name, part in board.verdicts.items() if name != "gteval"}
    return replace(board, verdicts=verdicts)


def test_rules_reads_form_only(world):
    """Its ranks stay: the demo needs them."""
    trust = judge_trust(world.board(world.ideal(), name="rules"))
    line = (
        "Judge rules: for a first look. It reads form only and cannot notice a shuffled dialogue."
    )
    assert (trust.level, trust.failed, trust.sentence("rules")) == ("not tested", False, line)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.3, 0.7, "no fault found"), (0.1, 0.6, "use with care"), (-0.2, 0.05, "do not trust"),
     (-0.1, 0.6, "no fault found")],
)  # fmt: skip
def test_labels_of_people_count_by_the_interval(ideal, low, high, expected):
    """People agree only in part, so the line is lower; what is not known says nothing."""
    labelled = label_check(UNIEVAL, Estimate((low + high) / 2, low, high), 40)
    assert judge_trust(ideal, labelled).level == expected


def test_a_judge_of_itself_is_used_with_care(ideal):
    """Whatever it notices."""
    trust = judge_trust(replace(ideal, self_judged=("model-00",)))
    assert (trust.level, trust.reasons) == (
        "use with care", ["It judges itself: model-00 is a contestant."],
    )  # fmt: skip


def test_who_takes_people_for_ai_is_used_with_care(world):
    """Though it reads well: the leader looks more human to it than people do."""
    ideal = world.ideal()

    def judge(protocol, dialogues):
        names = [dialogue.contestant for dialogue in dialogues]
        if HUMAN in names and "model-04" in names and protocol == GTEVAL:
            return str(1 + names.index(HUMAN))
        return ideal(protocol, dialogues)

    board = world.board(judge)
    trust = judge_trust(board)
    assert (trust.level, trust.reversed) == ("use with care", "model-04")
    line = "It takes people for AI more often than model-04: 100 % against 0 %."
    assert trust.sentence("j") == f"Judge j: use with care. {line}"
    lead = "The judge takes people for AI more often than model-04 (100 % : 0 %)."
    assert headline(board, trust).lead == lead


@pytest.mark.parametrize(
    ("right", "tie", "n", "words"),
    [(0.8, 0.1, 60, "picks out"), (0.1, 0.8, 200, "alike"), (0.1, 0.2, 60, "reversed"),
     (0.4, 0.3, 25, "open"), (1.0, 0.0, 19, "too few")],
)  # fmt: skip
def test_how_the_judge_tells_the_leader_from_people(right, tie, n, words):
    """Each in both orders: right, tied or wrong."""
    rng = random.Random(1)
    values = np.array([1.0 if (x := rng.random()) < right else 0.0 if x < right + tie else -1.0
                       for _ in range(2 * n)])  # fmt: skip
    cases = SkillCases(values, [f"s{i // 2}" for i in range(2 * n)])
    assert second_word(cases, 1) == words


def test_cases_of_skill_by_hand():
    """Peirce's score: noticed less blamed, unreadable as neither; of pairs right less wrong."""
    said = {"a": ("No", "3"), "b": ("No", "No"), "c": ("4", "4"), "d": (None, "3")}
    judged = [judgment("unieval", seed, (name,), verdict, 6)
              for seed, verdicts in said.items()
              for name, verdict in zip((HUMAN, SHUFFLED), verdicts, strict=True)]  # fmt: skip
    cases = alone_cases(PairVerdicts.of(preferences(judged, UNIEVAL)), {})
    assert cases.values.tolist() == [1, 0, 0, 0.5]
    assert (cases.good, cases.bad, cases.skill.value) == (0.75, 0.25, 0.375)
    pairs = [judgment("gteval", "a", order, verdict, 6)
             for order, verdict in (((SHUFFLED, HUMAN), "1"), ((HUMAN, SHUFFLED), "1"),
                                    ((SHUFFLED, "m"), "1"))]  # fmt: skip
    both = pair_cases(PairVerdicts.of_judgments(pairs, GTEVAL.answer), SHUFFLED, {})
    assert sorted(both.values.tolist()) == [-1, 1]


@pytest.mark.parametrize(
    ("shift", "share", "poor"), [(1, 1.0, False), (2, 1.0, False), (3, 0.0, True), (0, 0.0, True)]
)
def test_the_index_of_a_shuffled_dialogue(shift, share, poor):
    """Its first or second new utterance: k + 1 or k + 2."""
    judged = [judgment("unieval", f"s{k}", (SHUFFLED,), str(k // 2 + shift), k)
              for k in range(4, 44)]  # fmt: skip
    assert place(judged).value == share
    assert is_misplaced(place(judged)) == poor
    assert not place(judged[:19]).is_known


def test_rates_before_the_last_are_grey_where_the_index_is_wrong(ideal):
    """This judge names the third utterance or the fourth, whatever it is shown."""
    view = View.of(ideal)
    wrong = round(100 - 100 * ideal.judge_facts["unieval"].cases.placed.value)
    line = f"Its index is wrong in {wrong} of 100 shuffled dialogues: read passes 16 only."
    assert view.remarks[0] == line
    heads = re.findall(r'class="([^"]*)" data-key="success_n(\d+)"', page_of(view))
    assert {n: "grey" in room for room, n in heads} == {
        "16": False, "12": True, "8": True, "4": True,
    }  # fmt: skip


def page_of(view: View) -> str:
    """The page of a board."""
    return str(pages.files([view])["index.html"])


CUT = "Its replies were cut or empty"
VOTES = (Remark("a", "1"), Remark("b", "so far", outcome="truncated"))
"""Of a panel whose outcome is ok: one vote was unreadable, the other cut."""


def missing(world: World, share: dict[str, int]) -> Board:
    """An ideal judge's verdicts, and why how many of each ten are missing."""
    reasons = [reason for reason, n in share.items() for _ in range(n)]
    reasons += [""] * (10 - len(reasons))
    judged = world.judgments(world.ideal())
    for judgments in judged.values():
        for i, each in enumerate(judgments):
            judgments[i] = without(each, reasons[i % 10])
    return world.board_of(judged)


def without(each: Judgment, reason: str) -> Judgment:
    """A judgment without its verdict."""
    if reason == "panel":
        return msgspec.structs.replace(each, verdict=None, transcript=VOTES)
    if reason:
        return msgspec.structs.replace(each, verdict=None, outcome=reason)  # type: ignore[arg-type]
    return each


@pytest.mark.parametrize(("share", "failed", "cut"), rows("what_cannot_be_read_ranks_nobody"))
def test_what_cannot_be_read_ranks_nobody(world, share, failed, cut):
    """And where replies had no room it says what to set."""
    trust = judge_trust(missing(world, share))
    assert trust.failed == failed
    assert (CUT in " ".join(trust.reasons)) == cut
    n = sum(share.values())
    if n == 10:
        assert trust.reasons[0] == "None of its verdicts can be read."
    elif failed:
        assert trust.reasons[0] == f"{10 * n} % of its verdicts cannot be read."


def test_an_own_criterion_that_cannot_be_read_takes_no_ranking_away(world):
    """What its prompt does to replies is no fault of a judge that ranks by the paper's."""
    board = world.board(world.ideal(), [UNIEVAL])
    facts = board.judge_facts["unieval"]
    rates = {**facts.rates, "unreadable_rate": Estimate(1.0, 0.9, 1.0)}
    part = board.verdicts["unieval"]
    own = replace(part, protocol=replace(part.protocol, name="own", leads=False))
    judge_facts = {**board.judge_facts, "own": facts._replace(rates=rates)}
    board = replace(board, verdicts={**board.verdicts, "own": own}, judge_facts=judge_facts)
    assert not judge_trust(board).failed


def test_nobody_can_read_it(world):
    """Also on a board that is too small for anything else; of no verdict nothing is said."""
    assert judge_trust(world.board_of({})).level == "not tested"
    small = World.of(5, MODELS)
    nothing: Judge = always(None, None)  # type: ignore[arg-type]
    assert judge_trust(small.board(nothing)).reasons == ["None of its verdicts can be read."]

"""Judges whose quality is known get the trust level that they deserve."""

from __future__ import annotations

import re

import msgspec
import pytest

from botchat.boards import judge_checks
from botchat.boards.board import Board
from botchat.boards.files import as_json
from botchat.boards.judge_checks import NO_ANSWER, RULES, Check, JudgeTrust, judge_trust
from botchat.estimates import UNKNOWN, Estimate
from botchat.pipeline.leaderboard import board_result
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.records import Remark
from botchat.report import page as pages
from botchat.report.page import View
from tests.judges import USELESS, World, always
from tests.rows import rows

MODELS = {f"model-{i:02}": 0.25 + 0.06 * i for i in range(5)}


@pytest.fixture(scope="module")
def world() -> World:
    """Seven contestants, two of them floor bots, on 25 seeds."""
    return World.of(25, {"bot:verbose": 0.0, "bot:parrot": 0.0, **MODELS})


@pytest.fixture(scope="module")
def ideal(world: World) -> Board:
    """The board of an ideal judge."""
    return world.board(world.ideal())


def states(trust: JudgeTrust) -> dict[str, str]:
    """Check -> its state."""
    return {check.key: check.state for check in trust.checks}


def check(key: str, low: float, high: float) -> Check:
    """The check of a number with this interval."""
    middle = (low + high) / 2
    return judge_checks._check(key, Estimate(middle, low, high))


@pytest.mark.parametrize(
    ("key", "passes", "warns", "fails", "finding"),
    rows("each_rule_by_its_whole_interval"),
)  # fmt: skip
def test_each_rule_by_its_whole_interval(key, passes, warns, fails, finding):
    """It fails or passes if the whole interval is beyond the line, and warns between."""
    checks = [check(key, *ends) for ends in (passes, warns, fails)]
    assert [c.state for c in checks] == ["passes", "warns", "fails"]
    assert checks[2].reason == finding
    assert JudgeTrust("do not trust", (), checks).fault == RULES[key].fault
    text = finding.removesuffix(".").partition(" (")[0].removeprefix("It ")
    line = JudgeTrust("do not trust", (), checks[2:]).sentence("j" * 60)
    assert line == f"Judge {'j' * 39}…: do not trust. It {text}."
    assert judge_checks._check(key, UNKNOWN).state == "unknown"


@pytest.mark.parametrize(
    ("name", "failing"),
    [
        ("never accuses", {"true_positive_rate_bots", "ties"}),
        ("always accuses", {"false_positive_rate", "ties"}),
        ("coin", {"false_positive_rate", "consistency"}),
        ("always first", {"false_positive_rate", "consistency", "first_preferred"}),
        ("always second", {"true_positive_rate_bots", "consistency", "first_preferred"}),
        ("always tie", {"true_positive_rate_bots", "ties"}),
    ],
)
def test_a_useless_judge_is_not_trusted(world, name, failing):
    """Each of its faults is found, in any protocol that shows it."""
    trust = judge_trust(world.board(USELESS[name]))
    assert trust.level == "do not trust"
    assert {key for key, state in states(trust).items() if state == "fails"} == failing
    fails = [check.reason for check in trust.checks if check.state == "fails"]
    assert trust.reasons[: len(failing)] == fails
    assert states(trust)["model_picked"] == "warns"  # it never decides, or as a coin


def test_an_ideal_judge_is_trusted(ideal):
    """With what passed as the reasons."""
    trust = judge_trust(ideal)
    assert set(states(trust).values()) == {"passes", "unknown"}
    assert (trust.level, trust.fault, trust.sentence("j")) == ("trust", "", "Judge j: trust.")
    assert trust.reasons[0] == "It calls 0 % of human dialogues AI (0–13)."
    rate = trust.as_json["checks"][0]
    assert (rate["name"], rate["value"], rate["line"]) == (
        "Calls few human dialogues AI",
        0.0,
        0.25,
    )


@pytest.mark.parametrize(
    ("low", "high", "level"),
    [(0.4, 0.7, "trust"), (0.1, 0.9, "use with care"), (-0.2, 0.05, "do not trust")],
)
def test_human_labels_count_by_the_interval_of_kappa(ideal, low, high, level):
    """Never by kappa itself."""
    kappa = Estimate((low + high) / 2, low, high)
    assert judge_trust(ideal, kappa).level == level


def test_ties_beside_a_human_are_a_warning(world):
    """A judge that picks out the model where it decides, and hardly ever decides."""
    ideal = world.ideal()

    def judge(protocol, dialogues):
        if protocol != GTEVAL or dialogues[0].contestant == "bot:parrot":
            return ideal(protocol, dialogues)
        return "both"

    trust = judge_trust(world.board(judge))
    assert trust.level == "use with care"
    assert trust.reasons == ["It calls 75 % of pairs with a human dialogue a tie."]
    line = "Judge j: use with care. It calls 75 % of pairs with a human dialogue a tie."
    assert trust.sentence("j") == line


@pytest.mark.parametrize(
    ("protocols", "level", "unknown"),
    [
        ((UNIEVAL,), "trust", {"model_picked", "consistency", "first_preferred", "ties"}),
        ((ARENA.at(16),), "not tested",
         {"false_positive_rate", "true_positive_rate", "model_picked"}),
        ((GTEVAL,), "trust", {"false_positive_rate", "true_positive_rate"}),
        ((UNIEVAL, GTEVAL), "trust", set()),
    ],
)  # fmt: skip
def test_one_protocol_alone(world, protocols, level, unknown):
    """What was not asked is unknown; a judge without a known answer is not tested."""
    trust = judge_trust(world.board(world.ideal(), protocols))
    assert trust.level == level
    assert {key for key, state in states(trust).items() if state == "unknown"} == {
        "label_kappa",
        *unknown,
    }
    assert judge_trust(world.board(USELESS["never accuses"], protocols)).level == "do not trust"


def test_a_judge_that_nobody_can_read_is_not_usable(world):
    """None of its verdicts; where nothing was asked it is not tested."""
    trust = judge_trust(world.board(always(None, None)))  # type: ignore[arg-type]
    assert (trust.level, trust.reasons) == ("not usable", ["None of its verdicts can be read."])
    assert judge_trust(world.board_of({})).level == "not tested"


CUT = "its replies were cut or empty"
VOTES = (Remark("a", "1"), Remark("b", "so far", outcome="truncated"))
"""Of a panel whose outcome is ok: one vote was unreadable, the other cut."""


def missing(world, share):
    """An ideal judge's verdicts, and why how many of each ten are missing."""
    reasons = [reason for reason, n in share.items() for _ in range(n)]
    reasons += [None] * (10 - len(reasons))
    judged = world.judgments(world.ideal())
    for judgments in judged.values():
        for i, judgment in enumerate(judgments):
            reason = reasons[i % 10]
            if reason == "panel":
                judgments[i] = msgspec.structs.replace(judgment, verdict=None, transcript=VOTES)
            elif reason:
                judgments[i] = msgspec.structs.replace(judgment, verdict=None, outcome=reason)
    return world.board_of(judged)


@pytest.mark.parametrize(
    ("share", "level"),
    [
        ({}, "trust"),
        ({"empty": 1}, "trust"),
        ({"empty": 4}, NO_ANSWER),
        ({"truncated": 4}, NO_ANSWER),
        ({"panel": 4}, NO_ANSWER),
        ({"ok": 4}, "do not trust"),
        ({"filtered": 4}, "do not trust"),
        ({"empty": 2, "truncated": 1, "ok": 2}, NO_ANSWER),
        ({"empty": 2, "ok": 3}, "do not trust"),
        ({"empty": 2, "refused": 2}, "do not trust"),
        ({"empty": 10}, NO_ANSWER),
        ({"panel": 10}, NO_ANSWER),
        ({"empty": 6, "ok": 4}, NO_ANSWER),
        ({"empty": 4, "ok": 6}, "not usable"),
        ({"ok": 10}, "not usable"),
    ],
)
def test_replies_without_room_are_no_fault_of_the_judge(world, share, level, tmp_path):
    """On terminal, page and in json: what is missing, why, and what to set; no check, no rank."""
    view = View.of(missing(world, share))
    assert view.trust.level == level
    data = as_json(view.board, view.headline, view.trust)
    printed = board_result(view, data, [], tmp_path / "index.html").lines
    page = pages.files([view])["index.html"]
    assert data["judge"]["trust"] == level
    assert any(line.startswith(f"Judge j: {level}.") for line in printed)
    assert f"Judge <bdi>j</bdi>: {level}" in page
    is_cut = level == NO_ANSWER
    said = [" ".join(data["judge"]["reasons"]), "\n".join(printed), page]
    for text in said:
        assert (CUT in text) == is_cut
        assert ("Set a larger max_tokens in its entry, or reasoning_tokens" in text) == is_cut
    if is_cut:
        assert {check["state"] for check in data["judge"]["checks"]} == {"unknown"}
        assert printed[0] == data["headline"] == f"No ranking: the judge {NO_ANSWER}."
        assert "do not trust" not in page.lower()
        assert "stronger model" not in page
        assert not re.search(r"calls \d+ %", "".join(said))


def test_a_protocol_that_was_answered_is_checked_all_the_same(world):
    """Its fault decides; that others had no room is told beside it."""
    judged = world.judgments(USELESS["always accuses"], [UNIEVAL])
    judged |= {
        name: [msgspec.structs.replace(each, verdict=None, outcome="empty") for each in judgments]
        for name, judgments in world.judgments(world.ideal(), [ARENA.at(16), GTEVAL]).items()
    }
    trust = judge_trust(world.board_of(judged))
    assert trust.level == "do not trust"
    n = len(judged["arena-n16"]) + len(judged["gteval"])
    assert trust.reasons[0].startswith("It calls 100 % of human dialogues AI")
    assert trust.reasons[1] == f"{n:,} of {n:,} verdicts in arena-n16, gteval are missing: {CUT}."
    kept = {name: judged[name] for name in ("unieval",)}
    assert [c for c in judge_trust(world.board_of(kept)).checks if c.state == "fails"] == [
        c for c in trust.checks if c.state == "fails"
    ]


def test_without_a_bot_models_are_the_machines():
    """A judge must catch at least some."""
    small = World.of(25, MODELS)
    trust = judge_trust(small.board(small.ideal(noise=0.01)))
    assert trust.level == "trust"
    assert states(trust)["true_positive_rate"] == "passes"
    assert "true_positive_rate_bots" not in states(trust)


@pytest.mark.parametrize(
    ("n_seeds", "name", "reason"),
    [
        (19, "j", "It saw 19 human dialogues; 20 are needed to say more."),
        (25, "rules", "It sees the form of a dialogue only, not its content."),
    ],
)
def test_what_no_check_can_see_is_used_with_care(n_seeds, name, reason):
    """Too few human dialogues, or a judge that reads no content, though all checks pass."""
    small = World.of(n_seeds, {"bot:parrot": 0.0, **MODELS})
    trust = judge_trust(small.board(small.ideal(), name=name))
    assert (trust.level, trust.reasons) == ("use with care", [reason])

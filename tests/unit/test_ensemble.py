"""Agents that are asked once each and never talk."""

import asyncio
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.interfaces import Decoding
from botchat.judges.debate import Agent, PanelAgents
from botchat.judges.panel import Panel, build_panel, vote_alone
from botchat.judges.single import SingleJudge, repeated_judge
from botchat.judges.voting import aggregate, swap_sides
from botchat.papers import stories
from botchat.papers.chateval import Response, aspect_case
from botchat.protocols.catalogue import ARENA, UNIEVAL
from botchat.protocols.mateval import OwnText
from botchat.protocols.reports import KINDS
from botchat.workspace.panels import PRESETS, AgentSettings, PanelSettings
from tests.rows import rows
from tests.scripted import FAILED, Scripted, accusation, arena_case, choice, unieval_case


def panel(*models, both_orders=False, evidence=False):
    """An ensemble of one agent for each model, named A, B, … with a role each."""
    agents = [
        Agent("ABC"[i], f"You are {'ABC'[i]}.", model, Decoding()) for i, model in enumerate(models)
    ]
    talking = partial(
        vote_alone, PanelSettings(strategy="ensemble", evidence=evidence), PanelAgents(agents)
    )
    return Panel("p", talking, 1, "00000000", both_orders=both_orders)


def rule(judge, case):
    """Its answer."""
    return asyncio.run(judge.answer(case))


def test_every_agent_is_asked_the_question_and_its_role_once():
    """Nothing of what the others say; three agents of one model have three calls in flight."""
    one, two = Scripted(choice("1")), Scripted(choice("1"))
    case = arena_case()
    answer = rule(panel(one, two), case)
    assert one.prompts == [f"{case.prompt}\n\nYou are A."]
    assert two.prompts == [f"{case.prompt}\n\nYou are B."]
    assert answer.verdict == "1"
    assert [turn.speaker for turn in answer.transcript] == ["A", "B"]
    assert answer.calls == ("scripted-0", "scripted-0")
    model = Scripted(choice("2"))
    rule(panel(model, model, model), arena_case())
    assert model.most_in_flight == 3


def test_an_agent_without_a_role_is_asked_as_the_single_judge_is():
    """So both share one reply in the ledger; a single judge keeps the digest it had."""
    single, member = Scripted(choice("1")), Scripted(choice("1"))
    rule(SingleJudge("single", single, Decoding()), arena_case())
    settings = PanelSettings(strategy="ensemble", agents=(AgentSettings(),), max_tokens=None)
    rule(build_panel("p", settings, {"m": member}.__getitem__, "m"), arena_case())
    assert (single.messages, single.samplings) == (member.messages, member.samplings)
    judge = SingleJudge("j", Scripted("", name="m"), Decoding(0.0, 1024))
    assert judge.digest == "23030a0b"


def test_samples_are_numbered_and_asked_for_evidence_first_in_both_orders():
    """The FairEval preset: k = 3 draws at temperature 1, each order, the votes pooled."""
    case = arena_case(one=("a", "b", "c", "d"))
    model = Scripted(
        lambda prompt: choice("1" if prompt.startswith(case.prompt) else "2"), name="gpt"
    )
    judge = build_panel("faireval", PRESETS["faireval-mec-bpc"], {"gpt": model}.__getitem__, "gpt")
    answer = rule(judge, case)
    assert judge.name == "faireval@gpt"
    assert sorted((s.sample, s.temperature) for s in model.samplings) == [
        (n, 1.0) for n in (0, 0, 1, 1, 2, 2)
    ]
    assert sum(prompt.startswith(case.prompt) for prompt in model.prompts) == 3
    assert all("evidence" in prompt.splitlines()[-1] for prompt in model.prompts)
    assert answer.verdict == "1"
    assert answer.reason.startswith("6 of 6 votes: 1 ×6. so")
    assert [turn.speaker for turn in answer.transcript][2:4] == [
        "Referee #3",
        "Referee #1 (swapped)",
    ]
    assert [turn.verdict for turn in answer.transcript] == ["1"] * 3 + ["2"] * 3


def test_both_orders_cancel_a_place_where_there_is_an_order():
    """Who always names the first is a tie; UniEval has no mirror: one talk."""
    judge = panel(Scripted(choice("1")), both_orders=True)
    assert rule(judge, arena_case()).verdict == "neither"
    model = Scripted(accusation("3"))
    assert rule(panel(model, both_orders=True), unieval_case()).verdict == "3"
    assert len(model.prompts) == 1


def test_what_is_no_vote_is_recorded():
    """Failed, unreadable, or not offered: the reason says how many votes there are."""
    answer = rule(
        panel(Scripted(choice("1", "loops")), Scripted(FAILED["refused"]), Scripted("no idea")),
        arena_case(),
    )
    assert (answer.verdict, answer.outcome) == ("1", "ok")
    assert [turn.outcome for turn in answer.transcript] == ["ok", "refused", "ok"]
    assert [turn.text for turn in answer.transcript] == [choice("1", "loops"), "", "no idea"]
    assert answer.reason == "1 of 3 votes: 1 ×1; no vote: B (refused), C (unreadable). loops"
    assert len(answer.calls) == 3
    answer = rule(panel(Scripted("hm"), Scripted("well")), arena_case())
    assert (answer.verdict, answer.outcome) == (None, "ok")
    assert [turn.text for turn in answer.transcript] == ["hm", "well"]
    case = aspect_case(Response("s1", "a", ("Hi.", "Hello."), "", "Well.", {}), "naturalness")
    answer = rule(panel(Scripted("Naturalness: 2"), Scripted("Naturalness: 99")), case)
    assert answer.verdict == "2"
    assert "B (unreadable)" in answer.reason


@pytest.mark.parametrize(("replies", "outcome"), rows("worst_outcomes"))
def test_when_all_fail_there_is_no_verdict_and_the_worst_outcome_is_told(replies, outcome):
    """Transport before all others, so that the case is asked again."""
    answer = rule(panel(*(Scripted(FAILED[name]) for name in replies.split())), arena_case())
    assert (answer.verdict, answer.outcome) == (None, outcome)
    assert answer.reason.startswith("0 of 2 votes; no vote: A (")


def test_g_eval_writes_steps_without_the_text_and_every_draw_follows_them():
    """Once a question, whatever the text; then 20 draws whose mean is the score."""
    forms = ["\n".join(f"{kind}: {n}" for kind in KINDS) for n in (0, -1)]
    model = Scripted(["1. Look.", *forms * 10])
    judge = build_panel("g-eval", PRESETS["g-eval"], lambda _: model, "m")
    case = stories.case(OwnText("1", "Once a goat sang."))
    answer = rule(judge, case)
    steps, *draws = model.prompts
    assert case.dialogues[0].utterances[0] not in steps
    assert steps.startswith(case.task)
    assert len(draws) == 20
    assert all(one.startswith(case.prompt) and "steps:\n1. Look." in one for one in draws)
    assert sorted(one.sample for one in model.samplings[1:]) == list(range(20))
    assert {one.temperature for one in model.samplings} == {1.0}
    assert answer.transcript[0].verdict is None
    assert answer.verdict == "-0.5 -0.5 -0.5 -0.5 -0.5"


# How votes become one verdict.

INDICES = frozenset({"No", *map(str, range(1, 17))})
SCALE = frozenset(map(str, range(1, 11)))
PAIRS = frozenset(f"{a} {b}" for a in range(1, 11) for b in range(1, 11))


@pytest.mark.parametrize(
    ("votes", "verdict"),
    rows("labels_go_to_the_most_frequent_and_splits_to_each_dialogue_by_itself"),
)
def test_labels_go_to_the_most_frequent_and_splits_to_each_dialogue_by_itself(votes, verdict):
    """The plurality wins; in an even split a dialogue is accused by more than half or not."""
    assert aggregate(votes.split(), ARENA.reading().choices) == verdict


def test_missing_votes_are_not_counted_and_even_splits_decide_nothing():
    """Nobody's vote is no verdict; of two choices an even split is none."""
    assert aggregate(["1", "2"], {"1", "2"}) is None
    assert aggregate(["1", "2", "2"], {"1", "2"}) == "2"
    assert aggregate([None, None], ARENA.reading().choices) is None
    assert aggregate([], INDICES) is None
    assert aggregate([None, "2", None], ARENA.reading().choices) == "2"
    assert aggregate([None, "4", "No", "9"], INDICES) == "9"


@given(st.lists(st.sampled_from(sorted(INDICES)), min_size=1, max_size=9))
def test_the_panels_pass_at_n_is_the_majority_of_its_members(votes):
    """At every N the panel accuses by N exactly if more than half of the members do."""

    def accuses(vote, n):
        return vote != "No" and int(vote) <= n

    verdict = aggregate(votes, INDICES)
    for n in range(1, 17):
        assert accuses(verdict, n) == (sum(accuses(vote, n) for vote in votes) > len(votes) / 2)


def test_scores_are_averaged_each_for_itself():
    """ChatEval: the mean; a pair of scores stays a pair; majority takes them for labels."""
    assert aggregate(["7", "8"], SCALE) == "7.5"
    assert aggregate(["10", "10"], SCALE) == "10"
    assert aggregate(["8 6", "7 6", "6 9"], PAIRS) == "7 7"
    assert aggregate(["1", "1", "2"], SCALE) == "1.3333"
    assert aggregate(["1", "1", "2"], SCALE, "majority") == "1"
    assert aggregate(["8", "8.5"], SCALE | {"8.5"}) == "8.25"


@pytest.mark.parametrize("choices", [ARENA.reading().choices, PAIRS, frozenset({"1", "2"})])
@given(data=st.data())
def test_swapping_the_sides_of_every_vote_swaps_the_verdict(choices, data):
    """No position is preferred, also not by the rule for even splits."""
    votes = data.draw(st.lists(st.sampled_from(sorted(choices)), max_size=8))
    swapped = aggregate([swap_sides(vote) for vote in votes], choices)
    assert swapped == swap_sides(aggregate(votes, choices))


@pytest.mark.parametrize(
    ("votes", "verdict"), rows("a_panel_names_a_place_only_where_its_votes_do")
)
def test_a_panel_names_a_place_only_where_its_votes_do(votes, verdict):
    """The median, wherever the votes without a place would fall."""
    assert aggregate(votes.split(), UNIEVAL.reading(("x",) * 12).choices) == verdict


# One judge asked several times.


def test_samples_differ_in_their_number_alone_and_the_majority_decides():
    """The bare question K times; the first sample is the call of a judge that is asked once."""
    case = arena_case()
    model = Scripted([choice("1"), choice("2"), choice("1")], name="m")
    answer = rule(repeated_judge("m", model, Decoding(0.7, 9), 3), case)
    assert (answer.verdict, len(answer.calls)) == ("1", 3)
    assert model.prompts == [case.prompt] * 3
    assert model.samplings == [Decoding(0.7, 9, sample) for sample in range(3)]
    once = Scripted(choice("1"), name="m")
    rule(SingleJudge("m", once, Decoding(0.7, 9)), case)
    assert once.samplings == model.samplings[:1]
    # Name and digest change with the number of samples, and the decoding.
    one = SingleJudge("m", model, Decoding(0.7))
    kinds = ((0.7, 3), (0.7, 5), (0.8, 3))
    several = [repeated_judge("m", model, Decoding(heat), n) for heat, n in kinds]
    assert len({judge.digest for judge in (one, *several)}) == 4
    assert several[1].name == "m (5 samples)"

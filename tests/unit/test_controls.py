"""Shuffled dialogues: human in form, equal in length, and of two halves that do not fit."""

import pytest

from botchat.metrics.lengths import words
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.protocols.controls import control_cases, n_kept, shuffled_dialogues
from botchat.records import HUMAN, SHUFFLED, Seed
from botchat.workspace.folder import Workspace


@pytest.fixture(scope="module")
def sample(tmp_path_factory) -> list[Seed]:
    """The sample's human dialogues."""
    return list(Workspace(tmp_path_factory.mktemp("w")).seeds("sample"))


def test_halves_of_two_dialogues(sample):
    """The first half stays, the others come from the same places of one other dialogue."""
    shuffled = shuffled_dialogues(sample, 40)
    assert shuffled == shuffled_dialogues(sample, 40)
    assert len(shuffled) == 40
    for seed in sample:
        k = n_kept(len(seed.utterances))
        both = shuffled[seed.id].utterances
        assert (len(both), both[:k]) == (len(seed.utterances), seed.utterances[:k])
        assert set(both[k:]).isdisjoint(seed.utterances)
        lenders = [other for other in sample if other.utterances[k : len(both)] == both[k:]]
        assert len(lenders) == 1
    assert list(shuffled_dialogues(sample, 7)) == [seed.id for seed in sample[:7]]


def test_the_lender_is_nearest_in_words_and_habits():
    """Another topic where both have one, as long or longer, with no utterance in common."""
    host = Seed("h", ("Hi.", "Hello.", "I am well today.", "So am I."), "a")
    near = Seed("n", ("Yes?", "No!", "We go home now.", "Not so fast.", "Why?"), "b")
    untidy = Seed("u", ("yes", "no", "we go home now", "not so fast"))
    wordy = Seed("w", ("Yes?", "No!", "We go home now and eat and drink.", "Not so very fast."))
    same = Seed("s", ("Hm.", "Hello.", "You are ill today.", "He is too."))
    topic = Seed("t", ("Oh.", "Ah.", "You are ill today.", "He is too."), "a")
    short = Seed("k", ("Eh.", "Uh.", "You are ill today."))
    others = [untidy, wordy, same, topic, short, near]
    both = shuffled_dialogues([host, *others], 1)["h"].utterances
    assert both == (*host.utterances[:2], *near.utterances[2:4])
    assert [words(text) for text in both[2:]] == [words(text) for text in host.utterances[2:]]
    assert shuffled_dialogues([host, topic, short, same], 1).keys() <= {"s"}


def test_a_seed_without_a_lender_has_none():
    """The next one takes its place; nobody lends to a dialogue of three."""
    talks = [Seed(str(i), tuple(f"{i} says {n}" for n in range(3 + i))) for i in range(4)]
    assert list(shuffled_dialogues(talks, 9)) == ["1", "2"]


def test_cases_of_each_protocol(sample):
    """Alone the shuffled and the human one; in pairs both orders at the human length."""
    shuffled = shuffled_dialogues(sample, 20)
    names = {p.name: [c.contestants for c in control_cases(p, sample, shuffled)]
             for p in (UNIEVAL, GTEVAL, ARENA.at(16))}  # fmt: skip
    assert sorted(names["unieval"]) == [(HUMAN,)] * 20 + [(SHUFFLED,)] * 20
    for name in ("gteval", "arena-n16"):
        assert sorted(names[name]) == [(HUMAN, SHUFFLED)] * 20 + [(SHUFFLED, HUMAN)] * 20
    for case in control_cases(GTEVAL, sample, shuffled):
        assert len({len(each.utterances) for each in case().dialogues}) == 1
    assert [p.tests_judges for p in (UNIEVAL, GTEVAL, ARENA.at(8), UNIEVAL.at(8))] == [
        True, True, True, False,
    ]  # fmt: skip

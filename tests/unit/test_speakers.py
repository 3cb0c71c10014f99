"""Speakers: who says what in a dialogue, and how it is kept, shown and judged."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import botchat
from botchat.boards.coverage import own_seeds
from botchat.errors import ConfigError, DataError
from botchat.interfaces import Shown, case_digest
from botchat.judges.voting import aggregate
from botchat.measures.annotations import NOT_SAID, accused_index
from botchat.pipeline.generate import checked
from botchat.protocols.catalogue import ARENA, DIAGNOSIS, SPEAKERS, UNIEVAL, WHICH
from botchat.protocols.rates import preferences
from botchat.records import HUMAN, LETTERS, Dialogue, Seed, numbered
from botchat.report.archive import _dialogue as on_page
from botchat.requests import Generating
from botchat.workspace.folder import Workspace
from tests.boards import judgment

NAMES = st.lists(st.sampled_from(["Ann", "Bob", "0", "user", "é"]), min_size=3, max_size=9).filter(
    lambda names: len({*names}) > 1
)


def chat(names, model="m", **more):
    """A dialogue in which these speak, one utterance each."""
    said = tuple(f"I am {name}, {n}." for n, name in enumerate(names))
    by = {"speakers": tuple(names)} if numbered(names) else {}
    return Dialogue("s", model, said, 2, (), "complete", "", **by, **more)


@given(NAMES, st.booleans())
def test_speakers_and_bursts_come_back_as_they_were_sent(tmp_path_factory, names, in_pairs):
    """Whoever goes on, in either layout; what takes turns is stored as ever."""
    folder = tmp_path_factory.mktemp("w")
    said = [(name, f"{name} {n}") for n, name in enumerate(names)]
    turns = [list(one) for one in said] if in_pairs else [
        {"speaker": name, "text": text} for name, text in said
    ]  # fmt: skip
    who = {name: HUMAN if name == names[0] else "m" for name in dict.fromkeys(names)}
    (folder / "x.jsonl").write_text(json.dumps({"id": "c", "turns": turns, "who": who}))
    workspace = Workspace(folder)
    botchat.import_dialogues(workspace, [folder / "x.jsonl"], "s")
    (kept,) = workspace.dialogues("s", "m").values()
    assert kept.utterances == tuple(text for _, text in said)
    assert tuple(kept.speaker_names[i] for i in Shown.of(kept).spoken_by or _turns(names)) == (
        *names,
    )
    assert kept.known_speakers == dict(enumerate(who.values()))
    (seed,) = workspace.seeds("s")
    assert (seed.id, seed.utterances, kept.n_seed) == ("c", (), 0)


def _turns(names):
    return [n % 2 for n in range(len(names))]


def test_a_dialogue_in_turn_keeps_its_bytes_and_its_digest():
    """Whether speakers are named or not; a cut that takes turns is like any other."""
    plain, bursts = chat("ABAB"), chat("ABABBA")
    assert b"speakers" not in msgspec.json.encode(plain)
    assert b"who" not in msgspec.json.encode(plain)
    assert Shown.of(plain).digest == Shown("", plain.utterances).digest
    assert Shown.of(bursts, 4).digest == Shown("", bursts.utterances[:4]).digest
    others = chat("ABABAB")
    said = msgspec.structs.replace(others, utterances=bursts.utterances)
    digests = {case_digest("unieval", Shown.of(one)) for one in (bursts, said)}
    assert len(digests) == 2


@pytest.mark.parametrize("protocol", [UNIEVAL, DIAGNOSIS, ARENA.at(6)])
def test_prompts_show_who_speaks(protocol):
    """Also a third, and one who goes on; nobody can play another in what they say."""
    three = msgspec.structs.replace(
        chat("xyyzxz"), utterances=("hi", "ho", "C: I am C", "yes", "no", "so")
    )
    both = {name: {"s": msgspec.structs.replace(three, model=name)} for name in "mn"}
    case = next(protocol.cases([Seed("s", ("hi", "ho"))], both))()
    end = case.prompt.rindex("A: hi")
    spoken = [line for line in case.prompt[end:].splitlines() if "<chat_end>" in line]
    assert [line.partition(":")[0][-1] for line in spoken] == [*"ABBCAC"]
    assert "C: I am C" not in case.prompt or protocol is DIAGNOSIS


def test_the_page_says_who_speaks():
    """Letters where two do not take turns, and who they are where it is known."""
    told = on_page(chat("xyy", who=(HUMAN, "model")))
    assert (told["speakers"], told["who"]) == ("ABB", {"A": HUMAN, "B": "m"})
    assert {"speakers", "who"}.isdisjoint(on_page(chat("xyx")))


def test_models_go_on_only_where_two_take_turns(tmp_path):
    """The start of a dialogue in bursts is refused in one line; a later burst does not matter."""
    workspace = Workspace(tmp_path)
    asked = Generating("s", ("bot:parrot",))
    for names, refused in (("aab", True), ("abb", False)):
        seed = Seed("x", ("Hi", "there", "you"), tuple(names))
        workspace.write_seeds("s", [seed])
        assert workspace.seeds("s") == [seed]
        if refused:
            with pytest.raises(ConfigError, match=r"dialogue 'x': it takes two speakers in turn"):
                checked(asked, workspace)
        else:
            assert checked(asked, workspace)[1] == [seed]


@pytest.mark.parametrize("speakers", ["ab", "", "abcdefghi", ["a", "", "b"]])
def test_a_record_with_other_speakers_is_no_record(speakers):
    """One for each utterance, of at most eight, each with a name."""
    said = ("x",) * (9 if len(speakers) == 9 else 3)
    with pytest.raises(ValueError, match=f"at most {len(LETTERS)}"):
        Seed("s", said, tuple(speakers))


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("Reason: B is odd.\nSpeaker A: Human\nSpeaker B: Machine, Index: 2\nSpeaker C: Human",
         "No 2 No"),
        ("**Speaker A**: Machine (from utterance 6)\n- B: AI\n- C: person", "6 Yes No"),
        ("Speaker A: Machine, Index: 2\nSpeaker B: Machine, Index: 99\nSpeaker C: No",
         "Yes Yes No"),
        ("Speaker A: Human\nSpeaker B: Human\nSpeaker C: Human\nOr rather:\n"
         "Speaker C: Machine, Index: 4", "No No 4"),
        ("Speaker A: Human\nSpeaker B: Human", None),
        ("<think>Speaker A: Human\nSpeaker B: Human\nSpeaker C: Human</think>I cannot tell.", None),
        ("", None),
    ],
)  # fmt: skip
def test_what_is_said_of_each_speaker(reply, verdict):
    """A line for each, the last that counts; another's utterance is no place."""
    understood = SPEAKERS.reading(("x",) * 6, (0, 1, 1, 2, 0, 0))
    found, reason = understood.read(reply)
    assert found == verdict
    assert verdict is None or verdict in understood.choices
    assert reason == "B is odd." or not reply.startswith("Reason")
    assert len(understood.choices) == 5 * 4 * 3 == len({*understood.choices})


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("Choice: Speaker C; Reason: it lists", "3"),
        ("Reason: so\n**Choice:** B", "2"),
        ('{"choice": "None", "reason": "all fine"}', "neither"),
        ("Choice: Neither", "neither"),
        ("Choice: Speaker D", None),
        ("I cannot tell.", None),
    ],
)
def test_which_speaker_is_named(reply, verdict):
    """By its letter; of those who speak alone."""
    understood = WHICH.reading(("x",) * 6, (0, 1, 1, 2, 0, 0))
    assert understood.read(reply)[0] == verdict
    assert understood.choices == {"1", "2", "3", "neither"}


@given(st.lists(st.sampled_from(["No", "Yes", "4", "Undecided", "?"]), min_size=1, max_size=8))
def test_the_first_that_is_accused_is_that_of_the_whole_dialogue(words):
    """Undecided is no acquittal; missing alone is no verdict."""
    verdict = " ".join(words)
    if verdict == "?":
        with pytest.raises(DataError):
            accused_index(verdict, "x")
        return
    places = {"No": 0, "Yes": NOT_SAID, "4": 4}
    accused = [places[word] for word in words if places.get(word)]
    untold = {*words} & {"Undecided", "?"}
    assert accused_index(verdict, "x") == (min(accused) if accused else -1 if untold else 0)
    whole = SPEAKERS.whole(verdict)
    assert whole == ("No" if not accused and not untold else None if not accused else
                     "4" if 4 in accused else "Yes")  # fmt: skip


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        (["No 4", "No 4", "No No"], "No 4"),
        (["2 No", "4 No", "No Yes"], "4 No"),
        (["No No"], "No No"),
    ],
)
def test_a_panel_counts_votes_speaker_by_speaker(votes, verdict):
    """As of one place; each speaker by itself."""
    choices = SPEAKERS.reading(("x",) * 4).choices
    assert aggregate(votes, choices) == verdict


@pytest.mark.parametrize(
    ("protocol", "verdict", "each"),
    [
        (SPEAKERS, "No 2 ?", ["1", "2", None]),
        (SPEAKERS, "Undecided Yes No", ["tie", "2", "1"]),
        (SPEAKERS, None, [None] * 3),
        (WHICH, "3", ["1", "1", "2"]),
        (WHICH, "neither", ["1", "1", "1"]),
    ],
)
def test_agreement_is_of_each_speaker(protocol, verdict, each):
    """By letters; so it can be said who is taken for a machine, also of an unread reply."""
    asked = preferences(
        [judgment(protocol.name, "s", ("m",), verdict)], protocol, {"m": {"s": chat("xyz")}}
    )
    assert [(one.part, one.verdict) for one in asked] == [*zip("ABC", each, strict=True)]


def test_a_chat_of_ones_own_is_no_lack_of_others():
    """Six models with a chat each: none lacks the others'; people's chats are people's."""
    seeds = [Seed(f"c{i}", ()) for i in range(6)] + [
        Seed(f"p{i}", ("a", "b", "c", "d")) for i in range(3)
    ]
    made = {f"m{i}": {f"c{i}": chat("xyxy", f"m{i}")} for i in range(6)}
    everyone = made | {HUMAN: {s.id: chat("xyxy", HUMAN) for s in seeds[6:]}}
    counted = own_seeds(seeds, everyone, [*made])
    assert {name: [s.id for s in of] for name, of in counted.items()} == {
        **{f"m{i}": [f"c{i}"] for i in range(6)},
        HUMAN: ["p0", "p1", "p2"],
    }
    # Where one was generated here, the others lack it as ever.
    assert len(own_seeds(seeds, everyone, [f"m{i}" for i in range(1, 6)])["m1"]) == 2

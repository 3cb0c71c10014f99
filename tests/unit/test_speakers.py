"""Speakers: who says what in a dialogue, and how it is kept, shown and judged."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import ConfigError
from botchat.interfaces import Shown, case_digest
from botchat.pipeline.generate import checked
from botchat.pipeline.seeds import import_dialogues
from botchat.protocols.catalogue import ARENA, DIAGNOSIS, UNIEVAL
from botchat.records import HUMAN, LETTERS, Dialogue, Seed, numbered
from botchat.report.archive import _dialogue as on_page
from botchat.requests import Generating
from botchat.workspace.folder import Workspace

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
    import_dialogues(workspace, [folder / "x.jsonl"], "s")
    (kept,) = workspace.dialogues("s", "m").values()
    assert kept.utterances == tuple(text for _, text in said)
    assert tuple(kept.speaker_names[i] for i in Shown.of(kept).spoken_by or _turns(names)) == (
        *names,
    )
    assert kept.known_speakers == dict(enumerate(who.values()))
    assert ("speakers" in json.loads(msgspec.json.encode(kept))) == bool(numbered(names))
    (seed,) = workspace.seeds("s")
    assert seed.utterances == kept.utterances[:2]


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
    shown = protocol.one if protocol.shows == "one" else None
    case = (
        shown("s", "m", three.utterances, three.spoken_by)
        if shown
        else protocol.pair("s", three, msgspec.structs.replace(three, model="n"), 6)
    )
    end = case.prompt.rindex("A: hi")
    spoken = [line for line in case.prompt[end:].splitlines() if "<chat_end>" in line]
    assert [line.partition(":")[0][-1] for line in spoken] == [*"ABBCAC"]
    assert "C: I am C" not in case.prompt or protocol is DIAGNOSIS


def test_the_page_says_who_speaks():
    """Letters where two do not take turns, and who they are where it is known."""
    told = on_page(chat("xyy", who={"x": HUMAN, "y": "model"}), None, None, ())
    assert (told["speakers"], told["who"]) == ("ABB", {"A": HUMAN, "B": "m"})
    assert {"speakers", "who"}.isdisjoint(on_page(chat("xyx"), None, None, ()))


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

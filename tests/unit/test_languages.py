"""Language packs: what they hold, how answers in Chinese are read, and what a pack lacks."""

import re
import shutil
from pathlib import Path

import pytest

from botchat import languages
from botchat.errors import ConfigError
from botchat.interfaces import ShownDialogue
from botchat.judges.rules import RulesJudge
from botchat.languages import ENGLISH, built_in
from botchat.papers.stories import STORIES
from botchat.protocols.catalogue import ARENA, BUILT_IN, GTEVAL, UNIEVAL
from botchat.protocols.frame import prompt_frame
from botchat.protocols.mateval import DIAGNOSIS
from botchat.protocols.replies import known_words
from botchat.records import Seed
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace
from tests.rows import rows
from tests.scripted import dialogue

ZH = built_in()["zh"]
OWN = Path(__file__).parents[1] / "data" / "zh.jsonl"
SEEDS = jsonl.read(OWN, Seed)
PACK = Path(languages.__file__).parent / "zh"

LATIN = re.compile("[A-Za-z]{2,}")


def test_english_is_what_it_was():
    """Digests of prompts and of the rules are part of published signatures."""
    found = {protocol.name: protocol.digest for protocol in BUILT_IN}
    assert found == {
        "unieval": "dfabe5ef",
        "arena": "044ddf69",
        "gteval": "04a6394c",
        "diagnosis": "b0a7b79b",
    }
    digests = [ENGLISH.prompts_digest("generation"), STORIES.digest]
    assert digests == ["99561096", "b64efc5c"]
    assert ENGLISH.signed == ""
    sample = Workspace(Path("/nowhere")).seeds("sample")
    assert RulesJudge(seed.utterances for seed in sample).digest == "8615876d"


@pytest.mark.parametrize("protocol", [UNIEVAL, ARENA, GTEVAL])
def test_prompts_hold_no_english(protocol):
    """Nor does the frame around the dialogue."""
    spoken = protocol.spoken(ZH)
    dialogues = [dialogue("a", *SEEDS[0].utterances), dialogue("b", *SEEDS[1].utterances)]
    case = (
        spoken.case("s", ShownDialogue("a", SEEDS[0].utterances))
        if spoken.is_alone
        else spoken.case("s", *(ShownDialogue.of(each, 4) for each in dialogues))
    )
    assert LATIN.findall(f"{case.prompt} {ZH.text('generation')}") == []


@pytest.mark.parametrize(("said", "verdict", "why"), rows("reasons_stay_as_they_were_said"))
def test_reasons_stay_as_they_were_said(said, verdict, why):
    """Reading folds full-width signs, storing does not."""
    found = ARENA.spoken(ZH).reading().read(said)
    assert found == (verdict, why)


@pytest.mark.parametrize("said", rows("a_contestant_cannot_write_the_frame"))
def test_a_contestant_cannot_write_the_frame(said):
    """No verdict, end or label can be read from what a contestant says; its words remain."""
    spoken = ARENA.spoken(ZH)
    shown = prompt_frame(spoken.language).conversation([said, "嗯"])
    assert shown.count("<完>") == 2
    assert spoken.reading().read(shown)[0] is None
    assert UNIEVAL.spoken(ZH).reading(("",) * 8).read(f"选择：是\n{shown}")[0] == "Yes"
    letters = [c for c in said if c.isalnum()]
    assert [c for c in prompt_frame(spoken.language).neutralise(said) if c.isalnum()] == letters


def copy(folder, **changes):
    """The Chinese pack in a folder, with files changed, or taken away where ``None``."""
    shutil.copytree(PACK, folder)
    for name, text in changes.items():
        file = folder / name.replace("__", "/")
        file.unlink() if text is None else file.write_text(text(file.read_text("utf-8")), "utf-8")
    return folder


def test_what_a_pack_lacks_is_said_when_it_is_needed(tmp_path):
    """One line with the file; English never takes its place."""
    folder = tmp_path / "xx"
    (folder / "prompts").mkdir(parents=True)
    (folder / "language.toml").write_text('name = "Made up"\n')
    (folder / "prompts" / "generation.txt").write_text("Sprich.")
    pack = languages.load(folder, "xx")
    assert pack.text("generation") == "Sprich."
    for needs, part in (
        (lambda: pack.text("arena"), "prompts/arena.txt"),
        (lambda: ARENA.spoken(pack).reading().read("1"), r"\[labels\]"),
    ):
        with pytest.raises(ConfigError, match=rf"xx \(.*\) has no {part}; add it") as said:
            needs()
        assert "\n" not in str(said.value)
    with pytest.raises(ConfigError, match=r"Diagnosis is asked in English only.*Made up \(xx\)"):
        assert DIAGNOSIS.spoken(pack).digest


@pytest.mark.parametrize(("file", "old", "new", "said"), rows("broken_packs"))
def test_a_broken_pack_is_one_line(tmp_path, file, old, new, said):
    """With the file and what is wrong."""
    with pytest.raises(ConfigError) as found:
        languages.load(copy(tmp_path / "zz", **{file: lambda text: text.replace(old, new)}), "zz")
    assert said in str(found.value)
    assert "\n" not in str(found.value)


ES = built_in()["es"]


@pytest.mark.parametrize("pack", [ENGLISH, ZH, ES], ids=["en", "zh", "es"])
def test_every_label_of_a_pack_is_read(pack):
    """Behind each mark of a verdict, whatever protocol asks for it."""
    labels, place = pack.labels, UNIEVAL.spoken(pack).reading(("x",) * 4)
    pair = ARENA.spoken(pack).reading()
    wanted = {"1": labels.first, "2": labels.second, "both": labels.both, "neither": labels.neither}
    for mark in labels.choice:
        for verdict, words in wanted.items():
            for label in words:
                assert pair.read(f"{mark}: {label}")[0] == verdict, label
        for label in labels.no:
            assert place.read(f"{mark}: {label}")[0] == "No", label
        for label in labels.yes:
            for index in labels.index:
                assert place.read(f"{mark}: {label}\n{index}: 3")[0] == "3", label


def test_spanish_prompts_hold_no_english():
    """They ask for labels with accents."""
    for name in ("generation", "unieval", "unieval_examples", "arena", "gteval"):
        assert not re.search(r"\b(the|you|and|Choice|Reason|Conversation)\b", ES.text(name))
        assert name == "generation" or "Razón: " in ES.text(name)


def test_a_misspelt_list_of_words_is_no_list_without_words():
    """As a pattern it would be found never, and nobody would know."""
    assert "wait" in " ".join(known_words(ENGLISH, "withdrawn"))
    with pytest.raises(KeyError, match="withdrwan"):
        known_words(ENGLISH, "withdrwan")

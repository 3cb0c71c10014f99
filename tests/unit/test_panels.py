"""``[panels.NAME]``, the presets, and the judges that come of them."""

import asyncio
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from botchat.errors import ConfigError
from botchat.interfaces import Subject
from botchat.judges.debate import SWAPPED
from botchat.judges.panel import build_panel, calls, wording
from botchat.languages import ENGLISH, built_in
from botchat.pipeline.contestants import is_debate, votes_before_debate
from botchat.pipeline.session import equal_calls_panel
from botchat.protocols.catalogue import ARENA
from botchat.records import JudgeId, Judgment, Remark
from botchat.workspace.config import TomlFile
from botchat.workspace.panels import (
    DECOMPOSER,
    FEEDBACK,
    PRESETS,
    ROLES,
    STRATEGIES,
    SUMMARIZER,
    PanelSettings,
    StrategyName,
)
from tests.rows import rows
from tests.scripted import Scripted, accusation, arena_case, choice, unieval_case


def panel(entry, *names, default=None, said=None):
    """The judge, with scripted models of these names."""
    models = {name: Scripted(said or choice("1"), name=name) for name in names}
    return build_panel("x", entry, models.__getitem__, default), models


LANGUAGES = [built_in()[code] for code in ("en", "zh")]


def texts(subject, language=ENGLISH):
    """What a panel of all roles is told to be, for questions about a subject."""
    settings = PanelSettings(strategy="one-by-one", agents=ROLES)
    told = wording(settings, language, [subject])
    return [told[f"role of {agent.name}"] for agent in settings.members]


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda one: one.code)
def test_every_role_has_its_texts(language):
    """A role that can be named can be played, whatever is asked; ChatEval's five differ."""
    sets = [texts(subject, language) for subject in get_args(Subject)]
    assert all(text.startswith(("You are", "你")) for told in sets for text in told)
    for role, told in zip(ROLES, zip(*sets, strict=True), strict=True):
        assert len(set(told)) == (3 if role in ROLES[:5] else 1), role


def test_a_panel_without_a_model_says_what_to_do():
    """And a default that nobody takes is refused rather than ignored."""
    with pytest.raises(ConfigError, match=r"agents have no model; name one with --judge-model"):
        panel(PRESETS["chateval-default"])
    with pytest.raises(ConfigError, match=r"names all its models itself; leave out --judge-model"):
        panel(PanelSettings(strategy="ensemble", model="m"), "m", default="m")


def test_the_digest_follows_settings_and_models_and_not_their_names():
    """What decides a verdict is in it, and the same panel written otherwise has the same."""
    base = PanelSettings(strategy="one-by-one", model="m")
    same = PanelSettings(strategy="one-by-one", rounds=2, agents=("general-public", "critic"))
    others = [
        PanelSettings(strategy="one-by-one", model="m", rounds=3),
        PanelSettings(strategy="simultaneous-talk", model="m"),
        PanelSettings(strategy="one-by-one", model="m", agents=("critic", "general-public")),
        PanelSettings(strategy="one-by-one", model="m", temperature=None),
        PanelSettings(strategy="one-by-one", model="n"),
        PanelSettings(strategy="one-by-one", model="m", position_calibration=True),
    ]
    digest = panel(base, "m")[0].digest
    assert panel(same, "m", default="m")[0].digest == digest
    assert len({digest, *(panel(other, "m", "n")[0].digest for other in others)}) == 7


GOLDEN = tomllib.loads((Path(__file__).parents[1] / "data/panel_digests.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", GOLDEN["digests"])
def test_no_digest_has_changed(name):
    """The digest is part of every signature: another one would ask everything again."""
    table = GOLDEN["panels"].get(name)
    file = TomlFile(Path("botchat.toml"), "")
    settings = file.entry(f"panels.{name}", table, PanelSettings) if table else PRESETS[name]
    named = not settings.members or all(agent.model for agent in settings.members)
    judges = [panel(settings, "m", "n", default=None if named else model)[0] for model in "mn"]
    assert [judge.digest for judge in judges] == GOLDEN["digests"][name]


def test_the_golden_digests_cover_every_preset_and_strategy():
    """A new one needs an entry there."""
    assert set(GOLDEN["digests"]) == set(PRESETS) | set(GOLDEN["panels"])
    assert {table["strategy"] for table in GOLDEN["panels"].values()} == set(STRATEGIES)
    assert set(STRATEGIES) == set(get_args(StrategyName))


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_answers_every_protocol(name):
    """Arena by a label, UniEval by an index, with one model and nothing else set."""
    judge, _ = panel(PRESETS[name], "m", default="m", said=accusation("3"))
    assert asyncio.run(judge.answer(unieval_case())).verdict == "3"
    judge, _ = panel(PRESETS[name], "m", default="m", said=choice("both"))
    assert asyncio.run(judge.answer(arena_case())).verdict == "both"


# What a panel is measured against: its own opening votes, and one judge asked as often.


def judgment(transcript, verdict="1", protocol="arena-n4", contestants=("a", "b")):
    """What a panel left behind."""
    turns = tuple(transcript)
    made = tuple(turn.call for turn in turns)
    return Judgment(protocol, "s1", contestants, "p", verdict, "", 4, "d", "s", "ok", turns, made)


def turn(speaker, vote, call="k"):
    """One contribution."""
    return Remark(speaker, "said", call, "ok", vote)


def test_votes_of_a_talk_are_counted_as_the_panel_counts_them():
    """On the swapped order turned back; an index by which more than half accuse."""
    opening = [turn("A", "1", "k1"), turn("A", "2", "k2")]
    mirrored = [turn(f"A{SWAPPED}", "2", "k3"), turn(f"A{SWAPPED}", "1", "k4")]
    made = judgment([*opening, *mirrored])
    (control,) = votes_before_debate([made], ARENA.reading().choices)
    assert control.verdict == "1"
    assert control.calls == ("k1", "k3")
    opening = [turn("A", "3"), turn("B", "No"), turn("C", "5"), turn("D", None)]
    made = judgment([*opening, *opening], "3", "unieval", ("m",))
    (control,) = votes_before_debate([made], {"No", "1"})
    assert control.verdict == "5"


@pytest.mark.parametrize(
    ("text", "panel", "model", "role"), rows("who_judged_is_read_out_of_a_name_and_printed_again")
)
def test_who_judged_is_read_out_of_a_name_and_printed_again(text, panel, model, role):
    """Files keep their names."""
    judge = JudgeId.parse(text)
    assert (judge.panel, judge.model, judge.role, str(judge)) == (panel, model, role, text)
    assert judge.is_annotator() == (role == "annotator")
    assert JudgeId.parse(str(judge.sampled(3))).asked_once == judge.name
    assert [judge.is_annotator(truth) for truth in (text, text[:4], None)] == [True, False, False]


HEARD = [["A", "B", "A", "B"], ["A", "B", FEEDBACK, SUMMARIZER]]
ALONE = [[], ["judge"], ["A", "B"], ["A", SUMMARIZER], [DECOMPOSER, "A", "B", "A", "B"]]


@pytest.mark.parametrize("speakers", [*HEARD, *ALONE, ["A", "B", f"A{SWAPPED}", f"B{SWAPPED}"]])
def test_only_those_who_heard_each_other_have_talked(speakers):
    """Singles, ensembles and single reports have no votes before a talk."""
    talked = is_debate([judgment([turn(speaker, "1") for speaker in speakers])])
    assert talked is (speakers in HEARD)


@pytest.mark.parametrize(("preset", "expected"), rows("the_control_is_asked_as_often_as_the_panel"))
def test_the_control_is_asked_as_often_as_the_panel(preset, expected):
    """Calls of a talk in one order; position calibration is the control's too."""
    settings = PRESETS[preset]
    control = equal_calls_panel(settings, "m")
    assert calls(settings) == calls(control) == expected
    assert control.position_calibration == settings.position_calibration
    assert (control.strategy, control.temperature) == ("ensemble", 1.0)
    assert [member.role for member in control.members] == [None]

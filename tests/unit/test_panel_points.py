"""A panel with settings in brackets, several runs of a judge, and what the settings change."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat import prompts
from botchat.errors import ConfigError
from botchat.judges.panel import build_panel, calls
from botchat.workspace.panels import (
    CHATEVAL,
    KINDS,
    PRESETS,
    CascadeSettings,
    find,
    in_run,
    point,
    run_of,
)
from tests.rows import rows
from tests.scripted import Scripted, arena_case, choice

CASCADE = CascadeSettings(cheap="a", strong="b", calibration=0.1)


SAID = (choice("1"),)


def asked(name: str, said=SAID, run: int = 1) -> Scripted:
    """The model of a panel that has answered one case."""
    model = Scripted(list(said) * 30, name="m")
    settings = find(name, {})
    assert settings is not None
    judge = build_panel(name, settings, lambda _: model, "m", run=run)
    asyncio.run(judge.answer(arena_case()))
    return model


@pytest.mark.parametrize("n", range(1, 6))
def test_roles_are_the_first_of_the_papers_five(n):
    """ChatEval Figure 4: one role to five, each speaking in every round, in both orders."""
    settings = find(f"chateval-default[roles={n},rounds=3]", {})
    assert [member.role for member in settings.members] == list(CHATEVAL[:n])
    assert len(asked(f"chateval-default[roles={n},rounds=3]").prompts) == 2 * 3 * n
    assert calls(settings) == 3 * n


def test_settings_in_brackets_are_the_same_panel_as_in_the_file():
    """Types as in botchat.toml; another strategy keeps what both have."""
    changed = find("chateval-3-roles[strategy=simultaneous-talk-with-summarizer]", {})
    assert changed == PRESETS["chateval-3-roles-summarizer"]
    same = find("chateval-default[rounds=2,position_calibration=true]", {})
    assert same == PRESETS["chateval-default"]
    own = {"mine": msgspec.structs.replace(PRESETS["mateval-cot"], rounds=7)}
    assert find("mine", own) is own["mine"]
    assert find("mine[feedback=false]", own).rounds == 7
    assert find("nobody[roles=2]", own) is None
    assert find("mateval-sr[roles=3]", own).members[2].name == "Evaluator 3"


@pytest.mark.parametrize(
    ("name", "said"),
    rows("a_setting_that_a_panel_cannot_have_is_refused"),
)
def test_a_setting_that_a_panel_cannot_have_is_refused(name, said):
    """One line with the panel's whole name."""
    with pytest.raises(ConfigError, match=said):
        find(name, {"two": CASCADE})


NAMES = st.text("abc-/:#@(). 0123", min_size=1)


@given(NAMES, st.integers(1, 999))
def test_a_run_is_read_from_the_name_that_it_gives(judge, run):
    """Both ways, whatever the judge is called."""
    assert run_of(in_run(judge, run)) == (judge, run) or (run == 1 and run_of(judge)[1] > 1)


FIXED = ("mateval-sa", "faireval-mec-bpc")
MANY = [name for name in PRESETS if name not in FIXED]


@given(st.sampled_from(MANY), st.integers(2, 5), st.integers(1, 9))
def test_every_point_of_a_grid_has_a_name_of_its_own_that_is_found(name, roles, rounds):
    """The settings are those that were asked for, where the strategy has them."""
    fields = {field.name for field in msgspec.structs.fields(type(PRESETS[name]))}
    said = {"roles": str(roles), "rounds": str(rounds)}
    found = find(point(name, {key: value for key, value in said.items() if key in fields}), {})
    assert type(found) is KINDS[PRESETS[name].strategy]
    assert len(found.members) == roles
    assert getattr(found, "rounds", rounds) == rounds


def test_a_run_has_draws_of_its_own():
    """Run r of a panel of s samples has the samples from (r - 1) s on; the first run has 0."""
    drawn = [
        {decoding.sample for decoding in asked(name, run=run).samplings}
        for name, run in (
            ("chateval-default", 1),
            ("chateval-default", 3),
            ("faireval-mec-bpc", 1),
            ("faireval-mec-bpc", 2),
            ("mateval-sr-cot", 2),
        )
    ]
    assert drawn == [{0}, {2}, {0, 1, 2}, {3, 4, 5}, {1}]


def test_without_feedback_nobody_speaks_between_the_rounds():
    """MATEval Table 3, −fb: one call a round less, no feedback in what is heard."""
    whole, without = asked("mateval-one-by-one"), asked("mateval-one-by-one[feedback=false]")
    assert len(whole.prompts) - len(without.prompts) == 3
    assert calls(find("mateval-one-by-one[feedback=false]", {})) == len(without.prompts)
    assert any("[Feedback]" in prompt for prompt in whole.prompts)
    assert not any("[Feedback]" in prompt for prompt in without.prompts)


@pytest.mark.parametrize("name", ["mateval-sa", "mateval-cot"])
def test_a_report_of_scores_asks_for_no_questions_and_answers(name):
    """MATEval Table 3, −QA."""
    form, scores = (prompts.text(f"discussion_{one}") for one in ("form", "scores"))
    whole, bare = asked(name), asked(f"{name}[report=score]")
    assert any(form in prompt for prompt in whole.prompts)
    assert not any(form in prompt for prompt in bare.prompts)
    assert any(scores in prompt for prompt in bare.prompts)


def test_summaries_replace_each_other_or_stand_one_after_the_other():
    """ChatEval v2 replaces what agents hear, v1 concatenates."""
    name = "chateval-3-roles-summarizer[roles=1,rounds=3,position_calibration=false{}]"
    said = [choice("1", "a1"), "sum one", choice("1", "a2"), "sum two", choice("1", "a3"), "sum x"]
    last = [asked(name.format(more), said).prompts[4] for more in ("", ",summary=concatenate")]
    assert ["sum one" in prompt for prompt in last] == [False, True]
    assert all("sum two" in prompt and "a1" not in prompt for prompt in last)


def test_new_settings_change_the_digest_only_where_they_say_something():
    """Judgments that were made before them keep their signatures."""
    base = [find(name, {}) for name in ("mateval-sr", "chateval-3-roles-summarizer")]
    changed = [
        find(name, {})
        for name in (
            "mateval-sr[feedback=false]",
            "mateval-sr[report=score]",
            "chateval-3-roles-summarizer[summary=concatenate]",
        )
    ]
    digests = [
        build_panel("x", one, lambda _: Scripted(choice("1"), name="m"), "m").digest
        for one in (*base, *changed)
    ]
    assert len(set(digests)) == 5

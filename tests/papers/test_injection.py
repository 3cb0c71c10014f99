"""Errors put into stories by a model: what it is asked, and what of its replies is believed."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.languages import built_in
from botchat.papers import mateval_files
from botchat.papers.inject import Injected, as_csv, cut, kinds_of, question, read
from botchat.protocols.texts import ERROR_TYPES, OwnText

EN, ZH = built_in()["en"], built_in()["zh"]
STORY = "Ida planted two beans. They grew all week. On Sunday she ate them."


def reply(story=f"{STORY} She ate them on Sunday.", *errors, fence=""):
    """What a model sends back: by default a repetition."""
    errors = errors or (("Repetition", "She ate them on Sunday.", "said before"),)
    listed = [dict(zip(("type", "passage", "reason"), one, strict=True)) for one in errors]
    return f"{fence}{json.dumps({'story': story, 'errors': listed})}{fence}"


def test_a_good_reply_is_believed():
    """In a fence or not."""
    wanted = Injected(
        STORY, f"{STORY} She ate them on Sunday.", read(reply(), STORY, ["REP"], EN).errors
    )
    assert read(reply(), STORY, ["REP"], EN) == wanted
    assert [one.code for one in wanted.errors] == ["REP"]
    assert read(reply(fence="\n```\n"), STORY, ["REP"], EN) == wanted


@pytest.mark.parametrize(
    ("said", "kinds", "why"),
    [
        ("I cannot do that.", ["REP"], "no JSON object"),
        ('{"story": "", "errors": []}', ["REP"], "no JSON object"),
        ('{"story": "x", "errors": ["Repetition"]}', ["REP"], "no kind of error"),
        (reply(STORY, ("Typo", "beans", "")), ["REP"], "'Typo' is no kind of error"),
        (reply(STORY, ("Repetition", "She slept.", "")), ["REP"], "is not in its story"),
        (reply(STORY, ("Repetition", "...", "")), ["REP"], "is not in its story"),
        (
            reply(STORY, ("Factual Error", "They grew all week.", "")),
            ["FER"],
            "was in the story before",
        ),
        (reply(), ["REP", "FER"], "to put in REP, FER, and says REP"),
        (reply(STORY, ("Repetition", "They grew all week.", "")), ["REP"], "as it was"),
    ],
)
def test_what_a_reply_claims_is_checked(said, kinds, why):
    """Each fault has its words."""
    found = read(said, STORY, kinds, EN)
    assert isinstance(found, str)
    assert why in found


@given(st.text('{}[]:,"storyerr 猫\n'), st.sets(st.sampled_from(list(ERROR_TYPES)), min_size=1))
def test_any_reply_is_read_or_refused(said, kinds):
    """Without an exception."""
    assert isinstance(read(said, STORY, sorted(kinds), EN), str)


def test_the_request_names_the_kinds_and_hides_what_looks_like_an_answer():
    """In the story's language."""
    asked = question("Once.\nRepetition: -1", ["REP", "FER"], EN)
    assert "no other: Repetition, Factual Error." in asked
    assert "\nRepetition: -1" not in asked
    assert "重复问题、用词不当。" in question("从前。", ["REP", "ILC"], ZH)


def test_kinds_are_drawn_once_and_for_all():
    """Half of them, at least one, by seed."""
    drawn = [kinds_of(OwnText(str(n), STORY), 0) for n in range(400)]
    assert drawn == [kinds_of(OwnText(str(n), STORY), 0) for n in range(400)]
    assert drawn != [kinds_of(OwnText(str(n), STORY), 1) for n in range(400)]
    assert min(map(len, drawn)) == 1
    assert 2.3 < sum(map(len, drawn)) / 400 < 2.8  # people found 2.6 a story


def test_a_story_is_cut_at_a_sentence():
    """The last that ends within so many words; a first sentence that is longer stays."""
    assert cut(STORY, 13, EN) == STORY
    assert cut(STORY, 12, EN) == "Ida planted two beans. They grew all week."
    assert cut(STORY, 1, EN) == "Ida planted two beans."
    assert (
        cut("她种了豆子。豆子长大了。“真好！”她说。", 13, ZH) == "她种了豆子。豆子长大了。“真好！”"
    )


@pytest.mark.parametrize("language", [EN, ZH], ids=["en", "zh"])
def test_the_table_is_one_that_bench_reads(language):
    """Scores, places and originals come back as they were."""
    names = [ERROR_TYPES[code][language is ZH] for code in ("REP", "LINC")]
    story = (
        "A fox slept. A fox, slept. Dogs are birds."
        if language is EN
        else "狐狸睡了。狐狸，睡了。狗是鸟儿。"
    )
    after = story.split(". ")[1:] if language is EN else story.split("。")[1:]
    errors = list(zip(names, after, ["why", 'a "quote", and\na line'], strict=False))
    made = read(reply(story, *errors), "before", ["REP", "LINC"], language)
    files = {"stories.csv": as_csv([made, made], language).encode()}
    (told, scores), _ = mateval_files.people(files)
    assert (told, scores["REP"], scores["LINC"], sum(scores.values())) == (story, -1, -1, -2)
    (_, places), _ = mateval_files.marked(files)
    assert places["LINC"] == {2}
    assert mateval_files.originals(files) == ["before"] * 2
    assert mateval_files.language(files) == language.code
    assert {len(row) for row in csv.reader(io.StringIO(as_csv([made], language)))} == {9}

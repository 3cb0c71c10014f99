"""`botchat bench inject`: what is asked and believed, the benchmark made of it, over real HTTP."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.cli.main import main
from botchat.languages import built_in
from botchat.papers import mateval_files
from botchat.papers.inject import Injected, as_csv, cut, kinds_of, question, read
from botchat.pipeline.evaluate import read_items
from botchat.protocols.texts import ERROR_TYPES, OwnText
from tests.openai_server import Server, text
from tests.papers.test_bench import said, url

STORIES = [
    "Ida planted two beans. They grew all week. On Sunday she ate them.",
    "Tom rowed over the lake. The wind was strong. He came home late.",
    "A baker lost his hat. It was in the oven. Nobody ate bread that day.",
]
SENTENCES = {
    "Repetition": "It has to be said twice, twice, twice.",
    "Logical Inconsistency": "None of this had happened.",
    "Discontinuity": "Meanwhile the moon rocket was fuelled.",
    "Inappropriate Lexical Choice": "He ate a herd of soup.",
    "Factual Error": "Water is dry.",
}


def writer(call):
    """Puts each error asked for behind the story; the baker's story it cannot change."""
    prompt = call.messages[-1]["content"]
    story = prompt.split("Story:\n", 1)[1].split("\n\nReply", 1)[0]
    if story.startswith("A baker"):
        return text("I would rather not.")
    kinds = re.search(r"no other: (.+?)\. Give", prompt)[1].split(", ")
    errors = [{"type": kind, "passage": SENTENCES[kind], "reason": "planted"} for kind in kinds]
    whole = " ".join([story, *(SENTENCES[kind] for kind in kinds)])
    return text(json.dumps({"story": whole, "errors": errors}))


def reader(call):
    """Finds what the writer plants."""
    story = call.messages[-1]["content"].split("Story:\n", 1)[1]
    return text("\n".join(f"{kind}: {-(s in story)}" for kind, s in SENTENCES.items()))


@pytest.fixture
def stories(tmp_path):
    """A file of three stories."""
    path = tmp_path / "stories.txt"
    path.write_text("\n\n".join(STORIES))
    return path


def test_stories_get_errors_and_become_a_benchmark(stories, tmp_path, capsys):
    """Planned, asked once, checked; what a judge finds is compared with what was planted."""
    w, out = tmp_path / "w", tmp_path / "made"
    with Server(writer) as server:
        model = url(server)
        command = ["bench", "inject", stories, "--model", model, "--out", out, "--dir", w]
        planned = said(capsys, *command, "--plan")["rows"]
        assert [row["calls"] for row in planned] == [3, 3, 3]
        assert (server.n_received, out.exists()) == (0, False)
        made = said(capsys, *command)
        assert server.n_received == 3
        again = said(capsys, *command)
        assert (server.n_received, again["rows"]) == (3, made["rows"])
        *kinds, total = made["rows"]
        assert total["stories"] == 2
        assert made["left_out"] == ["3: no JSON object with story and errors"]
        assert total["in_stories"] == sum(row["in_stories"] for row in kinds) < total["asked_for"]
        assert "|inject|words:200|seed:0|prompt:" in (out / "signature.txt").read_text()
        server.play(reader)
        found = said(capsys, "bench", "mateval", "--data", out, "--judge", model, "--dir", w)
    for row in found["rows"]:
        assert row["n"] == 2
        assert row["spearman"] in (None, pytest.approx(1))


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ("", "none of 3 stories came back with errors as asked for (1: no JSON object"),
        ("--words 0", "--words 0"),
        ("--limit 0", "--limit 0"),
        ("--out {}/stories.txt", "/stories.txt is a file; name a folder"),
        ("--language fr", "--language fr: the kinds of error have names in en, zh"),
    ],
)
def test_what_cannot_be_done_is_said(flags, why, stories, tmp_path, capsys):
    """One line; no file."""
    out, more = tmp_path / "made", flags.format(tmp_path).split()
    command = ["bench", "inject", stories, "--model", "bot:parrot", "--out", out, *more]
    assert main([*map(str, command), "--dir", str(tmp_path / "w")]) == 1
    error = capsys.readouterr().err
    assert why in error
    assert error.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("language", "headings", "original", "scores"),
    [
        ("en", "Original Story,Story,Score_new", STORIES[0], "Repetition:-1\nFactual Error:0"),
        ("zh", "原故事,故事,新得分", "小明种了两颗豆子。", "重复问题：-1\n事实性错误：0"),
    ],
)
def test_of_matevals_own_layout_the_stories_without_errors_are_taken(
    tmp_path, language, headings, original, scores
):
    """Not those that have errors already; `evaluate` reads these, with people's scores."""
    path, spoilt = tmp_path / "roc.csv", "She ate them. She ate them."
    path.write_text(f'\ufeff{headings}\n{original},{spoilt},"{scores}"\n', "utf-8")
    with Server(lambda call: text("I would rather not.")) as server:
        more = ["--model", url(server), "--out", tmp_path / "o", "--dir", tmp_path / "w"]
        assert main([*map(str, ["bench", "inject", path, "--language", language, *more])]) == 1
        (call,) = server.calls
    prompt = call.messages[-1]["content"]
    assert (original in prompt, spoilt in prompt) == (True, False)
    (row,) = read_items(path)
    assert (row.text, row.labels) == (spoilt, {"repetition": -1, "factualerror": 0})


EN, ZH = built_in()["en"], built_in()["zh"]
STORY = STORIES[0]


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
        ('{"story": "x", "errors": ["Repetition"]}', ["REP"], "no JSON object"),
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

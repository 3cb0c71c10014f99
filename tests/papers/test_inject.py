"""`botchat bench inject`, and the benchmark that is made of it, over real HTTP."""

from __future__ import annotations

import json
import re

import pytest

from botchat.cli.main import main
from botchat.pipeline.evaluate import read_items
from tests.openai_server import Server, text

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


def said(capsys, *command):
    """What a command prints with --json."""
    capsys.readouterr()
    assert main([*map(str, command), "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def test_stories_get_errors_and_become_a_benchmark(stories, tmp_path, capsys):
    """Planned, asked once, checked; what a judge finds is compared with what was planted."""
    w, out = tmp_path / "w", tmp_path / "made"
    with Server(writer) as server:
        model = f"{server.url}#m"
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


def test_a_model_that_cannot_do_it_leaves_no_stories(stories, tmp_path, capsys):
    """One line with the first reason; no file."""
    out = tmp_path / "made"
    command = [
        "bench",
        "inject",
        stories,
        "--model",
        "bot:parrot",
        "--out",
        out,
        "--dir",
        tmp_path / "w",
    ]
    assert main([*map(str, command)]) == 1
    said = capsys.readouterr().err
    assert "none of 3 stories came back with errors as asked for (1: no JSON object" in said
    assert not out.exists()


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--words", "0"], "--words 0"),
        (["--limit", "0"], "--limit 0"),
        (["--out", "{}/file"], "/file is a file; name a folder"),
        (["--language", "fr"], "--language fr: the kinds of error have names in en, zh"),
    ],
)
def test_wrong_settings_are_said(flags, why, stories, tmp_path, capsys):
    """Before anything is sent."""
    (tmp_path / "file").touch()
    flags = [flag.format(tmp_path) for flag in flags]
    command = [
        "bench",
        "inject",
        stories,
        "--model",
        "bot:parrot",
        "--out",
        tmp_path / "made",
        *flags,
    ]
    assert main([*map(str, command), "--dir", str(tmp_path / "w")]) == 1
    assert why in capsys.readouterr().err


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
        more = ["--model", f"{server.url}#m", "--out", tmp_path / "o", "--dir", tmp_path / "w"]
        assert main([*map(str, ["bench", "inject", path, "--language", language, *more])]) == 1
        (call,) = server.calls
    prompt = call.messages[-1]["content"]
    assert (original in prompt, spoilt in prompt) == (True, False)
    (row,) = read_items(path)
    assert (row.text, row.labels) == (spoilt, {"repetition": -1, "factualerror": 0})

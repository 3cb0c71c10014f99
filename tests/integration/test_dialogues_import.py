"""`botchat import`: dialogues of four formats, judged and ranked like generated ones."""

import json
from pathlib import Path

import pytest

from botchat.cli.main import main
from botchat.records import Dialogue
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace
from tests.commands import refused, said, walk
from tests.rows import rows

TALKS = [
    [f"Hello, is this shop number {n}?", "It is, what can I do for you?"]
    + [f"I would like {n + k} red apples and a pear." for k in range(6)]
    for n in range(5)
]
"""Five dialogues of 8 utterances."""


def two(talk, first, second):
    """A talk with the names of its speakers."""
    return [((first, second)[n % 2], text) for n, text in enumerate(talk)]


def openai(talk, n):
    """A record of OpenAI's chat messages, one of them in parts."""
    said = [{"role": role, "content": text} for role, text in two(talk, "user", "assistant")]
    said[3]["content"] = [{"type": "text", "text": talk[3]}]
    return {"messages": [{"role": "system", "content": "Be kind."}, *said]}


def sharegpt(talk, n):
    """A record of ShareGPT's."""
    said = [{"from": who, "value": text} for who, text in two(talk, "human", "gpt")]
    return {"id": f"s{n}", "conversations": said}


def utterances(talk, n):
    """A record of ours."""
    return {"id": f"u{n}", "utterances": talk}


def lines(records):
    """JSON lines."""
    return "".join(json.dumps(one) + "\n" for one in records)


FORMATS = {"openai": openai, "sharegpt": sharegpt, "utterances": utterances}


def write(folder: Path, name: str) -> Path:
    """The talks in one of the formats."""
    path = folder / f"{name}.jsonl"
    records = [FORMATS[name](talk, n) for n, talk in enumerate(TALKS)]
    path.write_text(json.dumps(records) if name == "sharegpt" else lines(records))
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_dialogues(name, tmp_path, capsys):
    """Told from the records, with the same utterances, and a seed of the first two."""
    source = write(tmp_path, name)
    place = ["--seeds", "shop", "--model", "M", "--dir", tmp_path / "w"]
    found = said(capsys, "import", source, *place)
    assert (found["format"], found["read"], found["dialogues"]) == (name, 5, 5)
    assert (found["new_seeds"], found["left_out"]) == (5, {})
    workspace = Workspace(tmp_path / "w")
    kept = workspace.dialogues("shop", "M").values()
    assert sorted(one.utterances for one in kept) == sorted(map(tuple, TALKS))
    seeds = {seed.utterances for seed in workspace.seeds("shop")}
    assert seeds == {tuple(talk[:2]) for talk in TALKS}
    for one in kept:
        assert one.complete
        assert one.contestant == "M"
        assert "|imported:" in one.signature
        assert [fact.call for fact in one.facts] == [""] * 6
    again = said(capsys, "import", source, *place, "--replace")
    assert again | {"new_seeds": 5} == found


def test_dialogues_join_a_set_with_people_and_stand_on_its_board(tmp_path, capsys):
    """White space aside they begin with a seed; judged by rules, ranked, on the page."""
    w, seeds = tmp_path / "w", Workspace(tmp_path).seeds("sample")[:4]
    Workspace(w).write_seeds("people", seeds)
    before = (w / "seeds" / "people.jsonl").read_bytes()
    said_on = [[f"Fine {seed.id} {n}." for n in range(14)] for seed in seeds]
    starts = [(f"  {seed.utterances[0]}\n", seed.utterances[1]) for seed in seeds]
    rows = [{"utterances": [*start, *on]} for start, on in zip(starts, said_on, strict=True)]
    other = [{"utterances": ["Nobody", "said this", "to anybody"]}, rows[0]]
    short = [{"utterances": list(seeds[0].utterances[:2])}]
    path = tmp_path / "mine.jsonl"
    path.write_text(lines(rows + other + short))
    place = ["--seeds", "people", "--model", "mine", "--dir", w]
    found = said(capsys, "import", path, *place)
    assert found["dialogues"] == 4
    assert sum(found["left_out"].values()) == found["read"] - 4 == 3
    assert len(found["left_out"]) == 3
    assert (w / "seeds" / "people.jsonl").read_bytes() == before
    said(capsys, "generate", "--seeds", "people", "--model", "bot:parrot", "--dir", w)
    for protocol in ("unieval", "arena", "gteval"):
        said(capsys, "judge", protocol, "--seeds", "people", "--judge", "rules", "--dir", w)
    board = said(capsys, "leaderboard", "--seeds", "people", "--dir", w)
    assert {"mine", "bot:parrot"} <= {row["model"] for row in board["rows"]}
    assert f"|{found['signature'].split('|')[1]}" in board["signature"]
    assert any("mine is not generated here but imported" in note for note in board["notes"])
    assert "mine" in (w / "leaderboards" / "people" / "index.html").read_text()


def test_a_set_of_a_models_dialogues_has_no_humans(tmp_path, capsys):
    """No row, no cases, no labels and no check of them; what was judged before is passed over."""
    place = ["--seeds", "shop", "--dir", tmp_path]
    said(capsys, "import", write(tmp_path, "utterances"), "--model", "M", *place)
    for protocol in ("unieval", "arena"):
        said(capsys, "generate", "--model", "bot:parrot", *place)
        judged = said(capsys, "judge", protocol, "--judge", "rules", *place)
        assert [row["cases"] for row in judged["rows"]][:1] == [10]
    board = said(capsys, "leaderboard", *place)
    assert [row["model"] for row in board["rows"]] == ["M", "bot:parrot"]
    assert "human" not in " ".join([*board["notes"], *board["judge"]["reasons"]])
    unknown = {check["key"] for check in board["judge"]["checks"] if check["state"] == "unknown"}
    assert unknown == {"skill", "unreadable_rate"}
    assert said(capsys, "label", "--protocol", "unieval", *place)["cases"] == 10
    asked = ["judge", "unieval", "--model", "human", "--judge", "rules", *map(str, place)]
    assert "no dialogues of 'human'" in refused(capsys, asked)


def test_dialogues_that_are_there_twice_are_named(tmp_path, capsys):
    """Seeds count as independent of each other."""
    path = tmp_path / "twice.jsonl"
    path.write_text(lines([utterances(TALKS[n], k) for k, n in enumerate((0, 1, 0, 0))]))
    note = said(capsys, "import", path, "--dir", tmp_path)["note"]
    assert note.startswith("2 of 4 dialogues are there twice")
    assert note.endswith(": u2 repeats u0, u3 repeats u0")
    words = [f"w{n}" for n in range(120)]
    for column, expected in (({}, True), ({"topic": "t"}, False)):
        rows_ = [
            {"id": str(n), "utterances": [" ".join([*words[n % 8 * 9 :][:9], str(n)]), "x"]}
            | column
            for n in range(40)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows_))
        result = said(capsys, "import", path, "--replace", "--dir", tmp_path)
        assert ("32 of 40 ChatSEEDs share much" in result.get("note", "")) == expected


@pytest.mark.parametrize(("text", "message"), rows("wrong_files_of_dialogues"))
def test_a_wrong_file_is_one_line_and_nothing_is_written(text, message, tmp_path, capsys):
    """Which line, which field, what was expected."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    place = ["--seeds", "s", "--model", "M", "--dir", str(tmp_path / "w")]
    assert message in refused(capsys, ["import", str(path), *place])
    assert not list((tmp_path / "w").rglob("*.jsonl"))


def test_a_model_that_has_dialogues_keeps_them(tmp_path, capsys):
    """Refused without --replace; with it these stand in their place, and old verdicts are stale."""
    path = write(tmp_path, "utterances")
    w = ["--dir", str(tmp_path / "w")]
    said(capsys, "import", path, "--seeds", "shop", "--model", "M", *w)
    (stored,) = (tmp_path / "w" / "generations" / "shop").glob("*.jsonl")
    before = stored.read_bytes()
    judging = ["judge", "unieval", "--seeds", "shop", "--judge", "rules", *w]
    said(capsys, *judging)
    path.write_text(path.read_text().replace("apples", "pears"))
    again = ["import", str(path), "--seeds", "shop", "--model", "M", *w]
    assert main(again) == 1
    assert "has dialogues on the set shop already; --replace" in capsys.readouterr().err
    assert stored.read_bytes() == before
    assert main([*again, "--replace"]) == 0
    assert "pears" in jsonl.read(stored, Dialogue)[0].utterances[2]
    assert said(capsys, *judging)["rows"][0]["new"] == 5


@pytest.mark.parametrize(("reply", "kept"), rows("thoughts_in_dialogues"))
def test_thoughts_are_left_out_and_what_shows_nothing_ends_a_dialogue(
    reply, kept, tmp_path, capsys
):
    """As where a model is asked: its dialogue stops there, the utterances before it stay."""
    path = tmp_path / "thinks.jsonl"
    talk = ["Are you in?", "From eight on.", "Shall I bring soup?", "Oh yes."]
    said_on = [{"role": role, "content": text} for role, text in two(talk, "user", "assistant")]
    said_on[3]["content"] = reply
    path.write_text(lines([{"messages": said_on}]))
    found = said(capsys, "import", path, "--seeds", "s", "--model", "M", "--dir", tmp_path / "w")
    (dialogue,) = Workspace(tmp_path / "w").dialogues("s", "M").values()
    if kept is None:
        assert (dialogue.status, dialogue.utterances) == ("stopped:empty", tuple(talk[:3]))
    else:
        assert (dialogue.status, dialogue.utterances[3]) == ("complete", kept)
    assert found["stopped"] == (kept is None)


def test_the_walk_of_the_docs(tmp_path, capsys, monkeypatch):
    """The file and the commands of docs/rank.md on dialogues made elsewhere, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).resolve().parents[2] / "docs" / "rank.md").read_text("utf-8")
    section = page.split("\n## Dialogues made elsewhere\n")[1].split("\n## ")[0]
    assert walk(section, capsys) == 3
    board = json.loads((tmp_path / "leaderboards" / "shop" / "leaderboard.json").read_text())
    assert {row["model"]: row["complete"] for row in board["rows"]}["my-model"] == 2

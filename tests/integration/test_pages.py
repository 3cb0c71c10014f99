"""`report` and `plot` on a workspace, as a user runs them."""

import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

import botchat
from botchat.errors import MissingDataError, UsageError
from botchat.pipeline import leaderboard as pages
from botchat.pipeline.load import load
from botchat.workspace.folder import SAMPLE, Workspace


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Two bots on three seeds, judged in UniEval."""
    found = Workspace(tmp_path_factory.mktemp("workspace"))
    models = ["bot:parrot", "bot:verbose"]
    botchat.generate(seeds=SAMPLE, model=models, limit=3, workspace=found)
    botchat.judge("unieval", seeds=SAMPLE, judge="rules", workspace=found)
    return found


def test_a_page_and_its_chunks_are_the_same_twice(workspace: Workspace, tmp_path: Path) -> None:
    """Chunks of a larger page go; what the page did not write stays."""
    botchat.leaderboard(workspace=workspace, seeds=SAMPLE, out=tmp_path)
    left = tmp_path / "chunks" / "seeds-99.js"
    (tmp_path / "chunks" / "app.js").write_text("of another", "utf-8")
    (tmp_path / "judge-guide.html").write_text("of another", "utf-8")
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.*"))}
    left.write_text("old", "utf-8")
    with (tmp_path / "chunks" / "files.txt").open("a") as listed:
        listed.write("\nchunks/seeds-99.js")
    botchat.leaderboard(workspace=workspace, seeds=SAMPLE, out=tmp_path)
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*.*"))} == before
    names = {path.relative_to(tmp_path).as_posix() for path in before}
    assert {"index.html", "chunks/index.js", "chunks/seeds-0.js"} <= names


def test_of_a_large_set_only_what_is_shown_is_read(workspace, tmp_path, monkeypatch) -> None:
    """All judges, while their files are small; else those of the page; in columns at last."""
    place, read = Workspace(shutil.copytree(workspace.root, tmp_path / "w")), []
    (own,) = place.root.glob("judgments/*/unieval/*.jsonl")
    own.with_name("other.jsonl").write_text(own.read_text("utf-8").replace('"rules"', '"other"'))

    def spied(*given, large, **more):
        read.append(({*given[2]}, large))
        return load(*given, large=large, **more)

    monkeypatch.setattr(pages, "load", spied)
    monkeypatch.setattr(pages, "_megabytes", lambda paths: len([*paths]))
    for most in (2, 1, 0):
        monkeypatch.setattr(pages, "MOST_IN_READER", (most, 200, 300))
        botchat.leaderboard(workspace=place, seeds=SAMPLE, judge="rules")
    assert read == [({"rules", "other"}, False), ({"rules"}, False), ({"rules"}, True)]


def test_a_board_without_contestants(tmp_path: Path) -> None:
    """Their folder is gone: nothing is ranked, and what is missing is named."""
    place = Workspace(tmp_path)
    botchat.generate(seeds=SAMPLE, model=["bot:parrot", "bot:verbose"], limit=3, workspace=place)
    botchat.judge("arena", seeds=SAMPLE, judge="rules", workspace=place)
    (tmp_path / "generations").rename(tmp_path / "moved")
    board = botchat.leaderboard(workspace=place, seeds=SAMPLE)
    assert (board.rows, board.data["notes"][-1]) == ([], "0 of 40 dialogues.")


@pytest.mark.parametrize(
    ("key", "title", "groups"),
    [
        ("topic", "By topic", ["a", "b"]),
        ("length", "By length of the human dialogue", ["4–7 utterances", "8–15 utterances"]),
    ],
)
def test_a_board_has_a_table_of_its_groups(
    tmp_path: Path, key: str, title: str, groups: list[str]
) -> None:
    """By topic or, without, length; by its own dialogues alone; a set of one topic has none."""
    place = Workspace(tmp_path)
    seeds = []
    for i, seed in enumerate(place.seeds(SAMPLE)[:22]):
        own = {"topic": "ab"[i % 2]} if key == "topic" else {}
        seeds.append(replace(seed, utterances=seed.utterances[: (5, 9)[i % 2]], **own))
    place.write_seeds("mine", seeds)
    models = ["bot:parrot", "bot:retrieval"]
    botchat.generate(seeds="mine", model=models, workspace=place)
    for protocol in ("unieval", "arena"):
        botchat.judge(protocol, seeds="mine", judge="rules", workspace=place)
    board = botchat.read(place, "mine").board()
    ratings = [each.groups[0].frame.filter(like="bt_") for each in (board, board.unranked())]
    assert [bool(frame.notna().any(axis=None)) for frame in ratings] == [True, False]
    tables = botchat.leaderboard(seeds="mine", workspace=place).data["tables"]
    rows = [(row[key], row["model"], row["n"]) for row in tables[f"by-{key}"]["rows"]]
    n_short = sum(len(seed.utterances) < 8 for seed in seeds)
    sizes = [11, 11] if key == "topic" else [n_short, 22 - n_short]
    names = [*models, "human"]
    expected = [(g, name, n) for g, n in zip(groups, sizes, strict=True) for name in names]
    assert sorted(rows) == sorted(expected)
    assert (place.out("mine") / f"by-{key}.csv").exists()
    page = (place.out("mine") / "index.html").read_text("utf-8")
    assert f"<h2>{title}</h2>" in page
    assert [f"<b>{group}</b>" in page for group in groups] == [n >= 10 for n in sizes]
    place.write_seeds("mine", [replace(seed, topic="a") for seed in seeds])
    assert not botchat.read(place, "mine").board().groups


def written(workspace: Workspace, *words: object, **more: object) -> list[Path]:
    """The files that `botchat figure` writes."""
    rows = botchat.figure(*words, seeds=SAMPLE, workspace=workspace, **more).rows
    return [Path(row["figure"]) for row in rows]


@pytest.mark.usefixtures("pictures")
def test_figures_are_written_as_asked(workspace: Workspace, tmp_path: Path) -> None:
    """One or all; as the ending or the format says, twice the same bytes."""
    (svg,) = written(workspace, "success", out=tmp_path / "one.svg")
    assert "UniEval: success rate" in svg.read_text("utf-8")
    (png,) = written(workspace, "rounds", format="png")
    assert png == workspace.out(SAMPLE) / "rounds.png"
    assert png.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    pdfs = [
        written(workspace, "success-curve", out=tmp_path / name)[0].read_bytes()
        for name in ("one.pdf", "two.pdf")
    ]
    assert (pdfs[0], pdfs[0][:4]) == (pdfs[1], b"%PDF")
    assert b"CreationDate" not in pdfs[0]
    every = written(workspace, out=tmp_path / "all")
    assert {"success.svg", "success-curve.svg", "lengths.svg"} <= {path.name for path in every}
    assert all(path.parent == tmp_path / "all" for path in every)
    assert (tmp_path / "all" / "captions.tex").exists()
    for words, more, says in (
        (["success"], {"format": "pdf", "out": "one.png"}, "ends with .png"),
        ([], {"out": "plots.png"}, "several figures need a folder"),
        ([], {"out": ""}, "an empty path"),
    ):
        with pytest.raises(UsageError, match=says):
            written(workspace, *words, **more)
    with pytest.raises(MissingDataError, match="some are: success, "):
        written(workspace, "elo")
    with pytest.raises(MissingDataError, match="fewer than two judges"):
        written(workspace, "cost-agreement-unieval")

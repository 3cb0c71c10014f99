"""A run leaves: data frames, and datasets that `datasets.load_dataset` reads in one call."""

from __future__ import annotations

import json
import re
import shlex
from html import escape
from pathlib import Path

import msgspec
import pandas as pd
import pytest

import botchat
from botchat.cli.main import main
from botchat.errors import ConfigError
from botchat.ratings.elo import EloSettings
from botchat.records import Dialogue, Judgment, Remark, Seed, Utterance
from botchat.seeds.dataset import STAGES, WHOLE, features
from botchat.workspace import files as store
from botchat.workspace.folder import Workspace, dialogue_order, judgment_order

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "out.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is asked of a hub, nothing is cached beside others' data."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture
def run(tmp_path: Path) -> Workspace:
    """Two models and two judges, whose first files have nulls and empty lists only."""
    workspace = Workspace(tmp_path / "workspace")
    workspace.write_seeds("s", [Seed("1", ("Hi.", "Oh, hi.")), Seed("2", ("So?", "No!", "Why?"))])
    fact = Utterance("ok", 0, 3, "k")
    silent = Dialogue("1", "a", ("Hi.", "Oh, hi."), 2, (), "stopped:refused", "sig")
    spoken = Dialogue("2", "b", ("So?", "No!", "x"), 2, (fact,), "complete", "sig", "c", "d")
    for made in (silent, spoken):
        path = workspace.dialogues_path("s", made.contestant)
        store.finish(path, [made], dialogue_order)
    said = Remark("critic", "no", "k", "ok", "No", cut=1)
    for made in (
        Judgment("unieval", "1", ("a",), "a judge", None, "", 2, "00", "sig", "refused"),
        Judgment(
            "unieval", "2", ("b + c",), "panel", "No", "yes", 3, "00", "sig",
            transcript=(said,), calls=("k",), confidence=0.5,
        ),
    ):  # fmt: skip
        store.finish(workspace.judgments_path("s", "unieval", made.judge), [made], judgment_order)
    return workspace


def stage_paths(workspace: Workspace, stage: str) -> list[str]:
    """The jsonl files of a stage, as they sort."""
    return sorted(map(str, (workspace.root / stage).rglob("*.jsonl")))


def expected(workspace: Workspace, stage: str) -> list[dict[str, object]]:
    """What the stage's files say; what a line leaves out is None."""
    files = [Path(path).read_bytes() for path in stage_paths(workspace, stage)]
    lines = [line for file in files for line in file.splitlines()]
    fields = STAGES[stage].__struct_fields__
    return [{name: json.loads(line).get(name) for name in fields} for line in lines]


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_a_whole_run_in_one_call(run: Workspace, tmp_path: Path, form: str) -> None:
    """Each stage is a split, and alone a configuration with its own columns and fixed types."""
    from datasets import load_dataset

    out = tmp_path / "out"
    share = ["share", "export", "--as", form, "--out", str(out)]
    assert main([*share, "--seeds", "s", "--dir", str(run.root)]) == 0
    whole, results = load_dataset(str(out)), form == "parquet"
    assert list(whole) == list(STAGES)
    for stage in STAGES:
        assert whole[stage].features == features(WHOLE, results=results)
        wanted = expected(run, stage)
        if results and stage == "judgments":
            scores = {None: None, "No": 1.0}
            wanted = [row | {"winner": None, "score": scores[row["verdict"]]} for row in wanted]
        rows = [{name: row[name] for name in wanted[0]} for row in whole[stage]]
        assert rows == wanted
        alone = load_dataset(str(out), stage, split="train")
        assert alone.features == features(stage, results=results)
        assert alone.to_list() == wanted


def test_jsonl_of_a_set_is_read_with_features(run: Workspace) -> None:
    """Without, `datasets` takes the first file's nulls for the column's type."""
    from datasets import load_dataset
    from datasets.exceptions import DatasetGenerationError

    for stage in ("generations", "judgments"):
        files = stage_paths(run, stage)
        with pytest.raises(DatasetGenerationError):
            load_dataset("json", data_files=files)
        read = load_dataset("json", data_files=files, features=botchat.features(stage))
        assert read["train"].to_list() == expected(run, stage)


def test_files_are_the_stage_files(run: Workspace, tmp_path: Path) -> None:
    """To the byte, but for a torn last line; written again they are the same."""
    torn = Path(stage_paths(run, "judgments")[0])
    whole = torn.read_bytes()
    torn.write_bytes(whole + b'{"protocol": "uni')
    made = botchat.export(run, "s", tmp_path / "out", "jsonl")
    assert made.frame.to_dict("list") == {
        "stage": list(STAGES), "files": [1, 2, 2], "records": [2, 2, 2],
    }  # fmt: skip
    there = {path: path.read_bytes() for path in made.whole["out"].rglob("*") if path.is_file()}
    for stage in STAGES:
        for path in map(Path, stage_paths(run, stage)):
            content = whole if path == torn else path.read_bytes()
            assert there[made.whole["out"] / path.relative_to(run.root)] == content
    botchat.export(run, "s", made.whole["out"], "jsonl")
    assert {path: path.read_bytes() for path in there} == there


def test_what_a_folder_holds_is_neither_lost_nor_mixed_in(run: Workspace, tmp_path: Path) -> None:
    """Somebody's README, a model that was removed since, another set."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "README.md").write_text("# Mine\n")
    with pytest.raises(ConfigError, match=r"holds README\.md, which is not of this export"):
        botchat.export(run, "s", out)
    (out / "README.md").unlink()
    botchat.export(run, "s", out)
    Path(stage_paths(run, "generations")[0]).unlink()
    with pytest.raises(ConfigError, match=r"holds generations/s/a-\w+\.parquet, which is not"):
        botchat.export(run, "s", out)


def test_every_type_of_a_record_is_a_feature() -> None:
    """A field that is added to a record is in the dataset."""
    for stage, record in STAGES.items():
        assert list(features(stage)) == list(record.__struct_fields__)
    shared = [(key, one) for stage in STAGES for key, one in features(stage).items()]
    assert all(features(WHOLE)[key] == one for key, one in shared)
    with pytest.raises(ConfigError, match="no stage 'x'; give one of seeds, generations"):
        features("x")


def test_a_rate_table_is_a_data_frame_and_any_file(tmp_path: Path) -> None:
    """What `rank` says and writes of a table of rates; its csv is such a table again."""
    rates = tmp_path / "rates.csv"
    rates.write_text(
        "model_a,model_b,win_rate,win_or_tie_rate\na,b,0.5,0.7\na,c,0.6,0.9\nb,c,.4,.8\n"
    )
    out = tmp_path / "out"
    asked = ["rank", str(rates), "--out", str(out)]
    assert main([*asked, "--format", "parquet", "--format", "csv"]) == 0
    made = botchat.rank(botchat.Workspace(tmp_path), [rates])
    pd.testing.assert_frame_equal(
        pd.read_parquet(out / f"{made.tables[0].name}.parquet"), made.frame, check_dtype=False
    )
    assert made._repr_html_().startswith(made.tables[0]._repr_html_())  # its notes follow
    assert all(escape(note) in made._repr_html_() for note in made.lines)
    pairs = next(out.glob("*-pairs.csv"))
    again = botchat.rank(botchat.Workspace(tmp_path), [pairs], elo=EloSettings(shuffles=5))
    assert again.frame["model"].tolist() == made.frame["model"].tolist()


def test_the_walks_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command and every line of Python in docs/out.md, in its order."""
    monkeypatch.chdir(tmp_path)
    models = [flag for name in ("verbose", "parrot") for flag in ("--model", f"bot:{name}")]
    assert main(["generate", "--seeds", "sample", *models, "--limit", "6"]) == 0
    for protocol in ("unieval", "gteval"):
        assert main(["judge", protocol, "--seeds", "sample", "--judge", "rules"]) == 0
    known: dict[str, object] = {}
    blocks = re.findall(r"^```(bash|python)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 6
    for language, text in blocks:
        if language == "python":
            exec(text, known)
        else:
            for line in text.splitlines():
                assert main(shlex.split(line)[1:]) == 0
    assert list(known["whole"]) == list(STAGES)
    assert known["judgments"]["train"].features == features("judgments")
    assert known["run"].judgments["protocol"].nunique() == 2
    folder = tmp_path / "leaderboards" / "sample"
    csv = pd.read_csv(folder / "leaderboard.csv")
    assert csv["model"].tolist() == known["board"].frame["model"].tolist()
    assert (folder / "gteval.tex").exists()
    assert pd.read_parquet(folder / "gteval.parquet").attrs["signatures"]


def test_nothing_judged_is_an_empty_frame(tmp_path: Path) -> None:
    """With the columns that there will be."""
    run = botchat.read(Workspace(tmp_path), "sample")
    assert run.frame.empty
    assert list(run.frame) == list(Judgment.__struct_fields__)
    assert msgspec.to_builtins(run.workspace.seeds("sample")[0])["id"] == run.seeds["id"][0]


def test_what_judges_and_writers_of_errors_give_back_is_a_data_frame(tmp_path: Path) -> None:
    """As every result: rows and a frame; a path may be a text."""
    workspace, stories = botchat.Workspace(tmp_path), tmp_path / "stories.txt"
    stories.write_text("Kim had a cat. It slept.\n\nRob went home. It was late.\n")
    told = botchat.evaluate(workspace, stories, "rules")
    assert len(told.frame) == len(told.rows) == 2
    with pytest.raises(ConfigError, match="--limit 3: --recorded reads all"):
        botchat.bench(workspace, "mateval", str(tmp_path), from_recorded=True, limit=3)


def test_a_judgment_says_who_won(run: Workspace, tmp_path: Path) -> None:
    """An Arena's "1" accuses the first, so the second wins; both is a tie."""
    pairs = {"1": "b + c", "2": "a", "both": "tie"}
    for n, verdict in enumerate(pairs):
        made = Judgment("gteval", f"{n}", ("a", "b + c"), "x", verdict, "", 2, "00", "sig")
        path = run.judgments_path("s", "gteval", f"x{n}")
        store.finish(path, [made], judgment_order)
    botchat.export(run, "s", tmp_path / "out")
    folder = tmp_path / "out" / "judgments" / "s" / "gteval"
    rows = pd.concat(pd.read_parquet(path) for path in folder.glob("*.parquet"))
    assert dict(zip(rows["verdict"], rows["winner"], strict=True)) == pairs
    assert rows["score"].isna().all()

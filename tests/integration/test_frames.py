"""Results as data frames and files of tables."""

from __future__ import annotations

import re
import shlex
from html import escape
from pathlib import Path

import msgspec
import pandas as pd
import pytest

import botchat
from botchat.cli.main import main
from botchat.pipeline.rank import rank
from botchat.ratings.elo import EloSettings
from botchat.records import Judgment
from botchat.workspace.folder import Workspace

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "out.md").read_text("utf-8")


def test_a_rate_table_is_a_data_frame_and_any_file(tmp_path: Path) -> None:
    """What `rank` says and writes of a table of rates; its csv is such a table again."""
    rates = tmp_path / "rates.csv"
    rates.write_text(
        "model_a,model_b,win_rate,win_or_tie_rate\na,b,0.5,0.7\na,c,0.6,0.9\nb,c,.4,.8\n"
    )
    out = tmp_path / "out"
    asked = ["rank", str(rates), "--out", str(out)]
    assert main([*asked, "--format", "parquet", "--format", "csv"]) == 0
    made = botchat.rank(rates, workspace=tmp_path)
    pd.testing.assert_frame_equal(
        pd.read_parquet(out / f"{made.tables[0].name}.parquet"), made.frame, check_dtype=False
    )
    assert made._repr_html_().startswith(made.tables[0]._repr_html_())  # its notes follow
    assert all(escape(note) in made._repr_html_() for note in made.lines)
    pairs = next(out.glob("*-pairs.csv"))
    again = rank(botchat.Workspace(tmp_path), [pairs], elo=EloSettings(shuffles=5))
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
    assert len(blocks) == 2
    for language, text in blocks:
        if language == "python":
            exec(text, known)
        else:
            for line in text.splitlines():
                assert main(shlex.split(line)[1:]) == 0
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

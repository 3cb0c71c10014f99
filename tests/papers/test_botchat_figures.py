"""BotChat's Figures 3 to 6 from its published numbers, at a paper's sizes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from botchat.cli.main import main
from botchat.papers.botchat_figures import FIGURES

PUBLISHED = Path(__file__).resolve().parents[2] / "leaderboards" / "botchat-2023"


def draw(out: Path, *more: str, data: Path = PUBLISHED, code: int = 0) -> None:
    """All figures by the command line."""
    command = ["bench", "botchat", "--data", str(data), "--out", str(out)]
    assert main([*command, *more, "--json"]) == code


def test_every_figure_is_drawn_of_the_published_numbers(tmp_path, capsys) -> None:
    """3 to 6, in every form, with whole names and where the numbers are from."""
    draw(tmp_path)
    paths = [Path(path) for path in json.loads(capsys.readouterr().out)["paths"]]
    assert {path.suffix for path in paths} == {".svg", ".png", ".pdf"}
    assert {path.stem[:8] for path in paths} == {f"figure-{number}" for number in FIGURES}
    for path in paths:
        if path.suffix == ".svg":
            text = path.read_text()
            assert text.count("Baichuan2-13B") >= 1
            assert "\u2026" not in text
            assert "sha256:" in text.partition("</desc>")[0]


def test_the_numbers_are_those_of_the_file(tmp_path) -> None:
    """As they are printed beside the bars of Figure 6, best first."""
    from botchat.papers import botchat_figures as figures

    of = FIGURES["6"]
    path = PUBLISHED / "gteval.csv"
    *_, rates = of.parts(figures._read(path, of))
    assert rates.loc["GPT-4", ["win", "tie", "lose"]].tolist() == pytest.approx(
        [0.264, 0.468, 0.268]
    )
    win = FIGURES["5"]
    path = PUBLISHED / "arena_n8.csv"
    *_, (wins, either), _ = win.parts(figures._read(path, win))
    a, b = "Baichuan2-13B", "ChatGLM2-6B"
    assert wins.values.loc[a, b] == pytest.approx(0.29)
    assert wins.values.loc[b, a] == pytest.approx(1 - 0.88)
    assert either.values.loc[b, a] == pytest.approx(1 - 0.29)


def test_what_cannot_be_drawn_is_told_in_a_line(tmp_path, capsys) -> None:
    """No such columns, a cell that is no number, a flag that would change nothing."""
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    draw(tmp_path, data=tmp_path / "other.csv", code=1)
    assert "no csv file has a figure's columns of model or Model" in capsys.readouterr().err
    shutil.copy(PUBLISHED / "gteval.csv", broken := tmp_path / "gteval.csv")
    broken.write_text(broken.read_text().replace("26.4", "many"))
    draw(tmp_path, data=broken, code=1)
    assert "gteval.csv:2: 'many' is no number from 0 on" in capsys.readouterr().err
    assert main(["rank", str(PUBLISHED / "gteval.csv"), "--dir", str(tmp_path)]) == 1
    assert "no votes (columns: model" in capsys.readouterr().err
    draw(tmp_path, "--judge", "rules", code=1)
    assert "--judge: bench botchat draws published numbers" in capsys.readouterr().err
    draw(tmp_path, "--plan", code=1)
    assert "asks nobody: no --plan" in capsys.readouterr().err

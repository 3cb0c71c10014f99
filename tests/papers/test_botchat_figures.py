"""BotChat's Figures 3 to 6 from its published numbers, at a paper's sizes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from botchat.cli.main import main
from botchat.papers.botchat_figures import FIGURES, _read

PUBLISHED = Path(__file__).resolve().parents[2] / "leaderboards" / "botchat-2023"


def draw(out: Path, *more: str, data: Path = PUBLISHED, code: int = 0) -> None:
    """All figures by the command line."""
    command = ["bench", "botchat", "--data", str(data), "--out", str(out)]
    assert main([*command, *more, "--json"]) == code


def test_every_figure_is_drawn_of_the_published_numbers(tmp_path, capsys, pictures) -> None:
    """3 to 6, in every form, with whole names and where the numbers are from."""
    draw(tmp_path)
    paths = [Path(path) for path in json.loads(capsys.readouterr().out)["paths"]]
    assert {path.suffix for path in paths} == {".svg", ".png", ".pdf"}
    assert {path.stem[:8] for path in paths} == {f"figure-{number}" for number in FIGURES}
    for path in paths:
        if path.suffix == ".svg":
            picture = path.read_text()
            assert "Baichuan2-13B" in picture
            assert "\u2026" not in picture
            assert "sha256:" in picture


def test_the_numbers_are_those_of_the_file() -> None:
    """As they are printed beside the bars of Figure 6 and in the matrix of Figure 5."""

    def numbers(figure: str, file: str) -> list:
        of = FIGURES[figure]
        return [drawn.args[0] for _, _, drawn, _ in of.parts(_read(PUBLISHED / file, of))]

    (rates,) = numbers("6", "gteval.csv")
    rates = rates.loc["GPT-4", ["win", "tie", "lose"]].tolist()
    assert rates == pytest.approx([0.264, 0.468, 0.268])
    wins, either = numbers("5", "arena_n8.csv")
    a, b = "Baichuan2-13B", "ChatGLM2-6B"
    assert wins.loc[a, b] == pytest.approx(0.29)
    assert wins.loc[b, a] == pytest.approx(1 - 0.88)
    assert either.loc[b, a] == pytest.approx(1 - 0.29)


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

"""BotChat's Figures 3 to 6 from its published numbers, at a paper's sizes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from botchat.cli.main import main
from botchat.papers.botchat_figures import FIGURES

PUBLISHED = Path(__file__).resolve().parents[2] / "leaderboards" / "botchat-2023"


def draw(out: Path, number: str, *more: str, data: Path = PUBLISHED, code: int = 0) -> None:
    """One figure by the command line."""
    command = ["bench", "botchat", "--figure", number, "--data", str(data), "--out", str(out)]
    assert main([*command, *more, "--json"]) == code


@pytest.mark.parametrize(("number", "width"), [*((one, "3.3") for one in FIGURES), ("6", "6.3")])
def test_a_figure_fits_a_column_and_a_page(tmp_path, capsys, number, width) -> None:
    """14 models in at most 9 inches, with whole names; what is not drawn stands beside it."""
    draw(tmp_path, number, "--bare", "--size", width)
    paths = [Path(path) for path in json.loads(capsys.readouterr().out)["paths"]]
    assert {path.suffix for path in paths} == {".svg", ".png", ".pdf", ".txt"}
    for path in paths:
        if path.suffix == ".png":
            with Image.open(path) as image:
                assert image.width == round(160 * float(width))
                assert image.height <= 160 * 9
                assert image.text["Title"]
                assert f"Figure {number}" in image.text["Description"]
        elif path.suffix == ".svg":
            text = path.read_text()
            assert text.count("Baichuan2-13B") >= 1
            assert "\u2026" not in text
            assert "sha256:" in text.partition("</desc>")[0]
            assert "sha256:" not in text.partition("</desc>")[2]
        elif path.suffix == ".txt":
            assert f"Figure {number}" in path.read_text()


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
    """No such figure, no such columns, a cell that is no number."""
    draw(tmp_path, "7", code=1)
    assert "the numbers of 7 were not published" in capsys.readouterr().err
    draw(tmp_path, "4", data=PUBLISHED / "gteval.csv", code=1)
    assert "no csv file has the columns model or Model, success_n8" in capsys.readouterr().err
    shutil.copy(PUBLISHED / "gteval.csv", broken := tmp_path / "gteval.csv")
    broken.write_text(broken.read_text().replace("26.4", "many"))
    draw(tmp_path, "6", data=broken, code=1)
    assert "gteval.csv:2: 'many' is no number from 0 on" in capsys.readouterr().err
    assert main(["rank", str(PUBLISHED / "gteval.csv"), "--dir", str(tmp_path)]) == 1
    assert "bench botchat --figure 6" in capsys.readouterr().err


def test_a_flag_that_would_change_nothing_is_refused(tmp_path, capsys) -> None:
    """Those of judges here, and those of these figures elsewhere."""
    draw(tmp_path, "4", "--judge", "rules", code=1)
    assert "--judge: bench botchat draws published numbers" in capsys.readouterr().err
    draw(tmp_path, "4", "--plan", code=1)
    assert "asks nobody: no --plan" in capsys.readouterr().err
    assert main(["bench", "faireval", "--data", str(tmp_path), "--bare"]) == 1
    assert "--size and --bare are of bench botchat's figures" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())

"""The published numbers in leaderboards/botchat-2023 and what is rebuilt from them."""

from __future__ import annotations

import csv
import io
import runpy
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import kendalltau

TABLES = Path(__file__).resolve().parents[2] / "leaderboards" / "botchat-2023"
DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "botchat"


@pytest.fixture(scope="module")
def rebuild() -> dict[str, Any]:
    """The names that rebuild.py defines."""
    return runpy.run_path(str(TABLES / "rebuild.py"))


def rows(text: str) -> list[dict[str, str]]:
    """A CSV's rows by column."""
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(
    ("name", "make"),
    [("rebuilt_elo.csv", "elo_table"), ("rebuilt_bradley_terry.csv", "bradley_terry_table")],
)
def test_rebuilt_tables_are_what_the_code_makes(rebuild, name, make):
    """The committed tables are made anew and compared, to the last digit shown."""
    committed, rebuilt = rows((TABLES / name).read_text(encoding="utf-8")), rows(rebuild[make]())
    assert len(rebuilt) == len(committed) == 28
    for new, old in zip(rebuilt, committed, strict=True):
        assert new.keys() == old.keys()
        for key, value in old.items():
            is_digit = key in ("rating", "low", "high", "elo", "elo_run_std")
            assert abs(float(new[key]) - float(value)) < 0.11 if is_digit else new[key] == value


def test_the_papers_elo_comes_out():
    """At N = 8 12 models within 2 points, two within 6; at 16, where it differs, the order."""
    committed = rows((TABLES / "rebuilt_elo.csv").read_text(encoding="utf-8"))
    by_n = {n: [row for row in committed if row["n"] == n] for n in ("8", "16")}
    off = {row["model"]: abs(float(row["elo"]) - float(row["published_elo"])) for row in by_n["8"]}
    assert {model for model, points in off.items() if points > 2} <= {"Vicuna-13B", "LLaMA2-70B"}
    assert max(off.values()) < 6
    ours, theirs = ([float(row[key]) for row in by_n["16"]] for key in ("elo", "published_elo"))
    assert kendalltau(ours, theirs).statistic >= 0.95
    fitted = rows((TABLES / "rebuilt_bradley_terry.csv").read_text(encoding="utf-8"))
    rating = {row["model"]: float(row["rating"]) for row in fitted if row["n"] == "16"}
    assert kendalltau([rating[row["model"]] for row in by_n["16"]], theirs).statistic >= 0.97


def test_tables_are_the_published_ones():
    """The Arena rates and Elo equal the source files' values."""
    if not DATA.exists():
        pytest.skip("no shared/data/botchat beside this checkout")
    for name, source in (
        ("arena_n8.csv", "arena_n8_pairwise_rates.csv"),
        ("arena_n16.csv", "arena_n16_pairwise_rates.csv"),
        ("elo.csv", "published_elo.csv"),
    ):
        ours, theirs = (
            rows(path.read_text(encoding="utf-8")) for path in (TABLES / name, DATA / source)
        )
        assert ours == theirs

"""The published numbers in leaderboards/botchat-2023 and what is rebuilt from them."""

from __future__ import annotations

import csv
import io
import runpy
from pathlib import Path
from typing import Any

import pytest

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
    ("name", "make", "exact"),
    [
        ("rebuilt_elo.csv", "elo_table", ("n", "model", "published_elo")),
        ("rebuilt_bradley_terry.csv", "bradley_terry_table", ("n", "rank", "model")),
    ],
)
def test_rebuilt_tables_are_what_the_code_makes(rebuild, name, make, exact):
    """The committed tables are made anew and compared, to the last digit shown."""
    committed = rows((TABLES / name).read_text(encoding="utf-8"))
    made = rows(rebuild[make]())
    assert [[row[key] for key in exact] for row in made] == [
        [row[key] for key in exact] for row in committed
    ]
    for new, old in zip(made, committed, strict=True):
        for key in set(old) - set(exact):
            assert abs(float(new[key]) - float(old[key])) < 0.11


def test_every_table_has_the_same_14_models():
    """All tables speak of the same models, in clean CSV without a byte order mark."""
    models = set()
    for path in sorted(TABLES.glob("*.csv")):
        raw = path.read_bytes()
        assert not raw.startswith(b"\xef\xbb\xbf")
        assert b"\r" not in raw
        table = rows(raw.decode("utf-8"))
        key = "model" if "model" in table[0] else "model_a"
        models.add(frozenset(row[key] for row in table))
    assert len(models) == 1
    assert len(*models) == 14


def test_gteval_adds_up():
    """Won, tied and lost are all comparisons, but for rounding."""
    for row in rows((TABLES / "gteval.csv").read_text(encoding="utf-8")):
        total = sum(float(row[key]) for key in ("win_percent", "tie_percent", "lose_percent"))
        assert abs(total - 100) < 0.16
        assert row["comparisons"] == "444"


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

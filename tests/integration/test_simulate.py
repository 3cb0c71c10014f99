"""``botchat simulate`` on a finished Arena and on a rate table, as people call it."""

from __future__ import annotations

import json

import pytest

from botchat.cli.main import main

BOTS = ("bot:eliza", "bot:parrot", "bot:verbose")
KEYS = {"design", "budget", "added", "runs", "calls_mean", "share", "success", "kendall_mean"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Three bots, compared by rules at two lengths, offline."""
    folder = str(tmp_path_factory.mktemp("finished"))
    models = [part for bot in BOTS for part in ("--model", bot)]
    generate = ["generate", "--seeds", "sample", "--turns", "8", "--limit", "10", *models]
    arena = ["judge", "arena", "--seeds", "sample", "--judge", "rules"]
    assert main([*generate, "--dir", folder]) == 0
    assert main([*arena, "--turns", "4", "--turns", "8", "--dir", folder]) == 0
    return folder


def simulated(capsys, *flags):
    """What ``simulate --json`` prints."""
    capsys.readouterr()
    assert main(["simulate", "--runs", "2", "--gap", "30", "--swaps", "0", "--json", *flags]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_finished_arena_is_the_truth(finished, capsys):
    """Its real judgments are drawn; each design has its row, none asks more than there is."""
    flags = ("--seeds", "sample", "--judge", "rules", "--turns", "8", "--dir", finished)
    rows = simulated(capsys, *flags, "--budget", "24")["rows"]
    assert [(row["design"], row["budget"]) for row in rows] == [
        ("full", None),
        ("adaptive", None),
        ("uniform", None),
        ("adaptive", 24),
        ("uniform", 24),
    ]
    population = rows[0]["calls_mean"]
    assert population == 3 * 2 * 10
    for row in rows:
        assert row.keys() >= KEYS
        assert row["share"] == pytest.approx(row["calls_mean"] / population)
        assert 0 <= row["success"] <= 1
    again = simulated(capsys, *flags, "--budget", "24")["rows"]
    assert again == rows


def test_one_model_is_placed_on_the_board_of_the_others(finished, capsys):
    """``--add`` alone takes every model in turn."""
    flags = ("--seeds", "sample", "--turns", "4", "--dir", finished)
    rows = simulated(capsys, *flags, "--add")["rows"]
    assert [row["added"] for row in rows] == [*BOTS, "all"]
    one = simulated(capsys, *flags, "--add", BOTS[1])["rows"]
    assert one == [row for row in rows if row["added"] == BOTS[1]]


def test_an_unfinished_arena_is_no_truth(finished, capsys):
    """What was asked adaptively is a part; the line says what is missing and how to get it."""
    arena = ["judge", "arena", "--seeds", "sample", "--judge", "rules", "--turns", "6"]
    assert main([*arena, "--adaptive", "--budget", "20", "--dir", finished]) == 0
    capsys.readouterr()
    assert main(["simulate", "--seeds", "sample", "--turns", "6", "--dir", finished]) == 1
    err = capsys.readouterr().err
    assert "40 of 60 comparisons are not judged" in err
    assert "botchat judge arena --seeds sample --judge rules --turns 6" in err


def test_people_get_a_table(tmp_path, capsys):
    """Without ``--json``: a line for each design, and what success means."""
    table = tmp_path / "rates.csv"
    table.write_text("model_a,model_b,win_rate,win_or_tie_rate\na,b,0.5,0.8\n", "utf-8")
    assert main(["simulate", "--rates", str(table), "--per-pair", "40", "--runs", "2"]) == 0
    out = capsys.readouterr().out
    assert "adaptive" in out
    assert "rates.csv: 40 comparisons of 2 models. Success: at most 2 pairs more than 10 Elo" in out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--rates", "nowhere.csv"], "no file nowhere.csv"),
        (["--seeds", "sample"], "several Arenas of sample by rules: name one with --turns: 4, "),
        (["--seeds", "sample", "--turns", "7"], "no Arena at N = 7"),
        ([], "either --rates FILE.csv or --seeds SET"),
        (["--seeds", "sample", "--turns", "8", "--confidence", "2"], "confidence 2.0"),
    ],
)
def test_wrong_input_gets_one_line(finished, capsys, flags, said):
    """Exit 1, and one line that says what to give."""
    assert main(["simulate", *flags, "--dir", finished]) == 1
    err = capsys.readouterr().err.strip()
    assert said in err
    assert "\n" not in err.removeprefix("botchat: ")

"""Votes of every format, as columns: what is read, what is left out, what is refused."""

import csv
import io
import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.boards import votes as boards
from botchat.boards.votes import compared
from botchat.errors import DataError
from botchat.importers import vote_files
from botchat.importers.vote_files import read_votes
from botchat.metrics.vote_arrays import Votes
from botchat.ratings.bradley_terry import fit, tables
from botchat.ratings.elo import EloSettings, play

SHARED = Path(__file__).parents[3] / "shared" / "data" / "votes"
FAST = EloSettings(shuffles=20, runs=2)


def as_csv(rows, separator=","):
    """Rows as the text of a table."""
    told = io.StringIO()
    writer = csv.DictWriter(told, list(rows[0]), delimiter=separator, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return told.getvalue().encode()


def as_lines(rows):
    """Rows as JSON lines."""
    return "\n".join(json.dumps(row) for row in rows).encode()


def as_parquet(rows):
    """Rows as parquet."""
    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


WRITERS = {
    "csv": as_csv,
    "tsv": lambda rows: as_csv(rows, "\t"),
    "json": lambda rows: json.dumps(rows).encode(),
    "jsonl": as_lines,
    "parquet": as_parquet,
}


def told(votes: Votes) -> list[tuple]:
    """(item, first, second, judge, result) of every vote."""
    return [
        (
            votes.items[i] if i >= 0 else None,
            votes.contestants[a],
            votes.contestants[b],
            votes.judges[j],
            None if math.isnan(r) else r,
        )
        for i, a, b, j, r in zip(
            *(
                getattr(votes, name).tolist()
                for name in ("item", "first", "second", "judge", "result")
            ),
            strict=True,
        )
    ]


BATTLES = [
    {"question_id": "q1", "model_a": "x", "model_b": "y", "winner": "model_a", "judge": "u1",
     "turn": 1, "tstamp": 1.5},
    {"question_id": "q2", "model_a": "y", "model_b": "z", "winner": "tie (bothbad)", "judge": "u2",
     "turn": 1, "tstamp": 2.5},
    {"question_id": "q3", "model_a": "z", "model_b": "x", "winner": "model_b", "judge": "u1",
     "turn": 1, "tstamp": 3.5},
    {"question_id": "q3", "model_a": "z", "model_b": "y", "winner": "both_bad", "judge": "u3",
     "turn": 1, "tstamp": 4.5},
]  # fmt: skip


@pytest.mark.parametrize("kind", WRITERS)
def test_battles_of_lmarena_are_read_from_every_kind_of_file(kind):
    """Its ties, its users; times and turns are passed over."""
    taken = read_votes(WRITERS[kind](BATTLES), f"b.{kind}")
    assert told(taken.votes) == [
        ("q1", "x", "y", "u1", 1.0),
        ("q2", "y", "z", "u2", 0.5),
        ("q3", "z", "x", "u1", 0.0),
        ("q3", "z", "y", "u3", 0.5),
    ]
    assert taken.note == f"b.{kind}: battles as of LMArena: 4 rows read; nothing left out"


@pytest.mark.parametrize("kind", WRITERS)
def test_our_verdicts_are_read_from_every_kind_of_file(kind):
    """1, 2, tie and empty."""
    rows = [
        {"item": "1", "first": "a", "second": "b", "judge": "j", "verdict": v}
        for v in ("1", "2", "tie", "")
    ]
    taken = read_votes(WRITERS[kind](rows), f"f.{kind}")
    assert told(taken.votes) == [("1", "a", "b", "j", r) for r in (1.0, 0.0, 0.5, None)]
    assert taken.note == f"f.{kind}: verdicts of BotChat: 4 rows read; 1 without a readable verdict"


def test_our_verdicts_are_given_once():
    """Capitals, spaces and the order of columns do not matter; two of one judge are refused."""
    text = "\ufeffjudge,Verdict,item,note,second,first\r\nj,Tie,1,x,b,a\r\n\r\nj, ,2,,b,a\r\n"
    found, _ = read_votes(text.encode(), "f.csv").votes.annotations(once=True)
    assert [(one.item, one.first, one.verdict) for one in found] == [
        ("1", "a", "tie"), ("2", "a", None),
    ]  # fmt: skip
    twice = read_votes(OURS + b"1,a,b,j,1\n1,a,b,j,2\n", "f.csv").votes
    assert twice.annotations()[1] == 1
    with pytest.raises(DataError, match="j has judged item 1, a before b, twice; keep one"):
        twice.annotations(once=True)


def test_what_does_not_count_is_left_out_and_counted():
    """A model against itself, and battles in which names were shown."""
    rows = [
        {"model_a": "x", "model_b": "y", "winner": "model_a", "anony": True},
        {"model_a": "x", "model_b": "x", "winner": "tie", "anony": True},
        {"model_a": "y", "model_b": "x", "winner": "model_b", "anony": False},
    ]
    taken = read_votes(as_lines(rows), "f.jsonl")
    assert len(taken.votes) == 1
    assert "left out 1 of a model against itself; left out 1 not anonymous" in taken.note


def battles(*winners, **more):
    """Battles of a and b."""
    return [{"model_a": "a", "model_b": "b", "winner": w, **more} for w in winners]


OURS = b"item,first,second,judge,verdict\n"
WRONG = [
    ("csv", b"", "the file is empty; its first row names columns"),
    ("csv", b"x,y\n1,2\n", "no votes (columns: x, y); name them model_a,model_b,winner or"),
    ("csv", b"model_a,model_b,winner\n", "no votes (columns: model_a, model_b, winner)"),
    (
        "csv",
        as_csv(battles("tie", "model_a", "modle_b")),
        " row 4: the winner 'modle_b' is neither",
    ),
    ("jsonl", b"\n" + as_lines(battles("tie", 3)), " row 2: the winner '3' is neither"),
    ("parquet", as_parquet(battles("tie", "x")), " row 2: the winner 'x' is neither"),
    (
        "jsonl",
        as_lines([*battles("tie"), {"model_a": "a", "winner": "tie"}]),
        " row 2: model_b is empty",
    ),
    (
        "csv",
        b"model_a,model_b,winner\na,b,tie\na,b,tie,4\n",
        "not readable as csv (CSV parse error",
    ),
    ("jsonl", b'{"model_a": 1}\n[]\n', " row 2: [] is not an object with named fields"),
    ("json", b"[1, 2]", " row 1: 1 is not an object with named fields"),
    ("csv", b"model_a,model_b,winner\na,b,\xff\n", "line 2: byte 0xff is not UTF-8"),
    ("parquet", b"PAR1....", "not readable as parquet"),
    ("txt", b"x", "none of .csv, .tsv"),
    (
        "csv",
        as_csv([*battles("a"), {"model_a": "a", "model_b": "c", "winner": "b"}]),
        " row 3: the winner 'b' is neither a model of the row",
    ),
    ("csv", as_csv([{"model_a": "x" * 300, "model_b": "b", "winner": "tie"}]), "'xxx"),
    ("csv", OURS + b"1,a,b,j,1\n2,a,b,j,3\n", " row 3: the winner '3' is neither"),
    ("csv", OURS + b"1,a,b,,1\n", " row 2: judge is empty"),
    ("csv", OURS + b'"1\n1",a,b,j,1\n,a,b,j,1\n', " row 3: item is empty"),
]
"""Ending, content, message."""


@pytest.mark.parametrize(("suffix", "data", "message"), WRONG)
def test_a_wrong_file_is_refused_in_one_line(suffix, data, message):
    """Which row, which column, what was expected."""
    with pytest.raises(DataError) as refused:
        read_votes(data, f"f.{suffix}")
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"f.{suffix}")
    assert "\n" not in str(refused.value)


def test_too_many_names_are_no_models(monkeypatch):
    """A column of questions taken for models would make tables of any size."""
    monkeypatch.setattr(vote_files, "MAX_MODELS", 2)
    rows = [{"model_a": str(n), "model_b": "b", "winner": "tie"} for n in range(3)]
    with pytest.raises(DataError, match=r"f\.csv: 4 names of models, such as .*; at most 2"):
        read_votes(as_csv(rows), "f.csv")


VOTES = st.lists(
    st.tuples(
        st.sampled_from("abcd"), st.sampled_from("wxyz"), st.sampled_from(["model_a", "model_b",
        "tie", "tie (bothbad)"]), st.sampled_from("123"), st.sampled_from("jk"),
    ),
    min_size=1, max_size=30,
)  # fmt: skip


def table_of(rows):
    """The csv of such votes."""
    names = ("model_a", "model_b", "winner", "question_id", "judge")
    return as_csv([dict(zip(names, row, strict=True)) for row in rows])


@settings(max_examples=15)
@given(VOTES, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, random):
    """Nor to what the data is signed with."""
    shuffled = list(rows)
    random.shuffle(shuffled)
    one, two = (read_votes(table_of(given), "f.csv").votes for given in (rows, shuffled))
    assert Counter(told(one)) == Counter(told(two))
    assert boards.digest(one) == boards.digest(two)
    (first, _, _), (second, _, _) = compared(one), compared(two)
    assert first.models == second.models
    for mine, others in zip(tables(first, 1.0), tables(second, 1.0), strict=True):
        np.testing.assert_array_equal(mine, others)


@settings(max_examples=15)
@given(VOTES)
def test_swapping_sides_mirrors(rows):
    """The same votes with sides and winners swapped have the same games and scores."""
    mirror = {"model_a": "model_b", "model_b": "model_a"}
    swapped = [(b, a, mirror.get(w, w), *rest) for a, b, w, *rest in rows]
    (one, _, _), (two, _, _) = (
        compared(read_votes(table_of(g), "f.csv").votes) for g in (rows, swapped)
    )
    assert one.models == two.models
    for mine, others in zip(tables(one, 1.0), tables(two, 1.0), strict=True):
        np.testing.assert_array_equal(mine, others)


@settings(max_examples=15)
@given(VOTES, VOTES)
def test_files_add_up(rows, more):
    """Votes of two files are those of one file with the rows of both."""
    apart = Votes.together([read_votes(table_of(part), "f.csv").votes for part in (rows, more)])
    assert told(apart) == told(read_votes(table_of([*rows, *more]), "f.csv").votes)


def test_clusters_are_items_else_judges_else_nothing():
    """Few items cannot tell many models apart; an item a vote says nothing."""

    def clusters(rows):
        votes = read_votes(table_of(rows), "f.csv").votes
        found = votes.clusters(len(votes.contestants))
        return found and (len(set(found[0].tolist())), found[1])

    many = [(a, b, "tie", str(i), "j") for a in "ab" for b in "wx" for i in range(5)]
    assert clusters(many) == (5, "questions")
    few = [(a, b, "tie", i, str(j)) for a in "ab" for b in "wx" for i in "12" for j in range(6)]
    assert clusters(few) == (6, "judges")
    single = [("a", "b", "tie", str(i), "j") for i in range(9)]
    assert clusters(single) is None
    crossed = [("a", "b", "tie", str(i), str(j)) for i in range(5) for j in range(6)]
    assert clusters(crossed) == (5, "questions")
    own = [(a, b, "tie", str(i), f"{a}{b}{i}") for a in "ab" for b in "wx" for i in range(5)]
    assert clusters(own) == (5, "questions")


def test_a_place_is_judged_by_what_was_asked_in_both_orders():
    """A file that always names the weak one first says nothing of the place."""
    one_way = [("a", "w", "model_b", str(i), "j") for i in range(9)]
    board = boards.build(read_votes(table_of(one_way), "f.csv").votes, "f", FAST)
    assert board.evidence == {}
    assert board.judge_health.frame["first_preferred"].isna().all()
    both = [*one_way, *(("w", "a", "model_a", str(i), "j") for i in range(3)), one_way[0]]
    votes = read_votes(table_of(both), "f.csv").votes
    row = boards.build(votes, "f", FAST).judge_health.records[0]
    assert (row["judged"], row["consistency"], row["first_preferred"]) == (13, 1, 0.5)


def test_many_clusters_are_put_together(monkeypatch):
    """Memory stays bounded; errors are about the same."""
    rng = np.random.default_rng(1)
    rows = [
        (a, b, "model_a" if win else "model_b", str(i), "j")
        for i in range(2000)
        for a, b, win in [("a", "bc"[i % 2], rng.random() < 0.6), ("b", "c", rng.random() < 0.5)]
    ]
    votes = read_votes(table_of(rows), "f.csv").votes
    whole = fit(compared(votes)[0])
    monkeypatch.setattr("botchat.boards.votes.MOST_CELLS", 1500)
    made, units, _ = compared(votes)
    assert (units, len(set(made.cluster.tolist()))) == ("groups of questions", 488)
    np.testing.assert_allclose(fit(made).std_error, whole.std_error, rtol=0.15)


def test_length_is_measured_where_texts_are():
    """The longer wins; the board has ratings at equal length."""
    rng = np.random.default_rng(0)
    rows = []
    for n in range(300):
        words = rng.integers(1, 30, 2)
        a, b = rng.permutation(["x", "y", "z"])[:2].tolist()
        long = "model_a" if words[0] + rng.integers(-9, 9) > words[1] else "model_b"
        told = ["word " * k if n % 2 else [{"type": "text", "text": "word " * k}] for k in words]
        said = [[{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]
                for text in told]  # fmt: skip
        rows.append({"question_id": n, "model_a": a, "model_b": b, "winner": long,
                     "conversation_a": said[0], "conversation_b": said[1]})  # fmt: skip
    board = boards.build(read_votes(as_lines(rows), "f.jsonl").votes, "f", FAST)
    frame = board.arenas[0].table.frame
    assert (frame["bt_length"] != frame["bt"]).all()


# ------------------------------------------------------------------- other people's numbers


def golden() -> dict[str, dict[str, float]]:
    """Algorithm -> model -> its score for the crowd's votes, by other people's code."""
    path = SHARED / "llmfao-golden.csv"
    if not path.exists():
        pytest.skip(f"{path} is not on this machine")
    found: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["algorithm"], {})[row["item"]] = float(row["score"])
    return found


def crowd() -> Votes:
    """The crowd's votes."""
    frame = pd.read_csv(SHARED / "llmfao.csv")
    frame = frame.rename(columns={"left": "model_a", "right": "model_b"})
    return read_votes(frame.to_csv(index=False).encode(), "llmfao.csv").votes


def kendall(one, two) -> float:
    """Kendall's tau of two lists without ties."""
    a, b = (np.sign(np.subtract.outer(x, x)) for x in (one, two))
    return float((a * b).sum() / (len(one) * (len(one) - 1)))


def test_scores_of_a_crowd_are_those_of_other_peoples_code():
    """Counting, average win rate, Bradley-Terry and Elo to the last digits; others in order."""
    scores = golden()
    made, units, _ = compared(crowd())
    assert (len(made), len(made.models), units) == (8931, 59, "workers")
    known = {name: np.array([by[m] for m in made.models]) for name, by in scores.items()}
    games, score = tables(made, 1.0)
    np.testing.assert_array_equal(score.sum(axis=1), known["counting"])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(np.nanmean(score / games, axis=1), known["average_win_rate"])
    fitted = fit(made)
    strength = np.exp((fitted.rating - fitted.rating.max()) / fitted.settings.elo)
    np.testing.assert_allclose(strength / strength.sum(), known["bradley_terry"], rtol=1e-10)
    in_order = play(made, np.arange(len(made))[None], EloSettings(k=4))[0]
    np.testing.assert_allclose(in_order, known["elo"], rtol=1e-10)
    assert kendall(fitted.rating, known["newman"]) > 0.9


def test_ratings_of_arena_hard_have_the_order_of_its_leaderboard():
    """Its five models, from its battles."""
    path = SHARED / "arena_hard_battles.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is not on this machine")
    fitted = fit(compared(read_votes(path.read_bytes(), path.name).votes)[0])
    with (SHARED / "arena_hard_leaderboard_20240731.csv").open(encoding="utf-8") as file:
        listed = {row["model"]: float(row["score"]) for row in csv.DictReader(file)}
    # The board's names have dates where the battles' have none.
    score = [
        next(value for name, value in listed.items() if name.startswith(model))
        for model in fitted.models
    ]
    assert kendall(fitted.rating, score) == 1

"""Votes of every format, as columns: what is read, what is left out, what is refused."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from botchat.boards.protocols import results
from botchat.boards.votes import clusters, vote_comparisons, votes_board, votes_digest
from botchat.errors import DataError
from botchat.importers.tables import read_table
from botchat.importers.vote_files import READ_COLUMNS, votes_in, votes_of
from botchat.metrics.agreement import compare
from botchat.metrics.verdicts import PairVerdicts
from botchat.ratings.bradley_terry import ELO, fit
from botchat.ratings.elo import EloSettings, play
from tests.rows import rows

SHARED = Path(__file__).parents[3] / "shared" / "data" / "votes"


def as_csv(rows, separator=","):
    """Rows as the text of a table."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=separator, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def as_parquet(rows):
    """Rows as parquet."""
    sink = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows), sink)
    return sink.getvalue()


WRITERS = {
    "csv": as_csv,
    "tsv": lambda rows: as_csv(rows, "\t"),
    "json": lambda rows: json.dumps(rows).encode(),
    "jsonl": lambda rows: "\n".join(map(json.dumps, rows)).encode(),
    "parquet": as_parquet,
}


def rows_of(votes: PairVerdicts) -> list[tuple]:
    """(item, first, second, judge, result) of every vote."""
    result = votes.result.astype(object)
    result[~votes.readable] = None
    names = ([*votes.items, None], votes.contestants, votes.contestants, votes.judges)
    columns = (votes.item, votes.first, votes.second, votes.judge)
    named = [np.array(n, object)[c] for n, c in zip(names, columns, strict=True)]
    return list(zip(*named, result, strict=True))


def read_as_csv(rows) -> PairVerdicts:
    """The votes of (model_a, model_b, winner, question_id, judge), by csv."""
    names = ("model_a", "model_b", "winner", "question_id", "judge")
    table = as_csv([dict(zip(names, row, strict=True)) for row in rows])
    return votes_of(read_table(table, "f.csv")).votes


BATTLES = rows("battles")
READ_BATTLES = [
    ("q1", "x", "y", "u1", 1.0),
    ("q2", "y", "z", "u2", 0.5),
    ("q3", "z", "x", "u1", 0.0),
    ("q3", "z", "y", "u3", 0.5),
]
VERDICTS = [
    {"item": "1", "first": "a", "second": "b", "judge": "j", "verdict": v}
    for v in ("1", "2", "tie", "")
]
READ_VERDICTS = [("1", "a", "b", "j", r) for r in (1.0, 0.0, 0.5, None)]


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    ("rows", "expected", "note"),
    [
        (BATTLES, READ_BATTLES, "battles as of LMArena: 4 rows read; nothing left out"),
        (VERDICTS, READ_VERDICTS,
         "verdicts of BotChat: 4 rows read; 1 without a readable verdict (first: row N)"),
        ([{**row, "model_a": "c", "winner": "x"} for row in VERDICTS], READ_VERDICTS,
         "verdicts of BotChat: 4 rows read; 1 without a readable verdict (first: row N)"),
    ],
    ids=["battles", "verdicts", "verdicts with columns of battles"],
)  # fmt: skip
def test_votes_are_read_from_every_kind_of_file(kind, rows, expected, note):
    """Ties and users of LMArena; 1, 2, tie and empty of BotChat; other columns are passed over."""
    file = votes_of(read_table(WRITERS[kind](rows), f"f.{kind}"))
    assert rows_of(file.votes) == expected
    row = 4 + (kind in ("csv", "tsv"))  # below the names of columns
    assert file.notes[0] == f"f.{kind}: {note}".replace("row N", f"row {row}")


OURS = b"item,first,second,judge,verdict\n"


def test_a_judge_gives_a_verdict_once():
    """Capitals, spaces and the order of columns do not matter; two of one judge are refused."""
    text = "\ufeffjudge,Verdict,item,note,second,first\r\nj,Tie,1,x,b,a\r\n\r\nj, ,2,,b,a\r\n"
    votes = votes_of(read_table(text.encode(), "f.csv")).votes
    assert rows_of(votes) == [("1", "a", "b", "j", 0.5), ("2", "a", "b", "j", None)]
    twice = votes_of(read_table(OURS + b"1,a,b,j,1\n1,a,b,j,2\n", "f.csv")).votes
    assert twice.is_latest.tolist() == [False, True]
    with pytest.raises(DataError, match="j has judged item 1, a before b, twice; keep one"):
        compare(twice.with_turns_named(), None)


@pytest.mark.parametrize(("suffix", "text", "message"), rows("wrong_files_of_votes"))
def test_a_wrong_file_is_refused_in_one_line(suffix, text, message):
    """With the row, the column and what was expected."""
    data = text.encode("utf-8", "surrogateescape")
    with pytest.raises(DataError) as refused:
        votes_of(read_table(data, f"f.{suffix}"))
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"f.{suffix}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(("name", "text", "expected", "notes"), rows("votes_of_the_field"))
def test_votes_of_the_fields_own_files(name, text, expected, notes):
    """(first, second, result, weight) of each vote, and every line that is said of the file."""
    data = text.encode() if isinstance(text, str) else WRITERS[name[2:]](text)
    votes, lines = votes_of(read_table(data, name, READ_COLUMNS))
    names = np.array(votes.contestants)
    columns = (names[votes.first], names[votes.second], votes.result.astype(object), votes.weight)
    read = [list(row) for row in zip(*columns, strict=True)]
    assert [[a, b, None if r != r else r, w] for a, b, r, w in read] == expected
    assert lines == [f"{name}: {note}" for note in notes]


VOTES = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.sampled_from("wxyz"),
        st.sampled_from(["model_a", "model_b", "tie", "tie (bothbad)"]),
        st.sampled_from("123"),
        st.sampled_from("jk"),
    ),
    min_size=1,
    max_size=30,
)


def counted(votes: PairVerdicts) -> tuple[tuple[str, ...], list]:
    """Models, and wins, ties and losses of each pair."""
    comparisons = vote_comparisons(votes)
    pairs = results(comparisons, of_pairs=True)
    counts = pairs[["win", "tie", "lose"]].mul(pairs["n"], axis=0).round().astype(int)
    return comparisons.models, [*counts.itertuples(name=None)]


@settings(max_examples=15)
@given(VOTES, VOTES, st.randoms(use_true_random=False))
def test_neither_order_nor_sides_nor_files_change_a_count(rows, more, random):
    """Shuffled they are signed alike; with sides swapped as counted; two files add up."""
    votes = read_as_csv(rows)
    shuffled = read_as_csv(random.sample(rows, len(rows)))
    assert sorted(map(str, rows_of(shuffled))) == sorted(map(str, rows_of(votes)))
    assert votes_digest(shuffled) == votes_digest(votes)
    mirror = {"model_a": "model_b", "model_b": "model_a"}
    swapped = read_as_csv([(b, a, mirror.get(w, w), *rest) for a, b, w, *rest in rows])
    assert counted(votes) == counted(shuffled) == counted(swapped)
    assert rows_of(PairVerdicts.together([votes, read_as_csv(more)])) == rows_of(
        read_as_csv([*rows, *more])
    )


def test_position_bias_needs_both_orders():
    """A file that always names the weak one first says nothing about it."""
    one_way = [("a", "w", "model_b", str(i), "j") for i in range(9)]
    board = votes_board(read_as_csv(one_way), "f")
    assert board.verdicts == {}
    assert board.judge_table.frame["first_preferred"].isna().all()
    both = [*one_way, *(("w", "a", "model_a", str(i), "j") for i in range(3)), one_way[0]]
    table = votes_board(read_as_csv(both), "f").judge_table
    assert table is not None
    row = table.records[0]
    assert (row["judged"], row["consistency"], row["first_preferred"]) == (13, 1, 0.5)


def shared(name: str) -> Path:
    """A file of other people's votes or ratings."""
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{path} is not on this machine")
    return path


def test_scores_of_a_crowd_are_those_of_other_peoples_code():
    """Counting, average win rate, Bradley-Terry and Elo to the last digits; others in order."""
    golden = pd.read_csv(shared("llmfao-golden.csv"))
    votes = votes_of(votes_in(shared("llmfao.csv"))).votes
    comparisons = vote_comparisons(votes)
    models = comparisons.models
    assert (len(comparisons), len(models)) == (8931, 59)
    np.testing.assert_array_equal(clusters(votes, len(models)), votes.judge)
    scores = golden.pivot(index="item", columns="algorithm", values="score").loc[[*models]]
    pairs = results(comparisons, of_pairs=True)
    rates = pairs["win"] + pairs["tie"] / 2
    points = (rates * pairs["n"]).groupby(level=0).sum()
    np.testing.assert_allclose(points[[*models]], scores["counting"], rtol=1e-12)
    rates = rates.groupby(level=0).mean()
    np.testing.assert_allclose(rates[[*models]], scores["average_win_rate"])
    rating = fit(comparisons).rating
    strength = np.exp((rating - rating.max()) / ELO)
    np.testing.assert_allclose(strength / strength.sum(), scores["bradley_terry"], rtol=1e-10)
    in_order = play(comparisons, np.arange(8931)[None], EloSettings(k=4), np.zeros(59))[0]
    np.testing.assert_allclose(in_order, scores["elo"], rtol=1e-10)
    assert kendalltau(rating, scores["newman"]).statistic > 0.9

"""MATEval's recorded discussions: reports read, correlations as published, nothing dropped."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from scipy import stats

from botchat.errors import DataError, MissingError
from botchat.measures.mateval_records import ERROR_TYPES, STRATEGIES, mateval, read_report

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "mateval"

PUBLISHED = {
    ("ROC", "CoT"): [0.743, 0.737, 0.189, 0.180, 0.288, 0.282, 0.213, 0.205, 0.502, 0.491],
    ("ROC", "one-by-one"): [0.698, 0.692, 0.170, 0.160, 0.356, 0.349, 0.259, 0.248, 0.484, 0.473],
    ("LOT", "SA"): [0.829, 0.817, 0.120, 0.110, 0.336, 0.324, 0.179, 0.175, 0.284, 0.279],
    ("LOT", "one-by-one"): [0.770, 0.764, 0.142, 0.131, 0.249, 0.239, 0.069, 0.066, 0.362, 0.349],
    ("LOT", "SR"): [0.751, 0.735, 0.054, 0.048, 0.282, 0.267, 0.118, 0.112, 0.296, 0.284],
    ("LOT", "CoT"): [0.636, 0.628, 0.026, 0.024, 0.215, 0.206, 0.051, 0.049, 0.155, 0.151],
    ("LOT", "SR+CoT"): [0.811, 0.798, 0.197, 0.185, 0.354, 0.341, 0.182, 0.175, 0.341, 0.333],
}
"""Spearman and Kendall for each error type (MATEval Tables 1 and 2)."""


def report(scores, language=0):
    """A report in question-and-answer form; ``None`` leaves the score line out."""
    asked, label, total = [
        ("Question: is there any '{}'?", "Score for individual questions: ", "Final Score: -9"),
        ("问\uff1a是否有'{}'\uff1f", "单项问题得分\uff1a", "最终得分\uff1a-9"),
    ][language]
    said = []
    for code, names in ERROR_TYPES.items():
        said.append(asked.format(names[language]))
        if scores.get(code) is not None:
            said.append(f"{label}{scores[code]}")
    return "\n".join([*said, total])


def dataset(people, recorded, key="COT_FB_agent_summary", language=0, stories=None):
    """The files of one dataset: people's scores and recorded ones, both by error type."""
    story, scores = [("Story", "Score_new"), ("故事", "新得分")][language]
    table = io.StringIO()
    writer = csv.DictWriter(table, ["Old", story, scores])
    writer.writeheader()
    for i, given in enumerate(people):
        lines = [f"{names[language]}:{given[code]}" for code, names in ERROR_TYPES.items()]
        writer.writerow({"Old": "x", story: f"story {i}", scores: "\n".join(lines)})
    records = [
        {"ID": i, "story": (stories or {}).get(i, f"story {i}"), key: report(given, language)}
        for i, given in enumerate(recorded)
    ]
    return {
        "dataset/people.csv": b"\xef\xbb\xbf" + table.getvalue().encode(),
        "result/run.json": json.dumps(records).encode(),
        "dataset/inputs.json": b'[{"story": "story 0"}]',
    }


def every(score):
    """The same score for each error type."""
    return dict.fromkeys(ERROR_TYPES, score)


@pytest.mark.parametrize("language", [0, 1])
def test_a_report_is_read_in_both_languages(language):
    """One score a type; the total at the end is none of them."""
    scores = {"REP": -1, "LINC": 0, "DCONT": -2, "ILC": -0.5, "FER": 0}
    assert read_report(report(scores, language)) == scores


@pytest.mark.parametrize(
    ("said", "score"),
    [
        ("Score for individual questions: -1", -1),
        ("Score for individual question: -1 point", -1),
        ("score for individual questions -2", -2),
        ("Deduction: -2\nScore for individual questions: −1", -1),
        ("Score for individual questions: 0\nScore for individual questions: -1", -1),
        ("Score for individual questions: 1", 1),
        ("单项问题得分-1", -1),
        ("Score for individual questions: none", None),
        ("Score for individual questions:\n1. a list", None),
        ("Answer: No", None),
        ("Final Score: -3", None),
    ],
)
def test_the_last_score_line_of_a_question_counts(said, score):
    """Signs as they stand; an answer without a score line is not turned into a number."""
    text = f"Question: is there any 'Repetition'?\n{said}\nQuestion: any 'Factual Error'?"
    assert read_report(text) == ({} if score is None else {"REP": score})


def test_a_type_named_in_passing_is_no_question():
    """Only a quoted name before a question mark opens an answer."""
    text = report(every(-1)) + "\nminus one for 'Repetition'.\nScore for individual questions: 5"
    assert read_report(text) == every(-1)
    assert read_report("nothing of the kind") == {}


def test_correlations_are_with_people_and_the_unreadable_are_counted():
    """Stories whose report has no score are left out of n, and shown."""
    people = [every(-i) for i in (0, 1, 2, 1, 0, 2)]
    said = [every(-i) for i in (0, 1, 1, 2, 0, 2)]
    said[5] = every(-2) | {"ILC": None, "FER": None}
    said[4] = every(0) | {"FER": None}
    rows = {row["error_type"]: row for row in mateval(dataset(people, said))}
    assert list(rows) == list(ERROR_TYPES)
    assert {row["strategy"] for row in rows.values()} == {"CoT"}
    assert [(row["n"], row["unreadable"]) for row in rows.values()] == [
        (6, 0),
        (6, 0),
        (6, 0),
        (5, 1),
        (4, 2),
    ]
    x, y = [0, -1, -2, -1, 0, -2], [0, -1, -1, -2, 0, -2]
    assert rows["REP"]["spearman"] == pytest.approx(stats.spearmanr(x, y)[0])
    assert rows["FER"]["kendall"] == pytest.approx(stats.kendalltau(x[:4], y[:4])[0])
    json.dumps(list(rows.values()), allow_nan=False)


def test_strategies_come_in_the_papers_order():
    """Whatever the files are called; a strategy the paper has not is kept under its own name."""
    people = [every(-(i % 3)) for i in range(5)]
    files = {}
    for n, key in enumerate(["X_agent_summary", *reversed(STRATEGIES)]):
        made = dataset(people, people, key, language=1)
        files |= {"people.csv": made["dataset/people.csv"], f"{n}.json": made["result/run.json"]}
    rows = mateval(files)
    assert list(dict.fromkeys(row["strategy"] for row in rows)) == [*STRATEGIES.values(), "X"]
    assert [row["spearman"] for row in rows] == [1.0] * 5 * len(ERROR_TYPES) + [1.0] * 5


def test_a_story_changed_here_and_there_is_matched_by_its_number():
    """Upstream did so in one story; most of them must be those of the table."""
    people = [every(-i) for i in range(3)]
    assert mateval(dataset(people, people, stories={1: "story one"}))
    with pytest.raises(DataError, match="only 1 of 3 stories are those of the table"):
        mateval(dataset(people, people, stories={1: "another", 2: "tale"}))


def broken(**changed):
    """A sound dataset with some files changed, by the name before the dot."""
    files = dataset([every(0), every(-1)], [every(0), every(-1)])
    for name, content in changed.items():
        path = next(path for path in files if f"/{name}." in path)
        if content is None:
            del files[path]
        else:
            files[path] = content
    return files


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"people": None}, "no table with people's scores among dataset/inputs.json"),
        ({"people": b"Story,Score\na,1\n"}, "no table with people's scores"),
        ({"run": None}, "no recorded reports among dataset/inputs.json"),
        (
            {"people": b'Story,Score_new\na,"Repetition:-1\nLogic:0"\n'},
            "dataset/people.csv:3: 'Logic:0' is no score of an error type",
        ),
        (
            {"people": b"Story,Score_new\na,Repetition:-1\n"},
            "dataset/people.csv:2: people's score has no LINC, DCONT, ILC, FER",
        ),
        ({"people": b"Story\n\xff\n"}, "dataset/people.csv:2: not UTF-8 text"),
        ({"run": b"[\n{]"}, "result/run.json:2: not readable as JSON"),
        (
            {"run": b'[{"ID": 7, "COT_FB_agent_summary": ""}]'},
            "result/run.json: record 1: ID 7 is not the number of one of the 2 stories",
        ),
        ({"inputs": b'[{"COT_FB_agent_summary": "", "ID": 0, "story": "story 0"}]'}, "result/run"),
    ],
)
def test_broken_files_are_refused_with_file_and_line(changed, message):
    """One line that says what and where."""
    with pytest.raises((DataError, MissingError)) as refused:
        mateval(broken(**changed))
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("dataset_name", ["ROC", "LOT"])
def test_the_published_correlations_come_out_again(dataset_name):
    """Within .05 of the paper in every cell of these strategies; every story is accounted for."""
    folder = DATA / dataset_name
    if not folder.is_dir():
        pytest.skip("MATEval's recorded discussions are not beside this checkout")
    rows = mateval({path.name: path.read_bytes() for path in folder.iterdir()})
    assert all(row["n"] + row["unreadable"] == 200 for row in rows)
    assert any(row["unreadable"] for row in rows)
    for (name, strategy), published in PUBLISHED.items():
        if name == dataset_name:
            found = [
                row[measure]
                for row in rows
                if row["strategy"] == strategy
                for measure in ("spearman", "kendall")
            ]
            assert found == pytest.approx(published, abs=0.05)

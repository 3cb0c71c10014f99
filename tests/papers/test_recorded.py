"""MATEval's recorded discussions: reports read, correlations as published, nothing dropped."""

from __future__ import annotations

import csv
import io
import json
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from scipy import stats

from botchat.errors import DataError, MissingDataError
from botchat.papers.mateval import AS_WRITTEN, MATEval
from botchat.papers.mateval_files import STRATEGIES, recorded
from botchat.papers.printed import papers
from botchat.protocols.reports import ERROR_TYPES
from tests.papers.test_bench import needs, said


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


def told(files, strategy="CoT", way=AS_WRITTEN):
    """The numbers of a recorded strategy, by kind of error."""
    with TemporaryDirectory() as folder:
        rows = MATEval(files).recorded(None, Path(folder)).whole["rows"]
    return {r["error_type"]: r for r in rows if r["strategy"] == f"{strategy}{way}"}


def every(score):
    """The same score for each error type."""
    return dict.fromkeys(ERROR_TYPES, score)


def test_correlations_are_with_people_and_the_unreadable_are_counted():
    """Stories whose report has no score are left out of n, and shown."""
    people = [every(-i) for i in (0, 1, 2, 1, 0, 2)]
    said = [every(-i) for i in (0, 1, 1, 2, 0, 2)]
    said[5] = every(-2) | {"ILC": None, "FER": None}
    said[4] = every(0) | {"FER": None}
    row = told(dataset(people, said))
    assert [of["n"] for of in row.values()] == [6, 6, 6, 5, 4]
    assert [of["unreadable"] for of in row.values()] == [0, 0, 0, 1, 2]
    x, y = [0, -1, -2, -1, 0, -2], [0, -1, -1, -2, 0, -2]
    assert row["REP"]["spearman"] == pytest.approx(stats.spearmanr(x, y)[0])
    assert row["FER"]["kendall"] == pytest.approx(stats.kendalltau(x[:4], y[:4])[0])
    json.dumps(row, allow_nan=False)


def test_strategies_come_in_the_papers_order():
    """Whatever the files are called; a strategy the paper has not is kept under its own name."""
    people = [every(-(i % 3)) for i in range(5)]
    files = {}
    for n, key in enumerate(["X_agent_summary", *reversed(STRATEGIES)]):
        made = dataset(people, people, key, language=1)
        files |= {"people.csv": made["dataset/people.csv"], f"{n}.json": made["result/run.json"]}
    assert [*recorded(files)] == [*STRATEGIES.values(), "X"]
    assert {told(files, name)["REP"]["spearman"] for name in STRATEGIES.values()} == {1.0}


def test_a_story_changed_here_and_there_is_matched_by_its_number():
    """Upstream did so in one story; most of them must be those of the table."""
    people = [every(-i) for i in range(3)]
    assert told(dataset(people, people, stories={1: "story one"}))
    with pytest.raises(DataError, match="only 1 of 3 stories are those of the table"):
        told(dataset(people, people, stories={1: "another", 2: "tale"}))


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
        ({"run": None}, "no recorded reports among dataset/inputs.json"),
        (
            {"people": b'Story,Score_new\na,"Repetition:-1\nLogic:0"\n'},
            "dataset/people.csv:3: 'Logic:0' is no score of an error type",
        ),
        (
            {"people": b"Story,Score_new\na,Repetition:-1\n"},
            "dataset/people.csv:2: people's score has no LINC, DCONT, ILC, FER",
        ),
        ({"run": b"[\n{]"}, "result/run.json: '[\\n{]' is not JSON"),
        (
            {"run": b'[{"ID": 7, "COT_FB_agent_summary": ""}]'},
            "result/run.json row 1: ID 7 is not the number of one of the 2 stories",
        ),
        ({"inputs": b'[{"COT_FB_agent_summary": "", "ID": 0, "story": "story 0"}]'}, "result/run"),
    ],
)
def test_broken_files_are_refused_with_file_and_line(changed, message):
    """One line that says what and where."""
    with pytest.raises((DataError, MissingDataError)) as refused:
        told(broken(**changed))
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_the_published_correlations_come_out_again(tmp_path, capsys):
    """LOT's SA to the digit, no cell .06 off; as written every story is accounted for."""
    data = needs("mateval", "LOT")
    found = said(capsys, "bench", "mateval", "--data", data, "--recorded", "--out", tmp_path)
    ours = {(row["strategy"], row["error_type"]): row for row in found["rows"]}
    assert len(ours) == 10 * len(ERROR_TYPES)
    (paper,) = (one for one in papers() if one.name == "mateval-table-2")
    printed = {row["line"]: row for row in paper.records}
    for strategy in STRATEGIES.values():
        for code, rank in product(ERROR_TYPES, ("spearman", "kendall")):
            row, limit = ours[strategy, code], 0.0006 if strategy == "SA" else 0.06
            paper_says = printed[f"LOT · GPT-4 · {strategy}"][f"{code}_{rank}"]
            assert abs(row[rank] - paper_says) < limit
            assert row["unreadable"] == 0
    assert {row["n"] + row["unreadable"] for row in ours.values()} == {200}
    assert (tmp_path / "published.csv").exists()


def test_the_two_ways_of_taking_a_report_differ_where_it_says_so():
    """Signs, deductions and gaps."""
    people = [every(-(i % 3)) for i in range(6)]
    said = [every(-(i % 3)) for i in range(6)]
    said[1] = every(1)
    said[4] = every(None)
    files = dataset(people, said, "no_multi_agent")
    published, written = (told(files, "SA", way) for way in ("", AS_WRITTEN))
    published, written = published["REP"], written["REP"]
    assert [(row["n"], row["unreadable"]) for row in (published, written)] == [(6, 0), (5, 1)]
    assert written["spearman"] == pytest.approx(1)
    assert published["spearman"] < 0.9

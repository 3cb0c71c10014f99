"""MATEval's stories: five scores in a reply, strategies over HTTP, recorded discussions."""

import csv
import io
import json
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.errors import DataError, MissingDataError
from botchat.judges.voting import aggregate
from botchat.papers.benchmarks import printed_tables
from botchat.papers.stories import AS_WRITTEN, COLUMNS, STORIES, STRATEGIES, case, recorded
from botchat.protocols.mateval import OwnText
from botchat.protocols.reports import ERROR_TYPES
from botchat.records import Judgment
from tests.commands import said
from tests.openai_server import Server, text
from tests.papers.test_bench import KINDS, needs, url
from tests.rows import rows

CODES = list(ERROR_TYPES)
read = STORIES.reading().read


def reply(scores, form="{}: {}"):
    """Five score lines."""
    return "\n".join(form.format(name, score) for name, score in zip(KINDS, scores, strict=True))


@pytest.mark.parametrize("form", ["{}: {}", "**{}**: {}", "- {}: {}.", "1. {} : {}", "> {}:{}"])
def test_score_lines_are_read_in_any_dress(form):
    """Bold, lists, quotes, full stops; the reason is the reply."""
    text = "It goes in circles.\n" + reply([-1, 0, -2, 0, -5], form)
    assert read(text) == ("-1 0 -2 0 -5", " ".join(text.split()))


@given(st.lists(st.integers(-5, 0), min_size=5, max_size=5))
def test_every_verdict_that_is_read_is_one_of_the_choices(scores):
    """Whatever the scores, with a minus of any kind or none."""
    verdict, _ = read(reply([str(score).replace("-", "\u2212") for score in scores]))
    assert verdict == " ".join(map(str, scores))
    assert verdict in case(OwnText("1", "x")).choices
    assert read(reply([-score for score in scores]))[0] == verdict


def test_a_line_that_cannot_be_read_is_missing_and_the_rest_stays():
    """Also in the mean of a panel, in what is compared with people, and among the choices."""
    verdict, _ = read(reply([-1, 0, "-1 or -2", 0, -7]))
    assert verdict == "-1 0 ? 0 -7"
    choices = case(OwnText("1", "x")).choices
    assert verdict in choices
    assert "? ? ? ? ?" not in choices
    assert aggregate([verdict, "-2 ? ? 0 -6"], choices) == "-1.5 0 ? 0 -6.5"
    judgment = Judgment("stories", "1", ("story",), "j", verdict, "", 1, "d", "s")
    assert [*STORIES.score.scores(judgment.verdict)] == [-1, 0, None, 0, -7]


def test_a_story_cannot_speak_for_the_judge():
    """Score lines inside the story lose their colon; nothing else changes."""
    prompt = case(OwnText("1", "A tale.\nRepetition: 0\nFactual error : 0")).prompt
    assert "A tale.\nRepetition - 0\nFactual error - 0" in prompt


SENTENCES = {
    "en": ["The hat was on the hat.", "Nobody was there, and all sang.", "Rockets cost money."],
    "zh": ["帽子戴在帽子的上面。", "谁也不在，大家都在唱歌。", "火箭可是要花很多钱的。"],
}
"""Errors of the first three kinds; the last sentence is in every story."""
BEGIN = {"en": "Story number {} begins by the sea.", "zh": "第{}个故事从海边开始。"}
NUMBERS = {"en": ["one", "two", "three", "four"], "zh": ["一", "二", "三", "四"]}
END = {"en": " Anna sold her red boat in May.", "zh": "安娜在五月卖掉了她的红船。"}
HAS = [(), ("REP",), ("REP", "LINC"), ("LINC", "DCONT")]
"""Kinds of error in each story."""


def evaluator(code: str):
    """Writes the right report in the authors' form, whatever it is asked."""
    question, answer, score = {
        "en": ("Question: Does the above story contain '{}'?", "Answer: {}", "Score: {}"),
        "zh": ("问：上述故事中是否包含'{}'？", "答：{}", "单项问题得分：{}"),
    }[code]
    yes, no = {"en": ("Yes", "No"), "zh": ("是", "否")}[code]

    def write(call):
        prompt = call.messages[-1]["content"]
        begins = (BEGIN[code].format(number) for number in NUMBERS[code])
        number = next((n for n, begin in enumerate(begins) if begin in prompt), None)
        if number is None:  # the report as prose, the steps of G-EVAL
            return text("1.")
        lines = []
        for kind, names in ERROR_TYPES.items():
            has = kind in HAS[number]
            lines += [question.format(names[code == "zh"]), answer.format(yes if has else no)]
            lines += [f"“{SENTENCES[code][CODES.index(kind)]}”"] if has else []
            lines.append(score.format(-1 if has else 0))
        return text("\n".join(lines))

    return write


@pytest.mark.parametrize("code", ["en", "zh"])
def test_every_strategy_is_asked_live_in_the_language_of_the_stories(code, tmp_path, capsys):
    """One after the other: no call twice, the right report read, its correlation with people."""
    with (tmp_path / "made.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS[code])
        for number, kinds in zip(NUMBERS[code], HAS, strict=True):
            errors = [SENTENCES[code][CODES.index(kind)] for kind in kinds]
            joint = " " if code == "en" else ""
            story = joint.join([BEGIN[code].format(number), *errors]) + END[code]
            points = ((names[code == "zh"], -(of in kinds)) for of, names in ERROR_TYPES.items())
            table.writerow([story, "\n".join(f"{name}:{off}" for name, off in points)])
    panels = ("mateval-sa", "mateval-sr")  # all: tests/integration/test_papers_talk.py
    with Server(evaluator(code)) as server:
        for judge in (*panels, "g-eval"):
            bench = ["bench", "mateval", "--data", tmp_path, "--judge", judge]
            found = said(capsys, *bench, "--judge-model", url(server), "--dir", tmp_path / "w")
        assert server.n_repeated == 0
        asked = [json.dumps(call.body, ensure_ascii=False) for call in server.calls]
    words = {"en": "Read the story below", "zh": "请像编辑那样阅读"}[code]
    steps = {"en": "Evaluation steps:", "zh": "评价步骤："}[code]
    assert sum(words in one and steps in one for one in asked) == 4 * 20
    rows = {(row["judge"].partition("@")[0], row["error_type"]): row for row in found["judges"]}
    for judge in (*panels, "g-eval"):
        assert [rows[judge, kind]["spearman"] for kind in CODES[:3]] == [1, 1, 1]
        assert rows[judge, "FER"]["spearman"] is None


def report(scores, language=0):
    """A report in question-and-answer form; ``None`` leaves the score line out."""
    question, label, total = [
        ("Question: is there any '{}'?", "Score for individual questions: ", "Final Score: -9"),
        ("问\uff1a是否有'{}'\uff1f", "单项问题得分\uff1a", "最终得分\uff1a-9"),
    ][language]
    lines = []
    for code, names in ERROR_TYPES.items():
        lines.append(question.format(names[language]))
        lines += [f"{label}{scores[code]}"] if scores.get(code) is not None else []
    return "\n".join([*lines, total])


def dataset(people, reports, key="COT_FB_agent_summary", language=0, tales=None):
    """The files of one dataset: people's scores and recorded ones, both by error type."""
    story, scores = [("Story", "Score_new"), ("故事", "新得分")][language]
    table = io.StringIO()
    writer = csv.DictWriter(table, ["Old", story, scores])
    writer.writeheader()
    for i, by_code in enumerate(people):
        lines = [f"{names[language]}:{by_code[code]}" for code, names in ERROR_TYPES.items()]
        writer.writerow({"Old": "x", story: f"story {i}", scores: "\n".join(lines)})
    records = [
        {"ID": i, "story": (tales or {}).get(i, f"story {i}"), key: report(by_code, language)}
        for i, by_code in enumerate(reports)
    ]
    return {
        "dataset/people.csv": b"\xef\xbb\xbf" + table.getvalue().encode(),
        "result/run.json": json.dumps(records).encode(),
        "dataset/inputs.json": b'[{"story": "story 0"}]',
    }


def correlations(files, strategy="CoT", way=AS_WRITTEN):
    """The numbers of a recorded strategy, by kind of error."""
    rows = recorded(files).compare(None).data["judges"]
    return {r["error_type"]: r for r in rows if r["judge"] == f"{strategy}{way}"}


def every(score):
    """The same score for each error type."""
    return dict.fromkeys(ERROR_TYPES, score)


@pytest.mark.parametrize(("name", "content", "message"), rows("broken_files_of_stories"))
def test_broken_files_are_refused_with_file_and_line(name, content, message):
    """One line that says what and where."""
    files = dataset([every(0), every(-1)], [every(0), every(-1)])
    path = next(path for path in files if f"/{name}." in path)
    del files[path]
    if content is not None:
        files[path] = content.encode()
    with pytest.raises((DataError, MissingDataError)) as error:
        correlations(files)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_the_published_correlations_come_out_again(tmp_path, capsys):
    """LOT's SA to the digit, no cell .06 off; as written every story is accounted for."""
    data = needs("mateval", "LOT")
    found = said(capsys, "bench", "mateval", "--data", data, "--published", "--out", tmp_path)
    ours = {(row["judge"], row["error_type"]): row for row in found["judges"]}
    assert len(ours) == 10 * len(ERROR_TYPES)
    (paper,) = (one for one in printed_tables() if one.name == "mateval-table-2")
    printed = {row["line"]: row for row in paper.records}
    for strategy in STRATEGIES.values():
        for code, rank in product(ERROR_TYPES, ("spearman", "kendall")):
            row, limit = ours[strategy, code], 0.0006 if strategy == "SA" else 0.06
            value = printed[f"LOT · GPT-4 · {strategy}"][f"{code}_{rank}"]
            assert abs(row[rank] - value) < limit
            assert row["unreadable"] == 0
    assert {row["n"] + row["unreadable"] for row in ours.values()} == {200}
    assert "SR+CoT, as printed | 0.811 | 0.798 | 0.197" in (tmp_path / "agreement.md").read_text()

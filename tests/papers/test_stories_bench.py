"""MATEval's strategies over real HTTP."""

from __future__ import annotations

import csv
import json

import pytest

from botchat.papers.mateval_files import COLUMNS
from botchat.protocols.reports import ERROR_TYPES
from tests.openai_server import Server, text
from tests.papers.test_bench import said, url

CODES = list(ERROR_TYPES)
SENTENCES = {
    "en": ["The hat was on the hat.", "Nobody was there, and all sang.", "Rockets cost money."],
    "zh": ["帽子戴在帽子的上面。", "谁也不在，大家都在唱歌。", "火箭可是要花很多钱的。"],
}
"""Errors of the first three kinds; what else is told is in every story."""
BEGIN = {"en": "Story number {} begins by the sea.", "zh": "第{}个故事从海边开始。"}
NUMBERS = {"en": ["one", "two", "three", "four"], "zh": ["一", "二", "三", "四"]}
TOLD = {"en": "Anna sold her red boat in May.", "zh": "安娜在五月卖掉了她的红船。"}
HAS = [(), ("REP",), ("REP", "LINC"), ("LINC", "DCONT")]
"""Kinds of error in each story."""


def whole(code: str, number: int) -> str:
    """A story with its errors."""
    has = [SENTENCES[code][CODES.index(kind)] for kind in HAS[number]]
    joint = " " if code == "en" else ""
    return joint.join([BEGIN[code].format(NUMBERS[code][number]), *has, TOLD[code]])


@pytest.fixture
def stories(code, tmp_path):
    """(language, folder in MATEval's layout)."""
    folder = tmp_path / "data"
    folder.mkdir()
    with (folder / "made.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS[code])
        for n, kinds in enumerate(HAS):
            points = ((names[code == "zh"], -(of in kinds)) for of, names in ERROR_TYPES.items())
            table.writerow([whole(code, n), "\n".join(f"{name}:{off}" for name, off in points)])
    return code, folder


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
            there = kind in HAS[number]
            lines += [question.format(names[code == "zh"]), answer.format(yes if there else no)]
            if there:
                lines.append(f"“{SENTENCES[code][CODES.index(kind)]}”")
            lines.append(score.format(-1 if there else 0))
        return text("\n".join(lines))

    return write


@pytest.mark.parametrize("code", ["en", "zh"])
def test_every_strategy_is_asked_live_in_the_language_of_the_stories(stories, tmp_path, capsys):
    """One after the other: no call twice, the right report read, its correlation with people."""
    code, folder = stories
    panels = ("mateval-sa", "mateval-one-by-one", "mateval-sr", "mateval-cot", "mateval-sr-cot")
    with Server(evaluator(code)) as server:
        for judge in (*panels, "g-eval"):
            bench = ["bench", "mateval", "--data", folder, "--judge", judge]
            found = said(capsys, *bench, "--judge-model", url(server), "--dir", tmp_path / "w")
        assert server.n_repeated == 0
        asked = [json.dumps(call.body, ensure_ascii=False) for call in server.calls]
    words = {"en": "Read the story below", "zh": "请像编辑那样阅读"}[code]
    steps = {"en": "Evaluation steps:", "zh": "评价步骤："}[code]
    assert sum(words in one and steps in one for one in asked) == 4 * 20
    rows = {(row["strategy"].partition("@")[0], row["error_type"]): row for row in found["rows"]}
    for judge in (*panels, "g-eval"):
        assert [rows[judge, kind]["spearman"] for kind in CODES[:3]] == [1, 1, 1]
        assert rows[judge, "FER"]["spearman"] is None

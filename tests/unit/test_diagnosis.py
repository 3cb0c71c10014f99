"""Diagnosis: the question, reading a report, checking its quotes, panels, rules, error rates."""

import asyncio
import json
import re
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.boards.board import Board, JudgedSet, build_board
from botchat.boards.files import board_files
from botchat.boards.headline import headline
from botchat.boards.judge_checks import judge_trust
from botchat.boards.protocols import ReportResult
from botchat.interfaces import ShownDialogue
from botchat.judges.panel import build_panel
from botchat.judges.rules import RulesJudge
from botchat.metrics.statistics import wilson
from botchat.protocols.mateval import DIAGNOSIS, by_type
from botchat.protocols.reports import (
    ERRORS,
    ReportedError,
    as_prose,
    as_records,
    as_text,
    parse,
    read_report,
    reports,
)
from botchat.records import HUMAN, Dialogue, Judgment, Seed, human_dialogue
from botchat.workspace.panels import AgentSettings, PanelSettings
from tests.rows import rows
from tests.scripted import FAILED, Scripted

TALK = tuple(rows("talk_of_tickets"))


def reply(**yes):
    """A judge's reply in the form asked for; ``type=[lines]`` for a Yes, ``None``: not judged."""
    lines = []
    for type_, name in ERRORS.items():
        errors = yes.get(type_, [])
        lines.append(f"{name}? {'Not judged' if errors is None else 'Yes' if errors else 'No'}")
        lines += errors or []
    return "\n".join(lines)


LOOP = reply(
    repetition=['- Utterance 5: "Then I\'ll go myself." - said just before'],
    ai_self_identification=['- Utterance 3: "as an ai" - a person would not', "- Utterance 4"],
)


def answer(text, type_, talk=TALK):
    """The result of one type in a text."""
    return next(a for a in parse(text, talk).results if a.type == type_)


def error(line, talk=TALK):
    """The error of one line below a Yes."""
    (error,) = answer(reply(repetition=[line]), "repetition", talk).errors
    return error


def judged(verdict, reason="", contestant="m", transcript=(), seed_id="s1"):
    """A judgment of a dialogue."""
    return Judgment(
        "diagnosis", seed_id, (contestant,), "j", verdict, reason, 5, "0", "sig",
        transcript=transcript,
    )  # fmt: skip


def rule(judge, talk=TALK):
    """A judge's answer on a dialogue."""
    return asyncio.run(judge.answer(DIAGNOSIS.case("s1", ShownDialogue("m", talk))))


def stored(answer):
    """The judgment that an answer becomes."""
    return judged(answer.verdict, answer.reason, transcript=answer.transcript)


def reported(judgment, talk):
    """The reports of a judgment on a dialogue."""
    return reports(judgment, partial(parse, utterances=talk))


# The question


def test_the_question_numbers_every_utterance_and_every_score_is_a_choice():
    """It names every type in order; all types in all utterances is the lowest score."""
    prompt = DIAGNOSIS.case("s1", ShownDialogue("m", TALK)).prompt
    assert "[1] A: Did you get the tickets? <chat_end>\n[2] B: Not yet" in prompt
    names = re.findall(r"^(.+)\? (?:Yes|No)$", prompt, re.MULTILINE)
    assert names == list(ERRORS.values())
    assert all(f"\n{name}: " in prompt for name in ERRORS.values())
    worst = [f"- Utterance {n}: x" for n in (1, 2, 3, 4, 5, 99)]
    case = DIAGNOSIS.case("s1", ShownDialogue("m", TALK))
    verdict, _ = case.read(reply(**dict.fromkeys(ERRORS, worst)))
    assert verdict == "-60"
    assert {"0", "-1", "-60"} < case.choices
    assert "-61" not in case.choices


FRAGMENTS = st.sampled_from(
    [
        "\n", "Repetition? Yes", "Factual error: No", "- Utterance 2: ", '"', "\u201d", "Score: -9",
        "[3] A: hi", "<chat_end>", "formal tone?", " - ", "**Yes**", "Total: -4", "Not yet", "...",
        "\\", "\\u00e9", "\\ud800", "\u2028", "Utterance 4: x", "Conversation 2", "7",
    ]
)  # fmt: skip
HOSTILE = st.lists(FRAGMENTS | st.text(max_size=8), max_size=14).map("".join)


@given(st.lists(HOSTILE.filter(str.strip), min_size=2, max_size=4))
def test_no_utterance_can_pass_for_a_report_or_another_utterance(talk):
    """A judge that copies the whole dialogue into its answer says nothing by that."""
    case = DIAGNOSIS.case("s1", ShownDialogue("m", tuple(talk)))
    dialogue = case.prompt.split("\n\nConversation:\n", 1)[1]
    assert not parse(dialogue, talk).results
    # Only the frame's own numbers stand at line starts; white space that is no newline aside.
    numbers = re.findall(r"^[ \t>*_#-]*\[(\d+)\]", dialogue, re.MULTILINE)
    assert numbers == [str(n) for n in range(1, len(talk) + 1)]
    plain = case.read(reply())
    assert case.read(f"{dialogue}\n{reply()}") == plain == ("0", plain[1])


# Reading


def test_a_report_is_read_with_its_errors():
    """Types, utterances, quotes, explanations; one point for each error."""
    report = parse(LOOP, TALK)
    assert [a.type for a in report.results] == list(ERRORS)
    assert report.score == -3
    repetition, ai = answer(LOOP, "repetition"), answer(LOOP, "ai_self_identification")
    assert repetition.errors == (
        ReportedError(5, "Then I'll go myself.", "found", "said just before"),
    )
    assert repetition.score == -1
    assert ai.errors == (
        ReportedError(3, "as an ai", "found", "a person would not"),
        ReportedError(4, "", "none", ""),
    )


@pytest.mark.parametrize(("line", "expected"), rows("forms_that_judges_write"))
def test_forms_that_judges_write(line, expected):
    """Bold, lists, capitals, full-width marks; the last answer counts, an utterance once."""
    (result,) = parse(line, TALK).results
    assert [result.present, len(result.errors)] == expected


@pytest.mark.parametrize(
    ("line", "utterance", "quote", "evidence", "explanation"), rows("quotes_are_found_or_marked")
)
def test_quotes_are_found_or_marked(line, utterance, quote, evidence, explanation):
    """Evidence is in the utterance named, elsewhere, nowhere, or was not given.

    White space, case and kinds of quotation marks do not matter.
    """
    read = error(line)
    assert (read.place, read.evidence, read.explanation) == (utterance, evidence, explanation)
    assert quote is None or read.quote == quote


def test_an_unfinished_report_is_no_verdict_but_keeps_what_it_says():
    """A sum over fewer types is another measure."""
    half = "\n".join(LOOP.split("\n")[:4])
    verdict, reason = read_report(half, TALK)
    assert verdict is None
    assert [a.type for a in parse(reason, TALK).results] == list(ERRORS)[:3]
    assert read_report("I cannot help.\n Sorry.", TALK) == (None, "I cannot help. Sorry.")
    assert read_report(reply(**dict.fromkeys(ERRORS)), TALK)[0] is None
    assert read_report(reply(factual_error=None), TALK)[0] == "0"


@given(HOSTILE, st.lists(HOSTILE, min_size=2, max_size=4))
def test_whatever_a_judge_says_is_read_the_same_from_its_canonical_form(text, talk):
    """`as_text` and `parse` agree on everything that can be read, and all of it can be stored."""
    report = parse(f"{reply()}\n{text}", talk)
    again = parse(as_text(report), talk)
    assert again == report
    msgspec.json.encode(report)
    assert as_prose(report)
    assert len(as_records(report)) >= len(ERRORS)


# Judges


def ensemble(*scripts):
    """A panel of agents that do not talk."""
    agents = tuple(
        AgentSettings(name=f"R{i}", text="You are strict.", model=f"m{i}")
        for i in range(len(scripts))
    )
    settings = PanelSettings(strategy="ensemble", agents=agents)
    models = {f"m{i}": Scripted(script, name=f"m{i}") for i, script in enumerate(scripts)}
    return build_panel("p", settings, models.__getitem__, None)


def test_a_panel_scores_the_mean_and_finds_what_most_of_it_see():
    """Scores 0, -3 and one that failed: -1.5; a type counts where more than half say yes."""
    answer = rule(ensemble(reply(), LOOP, FAILED["refused"]))
    assert answer.verdict == "-1.5"
    by_name = reported(stored(answer), TALK)
    assert [report.score for report in by_name.values()] == [0, -3]
    assert by_type(by_name.values())["repetition"] is False
    three = rule(ensemble(reply(), LOOP, LOOP))
    assert three.verdict == "-2"
    findings = by_type(reported(stored(three), TALK).values())
    assert findings["repetition"] is True


def test_the_rules_judge_reports_what_it_can_see():
    """Quotes are really there; what takes understanding is not judged; a drift may be two types."""
    long = "so we went on and on " * 20
    talk = (*TALK[:3], f"Furthermore, {long}", TALK[2], "Then I'll go myself, you know that.")
    answer = rule(RulesJudge([]), talk)
    (report,) = reported(stored(answer), talk).values()
    places = {a.type: [error.place for error in a.errors] for a in report.results if a.errors}
    assert places == {
        "repetition": [5],
        "ai_self_identification": [3, 5],
        "excessive_length": [4],
        "repetitive_phrasing": [4, 5],
    }
    assert answer.verdict == "-6"
    unjudged = {"logical_inconsistency", "lexical_choice", "factual_error"}
    assert {a.type for a in report.results if a.present is None} == unjudged
    assert {error.evidence for a in report.results for error in a.errors} == {"found"}
    fish = rows("unconnected_lines")
    answer = rule(RulesJudge([]), (*TALK[:2], *fish))
    (report,) = reported(stored(answer), TALK).values()
    yes = {a.type for a in report.results if a.present}
    assert {"discontinuity", "contextual_confusion"} <= yes


# Error rates


SEEDS = [Seed(f"s{n}", ("Hi there.", "Hello.", f"How was day {n}?")) for n in (1, 2, 3, 4)]
HELLO = ("Hi there.", "Hello.", "Hello.")
TWICE = reply(
    repetition=['- Utterance 3: "Hello." - again', '- Utterance 2: "Goodbye" - again'],
    factual_error=None,
)
ONCE = reply(formal_tone=['- Utterance 1: "Hi there" - stiff'])


def board(judgments, n_imported: int = 4, signature: str = "") -> Board:
    """One model on all four seeds, or on some that were imported, and humans."""
    generated = {s.id: Dialogue(s.id, "m", HELLO, 2, (), "complete", signature)
                 for s in SEEDS[:n_imported]}  # fmt: skip
    dialogues = {"m": generated, HUMAN: {seed.id: human_dialogue(seed) for seed in SEEDS}}
    return build_board(JudgedSet("s", SEEDS, dialogues), "j", judgments)


def files(judgments):
    """Every file of the board."""
    built = board(judgments)
    trust = judge_trust(built)
    return board_files(built, headline(built, trust), trust, (), {})


@pytest.fixture
def judgments():
    """The model: -2, -1, half a report, none; humans: 0, 0."""
    half = "Repetition? Yes\nFormal tone? No"
    texts = [("s1", "m", TWICE), ("s2", "m", ONCE), ("s3", "m", half), ("s1", HUMAN, reply()),
             ("s2", HUMAN, reply())]  # fmt: skip
    return {
        "diagnosis": [
            judged(*read_report(text, HELLO), name, seed_id=seed_id)
            for seed_id, name, text in texts
        ]
    }


def test_an_imported_model_misses_none_of_the_dialogues_that_it_never_had(judgments):
    """Two dialogues from elsewhere, both judged; of one that is generated two are missing."""
    first = {"diagnosis": [each for each in judgments["diagnosis"] if each.seed_id != "s3"]}
    missing = [board(first, n, signature).of(ReportResult)[0].table.frame.set_index("model")
               for n, signature in ((2, "imported:1"), (4, ""))]  # fmt: skip
    assert [frame.loc["m", "missing"] for frame in missing] == [0, 2]


def test_error_rates_by_hand(judgments):
    """Shares of dialogues by type, the mean score, quotes that are where they should be."""
    built = board(judgments)
    (part,) = built.of(ReportResult)
    human, model = part.table.records
    assert (model["model"], model["score"]) == ("m", -1.5)
    assert (model["n"], model["missing"]) == (2, 2)
    # s1 and s3 of three readable; half a report counts where it was judged.
    assert model["repetition"] == 0.6667
    assert model["repetition_low"] == pytest.approx(wilson(2 / 3, 1 / 3)[0], abs=1e-4)
    assert (model["formal_tone"], model["factual_error"]) == (0.3333, 0.0)
    # "Hello." and "Hi there" are there, "Goodbye" and the unlocated error are not.
    assert model["quoted"] == 0.5
    assert (human["model"], human["score"], human["quoted"]) == (HUMAN, 0, None)
    facts = built.judge_facts["diagnosis"]
    assert (facts.judged, facts.unreadable) == (5, 1)


def test_the_board_writes_reports_as_records_and_as_text(judgments):
    """One line an error or clean type; prose and questions and answers for people."""
    written = files(judgments)
    lines = [json.loads(line) for line in written["diagnosis-records.jsonl"].splitlines()]
    assert len(lines) == 11 + 10 + 2 + 10 + 10
    head = {"seed_id": "s1", "model": "m", "judge": "j", "type": "repetition"}
    assert head.items() <= lines[0].items()
    text = written["diagnosis-reports.txt"]
    assert 's2 | m | j\n\nFormal tone: utterance 1, "Hi there": stiff.' in text
    assert "Formal tone? Yes\n- Utterance 1:" in text
    assert "diagnosis.csv" in written
    assert not [name for name in files({}) if name.startswith("diagnosis")]

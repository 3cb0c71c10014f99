"""What the first screen shows of one judge's board, ready to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from botchat.boards import headline, judge_verdict, people_line
from botchat.boards.board import Board
from botchat.boards.headline import Headline, chance
from botchat.boards.judge_verdict import Check, JudgeVerdict
from botchat.boards.names import is_floor_bot
from botchat.boards.protocols import Place
from botchat.interfaces import Row
from botchat.protocols.catalogue import VOTES
from botchat.records import HUMAN, Dialogue
from botchat.report.main_table import Bar, MainTable, address, interval_bar, main_table, steps
from botchat.report.plane import Interval


@dataclass(frozen=True)
class Facts:
    """What is known of a board beyond its tables."""

    headline: Headline
    verdict: JudgeVerdict
    people: Interval | None = None
    """Where people are on the rating scale."""

    @classmethod
    def of(
        cls,
        board: Board,
        others: Sequence[Board] = (),
        people: Row | None = None,
    ) -> Facts:
        """What a board says of itself, beside the boards of ``others`` and of people."""
        line = people_line.of(board)
        verdict = judge_verdict.of(board, others, people)
        return cls(
            headline.of(board, others, verdict),
            verdict,
            (line.rating, line.low, line.high) if line else None,
        )


@dataclass(frozen=True)
class Sample:
    """A dialogue and its UniEval verdict."""

    dialogue: Dialogue
    accused: int
    """Number of the first utterance that the judge takes for AI; 0: it takes none for it."""
    reason: str

    @property
    def found(self) -> str:
        """The verdict in a few words."""
        n = self.accused
        return f"accused from utterance {n} on" if n else "taken for human"

    @property
    def stopped(self) -> str:
        """Why the dialogue stopped early; empty if it did not."""
        one = self.dialogue
        return "" if one.complete else f"{one.status}. {one.detail}".strip()


@dataclass(frozen=True)
class Checked:
    """One check of the judge, with its number drawn."""

    check: Check
    bar: Bar | None
    reference: float | None
    """Where the line is that it should be on the good side of, in percent."""
    href: str

    @property
    def is_minor(self) -> bool:
        """Whether it is of how it answers, not of whether it is right, and warns of nothing."""
        minor = ("first_preferred", "ties", "unreadable_rate", "own_model")
        return self.check.state in ("passes", "unknown") and self.check.key in minor


@dataclass(frozen=True)
class Excerpt:
    """What giving itself away looks like, or what a judge that is not to be trusted let pass."""

    title: str
    sample: Sample
    shown: Sequence[int]
    """Numbers of its lines."""
    href: str


@dataclass(frozen=True)
class Screen:
    """The first screen of one judge."""

    headline: Headline
    verdict: JudgeVerdict
    checks: Sequence[Checked]
    excerpt: Excerpt | None
    table: MainTable
    people_curve: str


def screen(
    board: Board,
    facts: Facts,
    judge: str,
    view: str,
    samples: Mapping[str, Sequence[Sample]] | None = None,
) -> Screen:
    """The first screen. ``judge``, ``view``: as of `main_table`; ``samples``: by contestant."""
    return Screen(
        facts.headline,
        facts.verdict,
        [_checked(check, judge, view, board) for check in facts.verdict.checks],
        _excerpt(board, facts.verdict, samples or {}, judge, view),
        main_table(board, judge, view, facts.people),
        _people_curve(board),
    )


def _excerpt(
    board: Board,
    verdict: JudgeVerdict,
    samples: Mapping[str, Sequence[Sample]],
    judge: str,
    view: str,
) -> Excerpt | None:
    """Two people's lines and the line that gave the machine away; of a failed judge its failure."""
    failed = {check.key for check in verdict.checks if check.state == "fails"}
    scripts = [name for name in samples if is_floor_bot(name)]
    models = [name for name in samples if name not in (*scripts, HUMAN)]
    title, among, accused = "What giving itself away looks like", [*models, *scripts], True
    if verdict.word == "do not trust" and "people_accused" in failed:
        title, among = "Whom it takes for a machine", [HUMAN]
    elif failed & {"bots_caught", "machines_caught", "machine_picked", "best_floor_bot"}:
        title, among, accused = "What it let pass", [*scripts, *models], False
    place = next((part.protocol.name for part in board.of(Place) if part.protocol.about_ai), "")
    for name in among:
        for one in samples.get(name, ()):
            if bool(one.accused) != accused:
                continue
            shown = dict.fromkeys((1, 2, *([one.accused] if accused else (3, 4, 5))))
            said = len(one.dialogue.utterances)
            to = address(judge, place, a=name, seed=one.dialogue.seed_id) if view else ""
            return Excerpt(title, one, [n for n in shown if n <= said], to)
    return None


def rating(board: Board) -> tuple[dict[str, Interval], str, bool]:
    """Contestant -> the number that the board is ranked by, with its interval, best first.

    Then what it is called, and whether it is a share.
    """
    main = board.main
    key = main.column(role="rank").of
    if not key:
        return {}, "", False
    column, ends = main.column(key), main.ends(key)
    if column.kind not in ("rating", "rate") or ends is None:
        return {}, column.heading, False
    keys = [column.key, ends[0].key, ends[1].key]
    found = {}
    for name, *row in main.frame[["model", *keys]].itertuples(index=False):
        value, low, high = (float("nan") if pd.isna(x) else float(x) for x in row)
        if np.isfinite(value):
            told = (value, low, high) if np.isfinite(low) and np.isfinite(high) else (value,) * 3
            found[name] = told if column.kind == "rate" else of_100(told)
    of_votes = bool(board.arenas) and board.arenas[0].protocol == VOTES
    verb = "Preferred to" if of_votes else "Called more human than"
    word = f"{verb} an average model" if column.kind == "rating" else column.heading
    return found, word, column.kind == "rate"


def of_100(told: Interval) -> Interval:
    """Ratings as times in 100 that they are preferred to an average one."""
    low, value, high = (100 * chance(one) for one in (told[1], told[0], told[2]))
    return value, low, high


def _checked(check: Check, judge: str, view: str, board: Board) -> Checked:
    bar = reference = None
    if (told := check.well) and check.key != "best_floor_bot":  # its places say more
        scale = (-1.0, 1.0) if check.key in ("other_judges", "people_agree") else (0.0, 1.0)
        bar = interval_bar(told, scale)
        if check.line is not None:
            reference = interval_bar((check.line,) * 3, scale).at
    return Checked(check, bar, reference, _evidence(check, judge, board) if view else "")


def _evidence(check: Check, judge: str, board: Board) -> str:
    """Where the cases that a check counts are read; empty: they are nobody's."""
    key = check.key
    if key in ("other_judges", "people_agree"):
        return "#judges"
    bots = [name for name in board.main.frame["model"] if is_floor_bot(name)]
    of = {"people_accused": "", "bots_caught": "bots", "machines_caught": "machines"}
    if key in of and check.protocol:
        who = {"of": of[key], "show": "lose"} if of[key] else {"a": HUMAN, "show": "win"}
        return address(judge, check.protocol, **who)
    of_pairs = {"same_winner": "same", "first_preferred": "first", "ties": "decided"}
    parts = [part.protocol for part in board.parts]
    quoted = next((one for one in parts if one.name == check.protocol), None)
    if key == "unreadable_rate" and quoted:
        if quoted.shows == "one":
            return address(judge, quoted.name, of="all", show="read")
        return address(judge, "pair", protocol=quoted.name, of="all", show="readable")
    if key in of_pairs and quoted:
        return address(judge, "pair", protocol=quoted.name, of="all", show=of_pairs[key])
    beside = next((one.name for one in parts if one.shows == "human"), "")
    if key == "machine_picked" and beside:
        said = "bots" if bots else "all"
        return address(judge, "pair", protocol=beside, of=said, show="lose")
    if key == "best_floor_bot" and bots and board.leading:
        leading = board.leading.protocol.name
        return address(judge, "pair", protocol=leading, a=bots[0], of="all")
    return ""


def _people_curve(board: Board) -> str:
    """Survival of people's own dialogues."""
    curve = next((part.curves.get(HUMAN) for part in board.of(Place)), None)
    return steps([float(x) for x in curve.surviving if np.isfinite(x)]) if curve else ""

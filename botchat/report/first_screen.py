"""What the first screen shows of one judge's board, ready to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from botchat.boards import headline, judge_verdict
from botchat.boards.board import Board
from botchat.boards.headline import Headline
from botchat.boards.judge_verdict import Check, JudgeVerdict
from botchat.boards.names import is_floor_bot
from botchat.boards.protocols import Place
from botchat.interfaces import Row
from botchat.records import HUMAN
from botchat.report.main_table import Bar, BarScale, Links, MainTable, main_table, steps


@dataclass(frozen=True)
class Facts:
    """What is known of a board beyond its tables."""

    headline: Headline
    verdict: JudgeVerdict

    @classmethod
    def of(
        cls,
        board: Board,
        others: Sequence[Board] = (),
        people: Row | None = None,
    ) -> Facts:
        """What a board says of itself, beside the boards of ``others`` and of people."""
        verdict = judge_verdict.of(board, others, people)
        return cls(headline.of(board, others, verdict), verdict)


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
class Screen:
    """The first screen of one judge."""

    headline: Headline
    verdict: JudgeVerdict
    checks: Sequence[Checked]
    table: MainTable
    people_curve: str
    """Survival of people's own dialogues."""


def screen(board: Board, facts: Facts, links: Links) -> Screen:
    """The first screen."""
    curve = next((part.curves.get(HUMAN) for part in board.of(Place)), None)
    return Screen(
        facts.headline,
        facts.verdict,
        [_checked(check, board, links) for check in facts.verdict.checks],
        main_table(board, links),
        steps([float(x) for x in curve.surviving if np.isfinite(x)]) if curve else "",
    )


def _checked(check: Check, board: Board, links: Links) -> Checked:
    bar = reference = None
    if (told := check.well) and check.key != "best_floor_bot":  # its places say more
        scale = BarScale(-1.0 if check.key in ("other_judges", "people_agree") else 0.0, 1.0)
        bar = scale.bar(told)
        if check.line is not None:
            reference = scale.bar((check.line,) * 3).at
    return Checked(check, bar, reference, _evidence(check, board, links))


def _evidence(check: Check, board: Board, links: Links) -> str:
    """Where the cases that a check counts are read; empty: they are nobody's."""
    key = check.key
    if key in ("other_judges", "people_agree"):
        return "#judges" if links.first else ""
    bots = [name for name in board.main.frame["model"] if is_floor_bot(name)]
    of_pairs = {"same_winner": "same", "first_preferred": "first", "ties": "decided"}
    parts = {part.protocol.name: part.protocol for part in board.parts}
    quoted = parts.get(check.protocol)
    if key == "people_accused" and check.protocol:
        return links.to(check.protocol, a=HUMAN, show="win")
    if key in ("bots_caught", "machines_caught") and check.protocol:
        return links.to(check.protocol, of=key.removesuffix("_caught"), show="lose")
    if key == "unreadable_rate" and quoted and quoted.shows == "one":
        return links.to(quoted.name, of="all", show="read")
    if key in (*of_pairs, "unreadable_rate") and quoted:
        return links.pair(quoted.name, of="all", show=of_pairs.get(key, "readable"))
    beside = next((name for name, one in parts.items() if one.shows == "human"), "")
    if key == "machine_picked" and beside:
        return links.pair(beside, of="bots" if bots else "all", show="lose")
    if key == "best_floor_bot" and bots and board.leading:
        return links.pair(board.leading.protocol.name, a=bots[0], of="all")
    return ""

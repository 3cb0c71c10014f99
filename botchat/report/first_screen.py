"""What the first screen shows of one judge's board, ready to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from botchat.boards import headline, judge_verdict
from botchat.boards.board import Board
from botchat.boards.headline import Headline
from botchat.boards.judge_verdict import Check, JudgeVerdict
from botchat.boards.names import is_floor_bot
from botchat.boards.protocols import Place
from botchat.interfaces import Row, Shown
from botchat.records import HUMAN, LETTERS, Dialogue
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


class SampleLine(NamedTuple):
    """One utterance of a sample."""

    n: int
    text: str
    side: str
    """``A`` or ``B``: where it stands."""
    by: str
    """Who speaks, where two do not take turns."""
    is_peoples: bool
    accused: bool


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
    def lines(self) -> list[SampleLine]:
        """What was said, and by whom as far as that is known."""
        one, shown = self.dialogue, Shown.of(self.dialogue)
        known, found = one.known_speakers, []
        for n, (text, who) in enumerate(zip(one.utterances, shown.whose, strict=True), 1):
            peoples = n <= one.n_seed or one.contestant == HUMAN
            peoples = known[who] == HUMAN if who in known else peoples
            by = LETTERS[who] if shown.spoken_by else ""
            found.append(SampleLine(n, text, "AB"[who == 1], by, peoples, n == self.accused))
        return found

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
    lines: Sequence[SampleLine]
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
    """Survival of people's own dialogues."""


def screen(
    board: Board, facts: Facts, links: Links, samples: Mapping[str, Sequence[Sample]]
) -> Screen:
    """The first screen; ``samples``: by contestant."""
    curve = next((part.curves.get(HUMAN) for part in board.of(Place)), None)
    return Screen(
        facts.headline,
        facts.verdict,
        [_checked(check, board, links) for check in facts.verdict.checks],
        _excerpt(board, facts.verdict, samples, links),
        main_table(board, links),
        steps([float(x) for x in curve.surviving if np.isfinite(x)]) if curve else "",
    )


def _excerpt(
    board: Board, verdict: JudgeVerdict, samples: Mapping[str, Sequence[Sample]], links: Links
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
    told = (one for name in among for one in samples.get(name, ()))
    if (one := next((one for one in told if bool(one.accused) == accused), None)) is None:
        return None
    shown = {1, 2, *([one.accused] if accused else (3, 4, 5))}
    to = links.to(place, a=one.dialogue.contestant, seed=one.dialogue.seed_id)
    return Excerpt(title, one, [line for line in one.lines if line.n in shown], to)


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

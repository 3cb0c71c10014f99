"""The page that follows a run: progress, cost, and what was said last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from botchat.records import Dialogue, Judgment
from botchat.report import script_digest, template, text

SECONDS = 5
"""Between two looks."""

_SCRIPT = text("live.js").replace("SECONDS", str(SECONDS))

_LONGEST = 400
"""Characters shown of an utterance."""


@dataclass(frozen=True)
class Progress:
    """How far one stage file is."""

    name: str
    done: int
    total: int
    at_most: bool = False
    """Whether a run may ask for fewer than ``total``."""


@dataclass(frozen=True)
class Calls:
    """What one model has been asked in one stage."""

    model: str
    stage: str
    calls: int
    tokens: int
    cost_usd: float
    unpriced: int
    """Calls of them whose price is not known."""
    outcomes: str


@dataclass(frozen=True)
class State:
    """A set while it is worked on."""

    seed_set: str
    running: str
    """Who writes to the workspace; empty: nobody."""
    page: str
    """Address of its leaderboard, from this page; empty: there is none."""
    dialogues: Sequence[Progress]
    verdicts: Sequence[Progress]
    calls: Sequence[Calls]
    said: Sequence[Dialogue]
    """Newest first."""
    ruled: Sequence[Judgment]
    """Newest first."""


def policy() -> str:
    """What the browser lets the page do: its own script, which asks for the page again."""
    return (
        f"default-src 'none'; script-src {script_digest(_SCRIPT)}; connect-src 'self'; "
        "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    )


def render(state: State) -> str:
    """The page as HTML text; without scripts the browser asks for it again as a whole."""
    return template("live.html").render(
        state=state,
        money=_money,
        seconds=SECONDS,
        longest=_LONGEST,
        style=text("page.css"),
        script=_SCRIPT,
    )


def _money(calls: Sequence[Calls]) -> str:
    known, unpriced = sum(one.cost_usd for one in calls), sum(one.unpriced for one in calls)
    return f"${known:,.4f}" + (f" + {unpriced:,} calls of unknown price" if unpriced else "")

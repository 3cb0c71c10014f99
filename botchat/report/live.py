"""The page that follows a run: how far it is, what it costs, what failed, what was said last."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from botchat.records import Dialogue
from botchat.report import joined, policy, template, text
from botchat.workspace.accounts import ModelStats
from botchat.workspace.progress import QUIET_S, Progress, duration, money, total

RUNNING_S = 1
"""Between two looks at a run that goes on."""

RESTING_S = 5
"""Between two looks otherwise."""

STYLES = ("paper.css", "live.css")

_SCRIPT = text("live.js")

POLICY = policy(_SCRIPT, "connect-src 'self'")
"""What the browser lets the page do: its own script, which asks for the page again."""

_LONGEST = 400
"""Characters shown of an utterance."""

STATES: Mapping[str, tuple[str, str]] = {
    "running": ("▸", ""),
    "done": ("✓", "Finished"),
    "stopped": ("!", "Stopped by a limit"),
    "failed": ("✕", "Ended with an error"),
    "interrupted": ("!", "Interrupted"),
    "killed": ("✕", "Killed"),
}
"""How a run is -> its mark, and the word for it."""


@dataclass(frozen=True)
class StepRow:
    """A part of a run, or of a set."""

    name: str
    by: str
    done: int
    total: int | None
    """``None``: not known."""
    unit: str
    """What is counted: calls, dialogues, verdicts."""
    calls: int | None
    """Made; ``None``: not known now, as all below."""
    cost_usd: float | None
    unpriced: int
    failed: str
    """How many failed how, in words; empty: none."""
    state: str = "done"
    """``done``, ``running``, ``waiting``, or ``failed``: another run has something to ask."""
    at_most: bool = False
    """Whether fewer than ``total`` may be asked for."""

    @property
    def share(self) -> float:
        """Part that is done, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else float(self.total == 0)


@dataclass(frozen=True)
class Standings:
    """What one judge has said so far of whom, in one protocol."""

    about: str
    """Protocol and judge."""
    rows: Sequence[tuple[str, int, float, float, float]]
    """Contestant, its verdicts, and its share of them with the ends of its interval, 0 to 1."""


@dataclass(frozen=True)
class News:
    """A verdict, or something that failed."""

    said: Sequence[tuple[str, bool]]
    """What happened: texts, and whether each is a name."""
    about: str
    """Which case, and who said so."""
    text: str
    """The reason, or what came instead of a verdict."""
    href: str = ""
    """Of the case on the set's page; empty: there is none."""
    at: float | None = None
    """When, in seconds of the epoch; ``None``: no call was made for it."""


@dataclass(frozen=True)
class State:
    """A set while it is worked on."""

    seed_set: str
    running: str
    """Who writes to the workspace; empty: nobody."""
    page: str
    """Address of its leaderboard, from this page; empty: there is none."""
    talk: str
    """Address of the room to talk in; empty: there is none."""
    now: float
    """Seconds of the epoch."""
    run: Progress | None
    """The run that goes on, or the last one; ``None``: there was none."""
    run_steps: Sequence[StepRow]
    steps: Sequence[StepRow]
    """All that is there of the set."""
    standings: Standings | None
    """``None``: nobody has been judged often enough."""
    calls: Sequence[ModelStats]
    said: Sequence[Dialogue]
    """Newest first; likewise the two others."""
    verdicts: Sequence[News] = ()
    failed: Sequence[News] = ()

    @property
    def quiet_s(self) -> float:
        """Since the last reply of a run that should get some; 0: it is not quiet."""
        run = self.run
        if run is None or run.state != "running" or run.batches or not run.planned:
            return 0.0
        quiet = self.now - max(run.heard, 0.0)
        return quiet if quiet > QUIET_S else 0.0


def render(state: State) -> str:
    """The page as HTML text; without scripts the browser asks for it again as a whole."""
    running = state.run is not None and state.run.state == "running"
    return template("live.html").render(
        state=state,
        run=state.run,
        states=STATES,
        whole=whole,
        money=money,
        sum_of=_sum_of,
        duration=duration,
        # Of a run that has ended, so that nothing moves.
        ago=lambda at: f"{duration(max(0.0, state.now - at))} ago" if running else clock(at),
        clock=clock,
        seconds=RUNNING_S if running else RESTING_S,
        longest=_LONGEST,
        style=joined(STYLES),
        script=_SCRIPT,
    )


def whole(steps: Sequence[StepRow]) -> list[StepRow]:
    """A row a step: models that speak in one, judges of one protocol together."""
    by_name: dict[str, list[StepRow]] = {}
    for step in steps:
        by_name.setdefault(step.name, []).append(step)
    return [_together(parts) if len(parts) > 1 else parts[0] for parts in by_name.values()]


def _together(parts: Sequence[StepRow]) -> StepRow:
    states = [one.state for one in parts]
    calls = [one.calls for one in parts if one.calls is not None]
    costs = [one.cost_usd for one in parts if one.cost_usd is not None]
    return replace(
        parts[0],
        by=f"{len(parts)} {'models' if parts[0].name == 'Dialogues' else 'judges'}",
        done=sum(one.done for one in parts),
        total=total(one.total for one in parts),
        calls=sum(calls) if calls else None,
        cost_usd=sum(costs) if costs else None,
        unpriced=sum(one.unpriced for one in parts),
        failed="; ".join(f"{one.by}: {one.failed}" for one in parts if one.failed),
        state=next((one for one in ("failed", "running", "waiting") if one in states), "done"),
        at_most=any(one.at_most for one in parts),
    )


def clock(at: float) -> str:
    """The time of day of a time in seconds of the epoch, here."""
    return time.strftime("%H:%M:%S", time.localtime(at))


def _sum_of(calls: Sequence[ModelStats]) -> str:
    return money(
        sum(one.cost_usd or 0.0 for one in calls), sum(one.unpriced_calls for one in calls)
    )

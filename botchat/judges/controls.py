"""What a panel has to beat: its own members before they talked, and one judge asked as often.

*Before the talk*: the opening votes of a panel's members, counted as the panel counts its last
ones. They are in the transcript and cost nothing more. Where members speak one by one, only the
first has heard nobody when it opens (`botchat.judges.voting.opening_votes`).

*Call-matched*: the panel's models, asked the bare question as often as the panel makes calls, at a
temperature at which their answers differ, and a vote on the answers. It costs what the panel costs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Literal

import msgspec

from botchat.errors import ConfigError
from botchat.judges.cascade import CASCADE, CHEAP
from botchat.judges.talk import SWAPPED
from botchat.judges.voting import aggregate, opening_votes
from botchat.records import Judgment, Remark, Verdict
from botchat.workspace.panels import DECOMPOSER, FEEDBACK, SUMMARIZER, AgentSettings, PanelSettings

BEFORE_TALK = " (before talk)"
"""Ends a panel's name where the votes are those before the talk."""

CALL_MATCHED = " (control)"
"""Ends a panel's name where a single judge was asked as often instead."""


def talks(judgments: Sequence[Judgment]) -> bool:
    """Whether these are judgments of a panel whose members hear each other."""
    if any(remark.speaker in (CHEAP, CASCADE) for j in judgments for remark in j.transcript):
        return False
    return any(_talked(judgment.transcript) for judgment in judgments)


def before_talk(
    judgments: Sequence[Judgment],
    choices: Callable[[Judgment], Collection[Verdict]],
    scores: Literal["mean", "majority"] = "mean",
) -> list[Judgment]:
    """A panel's judgments as they would be without the talk, under its name and `BEFORE_TALK`.

    Args:
        judgments: of one panel.
        choices: what the question of a judgment offered.
        scores: how the panel counts scores, see `botchat.judges.voting.aggregate`.
    """
    return [
        msgspec.structs.replace(
            judgment,
            judge=f"{judgment.judge}{BEFORE_TALK}",
            verdict=aggregate(opening_votes(judgment.transcript), choices(judgment), scores),
            reason="",
            transcript=(),
            calls=tuple(remark.call for remark in _openings(judgment.transcript) if remark.call),
        )
        for judgment in judgments
    ]


def call_matched(settings: PanelSettings, model: str | None) -> PanelSettings:
    """The panel that asks as often as ``settings`` does, without roles and without talk.

    Each of the panel's models gives as many samples as the others, together at least `calls`.

    Args:
        settings: of the panel.
        model: of its agents that name none.

    Raises:
        ConfigError: a cascade, which makes more calls on some cases than on others.
    """
    models = list(dict.fromkeys(member.model or model for member in settings.members))
    return PanelSettings(
        strategy="ensemble",
        agents=tuple(AgentSettings(model=name) for name in models),
        samples=-(-calls(settings) // len(models)),
        temperature=1.0,
        max_tokens=settings.max_tokens,
        aggregation="majority" if settings.decides == "majority" else "auto",
        position_calibration=settings.position_calibration,
    )


def calls(settings: PanelSettings) -> int:
    """Calls of a panel's talk about one case in one order, if none of them fails.

    Raises:
        ConfigError: a cascade.
    """
    members = len(settings.members)
    if settings.strategy == "cascade":
        raise ConfigError(
            "--control: a cascade makes no fixed number of calls a case; name its strong panel"
        )
    if settings.strategy == "ensemble":
        return members * settings.samples
    if settings.is_debate:
        return settings.rounds * (members + settings.strategy.endswith("summarizer"))
    if settings.strategy == "discussion-sa":
        return 2
    parts = settings.strategy.split("-")
    statements = members * (2 if "sr" in parts else 1)
    return ("cot" in parts) + settings.rounds * (statements + 1) + 2


def _talked(transcript: Sequence[Remark]) -> bool:
    """Whether a member spoke twice, or anybody was given feedback."""
    speakers = [remark.speaker for remark in transcript]
    members = [remark.speaker for remark in transcript if _has_vote(remark)]
    return FEEDBACK in speakers or len(set(members)) < len(members)


def _openings(transcript: Sequence[Remark]) -> Iterator[Remark]:
    """The turns that `opening_votes` counts."""
    seen = set()
    for remark in transcript:
        if _has_vote(remark) and remark.speaker not in seen:
            seen.add(remark.speaker)
            yield remark


def _has_vote(remark: Remark) -> bool:
    return remark.speaker.removesuffix(SWAPPED) not in (DECOMPOSER, FEEDBACK, SUMMARIZER)

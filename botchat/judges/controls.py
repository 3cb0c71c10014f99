"""Controls of a panel: its members before they talked, and single judges asked equally often.

*Before the talk*: the opening votes of the members, counted as the panel counts its last ones.

*Call-matched*: the panel's models, asked the bare question as often as the panel makes calls, at a
temperature at which their answers differ, and a vote on the answers.

*Token-matched*: the same, asked until it has used as many tokens: in a talk, prompts are longer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal, assert_never

import msgspec

from botchat.errors import ConfigError
from botchat.judges.cascade import CASCADE, CHEAP
from botchat.judges.voting import aggregate, has_vote, opening_votes, openings
from botchat.records import Judgment, Verdict
from botchat.workspace import panels
from botchat.workspace.panels import AgentSettings, PanelSettings, TalkSettings

BEFORE_TALK = " (before talk)"
"""Ends the name of a panel's control with the votes before the talk."""

CALL_MATCHED = " (control)"
"""Ends the name of a panel's call-matched control."""

TOKEN_MATCHED = " (token control)"
"""Ends the name of a panel's token-matched control."""


def talks(judgments: Sequence[Judgment]) -> bool:
    """Whether these are of a panel whose members hear each other: speak twice, or get feedback."""
    speakers = {remark.speaker for judgment in judgments for remark in judgment.transcript}
    if not speakers.isdisjoint((CHEAP, CASCADE)):
        return False
    voters = [[said.speaker for said in j.transcript if has_vote(said)] for j in judgments]
    return panels.FEEDBACK in speakers or any(len(set(each)) < len(each) for each in voters)


def before_talk(
    judgments: Sequence[Judgment],
    choices: Callable[[Judgment], Collection[Verdict]],
    scores: Literal["mean", "majority"] = "mean",
) -> list[Judgment]:
    """A panel's judgments without the talk; ``choices``: what the question of a judgment offers."""
    return [
        msgspec.structs.replace(
            judgment,
            judge=f"{judgment.judge}{BEFORE_TALK}",
            verdict=aggregate(opening_votes(judgment.transcript), choices(judgment), scores),
            reason="",
            transcript=(),
            calls=tuple(remark.call for remark in openings(judgment.transcript) if remark.call),
        )
        for judgment in judgments
    ]


def call_matched(
    settings: PanelSettings, model: str | None, samples: int | None = None
) -> panels.EnsembleSettings:
    """The panel that asks as often as ``settings`` does, without roles and without talk.

    Each model gives as many ``samples`` as the others, by default together at least `calls`;
    ``model`` is that of agents that name none. Raises `ConfigError` for a cascade.
    """
    if isinstance(settings, panels.CascadeSettings):
        raise ConfigError(
            "--control: a cascade makes no fixed number of calls a case; name its strong panel"
        )
    models = list(dict.fromkeys(member.model or model for member in settings.members))
    return panels.EnsembleSettings(
        agents=tuple(AgentSettings(model=name) for name in models),
        samples=samples or -(-calls(settings) // len(models)),
        temperature=1.0,
        max_tokens=settings.max_tokens,
        aggregation="majority" if settings.decides == "majority" else "auto",
        position_calibration=settings.position_calibration,
    )


def calls(settings: TalkSettings) -> int:
    """Calls of a panel's talk about one case in one order, if none of them fails."""
    members = len(settings.members)
    match settings:
        case panels.EnsembleSettings():
            return members * settings.samples + settings.steps
        case panels.DebateSettings():
            return settings.rounds * members
        case panels.SummarizedDebateSettings():
            return settings.rounds * (members + 1)
        case panels.SingleReportSettings():
            return 2
        case panels.DiscussionSettings():
            statements = members * (2 if settings.reflects else 1)
            each = statements + settings.feedback
            return settings.decomposes + settings.rounds * each + 2
        case _:
            assert_never(settings)

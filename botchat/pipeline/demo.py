"""Everything once, offline: sample seeds, four bots and people, the rules judge, a page."""

from __future__ import annotations

from botchat.models.bots import BASELINES
from botchat.pipeline.generate import generate
from botchat.pipeline.judge import RANKING, judge
from botchat.pipeline.leaderboard import Published, leaderboard
from botchat.pipeline.run import Meter
from botchat.pipeline.session import RULES
from botchat.workspace.folder import SAMPLE, Workspace


def demo(workspace: Workspace, meter: Meter | None = None) -> Published:
    """The whole pipeline on the sample seeds, as a user would run it; no key, no network."""
    generate(workspace, SAMPLE, [f"bot:{name}" for name in BASELINES], meter=meter)
    for protocol in RANKING:
        judge(workspace, protocol, SAMPLE, RULES, meter=meter)
    return leaderboard(workspace, SAMPLE, RULES, meter=meter)

"""Can a model hold a human conversation over many turns, who is best, is the judge right?

The command line's stages as functions, imported when first used:

    >>> import botchat
    >>> workspace = botchat.Workspace(Path("my-run"))
    >>> botchat.generate(workspace, "sample", ["bot:eliza", "bot:parrot"])
    >>> botchat.judge(workspace, "arena", "sample", "rules")
    >>> botchat.leaderboard(workspace, "sample")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from botchat.pipeline.adaptive import Adaptive
    from botchat.pipeline.agree import agree
    from botchat.pipeline.api import bench, generate, judge, judge_adaptively, probe
    from botchat.pipeline.bench import Benching
    from botchat.pipeline.generate import Generating
    from botchat.pipeline.judge import Judging
    from botchat.pipeline.leaderboard import leaderboard, rank_rates
    from botchat.pipeline.probe import Probing
    from botchat.pipeline.seeds import import_seeds
    from botchat.pipeline.session import JudgeName, Limits, Spending
    from botchat.pipeline.simulate import simulate
    from botchat.ratings.adaptive import AdaptiveSettings, Target
    from botchat.ratings.bradley_terry import fit as bradley_terry
    from botchat.ratings.comparisons import Comparisons
    from botchat.ratings.elo import bootstrap_elo as elo
    from botchat.workspace.folder import Workspace

_HOMES = {
    "Adaptive": "pipeline.adaptive:Adaptive",
    "AdaptiveSettings": "ratings.adaptive:AdaptiveSettings",
    "Benching": "pipeline.bench:Benching",
    "Comparisons": "ratings.comparisons:Comparisons",
    "Generating": "pipeline.generate:Generating",
    "JudgeName": "pipeline.session:JudgeName",
    "Judging": "pipeline.judge:Judging",
    "Limits": "pipeline.session:Limits",
    "Probing": "pipeline.probe:Probing",
    "Spending": "pipeline.session:Spending",
    "Target": "ratings.adaptive:Target",
    "Workspace": "workspace.folder:Workspace",
    "agree": "pipeline.agree:agree",
    "bench": "pipeline.api:bench",
    "bradley_terry": "ratings.bradley_terry:fit",
    "elo": "ratings.elo:bootstrap_elo",
    "generate": "pipeline.api:generate",
    "import_seeds": "pipeline.seeds:import_seeds",
    "judge": "pipeline.api:judge",
    "judge_adaptively": "pipeline.api:judge_adaptively",
    "leaderboard": "pipeline.leaderboard:leaderboard",
    "probe": "pipeline.api:probe",
    "rank_rates": "pipeline.leaderboard:rank_rates",
    "simulate": "pipeline.simulate:simulate",
}

__all__ = [
    "Adaptive",
    "AdaptiveSettings",
    "Benching",
    "Comparisons",
    "Generating",
    "JudgeName",
    "Judging",
    "Limits",
    "Probing",
    "Spending",
    "Target",
    "Workspace",
    "agree",
    "bench",
    "bradley_terry",
    "elo",
    "generate",
    "import_seeds",
    "judge",
    "judge_adaptively",
    "leaderboard",
    "probe",
    "rank_rates",
    "simulate",
]


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``botchat --help`` loads none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module 'botchat' has no attribute {name!r}")
    module, attribute = _HOMES[name].split(":")
    return getattr(import_module(f"botchat.{module}"), attribute)

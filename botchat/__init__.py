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
    from botchat.pipeline.agreeing import agree
    from botchat.pipeline.benching import bench
    from botchat.pipeline.generation import generate
    from botchat.pipeline.judging import judge
    from botchat.pipeline.probing import probe
    from botchat.pipeline.publishing import leaderboard, rank_rates
    from botchat.pipeline.sampling import judge_adaptively
    from botchat.pipeline.seeding import import_seeds
    from botchat.pipeline.session import Limits
    from botchat.pipeline.simulating import simulate
    from botchat.pipeline.workspace import Workspace
    from botchat.ratings.adaptive import AdaptiveSettings, Target
    from botchat.ratings.bradley_terry import fit as bradley_terry
    from botchat.ratings.comparisons import Comparisons
    from botchat.ratings.elo import bootstrap_elo as elo

_HOMES = {
    "AdaptiveSettings": "ratings.adaptive:AdaptiveSettings",
    "Comparisons": "ratings.comparisons:Comparisons",
    "Limits": "pipeline.session:Limits",
    "Target": "ratings.adaptive:Target",
    "Workspace": "pipeline.workspace:Workspace",
    "agree": "pipeline.agreeing:agree",
    "bench": "pipeline.benching:bench",
    "bradley_terry": "ratings.bradley_terry:fit",
    "elo": "ratings.elo:bootstrap_elo",
    "generate": "pipeline.generation:generate",
    "import_seeds": "pipeline.seeding:import_seeds",
    "judge": "pipeline.judging:judge",
    "judge_adaptively": "pipeline.sampling:judge_adaptively",
    "leaderboard": "pipeline.publishing:leaderboard",
    "probe": "pipeline.probing:probe",
    "rank_rates": "pipeline.publishing:rank_rates",
    "simulate": "pipeline.simulating:simulate",
}

__all__ = [
    "AdaptiveSettings",
    "Comparisons",
    "Limits",
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

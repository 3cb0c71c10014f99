"""Can a model hold a human conversation over many turns, who is best, is the judge right?

The command line's stages as functions, imported when first used:

    >>> import botchat
    >>> workspace = botchat.Workspace(Path("my-run"))
    >>> botchat.generate(workspace, "sample", ["bot:eliza", "bot:parrot"])
    >>> botchat.judge(workspace, "arena", "sample", "rules")
    >>> botchat.leaderboard(workspace, "sample")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botchat.leaves import leaf

if TYPE_CHECKING:  # "as" exports a name, for type checkers
    from botchat.arguments import JudgeName as JudgeName
    from botchat.arguments import Limits as Limits
    from botchat.arguments import Spending as Spending
    from botchat.cluster.shards import shards as shards
    from botchat.hub.fetch import fetch as fetch
    from botchat.hub.publish import publish as publish
    from botchat.papers.api import bench as bench
    from botchat.papers.api import inject as inject
    from botchat.papers.bench import Benching as Benching
    from botchat.papers.inject import Injecting as Injecting
    from botchat.papers.reproduce import Reproducing as Reproducing
    from botchat.papers.requests import ProbingPolarity as ProbingPolarity
    from botchat.papers.requests import probe_polarity as probe_polarity
    from botchat.pipeline.leaderboard import rank_rates as rank_rates
    from botchat.pipeline.plot import plot as plot
    from botchat.pipeline.results import read as read
    from botchat.ratings.adaptive import AdaptiveSettings as AdaptiveSettings
    from botchat.ratings.adaptive import Target as Target
    from botchat.ratings.bradley_terry import fit
    from botchat.ratings.comparisons import Comparisons as Comparisons
    from botchat.ratings.elo import bootstrap_elo
    from botchat.records import VERSION
    from botchat.requests import Evaluating as Evaluating
    from botchat.requests import Generating as Generating
    from botchat.requests import Judging as Judging
    from botchat.requests import Probing as Probing
    from botchat.requests import Running as Running
    from botchat.requests import agree as agree
    from botchat.requests import bridge as bridge
    from botchat.requests import compare as compare
    from botchat.requests import evaluate as evaluate
    from botchat.requests import export as export
    from botchat.requests import generate as generate
    from botchat.requests import import_dialogues as import_dialogues
    from botchat.requests import import_seeds as import_seeds
    from botchat.requests import judge as judge
    from botchat.requests import label_plan as label_plan
    from botchat.requests import leaderboard as leaderboard
    from botchat.requests import probe as probe
    from botchat.requests import rank as rank
    from botchat.requests import run as run
    from botchat.seeds.dataset import features as features
    from botchat.workspace.folder import Workspace as Workspace
    from botchat.workspace.from_store import from_store as from_store

    __version__ = VERSION
    bradley_terry, elo = fit, bootstrap_elo

_HOMES = {
    "AdaptiveSettings": "ratings.adaptive:AdaptiveSettings",
    "Benching": "papers.bench:Benching",
    "Reproducing": "papers.reproduce:Reproducing",
    "Comparisons": "ratings.comparisons:Comparisons",
    "Evaluating": "requests:Evaluating",
    "Generating": "requests:Generating",
    "Injecting": "papers.inject:Injecting",
    "JudgeName": "arguments:JudgeName",
    "Judging": "requests:Judging",
    "Limits": "arguments:Limits",
    "Probing": "requests:Probing",
    "ProbingPolarity": "papers.requests:ProbingPolarity",
    "Running": "requests:Running",
    "Spending": "arguments:Spending",
    "Target": "ratings.adaptive:Target",
    "Workspace": "workspace.folder:Workspace",
    "__version__": "records:VERSION",
    "bench": "papers.api:bench",
    "agree": "requests:agree",
    "bradley_terry": "ratings.bradley_terry:fit",
    "bridge": "requests:bridge",
    "compare": "requests:compare",
    "elo": "ratings.elo:bootstrap_elo",
    "fetch": "hub.fetch:fetch",
    "features": "seeds.dataset:features",
    "from_store": "workspace.from_store:from_store",
    "generate": "requests:generate",
    "inject": "papers.api:inject",
    "evaluate": "requests:evaluate",
    "export": "requests:export",
    "import_dialogues": "requests:import_dialogues",
    "import_seeds": "requests:import_seeds",
    "judge": "requests:judge",
    "label_plan": "requests:label_plan",
    "leaderboard": "requests:leaderboard",
    "plot": "pipeline.plot:plot",
    "probe": "requests:probe",
    "probe_polarity": "papers.requests:probe_polarity",
    "publish": "hub.publish:publish",
    "rank": "requests:rank",
    "rank_rates": "pipeline.leaderboard:rank_rates",
    "read": "pipeline.results:read",
    "run": "requests:run",
    "shards": "cluster.shards:shards",
}

if not TYPE_CHECKING:
    __all__ = list(_HOMES)


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *_HOMES})


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``botchat --help`` loads none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module 'botchat' has no attribute {name!r}")
    module, attribute = _HOMES[name].split(":")
    return getattr(leaf(module, f"botchat.{name}"), attribute)

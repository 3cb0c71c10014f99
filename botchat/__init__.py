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
    from botchat.pipeline.agree import agree as agree
    from botchat.pipeline.api import evaluate as evaluate
    from botchat.pipeline.bridge import bridge as bridge
    from botchat.pipeline.compare import compare as compare
    from botchat.pipeline.dialogues import import_dialogues as import_dialogues
    from botchat.pipeline.evaluate import Evaluating as Evaluating
    from botchat.pipeline.export import export as export
    from botchat.pipeline.label import label_plan as label_plan
    from botchat.pipeline.leaderboard import leaderboard as leaderboard
    from botchat.pipeline.leaderboard import rank_rates as rank_rates
    from botchat.pipeline.plot import plot as plot
    from botchat.pipeline.rank import rank as rank
    from botchat.pipeline.results import read as read
    from botchat.pipeline.seeds import import_seeds as import_seeds
    from botchat.ratings.adaptive import AdaptiveSettings as AdaptiveSettings
    from botchat.ratings.adaptive import Target as Target
    from botchat.ratings.bradley_terry import fit
    from botchat.ratings.comparisons import Comparisons as Comparisons
    from botchat.ratings.elo import bootstrap_elo
    from botchat.records import VERSION
    from botchat.requests import Generating as Generating
    from botchat.requests import JudgeName as JudgeName
    from botchat.requests import Judging as Judging
    from botchat.requests import Limits as Limits
    from botchat.requests import Probing as Probing
    from botchat.requests import Running as Running
    from botchat.requests import Spending as Spending
    from botchat.requests import generate as generate
    from botchat.requests import judge as judge
    from botchat.requests import probe as probe
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
    "Evaluating": "pipeline.evaluate:Evaluating",
    "Generating": "requests:Generating",
    "Injecting": "papers.inject:Injecting",
    "JudgeName": "requests:JudgeName",
    "Judging": "requests:Judging",
    "Limits": "requests:Limits",
    "Probing": "requests:Probing",
    "ProbingPolarity": "papers.requests:ProbingPolarity",
    "Running": "requests:Running",
    "Spending": "requests:Spending",
    "Target": "ratings.adaptive:Target",
    "Workspace": "workspace.folder:Workspace",
    "__version__": "records:VERSION",
    "agree": "pipeline.agree:agree",
    "bench": "papers.api:bench",
    "bradley_terry": "ratings.bradley_terry:fit",
    "bridge": "pipeline.bridge:bridge",
    "compare": "pipeline.compare:compare",
    "elo": "ratings.elo:bootstrap_elo",
    "evaluate": "pipeline.api:evaluate",
    "export": "pipeline.export:export",
    "fetch": "hub.fetch:fetch",
    "features": "seeds.dataset:features",
    "from_store": "workspace.from_store:from_store",
    "generate": "requests:generate",
    "import_dialogues": "pipeline.dialogues:import_dialogues",
    "import_seeds": "pipeline.seeds:import_seeds",
    "inject": "papers.api:inject",
    "judge": "requests:judge",
    "label_plan": "pipeline.label:label_plan",
    "leaderboard": "pipeline.leaderboard:leaderboard",
    "plot": "pipeline.plot:plot",
    "probe": "requests:probe",
    "probe_polarity": "papers.requests:probe_polarity",
    "rank": "pipeline.rank:rank",
    "publish": "hub.publish:publish",
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

"""What ``import botchat`` has besides the requests: values that they take, and what rates alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from botchat.pipeline.plot import plot as plot
    from botchat.pipeline.reading import read as read
    from botchat.ratings.adaptive import AdaptiveSettings as AdaptiveSettings
    from botchat.ratings.adaptive import Target as Target
    from botchat.ratings.bradley_terry import fit as bradley_terry  # noqa: F401
    from botchat.ratings.comparisons import Comparisons as Comparisons
    from botchat.ratings.elo import bootstrap_elo as elo  # noqa: F401
    from botchat.records import VERSION as __version__  # noqa: F401, N811
    from botchat.requests.arguments import JudgeName as JudgeName
    from botchat.requests.arguments import Limits as Limits
    from botchat.requests.arguments import Spending as Spending
    from botchat.seeds.dataset import features as features
    from botchat.workspace.folder import Workspace as Workspace
    from botchat.workspace.from_store import from_store as from_store

PLACES = {
    "AdaptiveSettings": "ratings.adaptive:AdaptiveSettings",
    "Comparisons": "ratings.comparisons:Comparisons",
    "JudgeName": "requests.arguments:JudgeName",
    "Limits": "requests.arguments:Limits",
    "Spending": "requests.arguments:Spending",
    "Target": "ratings.adaptive:Target",
    "Workspace": "workspace.folder:Workspace",
    "__version__": "records:VERSION",
    "bradley_terry": "ratings.bradley_terry:fit",
    "elo": "ratings.elo:bootstrap_elo",
    "features": "seeds.dataset:features",
    "from_store": "workspace.from_store:from_store",
    "plot": "pipeline.plot:plot",
    "read": "pipeline.reading:read",
}
"""Name -> where it stands, so that a name imports its own room and no other."""

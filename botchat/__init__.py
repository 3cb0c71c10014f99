"""Can a model hold a human conversation over many turns, who is best, is the judge right?

The command line's commands as functions, imported when first used:

    >>> import botchat
    >>> botchat.generate(seeds="sample", model=["bot:retrieval", "bot:parrot"], workspace="my-run")
    >>> botchat.judge("arena", seeds="sample", judge="rules", workspace="my-run")
    >>> botchat.leaderboard(seeds="sample", workspace="my-run")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # static tools see no `__getattr__`
    from botchat.cli.notebook import plot as plot
    from botchat.cli.notebook import read as read
    from botchat.commands import *  # noqa: F403
    from botchat.pipeline.spending import Spending as Spending
    from botchat.ratings import bradley_terry as _bradley_terry
    from botchat.ratings import elo as _elo
    from botchat.ratings.comparisons import Comparisons as Comparisons
    from botchat.records import VERSION
    from botchat.results import Result as Result
    from botchat.workspace.folder import Workspace as Workspace

    __version__ = VERSION
    bradley_terry = _bradley_terry.fit
    elo = _elo.bootstrap_elo

# Public name -> where it stands: a name imports its own room and no other
_PLACES = {
    "Comparisons": "ratings.comparisons:Comparisons",
    "Result": "results:Result",
    "Spending": "pipeline.spending:Spending",
    "Workspace": "workspace.folder:Workspace",
    "__version__": "records:VERSION",
    "bradley_terry": "ratings.bradley_terry:fit",
    "elo": "ratings.elo:bootstrap_elo",
    "plot": "cli.notebook:plot",
    "read": "cli.notebook:read",
}

_COMMANDS = (
    "run",
    "leaderboard",
    "figure",
    "agree",
    "compare",
    "demo",
    "init",
    "models_",
    "seeds",
    "import_",
    "generate",
    "judge",
    "rank",
    "bench",
    "label",
    "publish",
    "fetch",
    "ledger",
)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted([*_PLACES, *_COMMANDS])


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    place = "commands:" + name if name in _COMMANDS else _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'botchat' has no attribute {name!r}")
    module, _, attribute = place.partition(":")
    return getattr(import_module(f"botchat.{module}"), attribute)

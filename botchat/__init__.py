"""Can a model hold a human conversation over many turns, who is best, is the judge right?

The command line's stages as functions, imported when first used:

    >>> import botchat
    >>> workspace = botchat.Workspace(Path("my-run"))
    >>> botchat.generate(workspace, "sample", ["bot:retrieval", "bot:parrot"])
    >>> botchat.judge(workspace, "arena", "sample", "rules")
    >>> botchat.leaderboard(workspace, "sample")
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botchat.hub import *  # noqa: F403
    from botchat.papers.requests import *  # noqa: F403
    from botchat.public import *  # noqa: F403
    from botchat.requests import *  # noqa: F403


_PLACES = {
    "Comparisons": "ratings.comparisons:Comparisons",
    "JudgeName": "requests.arguments:JudgeName",
    "Limits": "requests.arguments:Limits",
    "Spending": "requests.arguments:Spending",
    "Workspace": "workspace.folder:Workspace",
    "__version__": "records:VERSION",
    "bradley_terry": "ratings.bradley_terry:fit",
    "elo": "ratings.elo:bootstrap_elo",
    "plot": "pipeline.plot:plot",
    "read": "pipeline.reading:read",
}
"""Name of `botchat.public` -> where it stands: a name imports its own room and no other."""


def _requests() -> Iterator[dict[str, Any]]:
    """What each module of requests has of ours."""
    from botchat.requests import MODULES

    for module in MODULES:
        yield {
            name: value
            for name, value in vars(import_module(module)).items()
            if name[0] != "_" and getattr(value, "__module__", "").startswith("botchat.")
        }


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *_PLACES, *(name for names in _requests() for name in names)})


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``botchat --help`` loads none of them."""
    from botchat.requests.arguments import explained

    if name in _PLACES:
        module, _, found = _PLACES[name].partition(":")
        return explained(getattr(import_module(f"botchat.{module}"), found))
    if not (name.startswith("__") or find_spec(f"botchat.{name}")):
        for names in _requests():
            if name in names:
                return explained(names[name])
    raise AttributeError(f"module 'botchat' has no attribute {name!r}")

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
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botchat.hub.requests import *  # noqa: F403
    from botchat.papers.requests import *  # noqa: F403
    from botchat.public import *  # noqa: F403
    from botchat.requests import *  # noqa: F403


def __dir__() -> list[str]:
    """The public names, imported or not."""
    from botchat.requests import modules

    found = (vars(import_module(name)) for name in (*modules(), "botchat.public"))
    return sorted({*globals(), *(name for names in found for name in names if name[0] != "_")})


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``botchat --help`` loads none of them.

    Requests first, which import little; then what stands in `botchat.public`. A room is imported by
    who asks for it.
    """
    if name == "__version__" or not (name.startswith("__") or find_spec(f"botchat.{name}")):
        from botchat.requests import modules

        for module in (*modules(), "botchat.public"):
            if name in (found := vars(import_module(module))):
                return found[name]
    raise AttributeError(f"module 'botchat' has no attribute {name!r}")

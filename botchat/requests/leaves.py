"""Parts of BotChat that can be taken away; a leaf is a room that no other room imports.

A leaf imports what it likes. What the rest offers of it, it asks for here by name, so that
everything else works where the leaf's folder is not.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from botchat.errors import ConfigError

LEAVES = ("hub", "papers")
"""Their folders, as modules of this package."""


def leaf(module: str, what: str) -> Any:
    """A module, such as ``"hub.publish"``, perhaps of a leaf; ``what`` needs it.

    Raises `ConfigError`: the leaf is not installed.
    """
    try:
        return import_module(f"botchat.{module}")
    except ModuleNotFoundError as error:
        room = next((room for room in LEAVES if f"{module}.".startswith(f"{room}.")), "")
        if not room or error.name not in (f"botchat.{room}", f"botchat.{module}"):
            raise
        raise ConfigError(
            f"{what} needs botchat's part {room}, which is not installed: install botchat-bench "
            "as it is released"
        ) from None

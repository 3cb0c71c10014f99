"""``botchat init``: a ``botchat.toml`` to begin with, for one provider, with comments.

A new provider is a table of ``workspace/providers.toml``, and the same lines in docs/providers.md.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from botchat.errors import BotChatError, ConfigError, did_you_mean
from botchat.pipeline.run.results import Told
from botchat.workspace.folder import SAMPLE, Workspace

_ENTRY = re.compile(r"^\[([a-z-]+)\.([a-z-]+)\]\n((?:(?!\[).*\n)*)", re.MULTILINE)
"""A table ``[PROVIDER.NAME]`` of ``providers.toml``, and its lines."""

_WHOLE = """\
# BotChat's settings: every key is optional, `botchat models` lists what can be named, and
# docs/settings.md has every key there is. Keys of accounts belong into the environment, never
# into this file.

{entry}# What `botchat run` does; its flags come before this.
[run]
# A set: `sample` comes with BotChat, 40 dialogues; yours: botchat seeds import FILE --name NAME
seeds = "{seeds}"
# Contestants; the people of the set are judged beside them.
models = {models}
# `rules` is offline; any model can judge, best one that is no contestant.
judge = "{judge}"
# Only the first 20 seeds; take the line out for all of them.
limit = 20
# USD: nothing is sent where the plan is over it, and a run stops there. It needs prices.
{unpriced}max_usd = 5.0
"""


def providers() -> dict[str, tuple[str, str]]:
    """Provider -> (name of the entry, its lines, comments included)."""
    text = resources.files("botchat.workspace").joinpath("providers.toml").read_text("utf-8")
    return {one[1]: (one[2], one[3].strip()) for one in _ENTRY.finditer(text)}


def init(workspace: Workspace, provider: str | None = None) -> Path:
    """Write ``botchat.toml``, for bots and the rules judge where no provider is named; its path.

    Raises `ConfigError`: an unknown provider, or a file that is there already, which stays.
    """
    known = providers()
    if provider is not None and provider not in known:
        raise ConfigError(
            f"unknown provider {provider!r}{did_you_mean(provider, known)}; "
            f"providers: {', '.join(known)}"
        )
    path = workspace.root / "botchat.toml"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(settings_text(provider))
    except FileExistsError:
        raise ConfigError(f"{path} is there already and stays as it is; edit it") from None
    except OSError as error:
        raise BotChatError(f"cannot write {path}: {error.strerror}") from None
    return path


def begin(workspace: Workspace, provider: str | None = None) -> Told:
    """`init`, and what to do next."""
    path = init(workspace, provider)
    then = "next: look through it, then: botchat run --plan (the price), botchat run"
    return Told({"path": path}, [f"wrote {path}", then])


def settings_text(provider: str | None) -> str:
    """The text of a ``botchat.toml`` for a provider, or for nobody in particular."""
    if provider is None:
        models, judge, entry = '["bot:eliza", "bot:retrieval"]', "rules", ""
    else:
        name, lines = providers()[provider]
        models, judge = f'["{name}", "bot:eliza"]', name
        entry = (
            "# A model: the name on the left is yours, for the command line and the board.\n"
            f"[models.{name}]\n{lines}\n\n"
        )
    priced = provider is None or re.search(r"^price_input", entry, re.MULTILINE)
    return _WHOLE.format(
        entry=entry,
        seeds=SAMPLE,
        models=models,
        judge=judge,
        unpriced="" if priced else "# ",
    )

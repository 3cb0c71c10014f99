"""Models behind an HTTP endpoint, each asked in its wire format.

A wire format is how an endpoint's requests and replies look. It is one module here that defines
``WIRE``, a `WireFormat`, and one line of `WIRE_FORMATS`; ``api`` in a ``[models]`` entry names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from botchat.errors import ConfigError
from botchat.interfaces import ChatModel, TokenLogprobs
from botchat.workspace.config import ModelSettings
from botchat.workspace.ledger import Ledger

WIRE_FORMATS = {"chat": "chat"}
"""Name -> module, imported when a model needs it."""

Progress: TypeAlias = MutableMapping[str, tuple[int, int]]
"""Batches under way: id -> requests done, requests in all."""


class Connection(Protocol):
    """One server with one key, shared by all its models."""

    async def close(self) -> None:
        """Close what is open."""


class BatchedModel(ChatModel, Protocol):
    """A model whose calls go through its endpoint's Batch API."""

    async def stop(self) -> None:
        """Wait for no batch any more: those under way stay noted in the ledger."""


@dataclass(frozen=True)
class WireFormat:
    """What a run needs of a wire format."""

    identity: Callable[[ModelSettings], dict[str, Any]]
    """A model's `ChatModel.identity`."""
    connect: Callable[[str, Callable[[], str | None], bool], Connection]
    """``(base URL, key, batches)``: ``key`` is called when the first request is sent; ``batches``:
    whole files of replies will be read."""
    model: Callable[[str, ModelSettings, Any, Mapping[str, Any]], ChatModel]
    """``(name, settings, connection, quirks)``: one attempt a call; quirks as in `Reply.sent`."""
    token_logprobs: Callable[[str], TokenLogprobs]
    """Finds the log-probabilities in a `Reply.raw`; empty: it has none."""
    in_batches: Callable[[Any, Ledger, Progress], BatchedModel] | None = None
    """``(model, ledger, progress)``: puts the calls of ``model`` into batches, which the ledger
    notes. ``None``: there is no Batch API."""


def wire_format(name: str, settings: ModelSettings) -> WireFormat:
    """The wire format that model ``name`` is asked in.

    Raises:
        ConfigError: its settings name an unknown one.
    """
    module = WIRE_FORMATS.get(settings.api)
    if module is None:
        known = ", ".join(WIRE_FORMATS)
        raise ConfigError(f"models.{name}: unknown api {settings.api!r}; known: {known}")
    found: WireFormat = import_module(f"{__name__}.{module}").WIRE
    return found

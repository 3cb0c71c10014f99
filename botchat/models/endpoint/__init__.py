"""Models behind an HTTP endpoint, each asked in its wire format.

A new wire format, how requests and replies of one API are worded, is one module here that defines
``WIRE``, a `WireFormat`, and one line of `WIRE_FORMATS`; ``api`` in a ``[models]`` entry names it.

An installed package may add one by an entry point of the group `ENTRY_POINTS`, whose object is a
`WireFormat`. Everything else (connections, keys, deadlines, what an HTTP status means, quirks,
redaction) is the same for all of them: `botchat.models.endpoint.model`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module, metadata
from typing import Any, NamedTuple, Protocol, TypeAlias

from botchat.errors import ConfigError
from botchat.interfaces import ChatModel, Decoding, Message, Reply, TokenLogprobs
from botchat.models.self_chat import ARRANGEMENTS
from botchat.workspace.config import ModelSettings, public_url

WIRE_FORMATS = {
    "chat": "chat",
    "responses": "responses",
    "anthropic": "anthropic",
}
"""Name -> module, imported when a model needs it."""

ENTRY_POINTS = "botchat.wire_formats"
"""Group of entry points by which installed packages add wire formats."""

Progress: TypeAlias = MutableMapping[str, tuple[int, int]]
"""Batches under way: id -> requests done, requests in all."""


class BatchedModel(ChatModel, Protocol):
    """A model whose calls go through its endpoint's Batch API."""

    async def stop(self) -> None:
        """Wait for no batch any more: those under way stay noted in the ledger."""


class Refusal(NamedTuple):
    """What the body of an error says."""

    code: str
    """Codes and types, with a blank between them; of digits only: an HTTP status."""
    message: str
    """In one line."""
    parameter: str
    """Field of the request that it is about; empty: it names none."""


@dataclass(frozen=True)
class WireFormat:
    """How the requests and replies of one API are worded: pure functions and tables."""

    path: str
    """Where requests go, after the base URL."""
    body: Callable[[Sequence[Message], Decoding, ModelSettings], dict[str, Any]]
    """The JSON body of a request. The messages are arranged already; `Decoding.max_tokens` fits
    into the context window. ``stream`` and ``extra`` of the settings are added by the caller."""
    read: Callable[[dict[str, Any], str], Reply]
    """What the JSON object in the body of a response with status 200 is, the same as text beside
    it. Nothing may be relied on: any field may be missing or of another type. Raises nothing."""
    refusal: Callable[[Any, str], Refusal]
    """What the body of an error says, as parsed JSON (of any type) and as text."""
    assemble: Callable[[Sequence[dict[str, Any]]], dict[str, Any] | None]
    """The body that would have come without ``stream`` from the JSON objects of all events of a
    stream, in order; ``None``: the stream broke off before its end, so it is no answer."""
    parameters: Mapping[str, str]
    """Optional field of a request's body -> regular expression of how an error names it."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Optional field -> the name under which some endpoints want it instead."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Optional field -> the one that it is an error without."""
    arrangements: Sequence[tuple[str, str]] = tuple(ARRANGEMENTS)
    """Layouts and places of the system prompt that may be tried (`botchat.models.self_chat`)."""
    key_header: str = "authorization"
    """Header of the key; only ``authorization`` has ``Bearer`` before it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers of every request."""
    check: Callable[[ModelSettings], str] = lambda _: ""
    """What settings cannot be asked so: ``key: what to do``; empty: nothing."""
    token_logprobs: Callable[[str], TokenLogprobs] = lambda _: ()
    """Finds the log-probabilities in a `Reply.raw`."""
    batches: Callable[[Any], Any] | None = None
    """Makes the `batch_endpoint.BatchApi` of an `EndpointModel`; ``None``: there is none."""


def wire_format(name: str, settings: ModelSettings, table: str = "models") -> WireFormat:
    """The wire format that model ``name`` is asked in; ``table`` of botchat.toml has the settings.

    Raises:
        ConfigError: its settings name an unknown one, or cannot be asked in it.
    """
    found: WireFormat
    if module := WIRE_FORMATS.get(settings.api):
        found = import_module(f"{__name__}.{module}").WIRE
    else:
        added = {one.name: one for one in metadata.entry_points(group=ENTRY_POINTS)}
        if settings.api not in added:
            known = ", ".join([*WIRE_FORMATS, *added])
            raise ConfigError(f"models.{name}: unknown api {settings.api!r}; known: {known}")
        found = added[settings.api].load()
    if said := found.check(settings):
        raise ConfigError(f"{table}.{name}.{said}")
    return found


def identity(settings: ModelSettings) -> dict[str, Any]:
    """What decides an endpoint model's answers besides the request; free of secrets."""
    asked: dict[str, Any] = {
        "model": settings.model,
        "base_url": settings.identity or public_url(settings.base_url),
        "temperature": settings.temperature is not None,
        "layout": settings.layout,
        "system": settings.system,
        "extra": settings.extra,
    }
    # Only where they are set: ledgers made before these existed keep their keys.
    if settings.api != "chat":
        asked["api"] = settings.api
    if settings.revision is not None:
        asked["revision"] = settings.revision
    if plain := {name: value for name, value in settings.headers.items() if "$" not in value}:
        asked["headers"] = plain
    return asked

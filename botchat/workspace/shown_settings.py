"""The part of ``botchat.toml`` that a board needs and everybody may see, as a stage file.

Judges, panels and protocols as they are; of a model what it is called. No key, no header, and of a
URL neither login nor query.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from botchat.workspace.config import Config, JudgeSettings, ModelSettings
from botchat.workspace.criteria import CriterionSettings
from botchat.workspace.panels import KINDS
from botchat.workspace.secrets import public_url

log = logging.getLogger("botchat")


class Entry(msgspec.Struct, frozen=True):
    """``[TABLE.NAME]``."""

    table: str
    name: str
    value: dict[str, Any]


_TABLES = {"models": ModelSettings, "judges": JudgeSettings, "protocols": CriterionSettings}


def entries(config: Config) -> Iterator[Entry]:
    """What of a workspace's settings others read."""
    for name, model in config.models.items():
        told = {"model": model.model, "label": model.label, "base_url": public_url(model.base_url)}
        yield Entry("models", name, told)
    for table in ("judges", "panels", "protocols"):
        for name, settings in getattr(config, table).items():
            yield Entry(table, name, msgspec.to_builtins(settings))


def with_entries(config: Config, told: Iterable[Entry]) -> Config:
    """The settings with these in place of entries of the same name, and without own languages."""
    found: dict[str, dict[str, Any]] = {}
    for one in told:
        kind = _TABLES.get(one.table) or KINDS.get(str(one.value.get("strategy")))
        try:
            if kind is not None:
                found.setdefault(one.table, {})[one.name] = msgspec.convert(one.value, kind)
        except msgspec.ValidationError as error:
            log.warning("[%s.%s] of the store is passed over: %s", one.table, one.name, error)
    changed = {table: {**getattr(config, table), **new} for table, new in found.items()}
    return msgspec.structs.replace(config, languages={}, **changed)

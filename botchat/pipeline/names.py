"""Names on the command line, resolved to settings: no file is read and no model is opened."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import UnsetType

from botchat.errors import ConfigError, listed
from botchat.judges.panel import calls
from botchat.records import HUMAN, RULES
from botchat.workspace import config
from botchat.workspace.config import Config, ModelName
from botchat.workspace.model_settings import FREE, Prices
from botchat.workspace.panels import PRESETS, AgentSettings, PanelSettings


class ModelUse(NamedTuple):
    """A model, and what it is opened for."""

    model: ModelName
    stage: str
    """Label of its calls in the ledger."""
    step: str
    """Row of a plan that counts its calls: ``generate``, or a protocol."""
    max_tokens: int | None
    """Longest reply; None: no limit."""

    @property
    def prices(self) -> Prices:
        """Prices of its entry; a bot has none and is free."""
        settings = self.model.settings
        if settings is None:
            return FREE
        return settings.prices


def judge_model(name: str, settings: Config) -> ModelName:
    """Return a model that judges; raises `ConfigError` for human and bots."""
    model = config.model_name(name, settings)
    if model.name == HUMAN:
        raise ConfigError("human is not a judge that can be asked; name a model, or rules")
    if model.is_bot:
        others = [RULES, *settings.judges, *settings.panels, *PRESETS]
        raise ConfigError(
            f"{name} talks and judges nothing; judges: a model (not bot:…), {listed(others)}"
        )
    return model


def first_set(*limits: int | UnsetType | None) -> int | None:
    """Return the first limit that is set; None is set, to no limit."""
    return next(limit for limit in limits if not isinstance(limit, UnsetType))


def equal_calls_panel(settings: PanelSettings, model: str | None) -> PanelSettings:
    """Return the panel with as many calls as ``settings``, without roles and debate.

    Each model, ``model`` for agents that name none, gives as many samples as the others.
    """
    models = list(dict.fromkeys(member.model or model for member in settings.members))
    return PanelSettings(
        strategy="ensemble",
        agents=tuple(AgentSettings(model=name) for name in models),
        samples=-(-calls(settings) // len(models)),
        temperature=1.0,
        max_tokens=settings.max_tokens,
        aggregation="majority" if settings.decides == "majority" else "auto",
        position_calibration=settings.position_calibration,
    )

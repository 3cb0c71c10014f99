"""Names on the command line, resolved to settings: no file is read and no model is opened."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import UNSET, UnsetType

from botchat.errors import ConfigError, did_you_mean, listed
from botchat.interfaces import Decoding
from botchat.judges.function import JudgeFunction
from botchat.judges.panel import calls
from botchat.pipeline.spending import JudgeName
from botchat.records import HUMAN, RULES, JudgeId
from botchat.workspace import config, panels
from botchat.workspace.config import Config, JudgeSettings, ModelName
from botchat.workspace.model_settings import FREE, UTTERANCE_TOKENS, VERDICT_TOKENS, Prices
from botchat.workspace.panels import PRESETS, AgentSettings, PanelSettings


class NamedSpeaker(NamedTuple):
    """A model that writes utterances."""

    model: ModelName
    decoding: Decoding
    system: str | None
    """System prompt of its dialogues; None for that of the set's language."""


class NamedJudge(NamedTuple):
    """A single model as judge."""

    name: str
    """Name that its judgments are filed under."""
    model: ModelName
    decoding: Decoding
    samples: int


class NamedPanel(NamedTuple):
    """A panel as judge."""

    name: str
    """Name that its judgments are filed under, before the model of its agents."""
    settings: PanelSettings
    model: str | None
    """Model of agents that name none."""


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


def named_speaker(name: str, settings: Config) -> NamedSpeaker:
    """Return a model that writes utterances; raises `ConfigError` if it cannot."""
    model = config.model_name(name, settings)
    if model.name == HUMAN:
        raise ConfigError(
            "human is not generated: the set's own dialogues are the contestant human already"
        )
    if model.settings is None:
        return NamedSpeaker(model, Decoding(), None)
    longest = _first_set(model.settings.max_tokens, UTTERANCE_TOKENS)
    decoding = Decoding(model.settings.temperature, longest)
    return NamedSpeaker(model, decoding, model.settings.system_prompt)


def named_judge(
    judge: JudgeName, settings: Config
) -> NamedJudge | NamedPanel | JudgeFunction | None:
    """Return a judge; None for the offline one. Raises `ConfigError` if it cannot judge."""
    name = judge.name
    if not isinstance(name, str):
        return name
    asked = JudgeId.asked(name)
    panel = panels.find(asked.name, settings.panels)
    if asked.role == "equal_calls":  # single judges with as many calls as a panel makes
        if panel is None:
            raise ConfigError(f"{name}: {asked.name!r} is no panel; name one, as in models")
        if judge.model is not None:
            asked = asked.of_model(config.model_name(judge.model, settings).name)
        return NamedPanel(str(asked), equal_calls_panel(panel, judge.model), None)
    if panel is not None:
        return NamedPanel(name, panel, judge.model)
    if judge.model is not None:
        known = [*settings.panels, *PRESETS]
        raise ConfigError(
            f"--judge-model is for panels and {name!r} is none{did_you_mean(name, known)}; "
            "botchat models lists them"
        )
    if name == RULES:
        return None
    return _single(name, settings)


def _single(name: str, settings: Config) -> NamedJudge:
    entry = settings.judges.get(name)
    judge = entry or JudgeSettings(model=name)
    model = judge_model(judge.model, settings)
    own = UNSET if model.settings is None else model.settings.max_tokens
    longest = _first_set(judge.max_tokens, own, VERDICT_TOKENS)
    decoding = Decoding(judge.temperature, longest)
    stored_name = model.name
    if entry is not None:
        stored_name = name
    return NamedJudge(stored_name, model, decoding, judge.samples)


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


def _first_set(*limits: int | UnsetType | None) -> int | None:
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

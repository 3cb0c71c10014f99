"""One run that calls models: names become speakers and judges, with one ledger and one budget."""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import TypeVar

from msgspec import UnsetType

from botchat.errors import ConfigError, did_you_mean, listed, log
from botchat.interfaces import ChatModel, Decoding, Judge
from botchat.judges.panel import build_panel, equal_calls_panel
from botchat.languages import ENGLISH
from botchat.parallel import EarlyStop, run_sync, stoppable
from botchat.pipeline.live_models import LiveModels
from botchat.pipeline.resolved import ModelUse, ResolvedRun
from botchat.pipeline.spending import JudgeName, Meter
from botchat.protocols.catalogue import Catalogue, catalogue
from botchat.protocols.generation import Speaker
from botchat.protocols.protocol import Protocol
from botchat.records import CONTROL, HUMAN, RULES, JudgeId
from botchat.results import Fields, Result
from botchat.workspace import config, panels
from botchat.workspace.config import Config, JudgeSettings, ModelName
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import UTTERANCE_TOKENS, VERDICT_TOKENS
from botchat.workspace.panels import PRESETS, PanelSettings

T = TypeVar("T")

DRAIN_S = 30.0
"""Longest that an interrupted run waits for replies in flight."""

LONGEST_CALL_S = 3600.0
"""Longest that any other run waits: each call has its own deadline, ``timeout_s``."""


def catalogue_of(workspace: Workspace, seed_set: str | None = None) -> Catalogue:
    """Return the protocols that can be named in a workspace, asked in the set's language."""
    language = ENGLISH if seed_set is None else workspace.language(seed_set)
    return catalogue(workspace.config.protocols, language)


@dataclass(frozen=True)
class StageOutcome:
    """Outcome of a stage for one contestant, or in one protocol."""

    unanswered: int = field(kw_only=True)
    """Dialogues or verdicts that another run may still get."""

    @property
    def row(self) -> Fields:
        """All but `unanswered`."""
        row = asdict(self)
        del row["unanswered"]
        return row


def stage_result(stages: Sequence[StageOutcome]) -> Result:
    """Return a row a contestant or protocol."""
    rows = [each.row for each in stages]
    return Result({"rows": rows}, unanswered=sum(each.unanswered for each in stages))


class OpenModels(typing.Protocol):
    """Opens the models of a run: to ask them, or to plan what they would be asked."""

    def open(self, use: ModelUse) -> ChatModel:
        """Return a model; raises `ConfigError` if it cannot be used."""


@dataclass(frozen=True)
class Session:
    """A resolved run with its models, open for a stage."""

    run: ResolvedRun
    models: OpenModels
    ledger: Ledger
    meter: Meter

    def speaker(self, name: str, stage: str = "generate") -> Speaker:
        """Return a model that writes utterances; `ConfigError` for a name that cannot be used.

        ``stage``: where its calls are filed in the ledger.
        """
        named = self._named(name)
        if named.name == HUMAN:
            raise ConfigError(
                "human is not generated: the set's own dialogues are the contestant human already"
            )
        decoding = Decoding()
        system = None
        if named.settings is not None:
            longest = named.settings.max_tokens
            if isinstance(longest, UnsetType):
                longest = UTTERANCE_TOKENS
            decoding = Decoding(named.settings.temperature, longest)
            system = named.settings.system_prompt
        model = self._open(ModelUse(named, stage, stage, decoding.max_tokens))
        return Speaker(model, decoding, system)

    def judge(self, judge: JudgeName, protocol: Protocol) -> Judge:
        """Return the judge of that name, for the cases of a protocol.

        Raises `ConfigError` if it cannot be used or be asked like this.
        """
        name = judge.name
        if not isinstance(name, str):
            return name
        asked = JudgeId.asked(name)
        own = self._config.panels
        panel = panels.find(asked.name, own)
        if asked.role == "equal_calls":
            return self._control(asked, panel, judge.model, protocol)
        if panel is not None:
            return self._panel(name, panel, judge.model, protocol)
        if judge.model is not None:
            hint = did_you_mean(name, [*own, *PRESETS])
            raise ConfigError(
                f"--judge-model is for panels and {name!r} is none{hint}; botchat models lists them"
            )
        if name == RULES:
            if protocol.template or not protocol.about_ai:
                raise ConfigError(
                    f"--judge {RULES} answers UniEval, Arena, GTEval and diagnosis, not "
                    f"{protocol.name}; name a model"
                )
            self._refuse_batch(RULES)
            return self.run.seed_set.rules
        return self._single(name, protocol.name)

    def _control(
        self, asked: JudgeId, panel: PanelSettings | None, model: str | None, protocol: Protocol
    ) -> Judge:
        """Return single judges with as many calls as a panel makes (``control:PANEL``)."""
        if panel is None:
            raise ConfigError(
                f"{CONTROL}{asked.name}: {asked.name!r} is no panel; name one, as in models"
            )
        if model is not None:
            asked = asked.of_model(self._named(model).name)
        return self._panel(str(asked), equal_calls_panel(panel, model), None, protocol)

    def _panel(
        self, name: str, settings: PanelSettings, model: str | None, protocol: Protocol
    ) -> Judge:
        def open_agent(agent: str) -> ChatModel:
            named = self._judge_model(agent)
            return self._open(ModelUse(named, "judge", protocol.name, settings.max_tokens))

        language = self.run.seed_set.language
        return build_panel(name, settings, open_agent, model, language, protocol.subject)

    def _single(self, name: str, step: str) -> Judge:
        from botchat.judges.single import SingleJudge, repeated_judge

        entry = self._config.judges.get(name)
        settings = entry or JudgeSettings(model=name)
        named = self._judge_model(settings.model)
        if entry is None:
            name = named.name
        longest = settings.max_tokens
        if isinstance(longest, UnsetType) and named.settings is not None:
            longest = named.settings.max_tokens
        if isinstance(longest, UnsetType):
            longest = VERDICT_TOKENS
        model = self._open(ModelUse(named, "judge", step, longest))
        decoding = Decoding(settings.temperature, longest)
        if settings.samples == 1:
            return SingleJudge(name, model, decoding)
        return repeated_judge(name, model, decoding, settings.samples)

    @property
    def _config(self) -> Config:
        return self.run.workspace.config

    def _named(self, name: str) -> ModelName:
        return config.model_name(name, self._config)

    def _judge_model(self, name: str) -> ModelName:
        """Return a model that judges; raises `ConfigError` for human and bots."""
        named = self._named(name)
        if named.name == HUMAN:
            raise ConfigError("human is not a judge that can be asked; name a model, or rules")
        if named.is_bot:
            own = self._config
            others = [RULES, *own.judges, *own.panels, *PRESETS]
            raise ConfigError(
                f"{name} talks and judges nothing; judges: a model (not bot:…), {listed(others)}"
            )
        return named

    def _open(self, use: ModelUse) -> ChatModel:
        if use.model.is_bot:
            self._refuse_batch(use.model.name)
        return self.models.open(use)

    def _refuse_batch(self, name: str) -> None:
        """Raise `ConfigError` if a run by the Batch API asks who is on no endpoint."""
        if self.run.limits.batch:
            raise ConfigError(
                f"--batch: {name} is on no endpoint and has no Batch API; leave --batch out, or "
                "name only models of endpoints"
            )


def run_session(
    run: ResolvedRun,
    meter: Meter,
    ask: Callable[[Session, EarlyStop], Awaitable[T]],
) -> T:
    """Return the result of ``ask`` on the locked workspace; raise what it noted in the stops.

    Replies in flight are stored before it ends; batches are not waited for.
    """
    workspace = run.workspace

    async def ask_in_session() -> T:
        if not run.limits.batch and any((workspace.hidden / "batches").glob("*/*.jsonl")):
            log.warning(
                "some calls of this workspace are in batches that were not collected, and a run "
                "without --batch pays for them again"
            )
        stops = EarlyStop()
        with closing(workspace.ledger()) as ledger:
            models = LiveModels(run, ledger, meter)
            session = Session(run, models, ledger, meter)
            longest_s = LONGEST_CALL_S
            try:
                result = await stoppable(ask(session, stops), models.stop)
                stops.raise_first()
            except asyncio.CancelledError:
                longest_s = DRAIN_S
                n = models.n_in_flight
                if n > 0:
                    log.warning(
                        f"waiting up to {DRAIN_S:.0f} s for {n} replies under way; "
                        "interrupt again to drop them"
                    )
                raise
            finally:
                await models.close(longest_s)
            return result

    return run_sync(ask_in_session, workspace.locked)

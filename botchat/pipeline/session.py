"""One run that calls models: names become speakers and judges, with one ledger and one budget."""

from __future__ import annotations

import asyncio
import time
import typing
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from typing import TypeVar

from msgspec import UNSET, UnsetType

from botchat.errors import ConfigError, did_you_mean, listed, log
from botchat.interfaces import ChatModel, Decoding, Judge, Row
from botchat.judges.panel import build_panel, calls
from botchat.parallel import EarlyStop, run_sync, stoppable
from botchat.pipeline.live_models import LiveModels
from botchat.pipeline.resolved import ModelUse, ResolvedRun
from botchat.pipeline.spending import JudgeName, Meter
from botchat.protocols.catalogue import Catalogue, catalogue
from botchat.protocols.generation import Speaker
from botchat.protocols.protocol import Protocol
from botchat.records import HUMAN, RULES, JudgeId
from botchat.results import Result
from botchat.workspace import config, panels, usage
from botchat.workspace.config import Config, JudgeSettings, ModelName
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import UTTERANCE_TOKENS, VERDICT_TOKENS
from botchat.workspace.panels import PRESETS, AgentSettings, PanelSettings

T = TypeVar("T")

DRAIN_S = 30.0
"""Longest that an interrupted run waits for replies in flight."""

LONGEST_CALL_S = 3600.0
"""Longest that any other run waits: each call has its own deadline, ``timeout_s``."""


def catalogue_of(workspace: Workspace, seed_set: str) -> Catalogue:
    """Return the protocols that can be named in a workspace, asked in the set's language."""
    return catalogue(workspace.config.protocols, workspace.language(seed_set))


def stage_result(results: Iterable[typing.NamedTuple]) -> Result:
    """Return a row a contestant or protocol of a stage, and what is unanswered in sum."""
    rows: list[Row] = [each._asdict() for each in results]
    unanswered = sum(row.pop("unanswered") for row in rows)
    return Result({"rows": rows}, unanswered=unanswered)


class OpenModels(typing.Protocol):
    """Opens the models of a run: to ask them, or to plan what they would be asked."""

    def open(self, use: ModelUse) -> ChatModel:
        """Return a model; raises `ConfigError` if it cannot be used."""


class Session(typing.NamedTuple):
    """A resolved run with its models, open for a stage."""

    run: ResolvedRun
    models: OpenModels
    ledger: Ledger
    meter: Meter

    def speaker(self, name: str, stage: str = "generate") -> Speaker:
        """Return a model that writes utterances; `ConfigError` for a name that cannot be used.

        ``stage``: where its calls are filed in the ledger.
        """
        model = config.model_name(name, self.run.workspace.config)
        if model.name == HUMAN:
            raise ConfigError(
                "human is not generated: the set's own dialogues are the contestant human already"
            )
        decoding = Decoding()
        system = None
        if model.settings is not None:
            longest = _first_set(model.settings.max_tokens, UTTERANCE_TOKENS)
            decoding = Decoding(model.settings.temperature, longest)
            system = model.settings.system_prompt
        return Speaker(
            self._open(ModelUse(model, stage, stage, decoding.max_tokens)), decoding, system
        )

    def judge(self, judge: JudgeName, protocol: Protocol, step: str = "") -> Judge:
        """Return the judge of that name, for the cases of a protocol.

        ``step``: of a plan, by default the protocol. Raises `ConfigError` if it cannot be used or
        be asked like this.
        """
        step = step or protocol.name
        name = judge.name
        if not isinstance(name, str):
            return name
        settings = self.run.workspace.config
        asked = JudgeId.asked(name)
        panel = panels.find(asked.name, settings.panels)
        if asked.role == "equal_calls":  # single judges with as many calls as a panel makes
            if panel is None:
                raise ConfigError(f"{name}: {asked.name!r} is no panel; name one, as in models")
            if judge.model is not None:
                asked = asked.of_model(config.model_name(judge.model, settings).name)
            equal = equal_calls_panel(panel, judge.model)
            return self._panel(str(asked), equal, None, protocol, step)
        if panel is not None:
            return self._panel(name, panel, judge.model, protocol, step)
        if judge.model is not None:
            known = [*settings.panels, *PRESETS]
            raise ConfigError(
                f"--judge-model is for panels and {name!r} is none{did_you_mean(name, known)}; "
                "botchat models lists them"
            )
        if name != RULES:
            return self._single(name, step)
        if protocol.template or not protocol.about_ai:
            raise ConfigError(
                f"--judge {RULES} answers UniEval, Arena, GTEval and diagnosis, not "
                f"{protocol.name}; name a model"
            )
        self._refuse_batch(RULES)
        return self.run.seed_set.rules

    def _single(self, name: str, step: str) -> Judge:
        from botchat.judges.single import SingleJudge, repeated_judge

        settings = self.run.workspace.config
        entry = settings.judges.get(name)
        judge = entry or JudgeSettings(model=name)
        model = _judge_model(judge.model, settings)
        if entry is None:
            name = model.name
        own = UNSET if model.settings is None else model.settings.max_tokens
        longest = _first_set(judge.max_tokens, own, VERDICT_TOKENS)
        decoding = Decoding(judge.temperature, longest)
        opened = self._open(ModelUse(model, "judge", step, longest))
        if judge.samples == 1:
            return SingleJudge(name, opened, decoding)
        return repeated_judge(name, opened, decoding, judge.samples)

    def _panel(
        self, name: str, panel: PanelSettings, model: str | None, protocol: Protocol, step: str
    ) -> Judge:
        """Return a panel; ``model``: of agents that name none."""

        def open_agent(agent: str) -> ChatModel:
            settings = _judge_model(agent, self.run.workspace.config)
            return self._open(ModelUse(settings, "judge", step, panel.max_tokens))

        language = self.run.seed_set.language
        return build_panel(name, panel, open_agent, model, language, protocol.subject)

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


def _judge_model(name: str, settings: Config) -> ModelName:
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
        started = time.time()
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
            usage.keep_pace(ledger, started)
            return result

    return run_sync(ask_in_session, workspace.locked)

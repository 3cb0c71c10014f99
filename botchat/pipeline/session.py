"""One run that calls models: names become speakers and judges, with one ledger and one budget."""

from __future__ import annotations

import asyncio
import time
import typing
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from typing import TypeVar

from botchat.errors import ConfigError, log
from botchat.interfaces import ChatModel, Judge, Row
from botchat.judges.panel import build_panel
from botchat.parallel import EarlyStop, run_sync, stoppable
from botchat.pipeline.live_models import LiveModels
from botchat.pipeline.names import (
    ModelUse,
    NamedJudge,
    NamedPanel,
    judge_model,
    named_judge,
    named_speaker,
)
from botchat.pipeline.resolved import ResolvedRun
from botchat.pipeline.spending import JudgeName, Meter
from botchat.protocols.catalogue import Catalogue, catalogue
from botchat.protocols.generation import Speaker
from botchat.protocols.protocol import Protocol
from botchat.records import RULES
from botchat.results import Result
from botchat.workspace import usage
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger

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
        speaker = named_speaker(name, self.run.workspace.config)
        model = self._open(ModelUse(speaker.model, stage, stage, speaker.decoding.max_tokens))
        return Speaker(model, speaker.decoding, speaker.system)

    def judge(self, judge: JudgeName, protocol: Protocol, step: str = "") -> Judge:
        """Return the judge of that name, for the cases of a protocol.

        ``step``: of a plan, by default the protocol. Raises `ConfigError` if it cannot be used or
        be asked like this.
        """
        step = step or protocol.name
        named = named_judge(judge, self.run.workspace.config)
        if named is None:
            if protocol.template or not protocol.about_ai:
                raise ConfigError(
                    f"--judge {RULES} answers UniEval, Arena, GTEval and diagnosis, not "
                    f"{protocol.name}; name a model"
                )
            self._refuse_batch(RULES)
            return self.run.seed_set.rules
        if isinstance(named, NamedPanel):
            return self._panel(named, protocol, step)
        if isinstance(named, NamedJudge):
            from botchat.judges.single import SingleJudge, repeated_judge

            model = self._open(ModelUse(named.model, "judge", step, named.decoding.max_tokens))
            if named.samples == 1:
                return SingleJudge(named.name, model, named.decoding)
            return repeated_judge(named.name, model, named.decoding, named.samples)
        return named

    def _panel(self, panel: NamedPanel, protocol: Protocol, step: str) -> Judge:
        def open_agent(name: str) -> ChatModel:
            model = judge_model(name, self.run.workspace.config)
            return self._open(ModelUse(model, "judge", step, panel.settings.max_tokens))

        return build_panel(
            panel.name,
            panel.settings,
            open_agent,
            panel.model,
            self.run.seed_set.language,
            protocol.subject,
        )

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

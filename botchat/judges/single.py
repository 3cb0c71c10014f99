"""A single model as judge: one call a case (BotChat §3), or several whose votes are counted.

Several are counted as an ensemble's are (FairEval's MEC: k samples of a judge, temperature 1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial

from botchat.interfaces import Case, ChatModel, Decoding, JudgeAnswer, Message, settings_digest
from botchat.judges.debate import Agent, PanelAgents
from botchat.judges.panel import Panel, vote_alone
from botchat.records import Remark
from botchat.workspace.panels import PanelSettings

_SAMPLED = re.compile(r" \(\d+ samples\)$")


@dataclass(frozen=True)
class SingleJudge:
    """Asks one model once. A reply that failed or cannot be read is no verdict, with its reason."""

    name: str
    model: ChatModel
    decoding: Decoding

    @property
    def parallel(self) -> int:
        """Cases worth having in flight."""
        return self.model.parallel

    @property
    def models(self) -> tuple[ChatModel]:
        """The model."""
        return (self.model,)

    @property
    def digest(self) -> str:
        """Digest of the model and the decoding."""
        return settings_digest(self.model.identity, self.decoding.settings)

    async def answer(self, case: Case) -> JudgeAnswer:
        """Ask and read; a reply without a verdict is kept whole, since its reason is not."""
        reply = await self.model.chat([Message(role="user", content=case.prompt)], self.decoding)
        calls = (reply.key,) if reply.key else ()
        if not reply.usable:
            return JudgeAnswer(None, reply.detail, reply.outcome, calls=calls)
        verdict, reason = case.read(reply.text)
        remarks = () if verdict is not None else (Remark(self.name, reply.text, reply.key),)
        offered = verdict if verdict in case.choices else None
        return JudgeAnswer(offered, reason, reply.outcome, remarks, calls)


def repeated_judge(name: str, model: ChatModel, decoding: Decoding, n_samples: int) -> Panel:
    """Return a judge asked ``n_samples`` times a case, its votes counted."""
    agents = [
        Agent(f"{name} #{n + 1}", "", model, replace(decoding, sample=n)) for n in range(n_samples)
    ]
    return Panel(
        f"{name} ({n_samples} samples)",
        partial(vote_alone, PanelSettings(strategy="ensemble"), PanelAgents(agents)),
        (model,),
        settings_digest(model.identity, decoding.settings, n_samples),
    )


def base_judge_name(name: str) -> str:
    """Return the name without the number of samples, where it has one."""
    return _SAMPLED.sub("", name)

"""A single model as judge: one call a case (BotChat §3), or several whose votes are counted.

Several are counted as an ensemble's are (FairEval's MEC: k samples of a judge, temperature 1).
"""

from functools import partial
from typing import NamedTuple

from botchat.interfaces import Case, ChatModel, Decoding, JudgeAnswer, Message, settings_digest
from botchat.judges.debate import Agent, PanelAgents, sampled_agents
from botchat.judges.panel import Panel, vote_alone
from botchat.records import JudgeId, Remark
from botchat.workspace.panels import PanelSettings


class SingleJudge(NamedTuple):
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
        calls = (reply.key,)
        if not reply.usable:
            return JudgeAnswer(None, reply.detail, reply.outcome, calls=calls)
        verdict, reason = case.read(reply.text)
        remarks: tuple[Remark, ...] = ()
        if verdict is None:
            remarks = (Remark(self.name, reply.text, reply.key),)
        return JudgeAnswer(verdict, reason, reply.outcome, remarks, calls)


def repeated_judge(name: str, model: ChatModel, decoding: Decoding, n_samples: int) -> Panel:
    """Return a judge asked ``n_samples`` times a case, its votes counted."""
    panel = PanelAgents(sampled_agents(Agent(name, "", model, decoding), n_samples))
    return Panel(
        str(JudgeId(name).sampled(n_samples)),
        partial(vote_alone, PanelSettings(strategy="ensemble"), panel),
        (model,),
        settings_digest(model.identity, decoding.settings, n_samples),
    )

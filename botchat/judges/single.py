"""A single model as judge: one call a case (BotChat §3)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace

from botchat.interfaces import Answer, Case, ChatModel, Decoding, Message, Reply, settings_digest
from botchat.records import Remark


@dataclass(frozen=True)
class SingleJudge:
    """Asks one model once. A reply that failed or cannot be read is no verdict, with its reason."""

    name: str
    """What the judgments are filed under."""
    model: ChatModel
    decoding: Decoding
    _: KW_ONLY
    structured: bool = False
    """Replies follow the case's JSON schema, where it has one."""

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
        """Of the model, the decoding and the form of the reply."""
        form = ("structured",) if self.structured else ()
        return settings_digest(self.model.identity, self.decoding.settings, *form)

    async def answer(self, case: Case) -> Answer:
        """Ask and read."""
        schema = case.schema if self.structured else None
        decoding = replace(self.decoding, schema=schema, shared=case.shared)
        reply = await self.model.chat([Message(role="user", content=case.prompt)], decoding)
        calls = (reply.key,) if reply.key else ()
        if not reply.usable:
            return Answer(None, reply.detail, outcome=reply.outcome, calls=calls)
        verdict, reason = case.read(reply.text)
        # The reason is stored beside every verdict, the whole reply only where there is no verdict
        # (the ledger has it in any case).
        talk = () if verdict is not None else (Remark(self.name, reply.text, reply.key),)
        if verdict is not None and verdict not in case.choices:
            verdict = None
        sure = confidence(case, reply) if verdict is not None else None
        return Answer(verdict, reason, reply.outcome, talk, calls, sure)


def confidence(case: Case, reply: Reply) -> float | None:
    """Probability of the tokens that overlap the verdict's words, 0 to 1; ``None`` if unknown."""
    if not reply.tokens or case.words is None:
        return None
    said = b"".join(token for token, _ in reply.tokens)
    start = said.rfind(reply.text.encode())  # reasoning tokens may come before it
    spans = case.words(reply.text)
    if start < 0 or not spans:
        return None
    words = [[start + len(reply.text[:end].encode()) for end in span] for span in spans]
    logprob, at = 0.0, 0
    for token, of_token in reply.tokens:
        after = at + len(token)
        if any(at < last and after > first for first, last in words):
            logprob += of_token
        at = after
    return min(1.0, math.exp(logprob))

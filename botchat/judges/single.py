"""A single model as judge: one call a case, the verdict read as the protocol says (BotChat §3)."""

from __future__ import annotations

import math
from dataclasses import replace

from botchat.interfaces import Answer, Case, ChatModel, Decoding, Message, Reply, settings_digest
from botchat.records import Remark


class SingleJudge:
    """Asks one model once. A reply that failed or cannot be read is no verdict, with its reason."""

    def __init__(
        self, name: str, model: ChatModel, decoding: Decoding, *, structured: bool = False
    ) -> None:
        """Put a model behind a name.

        Args:
            name: what the judgments are filed under.
            model: who is asked.
            decoding: how the reply is drawn.
            structured: hold the model to the case's JSON schema, where it has one.
        """
        self._name = name
        self._model = model
        self._sampling = decoding
        self._structured = structured

    @property
    def name(self) -> str:
        """The name its judgments are filed under."""
        return self._name

    @property
    def parallel(self) -> int:
        """Cases worth having in flight."""
        return self._model.parallel

    @property
    def digest(self) -> str:
        """Of the model asked, the decoding and the form."""
        form = ("structured",) if self._structured else ()
        return settings_digest(self._model.identity, self._sampling.settings, *form)

    async def answer(self, case: Case) -> Answer:
        """Ask and read."""
        decoding = replace(self._sampling, schema=case.schema if self._structured else None)
        reply = await self._model.chat([Message(role="user", content=case.prompt)], decoding)
        calls = (reply.key,) if reply.key else ()
        if not reply.usable:
            return Answer(None, reply.detail, outcome=reply.outcome, calls=calls)
        verdict, reason = case.read(reply.text)
        # The reason is stored beside every verdict; the whole reply only where it explains why
        # there is none (it is in the ledger in any case).
        talk = () if verdict is not None else (Remark(self._name, reply.text, reply.key),)
        if verdict is not None and verdict not in case.choices:
            verdict = None
        sure = confidence(case, reply) if verdict is not None else None
        return Answer(verdict, reason, reply.outcome, talk, calls, sure)


def confidence(case: Case, reply: Reply) -> float | None:
    """Probability of the verdict's words, given all that the reply says before them.

    The product over the tokens that hold a part of the words. ``None`` where log-probabilities are
    not known, or the reply has no verdict.
    """
    if not reply.tokens or case.words is None:
        return None
    said = b"".join(token for token, _ in reply.tokens)
    start = said.rfind(reply.text.encode())  # thoughts may come before it
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

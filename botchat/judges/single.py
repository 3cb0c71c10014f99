"""A single model as judge: one call a case, the verdict read as the protocol says (BotChat §3)."""

from __future__ import annotations

from dataclasses import replace

from botchat.interfaces import Case, ChatModel, Message, Ruling, Sampling, settings_digest
from botchat.judges.confidence import confidence
from botchat.records import Turn


class SingleJudge:
    """Asks one model once. A reply that failed or cannot be read is no verdict, with its reason."""

    def __init__(
        self, name: str, model: ChatModel, sampling: Sampling, *, structured: bool = False
    ) -> None:
        """Put a model behind a name.

        Args:
            name: what the judgments are filed under.
            model: who is asked.
            sampling: how the reply is drawn.
            structured: hold the model to the case's JSON schema, where it has one.
        """
        self._name = name
        self._model = model
        self._sampling = sampling
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
        """Of the model asked, the sampling and the form."""
        form = ("structured",) if self._structured else ()
        return settings_digest(self._model.identity, self._sampling.settings, *form)

    async def rule(self, case: Case) -> Ruling:
        """Ask and read."""
        sampling = replace(self._sampling, schema=case.schema if self._structured else None)
        reply = await self._model.chat([Message(role="user", content=case.prompt)], sampling)
        calls = (reply.key,) if reply.key else ()
        if not reply.usable:
            return Ruling(None, reply.detail, outcome=reply.outcome, calls=calls)
        verdict, reason = case.read(reply.text)
        # The reason is stored beside every verdict; the whole reply only where it explains why
        # there is none (it is in the ledger in any case).
        talk = () if verdict is not None else (Turn(self._name, reply.text, reply.key),)
        if verdict is not None and verdict not in case.choices:
            verdict = None
        sure = confidence(case, reply) if verdict is not None else None
        return Ruling(verdict, reason, reply.outcome, talk, calls, sure)

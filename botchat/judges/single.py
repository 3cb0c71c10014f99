"""A single model as judge: one call a case, the verdict read as the protocol says (BotChat §3)."""

from __future__ import annotations

from dataclasses import asdict

from botchat.interfaces import Case, ChatModel, Message, Ruling, Sampling, settings_digest
from botchat.records import Turn


class SingleJudge:
    """Asks one model once. A reply that failed or cannot be read is no verdict, with its reason."""

    def __init__(self, name: str, model: ChatModel, sampling: Sampling) -> None:
        """``name`` is what the judgments are filed under; ``sampling`` how the reply is drawn."""
        self._name = name
        self._model = model
        self._sampling = sampling

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
        """Of the model asked and the sampling."""
        return settings_digest(self._model.identity, asdict(self._sampling))

    async def rule(self, case: Case) -> Ruling:
        """Ask and read."""
        reply = await self._model.chat([Message(role="user", content=case.prompt)], self._sampling)
        calls = (reply.key,) if reply.key else ()
        if not reply.usable:
            return Ruling(None, reply.detail, outcome=reply.outcome, calls=calls)
        verdict, reason = case.read(reply.text)
        # The reason is stored beside every verdict; the whole reply only where it explains why
        # there is none (it is in the ledger in any case).
        talk = () if verdict is not None else (Turn(self._name, reply.text, reply.key),)
        if verdict is not None and verdict not in case.choices:
            verdict = None
        return Ruling(verdict, reason, outcome=reply.outcome, transcript=talk, calls=calls)

"""Attempts until a call is answered, as long as what they may cost allows.

Until a model has answered in a run, one call goes alone: a wrong key or a server that is down costs
its attempts. Eight failures in a row for one reason end the model, whenever that is.
"""

import asyncio
from dataclasses import dataclass

from msgspec.structs import replace

from botchat.errors import FatalModelError
from botchat.interfaces import Reply
from botchat.models.attempts import Adapted, Again, Answered, Call, Refused
from botchat.models.faults import FACTS, Fault
from botchat.models.limits import Retry
from botchat.models.paying import PayingModel

HOPELESS = 8
"""Failures in a row for one reason after which a model is given up."""

MOST_EMPTY = 5
"""First replies of a run that hold nothing but reasoning, after which a model is given up."""


@dataclass(eq=False)
class RetryingModel:
    """A paying model that is asked again."""

    paying: PayingModel
    retry: Retry = Retry()

    def __post_init__(self) -> None:
        """Begin without any answer."""
        self._has_answered = self.paying.server_limit is None
        self._alone = asyncio.Lock()
        self._reason: Fault | None = None
        self._n_failures = 0
        self._n_empty = 0

    async def ask(self, call: Call) -> Reply:
        """Return the reply to a call, one call at a time until the model has answered.

        Raises `FatalModelError`, `LimitReached`, `BatchPending`, or the ledger's error.
        """
        try:
            async with self._alone:
                if not self._has_answered:
                    return await self._ask(call)
            return await self._ask(call)
        except FatalModelError as error:
            self.paying.fatal = self.paying.fatal or error
            raise

    async def _ask(self, call: Call) -> Reply:
        n_attempts = 0
        waited_s = 0.0
        while True:
            attempt = await self.paying.attempt(call)
            match attempt:
                case Answered():
                    self._take_note_of(attempt.reply)
                    return attempt.reply
                case Refused():
                    if FACTS[attempt.fault].ends_the_model:
                        raise FatalModelError(attempt.reply.detail)
                    self._count_failure(attempt.fault, attempt.reply)
                    return attempt.reply
                case Adapted():  # an endpoint has few things to refuse
                    if self.paying.ending:
                        return attempt.reply
                case Again():
                    n_attempts += 1
                    # What is free is counted when its call is given up.
                    if attempt.billed and attempt.kept is None:
                        self._count_failure(attempt.fault, attempt.reply)
                    wait_s = self.retry.wait_s(
                        attempt.fault, n_attempts, attempt.after_s, waited_s, self._has_answered
                    )
                    if wait_s is None or self.paying.ending:
                        return await self._give_up(call, attempt, n_attempts)
                    waited_s += wait_s
                    await asyncio.sleep(wait_s)

    def _take_note_of(self, reply: Reply) -> None:
        """Take note of an answer; raises `FatalModelError` where the first ones show nothing."""
        self._reason = None
        if self._has_answered or reply.outcome != "empty" or not reply.sent.thinks:
            self._has_answered = True
            return
        self._n_empty += 1
        if self._n_empty >= MOST_EMPTY:
            raise FatalModelError(
                f"{reply.detail}; its first {MOST_EMPTY} replies hold no visible text, so it is "
                "asked no more"
            )

    async def _give_up(self, call: Call, attempt: Again, n_attempts: int) -> Reply:
        """Return what is left of a call; raises `FatalModelError` if the model cannot answer."""
        if attempt.kept is not None:
            await self.paying.keep(call, attempt.kept)
            self._take_note_of(attempt.kept)
            return attempt.kept
        reply = attempt.reply
        reply = replace(reply, detail=f"{reply.detail} (tried {n_attempts} times)")
        if self.paying.ending:
            return reply
        if attempt.fault == "unreachable" and not self._has_answered:
            raise self._hopeless(reply)
        if not attempt.billed:
            self._count_failure(attempt.fault, reply)
        return reply

    def _count_failure(self, fault: Fault, reply: Reply) -> None:
        """Count failures in a row; raises `FatalModelError` where they are too many."""
        if fault is not self._reason:
            self._n_failures = 0
        self._reason = fault
        self._n_failures += 1
        if self._n_failures >= HOPELESS and not self.paying.ending:
            raise self._hopeless(reply)

    def _hopeless(self, reply: Reply) -> FatalModelError:
        name = self.paying.sender.name
        times = f"has failed {self._n_failures} times in a row"
        if not self._has_answered:
            times = "has not answered once"
        return FatalModelError(f"{name} {times}: {reply.detail}; run again when it answers")

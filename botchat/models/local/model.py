"""Local weights (``hf:ORG/NAME``, ``hf:ORG/NAME@REVISION``, ``hf:FOLDER``) through transformers.

One forward pass answers many dialogues. Calls wait until the event loop has nothing more to add;
all that wait then are one wave. A thread works through it in batches of prompts of similar length,
while the calls of the next wave gather. So the dialogues of a run stay in step: one turn of all of
them is a few batches, without any timer.

Loading and answering a batch: `botchat.models.local.weights`.
"""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import msgspec

from botchat.errors import FatalModelError
from botchat.interfaces import Decoding, Message, Reply, Usage
from botchat.models.local.weights import Ask, Said, Weights, folder_digest, load, locate, one_line
from botchat.models.roles import reply_tokens
from botchat.parallel import until_quiet
from botchat.records import Outcome

BATCH_SIZE = 32
"""Most dialogues answered by one forward pass."""

BATCH_TOKENS = 32_768
"""Most prompt tokens in a batch, padding included; fewer if memory does not allow it."""

WAVE_BATCHES = 4
"""Batches' worth of calls in flight; above one, prompts of similar length share a batch."""

LONGEST_REPLY = 2048
"""Tokens, if no ``max_tokens`` is given: the default for endpoints, `ModelSettings.max_tokens`."""


@dataclass(eq=False)
class LocalModel:
    """One model in this process, as a `botchat.interfaces.ChatModel`.

    Nothing is read before the first call. Raises `ConfigError` as `locate`.
    """

    name: str
    target: str
    """A folder, or ``ORG/NAME`` on the hub with an optional ``@REVISION``."""
    _: KW_ONLY
    batch_size: int = BATCH_SIZE
    device: str = "auto"
    """As torch names it; ``auto``: the GPU if there is one."""
    dtype: str = "auto"
    """``float32``, ``bfloat16`` or ``float16``; ``auto``: float32 on the CPU, on a GPU bfloat16
    (float16 if it has none)."""

    def __post_init__(self) -> None:
        """Find the weights."""
        self.parallel = WAVE_BATCHES * self.batch_size
        self._place = locate(self.name, self.target)
        self._batch_tokens = BATCH_TOKENS
        self._loading: asyncio.Task[Weights] | None = None
        self._calls = 0
        self._waiting: list[Ask] = []
        self._serving: asyncio.Task[None] | None = None

    context_window = None
    """Unknown to callers on purpose: they count tokens by another tokenizer.

    A prompt is measured here, with the model's own tokenizer and template, and answered
    ``overflow`` if it does not fit; the caller then leaves out its oldest utterance.
    """

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Weights (a folder by its content), dtype as asked for, longest reply.

        Not the device, so that a ledger made on a GPU replays on a machine without one.
        """
        if isinstance(self._place, Path):
            weights = f"sha256:{folder_digest(self._place)}"
        else:
            weights = "hf:" + "@".join(self._place)
        return {"weights": weights, "dtype": self.dtype, "max_tokens": LONGEST_REPLY}

    async def chat(self, messages: Sequence[Message], decoding: Decoding) -> Reply:
        """One reply, made in a batch with those to the other calls that wait.

        Temperature ``None`` is 1, as at most endpoints. Raises `FatalModelError`: the extra
        ``hf`` is not installed, there are no such weights, or they cannot be run.
        """
        asked = time.monotonic()
        weights = await self._ready()
        self._calls += 1
        ids = weights.encode(messages)
        most = LONGEST_REPLY if decoding.max_tokens is None else decoding.max_tokens
        room = min(most, reply_tokens(most, weights.window))
        if weights.window is not None and len(ids) + room > weights.window:
            return Reply(
                "overflow",
                usage=Usage(len(ids), 0),
                detail=f"{len(ids)} tokens and up to {room} of reply exceed the context window of "
                f"{weights.window}",
                sent=weights.sent,
            )
        temperature = 1.0 if decoding.temperature is None else decoding.temperature
        said = asyncio.get_running_loop().create_future()
        ask = Ask(ids, room, temperature, f"{decoding.sample} {ids}", said)
        self._waiting.append(ask)
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve(weights))
        return _reply(weights, ask, await said, time.monotonic() - asked)

    async def _ready(self) -> Weights:
        """The weights, loaded in a thread at the first call."""
        if self._loading is None or self._loading.cancelled():
            self._loading = asyncio.create_task(
                asyncio.to_thread(load, self.name, self._place, self.device, self.dtype)
            )
        return await asyncio.shield(self._loading)

    async def _serve(self, weights: Weights) -> None:
        """Answer wave after wave until no call waits."""
        halt = threading.Event()
        wave: list[Ask] = []
        try:
            while self._waiting:
                # Calls that got an overflow count too: their caller asks again at once.
                await until_quiet(lambda: self._calls)
                # Longest first: if a batch does not fit into memory, it shows at once.
                wave = sorted(self._waiting, key=lambda call: -len(call.ids))
                self._waiting = []
                while wave:
                    fitting = self._batch_tokens // len(wave[0].ids)
                    batch = wave[: max(1, min(self.batch_size, fitting))]
                    if await self._answer(weights, batch, halt):
                        del wave[: len(batch)]
        except asyncio.CancelledError:
            halt.set()  # the thread cannot be cancelled; it stops at the next token
            for call in (*wave, *self._waiting):
                call.said.cancel()
            self._waiting = []
            raise
        except Exception as error:
            # Whatever torch raises: no caller may wait for a reply that will never come.
            failure = FatalModelError(f"{self.name} cannot be run: {one_line(error)}")
            for call in (*wave, *self._waiting):
                if not call.said.done():
                    call.said.set_exception(failure)
            self._waiting = []

    async def _answer(self, weights: Weights, batch: Sequence[Ask], halt: threading.Event) -> bool:
        """Answer a batch; ``False``: it is too large for the memory, later ones will be smaller."""
        said = await asyncio.to_thread(weights.generate, batch, halt)
        if said is None and len(batch) > 1:
            # A limit in tokens, not rows: one very long prompt must not split all other batches.
            self._batch_tokens = len(batch) * len(batch[0].ids) // 2
            return False
        for n, call in enumerate(batch):
            if not call.said.done():
                call.said.set_result(said[n] if said else None)
        return True


def local_model(
    name: str,
    target: str,
    device: str = "auto",
    dtype: str = "auto",
    batch_size: int = BATCH_SIZE,
) -> LocalModel:
    """The `LocalModel` of that name; the same while one is in use, so weights are loaded once."""
    asked = (name, target, device, dtype, batch_size)
    model = _MODELS.get(asked) or LocalModel(
        name, target, device=device, dtype=dtype, batch_size=batch_size
    )
    _MODELS[asked] = model
    return model


_MODELS: weakref.WeakValueDictionary[tuple[str, str, str, str, int], LocalModel] = (
    weakref.WeakValueDictionary()
)


def _reply(weights: Weights, ask: Ask, said: Said | None, latency_s: float) -> Reply:
    reply = partial(Reply, latency_s=latency_s, sent=weights.sent)
    if said is None:
        detail = f"out of memory with a single prompt of {len(ask.ids)} tokens"
        return reply("transport", detail=detail)
    text = weights.decode(said.ids, special=False)
    whole = weights.decode(said.ids, special=True)
    finish = "stop" if said.ended else "length"
    outcome: Outcome = "ok" if said.ended else "truncated"
    detail = "" if said.ended else "finish_reason length"
    if not text.strip():
        outcome, detail = "empty", f"no text (finish_reason {finish})"
    return reply(
        outcome,
        text=text,
        finish_reason=finish,
        usage=Usage(len(ask.ids), len(said.ids) + said.ended),
        detail=detail,
        raw=msgspec.json.encode({"text": whole, **weights.facts, "batch": said.rows}).decode(),
    )

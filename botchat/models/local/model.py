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
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from botchat.errors import FatalModelError
from botchat.interfaces import Decoding, Message, Reply, Usage
from botchat.models.local.weights import Ask, Said, Weights, folder_digest, load, locate, one_line
from botchat.models.self_chat import reply_tokens
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
class _Waves:
    """The calls of one event loop."""

    calls: int = 0
    """So far."""
    waiting: list[Ask] = field(default_factory=list)
    loading: asyncio.Task[Weights] | None = None
    serving: asyncio.Task[None] | None = None


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
        self._weights: Weights | None = None
        self._loading = threading.Lock()
        self._answering = threading.Lock()
        self._waves: dict[asyncio.AbstractEventLoop, _Waves] = {}

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
        waves = self._here()
        weights = await self._ready(waves)
        waves.calls += 1
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
        waves.waiting.append(ask)
        if waves.serving is None or waves.serving.done():
            waves.serving = asyncio.create_task(self._serve(weights, waves))
        return _reply(weights, ask, await said, time.monotonic() - asked)

    def _here(self) -> _Waves:
        """The calls of this event loop; threads, as of ``--engine threading``, have one each."""
        with _MAKING:
            for closed in [one for one in self._waves if one.is_closed()]:
                del self._waves[closed]
            return self._waves.setdefault(asyncio.get_running_loop(), _Waves())

    async def _ready(self, waves: _Waves) -> Weights:
        """The weights, loaded in a thread at the first call."""
        if waves.loading is None or waves.loading.cancelled():
            waves.loading = asyncio.create_task(asyncio.to_thread(self._load))
        return await asyncio.shield(waves.loading)

    def _load(self) -> Weights:
        with self._loading:
            if self._weights is None:
                self._weights = load(self.name, self._place, self.device, self.dtype)
            return self._weights

    async def _serve(self, weights: Weights, waves: _Waves) -> None:
        """Answer wave after wave until no call waits."""
        halt = threading.Event()
        wave: list[Ask] = []
        try:
            while waves.waiting:
                # Calls that got an overflow count too: their caller asks again at once.
                await until_quiet(lambda: waves.calls)
                # Longest first: if a batch does not fit into memory, it shows at once.
                wave = sorted(waves.waiting, key=lambda call: -len(call.ids))
                waves.waiting = []
                while wave:
                    fitting = self._batch_tokens // len(wave[0].ids)
                    batch = wave[: max(1, min(self.batch_size, fitting))]
                    if await self._answer(weights, batch, halt):
                        del wave[: len(batch)]
        except asyncio.CancelledError:
            halt.set()  # the thread cannot be cancelled; it stops at the next token
            for call in (*wave, *waves.waiting):
                call.said.cancel()
            waves.waiting = []
            raise
        except Exception as error:
            # Whatever torch raises: no caller may wait for a reply that will never come.
            failure = FatalModelError(f"{self.name} cannot be run: {one_line(error)}")
            for call in (*wave, *waves.waiting):
                if not call.said.done():
                    call.said.set_exception(failure)
            waves.waiting = []

    async def _answer(self, weights: Weights, batch: Sequence[Ask], halt: threading.Event) -> bool:
        """Answer a batch; ``False``: it is too large for the memory, later ones will be smaller."""

        def generate() -> list[Said] | None:
            with self._answering:  # the memory is for one batch at a time
                return weights.generate(batch, halt)

        said = await asyncio.to_thread(generate)
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
    with _MAKING:
        model = _MODELS.get(asked) or LocalModel(
            name, target, device=device, dtype=dtype, batch_size=batch_size
        )
        _MODELS[asked] = model
    return model


_MAKING = threading.Lock()
_MODELS: MutableMapping[tuple[str, str, str, str, int], LocalModel] = WeakValueDictionary()


def _reply(weights: Weights, ask: Ask, said: Said | None, latency_s: float) -> Reply:
    reply = partial(Reply, latency_s=latency_s, sent=weights.sent)
    if said is None:
        detail = f"out of memory with a single prompt of {len(ask.ids)} tokens"
        return reply("transport", detail=detail)
    text = weights.decode(said.ids, special=False)
    whole = weights.decode(said.ids, special=True)
    outcome: Outcome = "ok" if said.ended else "truncated"
    finish, detail = ("stop", "") if said.ended else ("length", "finish_reason length")
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

"""Weights on this machine: loaded with transformers, asked for a batch of replies at once.

A batch is padded on the left and masked; each row ends by itself and draws with its own random
numbers. So a reply does not depend on the other rows, up to rounding: on the CPU in float32, greedy
replies are equal to unbatched ones.

Code that comes with a model is never run, and pickled weights are never read.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Message
from botchat.models.self_chat import ARRANGEMENTS, arrange, history

Place = Path | tuple[str, ...]
"""A folder; or a name on the hub and, if given, a revision."""

_WEIGHT_FILES = (".bin", ".jinja", ".json", ".model", ".safetensors", ".txt")
_MARKS = ("amber", "birch", "cedar", "dingo")
_PROBES = (history(_MARKS[0], _MARKS[1:3]), history(_MARKS[0], _MARKS[1:4]))
"""A dialogue of two and one of three utterances, each as its next speaker sees it."""


@dataclass(frozen=True)
class Said:
    """Tokens of a reply, without the end token."""

    ids: list[int]
    ended: bool
    """The model ended it, not `Ask.room`."""
    rows: int
    """Of its batch."""


@dataclass(frozen=True, eq=False)
class Ask:
    """A call that waits: one row of a batch."""

    ids: list[int]
    """Token ids of the prompt, at least one."""
    room: int
    """Most tokens of the reply."""
    temperature: float
    """0: greedy."""
    seed: str
    """Of the draws, above temperature 0."""
    said: asyncio.Future[Said | None]
    """``None``: the memory is too small for it alone."""


def load(name: str, place: Place, device: str, dtype: str) -> Weights:
    """Tokenizer and model, ready to run; any failure is a `FatalModelError` of one line."""
    try:
        import torch
        import transformers
    except ImportError as error:
        raise FatalModelError(
            f"{name} needs transformers and torch ({error.name} is missing): "
            "pip install 'botchat-bench[hf]'"
        ) from None
    where, *revision = [str(place)] if isinstance(place, Path) else place
    options: dict[str, Any] = {"trust_remote_code": False}
    if revision:
        options["revision"] = revision[0]
    try:
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        if dtype == "auto":
            dtype = "float32"
            if device.startswith("cuda"):
                dtype = "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
        # First: if the hub is out of reach, the tokenizer's loader takes twice as long to fail.
        config = transformers.AutoConfig.from_pretrained(where, **options)
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, **options)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            where, config=config, dtype=getattr(torch, dtype), use_safetensors=True, **options
        )
        model = model.to(device).eval()
    except (torch.OutOfMemoryError, MemoryError):
        raise FatalModelError(
            f"{name} does not fit into the memory of {device}; run it in a command of its own, "
            "or serve it elsewhere and name it URL#MODEL"
        ) from None
    except Exception as error:
        # Loading runs four packages that do not document their errors; no retry helps.
        raise FatalModelError(
            f"{name} cannot be loaded: {one_line(error)}; name weights on the hub as "
            "hf:ORG/NAME or a local folder as hf:FOLDER"
        ) from None
    return Weights(name, tokenizer, model)


def locate(name: str, target: str) -> Place:
    """Where ``target`` is. Raises `ConfigError`: it can only be a folder, and there is none."""
    folder = Path(target).expanduser()
    if folder.is_dir():
        return folder
    if target.startswith((".", "/", "~")) or target.count("/") > 1 or "\\" in target:
        raise ConfigError(f"model {name}: there is no folder {target}; name weights as hf:ORG/NAME")
    return tuple(part for part in target.partition("@")[::2] if part)


def folder_digest(folder: Path) -> str:
    """SHA-256 of the names and contents of the files a model is loaded from, without subfolders."""
    whole = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.suffix in _WEIGHT_FILES):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        whole.update(f"{path.name}\0{content}\n".encode())
    return whole.hexdigest()


class Weights:
    """A loaded model with its tokenizer. ``encode``, ``decode`` and ``generate`` share no state."""

    def __init__(self, name: str, tokenizer: Any, model: Any) -> None:
        """Find out what the model needs: role layout, end tokens, window."""
        import transformers

        self._name = name
        self._tokenizer = tokenizer
        self._model = model
        known = (
            getattr(model.config.get_text_config(), "max_position_embeddings", None),
            tokenizer.model_max_length,
        )
        # Tokenizers write 1e30 for "unknown".
        sizes = [size for size in known if isinstance(size, int) and 0 < size < 10**9]
        self.window = min(sizes, default=None)
        self._ends = _ends(model.generation_config, model.config, tokenizer)
        # A penalty or filter that comes with the weights is not what was asked for, and would act
        # on padding too.
        model.generation_config = transformers.GenerationConfig()
        # Not the tokenizer's: some models' vocabulary lacks it. Padding is masked anyway.
        self._pad = min(self._ends, default=0)
        self.sent = dict(zip(("layout", "system"), self._arrangement(), strict=True))
        self.facts = {
            "device": str(model.device),
            "dtype": str(model.dtype).removeprefix("torch."),
            "context_window": self.window,
            "transformers": transformers.__version__,
        }

    def encode(self, messages: Sequence[Message]) -> list[int]:
        """Token ids of a prompt."""
        import jinja2

        try:
            prompt = self._render(arrange(messages, **self.sent))
        except jinja2.TemplateError as error:
            raise FatalModelError(
                f"{self._name}: its chat template refuses the messages: {one_line(error)}"
            ) from None
        # The template wrote the special tokens.
        ids: list[int] = self._tokenizer(prompt, add_special_tokens=False)["input_ids"]
        return ids

    def decode(self, ids: Sequence[int], *, special: bool) -> str:
        """Text of a reply, with or without special tokens."""
        text: str = self._tokenizer.decode(ids, skip_special_tokens=not special)
        return text

    def generate(self, batch: Sequence[Ask], halt: threading.Event) -> list[Said] | None:
        """Replies to a batch; ``None``: it is too large for the memory."""
        import torch

        try:
            return self._generate(batch, halt)
        except (torch.OutOfMemoryError, MemoryError):
            pass
        except RuntimeError as error:
            if "can't allocate memory" not in str(error):  # torch's message on the CPU
                raise
        # Not before the error is gone, and with it the frames that held the batch's tensors.
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return None

    def _generate(self, batch: Sequence[Ask], halt: threading.Event) -> list[Said]:
        import torch
        import transformers

        start = max(len(ask.ids) for ask in batch)
        gaps = [start - len(ask.ids) for ask in batch]
        ids = torch.tensor([[self._pad] * n + a.ids for n, a in zip(gaps, batch, strict=True)])
        mask = torch.tensor([[0] * n + [1] * (start - n) for n in gaps])
        device = self._model.device
        ends = torch.tensor([start + ask.room for ask in batch], device=device)
        with torch.inference_mode():
            made = self._model.generate(
                input_ids=ids.to(device),
                attention_mask=mask.to(device),
                generation_config=transformers.GenerationConfig(
                    do_sample=False,  # `_Draw` draws
                    max_new_tokens=max(ask.room for ask in batch),
                    eos_token_id=sorted(self._ends) or None,
                    pad_token_id=self._pad,
                ),
                logits_processor=[_Draw(batch, device)],
                # Each row ends at its own `Ask.room`, and all rows when `halt` is set.
                stopping_criteria=[
                    lambda ids, _scores, **_: (ends <= ids.shape[1]) | halt.is_set(),
                ],
            )
        replies = []
        for ask, ids in zip(batch, made[:, start:].tolist(), strict=True):
            end = next((n for n, token in enumerate(ids[: ask.room]) if token in self._ends), None)
            said = ids[: ask.room if end is None else end]
            replies.append(Said(said, end is not None, len(batch)))
        return replies

    def _render(self, messages: Sequence[Message]) -> str:
        text: str = self._tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=True
        )
        return text

    def _arrangement(self) -> tuple[str, str]:
        """The first role layout of which the chat template uses every message."""
        if not self._tokenizer.chat_template:
            raise FatalModelError(
                f"{self._name} has no chat template, so it is no chat model; name one that was "
                "tuned to chat, or put a chat_template.jinja into its folder"
            )
        for layout, system in ARRANGEMENTS:
            if all(self._takes(arrange(probe, layout, system)) for probe in _PROBES):
                return layout, system
        raise FatalModelError(f"{self._name}: its chat template takes no layout of a dialogue")

    def _takes(self, messages: Sequence[Message]) -> bool:
        """Whether the template neither refuses messages nor leaves one out."""
        import jinja2

        try:
            prompt = self._render(messages)
        except (jinja2.TemplateError, TypeError, ValueError):
            return False
        said = " ".join(message["content"] for message in messages)
        return all(mark in prompt for mark in _MARKS if mark in said)


class _Draw:
    """Keeps only the drawn token's score in each row; greedy rows stay as they are.

    A draw compares one number of the row's own generator with the cumulated probabilities, so it
    does not depend on the row's place or on the other rows.
    """

    def __init__(self, batch: Sequence[Ask], device: Any) -> None:
        import torch

        drawn = [(row, ask) for row, ask in enumerate(batch) if ask.temperature > 0]
        self._rows = torch.tensor([row for row, _ in drawn], device=device, dtype=torch.long)
        self._chances = [random.Random(ask.seed) for _, ask in drawn]
        heat = [[ask.temperature] for _, ask in drawn]
        self._heat = torch.tensor(heat, device=device, dtype=torch.float32)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        del input_ids
        if not self._chances:
            return scores
        heaped = torch.softmax(scores[self._rows].float() / self._heat, dim=-1).cumsum(dim=-1)
        shares = [[chance.random()] for chance in self._chances]
        goal = torch.tensor(shares, device=heaped.device, dtype=heaped.dtype) * heaped[:, -1:]
        token = torch.searchsorted(heaped, goal, right=True).clamp(max=heaped.shape[1] - 1)
        left = torch.full_like(heaped, float("-inf")).scatter(1, token, 0.0)
        scores = scores.clone()
        scores[self._rows] = left.to(scores.dtype)
        return scores


def _ends(*holders: Any) -> set[int]:
    """End tokens that any of generation settings, config and tokenizer names."""
    named = [getattr(holder, "eos_token_id", None) for holder in holders]
    return {i for ids in named for i in (ids if isinstance(ids, list) else [ids]) if i is not None}


def one_line(error: Exception) -> str:
    """Kind and beginning of an error's text."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said[:300]}" if said else type(error).__name__

"""Warnings about a model's server, each told once: what is ranked would not be that model."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from botchat.interfaces import Identity, Message, Reply

log = logging.getLogger("botchat")

_BYTES_PER_TOKEN = 12
"""Three times what a token holds of most texts: a smaller count is of a prompt that was cut."""
_LEAST_BYTES = 2_000
"""Bytes of a prompt, before its count tells anything."""
_MOST_LONGER = 4
"""Longer prompts of one count, after which the count does not grow."""
_DATE = re.compile(r"[-@_.:]?(?:20\d\d-?\d\d-?\d\d|\d{4}|latest|gguf|free)$")


class Watch:
    """Looks at the answers of one model in one stage."""

    def __init__(self, name: str, identity: Identity) -> None:
        """Watch the model of that name; its identity tells the id that is asked for."""
        self._name = name
        self._asked = str(identity.get("model", ""))
        self._told: set[str] = set()
        self._count = 0
        self._lengths = [0]  # of the prompts of that count, each longer than the last

    def see(self, messages: Sequence[Message], reply: Reply) -> None:
        """Look at the answer to a prompt."""
        if reply.model and not is_same_model(self._asked, reply.model):
            self._tell("model", f"asked for {self._asked}, and {reply.model} answers")
        if reply.outcome == "ok" and reply.detail:
            self._tell("end", f"{reply.detail}: such replies are taken as whole")
        if reply.outcome == "empty" and reply.sent.thinks:
            self._tell("empty", reply.detail)
        if reply.usage.prompt_tokens is not None:
            self._see_prompt(messages, reply.usage.prompt_tokens)

    def _see_prompt(self, messages: Sequence[Message], count: int) -> None:
        n_bytes = sum([len(message["content"].encode()) for message in messages])
        if count != self._count:
            self._count = count
            self._lengths = [n_bytes]
        elif n_bytes > self._lengths[-1]:
            self._lengths.append(n_bytes)
        prompts = ""
        if len(self._lengths) > _MOST_LONGER:
            prompts = "longer and longer prompts"
        if n_bytes >= _LEAST_BYTES and count * _BYTES_PER_TOKEN < n_bytes:
            prompts = f"a prompt of {n_bytes} bytes"
        if prompts:
            advice = "raise the server's window, or set context_window in its [models] entry"
            fault = f"its server counts prompt_tokens = {count} of {prompts}"
            self._tell("cut", f"{fault}: it seems to cut them; {advice}")

    def _tell(self, kind: str, line: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            text = line if line.startswith(self._name) else f"{self._name}: {line}"
            log.warning("%s", text)


def is_same_model(asked: str, answered: str) -> bool:
    """Return whether two ids are one model's, but for capitals, path and date."""
    return _folded(asked) == _folded(answered)


def _folded(model: str) -> str:
    """Return a model's id without capitals, path and date."""
    name = model.casefold().rstrip("/").rpartition("/")[2]
    return _DATE.sub("", _DATE.sub("", name))

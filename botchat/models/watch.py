"""Warnings about a model's server, each told once: what is ranked would not be that model."""

import re
from collections.abc import Sequence

from botchat.errors import log
from botchat.interfaces import Message, ModelFacts, Reply

# Three times what a token holds of most texts: a smaller count is of a prompt that was cut
_BYTES_PER_TOKEN = 12
# Bytes of a prompt whose count tells nothing
_FEW_BYTES = 2_000
# Longer prompts of one count, after which the count does not grow
_MOST_LONGER = 4
_DATES = re.compile(
    r"(?:[-@_.:]?(?:20\d\d-?\d\d-?\d\d|2[0-9](?:0[1-9]|1[0-2])|(?:0[1-9]|1[0-2])[0-3]\d"
    r"|latest|gguf|free)){1,2}$"
)

_CUT = (
    "%s: its server counts prompt_tokens = %s of %s: it seems to cut them; raise the server's "
    "window, or set context_window in its [models] entry"
)


class Watch:
    """Looks at the answers of one model in one stage."""

    def __init__(self, model: ModelFacts) -> None:
        """Watch a model."""
        self._name = model.name
        self._asked = model.identity.get("model", "")
        self._told: set[str] = set()
        self._count = 0
        self._longest = 0  # bytes of a prompt of that count
        self._n_longer = 0  # prompts of that count, each longer than the last

    def see(self, messages: Sequence[Message], reply: Reply) -> None:
        """Look at the answer to a prompt."""
        if reply.model and not is_same_model(self._asked, reply.model):
            self._tell("%s: asked for %s, and %s answers", self._name, self._asked, reply.model)
        if reply.outcome == "ok" and reply.detail:
            self._tell("%s: %s: such replies are taken as whole", self._name, reply.detail)
        if reply.outcome == "empty" and reply.sent.thinks:
            self._tell("%s", reply.detail)
        if reply.usage.prompt_tokens is not None:
            n_bytes = sum([len(message["content"].encode()) for message in messages])
            self._see_prompt(n_bytes, reply.usage.prompt_tokens)

    def _see_prompt(self, n_bytes: int, count: int) -> None:
        if count != self._count:
            self._count = count
            self._longest = 0
            self._n_longer = 0
        if n_bytes > self._longest:
            self._longest = n_bytes
            self._n_longer += 1
        if n_bytes > max(count * _BYTES_PER_TOKEN, _FEW_BYTES):
            self._tell(_CUT, self._name, count, f"a prompt of {n_bytes} bytes")
        elif self._n_longer > _MOST_LONGER:
            self._tell(_CUT, self._name, count, "longer and longer prompts")

    def _tell(self, template: str, *details: object) -> None:
        """Log a line, unless there was one of its kind."""
        if template not in self._told:
            self._told.add(template)
            log.warning(template, *details)


def is_same_model(asked: str, answered: str) -> bool:
    """Return whether two ids are one model's, but for capitals, path and date."""
    return _folded(asked) == _folded(answered)


def _folded(model: str) -> str:
    """Return a model's id without capitals, path and date."""
    return _DATES.sub("", model.casefold().rstrip("/").rpartition("/")[2])

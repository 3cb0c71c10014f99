"""Models that refuse: role layouts (chat templates), parameters, prompts beyond their window."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.openai_server import faults
from tests.openai_server.answers import Answer, Call, n_prompt_tokens
from tests.rows import rows


@dataclass(frozen=True)
class ChatTemplate:
    """Which role sequences a model refuses, and in which words; ``None`` accepts.

    ``{role}`` in a message is filled with the role that offends.
    """

    system: str | None = None
    """There is a system message."""
    first: str | None = None
    """The first message after the system message is not the user's."""
    alternate: str | None = None
    """Two messages in a row have the same role."""
    last: str | None = None
    """The last message is not the user's."""

    def refusal(self, messages: Sequence[Mapping[str, Any]]) -> str | None:
        """What the template says against ``messages``, if anything."""
        roles = [str(message.get("role")) for message in messages]
        if "system" in roles[1:]:
            return "System message must be at the beginning."
        if self.system and roles[:1] == ["system"]:
            return self.system.format(role="system")
        talk = roles[1:] if roles[:1] == ["system"] else roles
        if self.first and talk[:1] != ["user"]:
            return self.first.format(role=talk[0] if talk else "none")
        for before, after in pairwise(talk):
            if self.alternate and before == after:
                return self.alternate.format(role=after)
        if self.last and talk[-1:] != ["user"]:
            return self.last.format(role=talk[-1])
        return None


TEMPLATES = {name: ChatTemplate(*refusals) for name, *refusals in rows("chat_templates")}
"""Strict templates in the words of real ones; one complains of alternation of a system role too."""


@dataclass(frozen=True)
class Rules:
    """What one model of a server accepts."""

    template: ChatTemplate | None = None
    context_window: int | None = None
    """Tokens of prompt and reply together."""
    overflow: str = "openai"
    """Wording of an overflow (see `faults.context_overflow`)."""
    default_temperature: bool = False
    """Any temperature but 1 is refused."""
    unsupported: Mapping[str, str | None] | None = None
    """Parameters refused -> the one to use instead, if any."""

    def refusal(self, call: Call) -> Answer | None:
        """What the model answers to a request it does not take; ``None``: it takes it."""
        for name, instead in (self.unsupported or {}).items():
            if name in call.body:
                return faults.unsupported_parameter(name, instead)
        temperature = call.body.get("temperature", 1)
        if self.default_temperature and temperature != 1:
            message = f"Unsupported value: 'temperature' does not support {temperature} with this "
            message += "model. Only the default (1) value is supported."
            return faults.error(400, message, code="unsupported_value", param="temperature")
        said = self.template.refusal(call.messages) if self.template else None
        if said is not None:
            return faults.vllm_error(said)
        n_reply = call.body.get("max_completion_tokens") or call.body.get("max_tokens") or 0
        n_prompt = n_prompt_tokens(call.messages)
        if self.context_window is not None and n_prompt + n_reply > self.context_window:
            return faults.context_overflow(
                self.overflow, window=self.context_window, n_prompt=n_prompt, n_reply=n_reply
            )
        return None


REASONING = Rules(default_temperature=True, unsupported={"max_tokens": "max_completion_tokens"})
"""Like OpenAI's reasoning models."""

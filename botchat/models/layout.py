"""Layouts of messages: what strict chat templates take in the place of the natural one.

The natural layout is an optional system prompt, then alternating roles; the last one is ``user``,
so that an even number of utterances begins with ``assistant``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import get_args

from botchat.interfaces import Layout, Message, SystemRole

ARRANGEMENTS: Sequence[tuple[Layout, SystemRole]] = tuple(
    product(get_args(Layout), get_args(SystemRole))
)
"""Layout and place of the system prompt, in the order in which they are tried."""


def apply_layout(messages: Sequence[Message], layout: Layout, system: SystemRole) -> list[Message]:
    """Rearrange ``messages``, which are in the natural layout, as an endpoint takes them.

    Of layouts, ``natural`` changes nothing, ``merge-leading`` puts a leading assistant message
    before the text of the user after it, and ``placeholder-user`` lets the user say ``...`` first.
    ``system``: ``system-in-user`` puts the system prompt before the first user message.
    """
    result = list(messages)
    first = [message["role"] for message in messages].index("user")
    if layout != "natural" and result[first - 1]["role"] == "assistant":
        first -= 1
        if layout == "placeholder-user":
            result.insert(first, Message(role="user", content="..."))
        else:
            text = result.pop(first)["content"]
            _put_before(f"[You said before:] {text}", result, first)
    if system == "system-in-user" and result[0]["role"] == "system":
        prompt = result.pop(0)["content"]
        _put_before(prompt, result, first - 1)
    return result


def _put_before(text: str, messages: list[Message], at: int) -> None:
    """Put a text before what a user says."""
    messages[at] = Message(role="user", content=f"{text}\n\n{messages[at]['content']}")

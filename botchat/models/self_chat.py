"""Stage 1: a chat model extends a ChatSEED utterance by utterance (BotChat §3.1, Algorithm 1).

The model that is asked always speaks next: its own utterances are ``assistant``, the other
speaker's are ``user``, and the last message is ``user``. With an even number of utterances that
begins system, assistant, user, which strict chat templates refuse; `arrange` makes the layouts that
they take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from botchat.interfaces import ChatModel, Decoding, Message, Reply
from botchat.languages import ENGLISH, Language
from botchat.records import N_SEED, Dialogue, Seed, Utterance

PROMPT = "generation"


@dataclass(frozen=True)
class Speaker:
    """A model with the decoding it speaks with."""

    model: ChatModel
    decoding: Decoding
    system: str | None = None
    """What it is told before a dialogue; ``None``: the set's language says."""


@dataclass(frozen=True)
class Length:
    """How the length of a text is measured."""

    tokens: Callable[[str], int] | None
    """Exact cl100k tokens, for the record; ``None``: the encoding is not available."""
    size: Callable[[str], int]
    """Tokens or a cautious estimate, to keep a prompt inside the context window."""


async def extend(
    seed: Seed,
    speakers: Sequence[Speaker],
    turns: int,
    length: Length,
    sign: Callable[[], str],
    language: Language = ENGLISH,
) -> Dialogue:
    """Extend the ChatSEED of ``seed``, its first two utterances, to a dialogue of ``turns``.

    One speaker is self-chat; two alternate (cross-play), and the first one speaks the third
    utterance. ``sign`` makes the signature that is stored in the
    dialogue, when it is done: endpoints may have refused parameters meanwhile.

    Returns:
        A complete dialogue, or one stopped at the first utterance that got no usable reply.
    """
    system = language.text(PROMPT)
    utterances = list(seed.utterances[:N_SEED])
    facts: list[Utterance] = []
    dropped = {id(speaker): 0 for speaker in speakers}
    status, detail = "complete", ""
    while len(utterances) < turns:
        speaker = speakers[(len(utterances) - N_SEED) % len(speakers)]
        reply, out = await say(speaker, system, utterances, dropped[id(speaker)], length)
        dropped[id(speaker)] = out
        if not reply.usable:
            status, detail = f"stopped:{reply.outcome}", reply.detail
            break
        utterances.append(reply.text)
        tokens = None if length.tokens is None else length.tokens(reply.text)
        facts.append(Utterance(reply.outcome, dropped=out, tokens=tokens, call=reply.key))
    names = [speaker.model.name for speaker in speakers]
    return Dialogue(
        seed_id=seed.id,
        model=names[0],
        partner=names[1] if len(names) > 1 else None,
        utterances=tuple(utterances),
        n_seed=N_SEED,
        facts=tuple(facts),
        status=status,
        signature=sign(),
        detail=detail,
    )


async def say(
    speaker: Speaker, system: str, utterances: Sequence[str], dropped: int, length: Length
) -> tuple[Reply, int]:
    """The next utterance, and how many of the oldest were left out of its prompt.

    ``utterances``: at least one; the speaker says the next one. ``dropped``: at least so many.

    If the context window is known, the prompt is made to fit first; if not, the oldest utterance is
    dropped each time the endpoint says that the prompt is too long.
    """
    system = speaker.system or system
    window = speaker.model.context_window
    if window is not None:
        reserve = reply_tokens(speaker.decoding.max_tokens or window, window)
        fitting = dropped_to_fit(system, utterances, window, reserve, length.size)
        dropped = max(dropped, fitting)
    while True:
        messages: list[Message] = history(system, utterances[dropped:])
        reply = await speaker.model.chat(messages, speaker.decoding)
        if reply.outcome != "overflow" or dropped >= len(utterances) - 1:
            return reply, dropped
        dropped += 1


# ------------------------------------------------------------- a dialogue as chat messages

PER_MESSAGE = 4
"""Tokens a chat template adds to a message: OpenAI's count, a high estimate for others."""

PLACEHOLDER = "..."
"""What the other speaker says first in the layout ``placeholder-user``."""

ARRANGEMENTS = [
    (layout, system)
    for layout in ("natural", "merge-leading", "placeholder-user")
    for system in ("system", "system-in-user")
]
"""Layout and place of the system prompt, in the order in which they are tried."""

_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"\A.*?</(?:think|thinking|reasoning)>", re.DOTALL | re.IGNORECASE)


def history(system: str, utterances: Sequence[str]) -> list[Message]:
    """The natural layout: system prompt, then the dialogue as seen by its next speaker."""
    n = len(utterances)
    return [
        {"role": "system", "content": system},
        *(
            Message(role="user" if (n - i) % 2 else "assistant", content=text)
            for i, text in enumerate(utterances)
        ),
    ]


def arrange(messages: Sequence[Message], layout: str, system: str) -> list[Message]:
    """``messages``, which are in the natural layout, in the layout that an endpoint takes.

    ``layout``: ``natural``; ``merge-leading`` puts a leading assistant message at the beginning of
    the user message after it; ``placeholder-user`` has the user say ``...`` before it. ``system``:
    ``system``; ``system-in-user`` puts the system prompt before the first user message.
    """
    result = list(messages)
    head = 1 if result and result[0]["role"] == "system" else 0
    if len(result) > head + 1 and result[head]["role"] == "assistant":
        if layout == "merge-leading":
            first = result.pop(head)["content"]
            said = f"[You said before:] {first}\n\n{result[head]['content']}"
            result[head] = Message(role="user", content=said)
        elif layout == "placeholder-user":
            result.insert(head, Message(role="user", content=PLACEHOLDER))
    if head and system == "system-in-user":
        prompt = result.pop(0)["content"]
        for i, message in enumerate(result):
            if message["role"] == "user":
                result[i] = Message(role="user", content=f"{prompt}\n\n{message['content']}")
                break
        else:
            result.insert(0, Message(role="user", content=prompt))
    return result


def prompt_tokens(messages: Sequence[Message], count: Callable[[str], int]) -> int:
    """Tokens of a prompt, template included; ``count``: tokens of a text."""
    return sum(count(m["content"]) + PER_MESSAGE for m in messages)


def dropped_to_fit(
    system: str, utterances: Sequence[str], window: int, reserve: int, count: Callable[[str], int]
) -> int:
    """How many of the oldest utterances to leave out so that the prompt fits (BotChat §4.1).

    The system prompt and the last utterance are always kept. ``window``: tokens of prompt and reply
    together; ``reserve``: tokens of the reply; ``count``: tokens of a text.
    """
    room = window - reserve - count(system) - PER_MESSAGE
    sizes = [count(text) + PER_MESSAGE for text in utterances]
    total, dropped = sum(sizes), 0
    while total > room and dropped < len(sizes) - 1:
        total -= sizes[dropped]
        dropped += 1
    return dropped


def reply_tokens(max_tokens: int, window: int | None) -> int:
    """Tokens a reply may take: ``max_tokens``, but at most a quarter of the context window."""
    return max_tokens if window is None else max(16, min(max_tokens, window // 4))


def without_thoughts(text: str) -> str:
    """A reply without its think blocks, outer white space removed.

    Also cuts a block whose opening tag the chat template swallowed, and one that never ends: the
    reply was cut while the model was thinking, so nothing was said.
    """
    return _OPEN_THOUGHT.sub("", _THOUGHT.sub("", text)).strip()

"""Stage 1: a chat model extends a ChatSEED utterance by utterance (BotChat §3.1, Algorithm 1).

The model that is asked speaks next: its own utterances are ``assistant``, the other speaker's are
``user``, and the last message is ``user``. An even number of utterances begins system, assistant,
user, which strict chat templates refuse; `apply_layout` makes the layouts that they take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import get_args

from botchat.interfaces import ChatModel, Decoding, Layout, Message, Reply, SystemRole
from botchat.languages import ENGLISH, Language
from botchat.records import N_SEED, Dialogue, Seed, Utterance

PROMPT = "generation"


@dataclass(frozen=True)
class Speaker:
    """A model with the decoding it speaks with."""

    model: ChatModel
    decoding: Decoding
    system: str | None = None
    """System prompt of a dialogue; None for the one of the set's language."""


@dataclass(frozen=True)
class TokenCounter:
    """Counts the tokens of a text."""

    exact: Callable[[str], int] | None
    """Tokens of cl100k, for the record; None if the encoding is not available."""
    estimate: Callable[[str], int]
    """Tokens or a cautious estimate, to keep a prompt inside the context window."""


async def generate_dialogue(
    seed: Seed,
    speakers: Sequence[Speaker],
    turns: int,
    counter: TokenCounter,
    sign: Callable[[], str],
    language: Language = ENGLISH,
) -> Dialogue:
    """Extend the ChatSEED of ``seed``, its first two utterances, to a dialogue of ``turns``.

    It stops at the first utterance that gets no usable reply. One speaker is self-chat; two
    alternate (cross-play), and the first one speaks the third utterance. ``sign`` makes the
    signature of the finished dialogue: endpoints may have refused parameters meanwhile.
    """
    system = language.text(PROMPT)
    utterances = list(seed.utterances[:N_SEED])
    facts: list[Utterance] = []
    n_dropped = [0 for _ in speakers]
    status = "complete"
    detail = ""
    while len(utterances) < turns:
        at = len(facts) % len(speakers)
        reply, n_dropped[at] = await generate_utterance(
            speakers[at], system, utterances, n_dropped[at], counter
        )
        if not reply.usable:
            status = f"stopped:{reply.outcome}"
            detail = reply.detail
            break
        utterances.append(reply.text)
        tokens = None if counter.exact is None else counter.exact(reply.text)
        facts.append(Utterance(reply.outcome, dropped=n_dropped[at], tokens=tokens, call=reply.key))
    partner = None
    if len(speakers) > 1:
        partner = speakers[1].model.name
    return Dialogue(
        seed_id=seed.id,
        model=speakers[0].model.name,
        partner=partner,
        utterances=tuple(utterances),
        n_seed=N_SEED,
        facts=tuple(facts),
        status=status,
        signature=sign(),
        detail=detail,
    )


async def generate_utterance(
    speaker: Speaker, system: str, utterances: Sequence[str], dropped: int, counter: TokenCounter
) -> tuple[Reply, int]:
    """Ask for the next utterance; return the reply and how many of the oldest were left out.

    ``utterances``: at least one; ``dropped``: the least number to leave out. Once the context
    window is known, the oldest are dropped until the prompt and room for the reply fit (§4.1);
    until then one more each time the endpoint says that the prompt is too long.
    """
    system = speaker.system or system
    model = speaker.model
    while True:
        window = model.context_window
        if window is not None:
            part = LEARNT_PART if model.quirks.window == window else OWN_PART
            reserve = reply_tokens(speaker.decoding.max_tokens or window, window, part)
            reserve += model.room
            n_over = count_dropped(system, utterances, window, reserve, counter.estimate)
            dropped = max(dropped, n_over)
        reply = await model.chat(chat_messages(system, utterances[dropped:]), speaker.decoding)
        if reply.outcome != "overflow" or dropped >= len(utterances) - 1:
            return reply, dropped
        dropped += 1


# ------------------------------------------------------------- a dialogue as chat messages

PER_MESSAGE = 4
"""Tokens a chat template adds to a message: OpenAI's count, a high estimate for others."""

OWN_PART = 4
"""Part of the window in a model's entry that a reply may take: a quarter."""
LEARNT_PART = 2
"""Part of a window learnt from the endpoint: a half."""

ARRANGEMENTS: Sequence[tuple[Layout, SystemRole]] = tuple(
    product(get_args(Layout), get_args(SystemRole))
)
"""Layout and place of the system prompt, in the order in which they are tried."""


def chat_messages(system: str, utterances: Sequence[str]) -> list[Message]:
    """Return the natural layout: system prompt, then the dialogue as seen by its next speaker."""
    messages = [Message(role="system", content=system)]
    for n, text in enumerate(utterances):
        is_user = (len(utterances) - n) % 2
        messages.append(Message(role="user" if is_user else "assistant", content=text))
    return messages


def apply_layout(messages: Sequence[Message], layout: Layout, system: SystemRole) -> list[Message]:
    """Rearrange ``messages``, which are in the natural layout, as an endpoint takes them.

    Of layouts, ``natural`` changes nothing, ``merge-leading`` puts a leading assistant message
    before the text of the user after it, and ``placeholder-user`` lets the user say ``...`` first.
    ``system``: ``system-in-user`` puts the system prompt before the first user message.
    """
    result = list(messages)
    head = 1 if result and result[0]["role"] == "system" else 0
    if len(result) > head + 1 and result[head]["role"] == "assistant":
        if layout == "merge-leading":
            first = result.pop(head)["content"]
            text = f"[You said before:] {first}\n\n{result[head]['content']}"
            result[head] = Message(role="user", content=text)
        elif layout == "placeholder-user":
            result.insert(head, Message(role="user", content="..."))
    if head and system == "system-in-user":
        prompt = result.pop(0)["content"]
        i = [message["role"] for message in result].index("user")
        result[i] = Message(role="user", content=f"{prompt}\n\n{result[i]['content']}")
    return result


def prompt_tokens(messages: Sequence[Message], count: Callable[[str], int]) -> int:
    """Return the tokens of a prompt, template included; ``count`` counts a text's."""
    return sum(count(m["content"]) + PER_MESSAGE for m in messages)


def count_dropped(
    system: str, utterances: Sequence[str], window: int, reserve: int, count: Callable[[str], int]
) -> int:
    """Return how many of the oldest utterances to leave out so that the prompt fits (§4.1).

    The last utterance is always kept. ``window`` is in tokens of prompt and reply together,
    ``reserve`` in tokens of the reply; ``count`` returns the tokens of a text.
    """
    room = window - reserve - count(system) - PER_MESSAGE
    sizes = [count(text) + PER_MESSAGE for text in utterances]
    while len(sizes) > 1 and sum(sizes) > room:
        sizes.pop(0)
    return len(utterances) - len(sizes)


def reply_tokens(max_tokens: int, window: int | None, part: int = OWN_PART) -> int:
    """Return the tokens of a reply: ``max_tokens``, but at most 1 / ``part`` of the window."""
    return max_tokens if window is None else max(16, min(max_tokens, window // part))

"""Stage 1: a chat model extends a ChatSEED utterance by utterance (BotChat §3.1, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from botchat.interfaces import ChatModel, Decoding, Message, Reply
from botchat.languages import ENGLISH, Language
from botchat.models.roles import dropped_to_fit, history, reply_tokens
from botchat.records import N_SEED, Dialogue, Seed, Utterance

PROMPT = "generation"


@dataclass(frozen=True)
class Speaker:
    """A model with the decoding it speaks with."""

    model: ChatModel
    decoding: Decoding


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

"""Generation: a chat model extends a ChatSEED utterance by utterance (BotChat §3.1, Algorithm 1).

The model that is asked speaks next: its own utterances are ``assistant``, the other speaker's are
``user``, and the last message is ``user``. An even number of utterances begins system, assistant,
user, which strict chat templates refuse; `botchat.models.endpoint` has the layouts that they take.

Faults of what models say: marks of a chat template, replies cut short, loops.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from botchat.interfaces import ChatModel, CountTokens, Decoding, Message, Reply, reply_tokens
from botchat.languages import ENGLISH, Language
from botchat.protocols.replies import MARKS
from botchat.records import HUMAN, N_SEED, Dialogue, Dialogues, Seed, Texts, Utterance

PROMPT = "generation"

PER_MESSAGE = 4
"""Tokens a chat template adds to a message: OpenAI's count, a high estimate for others."""


class Speaker(NamedTuple):
    """A model with the decoding it speaks with."""

    model: ChatModel
    decoding: Decoding
    system: str | None = None
    """System prompt of a dialogue; None for the one of the set's language."""


class TokenCounter(NamedTuple):
    """Counts the tokens of a text."""

    exact: CountTokens | None
    """Tokens of cl100k, for the record; None if the encoding is not available."""
    estimate: CountTokens
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
    speaker: Speaker, system: str, utterances: Texts, dropped: int, counter: TokenCounter
) -> tuple[Reply, int]:
    """Ask for the next utterance; return the reply and how many of the oldest were left out.

    ``utterances``: at least one; ``dropped``: the least number to leave out. Once the context
    window is known, the oldest are dropped until the prompt and room for the reply fit (§4.1);
    until then one more each time the endpoint says that the prompt is too long.
    """
    model = speaker.model
    messages = chat_messages(speaker.system or system, utterances[dropped:])
    while True:
        window = model.context_window
        if window is not None:
            reserve = reply_tokens(model, speaker.decoding.max_tokens or window)
            drop_oldest(messages, window - reserve, counter.estimate)
        reply = await model.chat(messages, speaker.decoding)
        if reply.outcome != "overflow" or len(messages) == 2:
            return reply, len(utterances) + 1 - len(messages)
        del messages[1]


def chat_messages(system: str, utterances: Texts) -> list[Message]:
    """Return the natural layout: system prompt, then the dialogue as seen by its next speaker."""
    messages = [Message(role="system", content=system)]
    for n, text in enumerate(utterances):
        is_user = (len(utterances) - n) % 2
        messages.append(Message(role="user" if is_user else "assistant", content=text))
    return messages


def prompt_tokens(messages: Sequence[Message], count: CountTokens) -> int:
    """Return the tokens of a prompt, template included; ``count`` counts a text's."""
    return sum(count(m["content"]) + PER_MESSAGE for m in messages)


def drop_oldest(messages: list[Message], room: int, count: CountTokens) -> None:
    """Drop the oldest utterances of a prompt until it fits into ``room`` tokens (§4.1).

    System prompt and last utterance are always kept; ``count`` returns the tokens of a text.
    """
    while len(messages) > 2 and prompt_tokens(messages, count) > room:
        del messages[1]


# ------------------------------------------------------------------------------- faults

# Share of first replies equal to the human ones from which a model may know the set by heart
_KNOWN_SHARE = 0.2
_CUT_SHARE = 0.01


def find_mark(text: str) -> str:
    """Return the first mark of a chat template or of another speaker's turn in a reply, or ''."""
    mark = MARKS.template_like.search(text) or MARKS.next_turn.search(text)
    if mark:
        return mark[0].strip()
    return ""


def is_loop(utterances: Texts) -> bool:
    """Return whether one utterance makes up 12 of 14 of them, or as large a share of 7 or more."""
    n = len(utterances)
    return n >= 7 and 7 * Counter(utterances).most_common(1)[0][1] >= 6 * n


def dialogue_faults(dialogue: Dialogue) -> Iterator[tuple[str, str]]:
    """Yield (kind, sentence) of each fault of one generated dialogue."""
    replies = dialogue.utterances[dialogue.n_seed :]
    for reply in replies:
        mark = find_mark(reply)
        if mark:
            yield "mark", f"its replies hold {mark!r}: check the server's chat template"
            break
    if is_loop(replies):
        yield "loop", f"it repeats one utterance: {replies[-1][:60]!r}"


def fault_clauses(dialogues: Dialogues) -> Iterator[str]:
    """Yield clauses on marks, replies cut by max_tokens, and dialogues known by heart."""
    marked = []
    cut = []
    known = []
    human = dialogues.get(HUMAN, {})
    for name, by_seed in dialogues.items():
        if name == HUMAN or name.startswith("bot:"):
            continue
        replies: list[str] = []
        facts: list[Utterance] = []
        for dialogue in by_seed.values():
            replies += dialogue.utterances[dialogue.n_seed :]
            facts += dialogue.facts
        n_marked = sum(find_mark(reply) != "" for reply in replies)
        n_cut = sum(fact.outcome == "truncated" for fact in facts)
        n_known = sum(_is_known(dialogue, human) for dialogue in by_seed.values())
        if n_known > _KNOWN_SHARE * len(by_seed):
            known.append(f"{name} {n_known} of {len(by_seed)}")
        if n_marked:
            marked.append(f"{name} {n_marked} of {len(replies)}")
        if facts and n_cut >= _CUT_SHARE * len(facts):
            cut.append(f"{name} {100 * n_cut / len(facts):.0f} %")
    if marked:
        yield f"replies with marks of a chat template or another speaker: {', '.join(marked)}"
    if cut:
        yield f"replies cut by max_tokens: {', '.join(cut)}"
    if known:
        yield f"first replies that are the human ones word for word: {', '.join(known)}"


def _is_known(dialogue: Dialogue, human: Mapping[str, Dialogue]) -> bool:
    """Return whether the first reply of a model is that of the human dialogue."""
    place = dialogue.n_seed
    own = human.get(dialogue.seed_id)
    if own is None or min(len(own.utterances), len(dialogue.utterances)) <= place:
        return False
    return own.utterances[place] == dialogue.utterances[place]

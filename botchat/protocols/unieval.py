"""UniEval (BotChat §3.2): one dialogue; is it AI-involved, and from which utterance on?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from botchat import prompts
from botchat.interfaces import Case, Shown
from botchat.protocols.wording import (
    choice_schema,
    conversation,
    read_choice,
    read_index,
    verdict_words,
)
from botchat.records import Dialogue

PROTOCOL = "unieval"
PROMPTS = ("unieval", "unieval_examples")
SCHEMA = choice_schema(["No", "Yes"], index=True)

_MEANING = {"yes": "yes", "no": "no"}


def cases(dialogues: Iterable[Dialogue]) -> Iterator[Callable[[], Case]]:
    """A maker of a case for every dialogue, stopped ones as far as they got.

    Makers, not cases: the texts of a whole run at once would fill the memory. A dialogue that
    stopped before its first generated utterance asks nothing and is left out.
    """
    for dialogue in dialogues:
        if dialogue.complete or len(dialogue.utterances) > dialogue.n_seed:
            yield partial(case, dialogue.seed_id, dialogue.contestant, dialogue.utterances)


def case(seed_id: str, contestant: str, utterances: Sequence[str]) -> Case:
    """The question about one dialogue."""
    n = len(utterances)
    return Case(
        protocol=PROTOCOL,
        seed_id=seed_id,
        dialogues=(Shown(contestant, tuple(utterances)),),
        prompt=prompts.fill(
            "unieval",
            examples=prompts.text("unieval_examples"),
            conversation=conversation(utterances),
        ),
        choices=frozenset({"No", *map(str, range(1, n + 1))}),
        read=partial(read, n=n),
        schema=SCHEMA,
        words=partial(verdict_words, meaning=_MEANING.get, index=True),
    )


def read(text: str, n: int) -> tuple[str | None, str]:
    """(``"No"`` or a 1-based index as a string, reason) of a judge's reply about ``n`` utterances.

    ``Yes`` without an index between 1 and ``n`` is no verdict: Pass@N could not be told from it.
    """
    choice, why, rest = read_choice(text, _MEANING.get)
    if choice == "no":
        return "No", why
    index = read_index(rest, n) if choice == "yes" else None
    return (None if index is None else str(index)), why

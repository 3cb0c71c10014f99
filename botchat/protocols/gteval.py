"""GTEval (BotChat §3.4): a generated dialogue beside the human one; which is the generated?

The model's dialogue is cut to the human one's length; both orders; the judge is told that exactly
one of the two contains AI-generated utterances. Both and Neither remain possible answers (ties).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from botchat.interfaces import Case
from botchat.protocols import arena
from botchat.records import HUMAN, Dialogues, Seed

PROTOCOL = "gteval"
PROMPTS = ("gteval",)


def cases(seeds: Iterable[Seed], dialogues: Dialogues) -> Iterator[Callable[[], Case]]:
    """A maker of a case for every long enough dialogue of a model beside ``human``, both orders.

    Args:
        seeds: the set; those with a human dialogue below 4 utterances are passed over.
        dialogues: contestant -> seed id -> dialogue; must hold ``human``.
    """
    models = sorted(set(dialogues) - {HUMAN})
    for seed in arena.eligible(seeds):
        human = dialogues[HUMAN][seed.id]
        n = len(human.utterances)
        for model in models:
            generated = dialogues[model].get(seed.id)
            if generated is not None and len(generated.utterances) >= n:
                for first, second in ((generated, human), (human, generated)):
                    yield partial(arena.comparison, "gteval", PROTOCOL, seed.id, first, second, n)

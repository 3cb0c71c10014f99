"""Faults of a model's utterances: marks of a chat template, replies cut short, loops."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from botchat.protocols.frame import template_mark
from botchat.records import HUMAN, Dialogue, Dialogues

_NEXT_TURN = re.compile(r"\n\s*(?:user|assistant|human|ai|system|speaker [AB12]|[AB])\s*:", re.I)
_CUT_SHARE = 0.01


def find_mark(text: str) -> str:
    """Return the first mark of a chat template or of another speaker's turn in a reply, or ''."""
    turn = _NEXT_TURN.search(text)
    return template_mark(text) or (turn[0].strip() if turn else "")


def is_loop(utterances: Sequence[str]) -> bool:
    """Return whether one utterance makes up 12 of 14 of them, or as large a share of 7 or more."""
    n = len(utterances)
    return n >= 7 and 7 * Counter(utterances).most_common(1)[0][1] >= 6 * n


def dialogue_faults(dialogue: Dialogue) -> Iterator[tuple[str, str]]:
    """Yield (kind, sentence) of each fault of one generated dialogue."""
    replies = dialogue.utterances[dialogue.n_seed :]
    if mark := next(filter(None, map(find_mark, replies)), ""):
        yield "mark", f"its replies hold {mark!r}: check the server's chat template"
    if is_loop(replies):
        yield "loop", f"it repeats one utterance: {replies[-1][:60]!r}"


def fault_clauses(dialogues: Dialogues) -> Iterator[str]:
    """Yield a clause on marks and one on replies cut by max_tokens, each naming its models."""
    marked, cut = [], []
    for name, by_seed in dialogues.items():
        if name == HUMAN or name.startswith("bot:"):
            continue
        replies = [text for d in by_seed.values() for text in d.utterances[d.n_seed :]]
        facts = [fact for dialogue in by_seed.values() for fact in dialogue.facts]
        n_marked = sum(map(bool, map(find_mark, replies)))
        n_cut = sum(fact.outcome == "truncated" for fact in facts)
        if n_marked:
            marked.append(f"{name} {n_marked} of {len(replies)}")
        if facts and n_cut >= _CUT_SHARE * len(facts):
            cut.append(f"{name} {100 * n_cut / len(facts):.0f} %")
    if marked:
        yield f"replies with marks of a chat template or another speaker: {', '.join(marked)}"
    if cut:
        yield f"replies cut by max_tokens: {', '.join(cut)}"

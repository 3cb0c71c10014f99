"""How sure a judge was of its verdict: the probability it gave to the words that make it up."""

from __future__ import annotations

import math

from botchat.interfaces import Case, Reply


def confidence(case: Case, reply: Reply) -> float | None:
    """Probability of the verdict's words, given all that the reply says before them.

    The product over the tokens that hold a part of the words. ``None`` where log-probabilities are
    not known, or the reply has no verdict.
    """
    if not reply.tokens or case.words is None:
        return None
    said = b"".join(token for token, _ in reply.tokens)
    start = said.rfind(reply.text.encode())  # thoughts may come before it
    spans = case.words(reply.text)
    if start < 0 or not spans:
        return None
    words = [[start + len(reply.text[:end].encode()) for end in span] for span in spans]
    logprob, at = 0.0, 0
    for token, of_token in reply.tokens:
        after = at + len(token)
        if any(at < last and after > first for first, last in words):
            logprob += of_token
        at = after
    return min(1.0, math.exp(logprob))

"""Metric baselines of a benchmark: what no judge is asked for, and people's scores beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from statistics import correlation, fmean

from botchat.interfaces import Row
from botchat.measures.correlation import Rating
from botchat.papers.correlations import PEOPLE, correlated
from botchat.papers.text_metrics import bleu, rouge_l
from botchat.protocols import answers
from botchat.protocols.answers import ASPECTS, ORIGINAL, Response

Given = Mapping[str, Callable[[Sequence[str]], Row]]
"""Name -> keys of columns -> their numbers; see `botchat.papers.bench.Benchmark`."""


def of_topical_chat(responses: Sequence[Response]) -> Given:
    """ROUGE-L and BLEU-4 of each response against the conversation's own next turn.

    That turn is the reference, so it is no response here: 300 of 360 are left. ``NAME r``: with
    Pearson's r in place of Kendall's tau, which is what ChatEval's Table 2 prints of metrics.
    """
    true = {one.id: one.text for one in responses if one.contestant == ORIGINAL}
    others = [one for one in responses if one.id in true and one.contestant != ORIGINAL]

    def scored(metric: Callable[[str, str], float]) -> list[float]:
        return [metric(one.text, true[one.id]) for one in others]

    found: dict[str, Callable[[Sequence[str]], Row]] = {}
    for name, metric in (("rouge-l", rouge_l), ("bleu-4", bleu)):
        once = cache(partial(scored, metric))
        found[name] = partial(_ranked, others, once)
        found[f"{name} r"] = partial(_with_r, others, once)
    return found


def _ranked(
    responses: Sequence[Response], scored: Callable[[], list[float]], _: Sequence[str]
) -> Row:
    values = scored()
    mine = [
        Rating(one.id, one.contestant, "metric", value)
        for one, value in zip(responses, values, strict=True)
    ]
    return correlated(
        {aspect: [*answers.aspect_labels(responses, aspect, PEOPLE), *mine] for aspect in ASPECTS}
    )


def _with_r(
    responses: Sequence[Response], scored: Callable[[], list[float]], keys: Sequence[str]
) -> Row:
    values, ranked = scored(), _ranked(responses, scored, keys)
    rs = {
        aspect: correlation(values, [one.scores[aspect] for one in responses]) for aspect in ASPECTS
    }
    rs["average"] = fmean(rs.values())
    row = {key: value for key, value in ranked.items() if "kendall" not in key}
    return row | {f"{part}_kendall": r for part, r in rs.items()}

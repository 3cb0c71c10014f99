"""Numbers beside people's: correlations of scores, part by part, and metrics that need no judge.

Metrics of likeness to a reference, from 0 to 1, come with the extra ``botchat-bench[metrics]``.
MATEval's Table 1 (ROC) is computed with `bleu` of ``tokens="blanks"`` and `rouge_l_of_sets`: both
rows agree in all ten cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from statistics import fmean
from typing import Any, Literal

from botchat.errors import ConfigError, DataError
from botchat.interfaces import Row

Tokens = Literal["blanks", "13a", "zh"]
"""What is a word: what stands between blanks, sacreBLEU's standard, a Chinese character."""


def bleu(text: str, reference: str, tokens: Tokens = "13a") -> float:
    """BLEU-4 of one text (Papineni et al. 2002), by sacreBLEU.

    ``"blanks"``: without smoothing, so 0 where no four words follow each other as in the reference;
    it is NLTK's ``sentence_bleu``. Else sacreBLEU's own choice for one sentence: exponential
    smoothing. Raises `ConfigError` without the extra, as do the others.
    """
    exact = tokens == "blanks"
    metric = _package("sacrebleu").BLEU(
        tokenize="none" if exact else tokens,
        smooth_method="none" if exact else "exp",
        effective_order=not exact,
    )
    return float(metric.corpus_score([text], [[reference]]).score) / 100


def rouge_l(text: str, reference: str, tokens: Tokens = "13a") -> float:
    """ROUGE-L (Lin 2004): F1 of the longest common subsequence, by rouge-score, without stemming.

    Words are rouge-score's own (lower case, a to z and digits), except of ``"zh"``, where they are
    sacreBLEU's for Chinese, and ``"blanks"``.
    """
    own = None if tokens == "13a" else _Words(tokens)
    scorer = _package("rouge_score.rouge_scorer").RougeScorer(["rougeL"], tokenizer=own)
    return float(scorer.score(reference, text)["rougeL"].fmeasure)


def rouge_l_of_sets(text: str, reference: str) -> float:
    """ROUGE-L of the package rouge, which MATEval's figures come from; 0 without a word.

    Sentences end at a full stop, words at a blank, and a word counts once in a text: what is
    repeated adds nothing. Raises `DataError` for a sentence of several hundred words.
    """
    if not text.replace(".", "").strip() or not reference.replace(".", "").strip():
        return 0.0
    scorer = _package("rouge").Rouge(metrics=["rouge-l"])
    try:
        return float(scorer.get_scores(text, reference)[0]["rouge-l"]["f"])
    except RecursionError:
        raise DataError(
            f"the package rouge cannot compare {text[:40]!r}…: a sentence of several hundred words "
            "is too long for it; end sentences with full stops"
        ) from None


class _Words:
    """A tokenizer as rouge-score takes one."""

    def __init__(self, tokens: Tokens) -> None:
        apart = _package("sacrebleu.tokenizers.tokenizer_zh").TokenizerZh
        self._spaced = apart() if tokens == "zh" else str

    def tokenize(self, text: str) -> list[str]:
        """The words of a text."""
        return str(self._spaced(text)).split()


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise ConfigError(
            f"metrics of texts need the package {name.partition('.')[0]}; "
            "pip install 'botchat-bench[metrics]'"
        ) from None


PEOPLE = "human labels"
"""What upstream's labels are filed under; no judge has such a name."""

RANKS = ("spearman", "kendall")


def of_parts(parts: Iterable[str]) -> tuple[str, ...]:
    """The columns of all parts and of their average."""
    return tuple(f"{part}_{figure}" for part in (*parts, "average") for figure in RANKS)


def ends_of(found: Row, figures: Iterable[str], begin: str) -> Row:
    """Some figures with the ends of their intervals, their keys with ``begin`` before them."""
    keys = [f"{figure}{end}" for figure in figures for end in ("", "_low", "_high")]
    return {f"{begin}{key}": found[key] for key in keys}


def in_one_row(parts: Iterable[str], found: Mapping[str, Row]) -> Row:
    """Part -> correlations of a judge, as one row: ``PART_spearman`` …, ``average_spearman`` …."""
    row: Row = {key: sum(of[key] for of in found.values()) for key in ("n", "unreadable")}
    for part, of in found.items():
        row |= ends_of(of, RANKS, f"{part}_")
    for figure in RANKS:
        values = [row.get(f"{part}_{figure}") for part in parts]
        known = [value for value in values if value is not None]
        row[f"average_{figure}"] = fmean(known) if len(known) == len(values) else None
    return row

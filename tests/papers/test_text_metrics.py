"""Metric baselines: other people's numbers, and what a likeness must hold."""

from __future__ import annotations

import sys
import warnings

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from botchat.errors import ConfigError, DataError
from botchat.papers.metrics import bleu, rouge_l, rouge_l_of_sets


@pytest.fixture
def packages():
    """The extra, or the test is passed over."""
    for package in ("rouge", "rouge_score", "sacrebleu"):
        pytest.importorskip(package, reason="needs pip install 'botchat-bench[metrics]'")


WORDS = st.lists(st.sampled_from(["cat", "sat", "mat.", "the", "dog"]), min_size=1, max_size=12)
METRICS = [
    bleu,
    lambda *texts: bleu(*texts, tokens="blanks"),
    lambda *texts: bleu(*texts, tokens="zh"),
    rouge_l,
    lambda *texts: rouge_l(*texts, tokens="blanks"),
    lambda *texts: rouge_l(*texts, tokens="zh"),
    rouge_l_of_sets,
]


@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("metric", METRICS)
@given(WORDS, WORDS)
def test_a_likeness_is_between_0_and_1(metric, text, reference):
    """Whatever the texts; 1 of a text and itself, where it has the four words that BLEU needs."""
    text, reference = " ".join(text), " ".join(reference)
    assert 0 <= metric(text, reference) <= 1 + 1e-9
    whole = f"{reference} one two three four"
    assert metric(whole, whole) == pytest.approx(1)


@pytest.mark.usefixtures("packages")
@given(WORDS, WORDS)
def test_bleu_of_blanks_is_nltks(text, reference):
    """As MATEval computed it; NLTK says 1e-78 and the like where there is no match of four."""
    nltk = pytest.importorskip("nltk.translate.bleu_score")
    assume(len(text) > 3)  # NLTK leaves orders out that a shorter text does not have
    with warnings.catch_warnings(action="ignore"):
        theirs = nltk.sentence_bleu([reference], text)
    assert bleu(" ".join(text), " ".join(reference), "blanks") == pytest.approx(theirs, abs=1e-9)


@pytest.mark.usefixtures("packages")
def test_rouge_l_by_hand():
    """The example of Lin (2004, 3.1): P and R 3/4 and 2/4 against one reference."""
    reference = "police killed the gunman"
    assert rouge_l("police kill the gunman", reference) == pytest.approx(3 / 4)
    assert rouge_l("the gunman kill police", reference) == pytest.approx(2 / 4)
    assert rouge_l("猫坐在垫子", "猫在垫", "zh") == pytest.approx(0.75)


@pytest.mark.usefixtures("packages")
def test_repeating_adds_nothing_to_rouge_l_of_sets():
    """Which is why MATEval's ROUGE-L does not see repetition."""
    once = "the cat sat. it slept"
    assert rouge_l_of_sets(f"{once}. {once}", once) == pytest.approx(1)
    assert rouge_l_of_sets(" .. ", once) == rouge_l_of_sets(once, "") == 0


@pytest.mark.usefixtures("packages")
def test_a_sentence_too_long_for_the_package_is_said():
    """One line instead of a recursion error."""
    with pytest.raises(DataError, match="too long"):
        rouge_l_of_sets("three four " * 600, "one two")


@pytest.mark.parametrize("metric", METRICS)
def test_without_the_extra_it_says_what_to_install(metric, monkeypatch):
    """Whichever package is asked for first."""
    for package in ("rouge", "rouge_score.rouge_scorer", "sacrebleu"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, "sacrebleu.tokenizers.tokenizer_zh", None)
    with pytest.raises(ConfigError, match=r"botchat-bench\[metrics\]"):
        metric("a text", "a reference")

"""Lengths in tokens where the encoding is there, in words and labelled so where it is not."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
import tiktoken
from matplotlib.figure import Figure

from botchat.metrics import lengths
from botchat.records import HUMAN, Dialogue, Utterance
from botchat.report.drawing import violins


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    """Every test looks for the encoding itself."""
    lengths.counter.cache_clear()
    lengths.warn_of_words.cache_clear()
    yield
    lengths.counter.cache_clear()


@pytest.fixture
def _nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vocabulary is not stored, and the network refuses."""

    def refuse(name: str) -> None:
        raise OSError(f"no network for {name}")

    monkeypatch.setattr(tiktoken, "get_encoding", refuse)


def dialogue(*texts: str, tokens: tuple[int | None, ...] = (), model: str = "m") -> Dialogue:
    """A dialogue whose first two utterances are the seed."""
    return Dialogue(
        seed_id="S-1",
        model=model,
        utterances=texts,
        n_seed=2,
        facts=tuple(Utterance(tokens=n) for n in tokens),
        status="complete",
        signature="",
    )


def test_tokens_are_cl100k_base() -> None:
    """The counts that OpenAI's tokenizer gives; special tokens in a text are plain text."""
    counter = lengths.counter()
    if counter.unit != "tokens":
        pytest.skip("the cl100k_base vocabulary is not on this machine")
    assert counter.count("hello world") == 2
    assert counter.count("tiktoken is great!") == 6
    assert counter.count("<|endoftext|>") > 1
    assert counter.count("") == 0


@pytest.mark.usefixtures("_nowhere")
def test_without_the_vocabulary_words_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    """Where lengths are shown, one line, once, says how to get it; no estimate is called tokens."""
    counter = lengths.counter()
    assert counter.unit == "words"
    assert counter.count("It's raining, isn't it?") == 4
    assert not caplog.records
    for _ in range(2):
        violins({"m": np.array([3, 5])}, counter.unit, Figure().subplots())
    (said,) = [record.getMessage() for record in caplog.records]
    assert "\n" not in said
    assert "TIKTOKEN_CACHE_DIR" in said


def test_seed_utterances_are_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recorded tokens are taken as they are, no counter is asked; who said nothing has no mean."""
    monkeypatch.delattr(lengths, "counter")
    made = {"m": {"S-1": dialogue("s e e d", "s e e d", "x", "y y", tokens=(7, 9))}}
    measured = lengths.measure(made)
    assert measured.unit == "tokens"
    assert measured.by_contestant["m"].tolist() == [7, 9]
    found = lengths.summary(np.array([], dtype=np.int64))
    assert found["utterances"] == 0
    assert math.isnan(found["mean"])


def test_what_is_not_recorded_is_counted_and_units_are_never_mixed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Recorded counts stay; if one utterance can only be counted in words, all are."""
    made = {
        "m": {"S-1": dialogue("a", "b", "c c c", "d", tokens=(70, None))},
        HUMAN: {"S-1": dialogue("a", "b", "e e", model=HUMAN)},
    }
    counter = lengths.Counter("tokens", lambda text: len(text.split()))
    monkeypatch.setattr(lengths, "counter", lambda: counter)
    measured = lengths.measure(made)
    assert {name: v.tolist() for name, v in measured.by_contestant.items()} == {
        "m": [70, 1],
        HUMAN: [2],
    }
    made = {
        "m": {"S-1": dialogue("a", "b", "c c c", tokens=(70,))},
        "k": {"S-1": dialogue("a", "b", "e e", tokens=(None,))},
    }
    counter = lengths.Counter("words", lengths.words)
    measured = lengths.measure(made)
    assert measured.unit == "words"
    assert [v.tolist() for v in measured.by_contestant.values()] == [[3], [2]]

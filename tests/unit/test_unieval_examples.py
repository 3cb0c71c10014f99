"""UniEval's in-context examples: our own dialogues, in the composition of the authors' code."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from botchat.languages import built_in
from botchat.metrics.criteria import fit_thresholds, flags
from botchat.protocols.catalogue import UNIEVAL
from botchat.protocols.frame import prompt_frame as wording_of
from botchat.records import Seed
from botchat.workspace import jsonl

LANGUAGES = [built_in()[code] for code in ("en", "zh")]
DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
MUTUAL = DATA / "mutual" / "MuTual-master.zip"


def examples(language):
    """(utterances, response) of every example."""
    end = "<chat_end>" if language.english else language.labels.end
    heads = {"en": ("Conversation:", "Response:"), "zh": ("对话：", "回答：")}[language.code]
    for part in language.text("unieval_examples").split(f"\n{heads[0]}\n")[1:]:
        said, _, response = part.partition(f"\n{heads[1]}\n")
        lines = said.split("\n")
        for i, line in enumerate(lines):
            assert line.startswith(f"{'AB'[i % 2]}: ")
            assert line.endswith(f" {end}")
        yield [line[3:].removesuffix(end).strip() for line in lines], response.strip()


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda one: one.code)
def test_the_composition_is_upstreams(language):
    """No at 4, Yes at 11 of 15, Yes at 9 of 14, No at 12, as the judge's own reader reads them."""
    found = []
    for said, response in examples(language):
        verdict, why = UNIEVAL.spoken(language).reading(tuple(said)).read(response)
        assert why
        found.append((verdict, len(said)))
    assert found == [("No", 4), ("11", 15), ("9", 14), ("No", 12)]


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda one: one.code)
def test_an_example_says_the_truth_about_itself(language):
    """People's utterances are short; the rules, which see form only, agree as far as they see."""
    shown = [tuple(said) for said, _ in examples(language)]
    human = [shown[0], shown[1][:10], shown[2][:8], shown[3]]
    longest = 90 if language.english else 35
    assert max(len(one) for said in human for one in said) <= longest
    if language.english:
        sample = jsonl.read(Path(__file__).resolve().parents[2] / "seeds/sample.jsonl", Seed)
        limits = fit_thresholds(seed.utterances for seed in sample)
        first = [next((f.index for f in flags(one, limits)), None) for one in shown]
        assert (first[0], first[1], first[3]) == (None, 11, None)


def test_the_frame_is_the_one_around_what_is_judged():
    """An example looks like the dialogue that follows it."""
    for language in LANGUAGES:
        wording = wording_of(language)
        for said, _ in examples(language):
            assert wording.conversation(said) in language.text("unieval_examples")


@pytest.mark.skipif(not MUTUAL.exists(), reason="MuTual's archive is not beside the project")
def test_no_sentence_is_mutuals():
    """Nor are any six words in a row, which would show a judge its own test."""

    def runs(text):
        whole = text.lower().replace(" '", "'").replace(" n't", "n't")  # it is tokenised
        words = re.findall(r"[a-z']+", whole)
        return {tuple(words[i : i + 6]) for i in range(len(words) - 5)}

    ours = set().union(*(runs(one) for said, _ in examples(LANGUAGES[0]) for one in said))
    with zipfile.ZipFile(MUTUAL) as archive:
        names = [
            name for name in archive.namelist() if re.search(r"mutual/(test|dev)/\w+\.txt", name)
        ]
        assert len(names) > 1000
        for name in names:
            assert not ours & runs(json.loads(archive.read(name))["article"]), name

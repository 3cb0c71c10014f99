"""Skill of a judge: what it says of dialogues whose truth is known.

A case is 1 where the verdict is true, −1 where it is false, 0 where it is a tie or unreadable.
Their mean is Peirce's skill score (1884): 0 for every judge that does not look at the dialogues,
whatever it says, and 1 for one that is always right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from botchat.estimates import UNKNOWN, Estimate, Flags, Floats
from botchat.metrics.statistics import LEAST, proportion, student_t
from botchat.metrics.verdicts import PairVerdicts
from botchat.protocols.controls import n_kept
from botchat.protocols.protocol import Protocol, preferences
from botchat.records import HUMAN, SHUFFLED, Judgment, Texts

GOOD = 0.50
POOR = 0.25
"""Skill from which a judge passes, and below which it fails."""
ALIKE = 0.20
"""Skill on a model within which it and people are alike to the judge."""
PLACED = 0.60
"""Share of right indices below which `passes 4` to `passes 12` are not read."""

SPAN = (-1.0, 1.0)

State = Literal["passes", "warns", "fails", "unknown"]
Second = Literal["picks out", "alike", "reversed", "open", "too few"]


class SkillCases(NamedTuple):
    """Verdicts of a judge as cases of skill."""

    values: Floats = np.zeros(0)
    """Shape (cases,), −1 to 1."""
    seeds: Texts = ()
    """ChatSEED of each case."""
    topics: Mapping[str, str] = {}
    """ChatSEED -> topic, where it has one."""
    noticed: Flags = np.zeros(0, np.bool_)
    """Whether the judge finds the shuffled dialogue of a case; of a pair whether it is right."""
    blamed: Flags = np.zeros(0, np.bool_)
    """Whether it calls the human dialogue AI; of a pair whether it is wrong."""
    habit: str = ""
    """Answer that it gives whatever it is shown, in words; empty where it does not."""
    placed: Estimate = UNKNOWN
    """See `place`."""
    n_verdicts: int = 0
    """Verdicts on shuffled dialogues and on the human ones beside them, unreadable ones too."""

    @property
    def n_seeds(self) -> int:
        """ChatSEEDs with a case."""
        return len(set(self.seeds))

    @property
    def clusters(self) -> list[str]:
        """Topic of each case where there are `LEAST` topics or more, else its ChatSEED."""
        topics = [self.topics.get(seed, "") for seed in self.seeds]
        if len(set(topics) - {""}) < LEAST:
            return list(self.seeds)
        return [
            f"topic {topic}" if topic else f"seed {seed}"
            for topic, seed in zip(topics, self.seeds, strict=True)
        ]

    @property
    def good(self) -> float:
        """Share of shuffled dialogues that are noticed, or of right pairs."""
        return _share(self.noticed)

    @property
    def bad(self) -> float:
        """Share of human dialogues that are blamed, or of wrong pairs."""
        return _share(self.blamed)

    @property
    def skill(self) -> Estimate:
        """Mean of the cases with its 95 % interval."""
        return proportion(self.values, self.clusters, SPAN)

    def decided(self) -> SkillCases:
        """Return the cases that are no tie and can be read."""
        kept = self.values != 0
        seeds = list(compress(self.seeds, kept.tolist()))
        return self._replace(values=self.values[kept], seeds=seeds)


def state(skill: Estimate, n_seeds: int, n_cases: int, good: float = GOOD) -> State:
    """Return the state of a check: by its whole interval, and unknown of too few cases."""
    if min(n_seeds, n_cases) < LEAST or not skill.is_bounded:
        return "unknown"
    if skill.low >= good:
        return "passes"
    if skill.value < POOR and skill.high < GOOD:
        return "fails"
    if skill.low <= 0:
        return "unknown"
    return "warns"


def alone_cases(verdicts: PairVerdicts, topics: Mapping[str, str]) -> SkillCases:
    """Return a case a seed from the verdicts on its shuffled dialogue and on its human one."""
    names = np.array(verdicts.contestants, object)[verdicts.first]
    seeds = np.array(verdicts.items, object)[verdicts.item]
    leads = pd.Series(_leads(verdicts), [seeds, names]).unstack()
    both = leads.reindex(columns=[HUMAN, SHUFFLED]).dropna()
    says = both.to_numpy(float)
    human, shuffled = says.T
    answers = [_Answer(says == 0, 0.25, _UNREAD)]
    for answer, is_given in (("Yes", says < 0), ("No", says > 0)):
        times = f"{is_given.sum()} of {says.size}"
        text = f"it answers {answer} to {times}, human and shuffled alike"
        answers.append(_Answer(is_given, 0.9, text))
    values = (human - shuffled) / 2
    return SkillCases(values, list(both.index), topics, shuffled < 0, human < 0, _habit(answers))


def pair_cases(verdicts: PairVerdicts, name: str, topics: Mapping[str, str]) -> SkillCases:
    """Return a case a verdict on a contestant beside human: 1 where the contestant is called AI."""
    shown = verdicts.between({HUMAN, name})
    lead = _leads(shown)
    is_human = np.array(shown.contestants, object)[shown.first] == HUMAN
    values = np.where(is_human, lead, -lead)
    is_tie = (lead == 0) & shown.readable
    decided = lead[lead != 0]
    answers = [
        _Answer(~shown.readable, 0.25, _UNREAD),
        _Answer(is_tie, 0.9, f"it calls {is_tie.sum()} of {len(lead)} pairs a tie"),
        _Answer(decided < 0, 0.75, _PLACE.format("first")),
        _Answer(decided > 0, 0.75, _PLACE.format("second")),
    ]
    seeds = [shown.items[i] for i in shown.item]
    return SkillCases(values, seeds, topics, values > 0, values < 0, _habit(answers))


_UNREAD = "{:.0f} % of its verdicts on them cannot be read"
_PLACE = "it takes the {} text for AI in {{:.0f}} % of decided pairs"


class _Answer(NamedTuple):
    """An answer that a judge may give whatever it is shown."""

    is_given: Flags
    most: float  # share from which it is a habit
    words: str  # words on the judge, with a place for the share in percent


def _habit(answers: Sequence[_Answer]) -> str:
    """Return the first answer that is given too often, in words."""
    for answer in answers:
        share = _share(answer.is_given)
        if share >= answer.most:
            return answer.words.format(100 * share)
    return ""


def _leads(verdicts: PairVerdicts) -> Floats:
    """Return 1 where the first is called human, −1 where it is called AI, else 0."""
    return 2 * np.nan_to_num(verdicts.result, nan=0.5) - 1


def _share(hits: Flags) -> float:
    return float(hits.mean()) if hits.size else 0.0


def second(cases: SkillCases, n_models: int) -> Second:
    """Return how the judge tells the leader of ``n_models`` from people, chosen on the same data.

    By Student's t of the means of clusters at 1 − .05 / models: all intervals hold together.
    """
    if cases.n_seeds < LEAST:
        return "too few"
    means = pd.Series(cases.values).groupby(cases.clusters).mean().to_numpy(float)
    mean = float(means.mean())
    n = len(means)
    reach = student_t(1 - 0.05 / n_models, n - 1) * float(means.std(ddof=1)) / n**0.5
    if mean > reach:
        return "picks out"
    if mean < -reach:
        return "reversed"
    if abs(mean) < ALIKE - reach:
        return "alike"
    return "open"


def place(judgments: Sequence[Judgment]) -> Estimate:
    """Return the share of noticed shuffled dialogues whose index is their first or second new one.

    Unknown of fewer than `LEAST`.
    """
    hits = []
    for judgment in judgments:
        verdict = judgment.verdict or ""
        if judgment.contestants[0] == SHUFFLED and verdict.isdecimal():
            hits.append(int(verdict) - n_kept(judgment.shown) in (1, 2))
    if len(hits) < LEAST:
        return UNKNOWN
    return proportion(hits, None)


def is_misplaced(placed: Estimate) -> bool:
    """Whether its index is wrong too often for success rates before the last N to be read."""
    return placed.high < PLACED


class JudgeTest(NamedTuple):
    """Shuffled dialogues of a set, on which its judges are tested."""

    topics: Mapping[str, str] = {}
    seeds: Texts = ()
    """Seeds of the shuffled dialogues."""
    n_asked: int = 0
    """Shuffled dialogues that the settings ask for."""
    n_human: int = 0
    """Human dialogues of 4 or more utterances in the set."""

    def cases(self, verdicts: Sequence[Judgment] | PairVerdicts, protocol: Protocol) -> SkillCases:
        """Return the cases of a judge's verdicts, these among others; none if it was not asked.

        ``verdicts``: in columns where they are on pairs.
        """
        if not (self.seeds and protocol.tests_judges):
            return SkillCases()
        if isinstance(verdicts, PairVerdicts):
            shown = verdicts.between({HUMAN, SHUFFLED}).on(self.seeds)
            return pair_cases(shown, SHUFFLED, self.topics)._replace(n_verdicts=len(shown))
        asked = [each for each in verdicts if each.contestants[0] in (HUMAN, SHUFFLED)]
        shown = PairVerdicts.of(preferences(asked, protocol)).on(self.seeds)
        cases = alone_cases(shown, self.topics)
        return cases._replace(placed=place(asked), n_verdicts=len(shown))

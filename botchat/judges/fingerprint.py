"""The offline judge by form: a chat further from people's than 19 in 20 of people's are is accused.

It is fitted on the set's people alone (`botchat.measures.fingerprint`), so its verdicts do not
depend on which models are there, and nothing fitted is kept. It sees the whole of a chat and no
utterance of it by itself: of UniEval it accuses the first one behind the ChatSEED. People's own
lines, said again in another place, are people to it. It detects and does not grade.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from botchat.errors import ConfigError
from botchat.interfaces import Answer, Case, Shown, settings_digest
from botchat.languages import ENGLISH, Language
from botchat.measures.fingerprint import distance, limit, too_few
from botchat.measures.form import form
from botchat.records import MIN_HUMAN, N_SEED

VERSION = 1
"""Raised with every change that changes a verdict."""

_NOT_MINE = "the fingerprint answers UniEval, Arena and GTEval questions only"


class FingerprintJudge:
    """Judges each dialogue of a case by itself, from its utterances only, never from the prompt.

    Where a comparison does not offer that both are accused, or neither, it accuses the chat that is
    further from people's.
    """

    name = "fingerprint"
    parallel = 1
    models = ()

    def __init__(
        self, human_dialogues: Iterable[tuple[str, ...]], language: Language = ENGLISH
    ) -> None:
        """Fit to the human dialogues of the seed set; raises `ConfigError` for too few."""
        people = [one for one in human_dialogues if len(one) >= MIN_HUMAN]
        if refused := too_few(len(people)):
            raise ConfigError(
                f"--judge {self.name}: in this set {refused}; name another judge, or a larger set"
            )
        self.language, self._people = language, people
        # Cut alike, since what is said again grows with the length of a chat.
        self._end = int(np.median([len(one) for one in people]))
        numbers = np.array([self._numbers(one, N_SEED) for one in people])
        self._distance, self.limit = distance(numbers), limit(numbers)
        self._far = lru_cache(maxsize=1024)(self._measured)

    @property
    def digest(self) -> str:
        """Digest of the people, and of the language's lists."""
        lists = () if self.language.english else (self.language.digest,)
        return settings_digest(VERSION, self._people, *lists)

    async def answer(self, case: Case) -> Answer:
        """Answer from ``case.dialogues`` and ``case.choices``."""
        far = [self._far(shown) for shown in case.dialogues]
        if case.kind == "report" or (case.kind is not None and not case.about_ai):
            return Answer(None, _NOT_MINE)
        if len(far) == 1 and "No" in case.choices:
            first = str(case.dialogues[0].n_seed + 1)
            verdict = first if far[0] > self.limit and first in case.choices else "No"
        elif len(far) == 2 and case.choices <= {"1", "2", "both", "neither"}:
            accused = {n for n, one in zip("12", far, strict=True) if one > self.limit}
            verdict = accused.pop() if len(accused) == 1 else "both" if accused else "neither"
            if verdict not in case.choices:
                verdict = "1" if far[0] > far[1] else "2"
        else:
            return Answer(None, _NOT_MINE)
        told = " and ".join(f"{one:.0f}" for one in far)
        return Answer(verdict, f"distance from people {told}, of 1 in 20 people > {self.limit:.0f}")

    def _numbers(
        self, utterances: tuple[str, ...], n_seed: int, spoken_by: tuple[int, ...] = ()
    ) -> tuple[float, ...]:
        said, who = utterances[: self._end], spoken_by[: self._end] or None
        return form(said, self.language, n_seed=n_seed, speakers=who).numbers

    def _measured(self, shown: Shown) -> float:
        """Distance of a chat; 0 of one that says nothing behind the ChatSEED."""
        if len(shown.utterances) <= shown.n_seed:
            return 0.0
        numbers = self._numbers(shown.utterances, shown.n_seed, shown.spoken_by)
        return float(self._distance.scores(np.array([numbers]))[0])

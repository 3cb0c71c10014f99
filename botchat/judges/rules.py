"""The offline judge: the UniEval prompt's criteria (BotChat Appendix B) made computable.

It names the first utterance that does what at most 1 % of the set's human dialogues do. Ours, not
the paper's: a check for other judges, which sees form only, and no error of fact or logic.
"""

from collections.abc import Iterable
from functools import lru_cache

from botchat.frames import Tables, fill, package_toml
from botchat.interfaces import Case, JudgeAnswer, ShownDialogue, settings_digest
from botchat.judges.criteria import Flag, fit_thresholds, flags
from botchat.judges.voting import VERDICTS
from botchat.records import RULES, Utterances

VERSION = 1
"""Raised with every change of the criteria that changes a verdict."""

_DATA = package_toml("judges/rules.toml", Tables)
_FAULTS: dict[str, str] = _DATA["faults"]
_DIAGNOSED: dict[str, list[str]] = _DATA["diagnosed"]

_MOST_QUOTED = 60


class RulesJudge:
    """Judges each dialogue of a case by itself, from its utterances only, never from the prompt."""

    name = RULES
    parallel = 1
    models = ()

    def __init__(self, human_dialogues: Iterable[Utterances]) -> None:
        """Fit the thresholds to the human dialogues of the seed set; see `fit_thresholds`."""
        self.thresholds = fit_thresholds(human_dialogues)
        # Cached: a dialogue is compared with every other contestant of its seed, in both orders.
        self._flags = lru_cache(maxsize=1024)(self._find_flags)

    @property
    def digest(self) -> str:
        """Digest of the thresholds."""
        return settings_digest(VERSION, self.thresholds._asdict())

    async def answer(self, case: Case) -> JudgeAnswer:
        """Answer a question that asks what tells models from humans, the only kind it is asked."""
        if case.kind == "report":
            verdict, reason = case.read(self._report(case.dialogues[0]))
            return JudgeAnswer(verdict, reason)
        earliest = [next(iter(self._flags(dialogue)), None) for dialogue in case.dialogues]
        if len(earliest) == 1:
            verdict = "No"
            if earliest[0] is not None:
                verdict = str(earliest[0].index)
            return JudgeAnswer(verdict, _reason(earliest[0]))
        first, second = earliest
        return JudgeAnswer(
            VERDICTS[first is not None, second is not None],
            f"conversation 1: {_reason(first)}; conversation 2: {_reason(second)}",
        )

    def _find_flags(self, dialogue: ShownDialogue) -> list[Flag]:
        return flags(dialogue.utterances, self.thresholds, dialogue.n_seed)

    def _report(self, dialogue: ShownDialogue) -> str:
        return fill(
            "judges/diagnosis.txt",
            diagnosed=_DIAGNOSED,
            flags=self._flags(dialogue),
            utterances=dialogue.utterances,
            quoted=_quoted,
            excess=_excess,
        )


def _quoted(flag: Flag, utterance: str) -> str:
    """The words that the criterion found, if they stand so in the utterance, else its beginning."""
    words = flag.quote.removesuffix("\u2026")
    at = utterance.lower().find(words.lower())
    if words and at >= 0:
        return utterance[at : at + len(words)]
    return utterance[:_MOST_QUOTED]


def _reason(flag: Flag | None) -> str:
    if flag is None:
        return "nothing that people of this set do not do"
    return f"utterance {flag.index}: {_excess(flag)}: {flag.evidence}"


def _excess(flag: Flag) -> str:
    """Return the fault, and by how much it exceeds the threshold."""
    return f"{_FAULTS[flag.criterion]}, {flag.value:.6g} > {flag.threshold:.6g} of people"

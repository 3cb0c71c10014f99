"""MATEval (Li et al. 2024, §3.2, §4.2): reports on the errors of a text, and of a dialogue.

Five questions about any text, points off for each kind of error: the verdict is five scores from 0
(``"0 -1 0 ? -2"``; ``?``: the reply lacks it), the reason the report in canonical form. The
diagnosis of a dialogue has ten, with the bad cases of BotChat (Appendix C): an error is one point
off, counted here, because judges miscount, and the verdict is the sum (``"-3"``).
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias

from botchat.estimates import Estimate
from botchat.interfaces import Case, Cells, ShownDialogue, VerdictReason
from botchat.languages import ENGLISH
from botchat.metrics.statistics import proportion
from botchat.protocols import kinds, scores
from botchat.protocols.frame import neutralise_template
from botchat.protocols.protocol import Protocol
from botchat.protocols.replies import MARKS
from botchat.protocols.reports import ERRORS, KINDS, Report, as_text, parse, parse_text, reports
from botchat.protocols.scores import Scale
from botchat.records import Dialogues, Judgment, Utterances

MATEVAL = Protocol(
    "mateval",
    "MATEval",
    # The paper has no floor; a number below two digits was miswritten. Judges take off halves too.
    kinds.Score(Scale(-99, 0, KINDS, points_off=True)),
    shows="one",
    question="one text: which errors of five kinds, where, why, points off",
    prompts=("mateval",),
)

_REPORT = kinds.Report()

DIAGNOSIS = Protocol(
    "diagnosis",
    "Diagnosis",
    _REPORT,
    shows="one",
    question="one dialogue: which errors, where, with which words?",
    prompts=("diagnosis",),
    about_ai=True,
)

TEXT = "text"  # name of the one contestant


class OwnText(NamedTuple):
    """A text, and human scores of it where they are known."""

    id: str
    text: str
    labels: Mapping[str, float] = {}  # by plain name; "": the whole text

    @property
    def lines(self) -> Utterances:
        """The text as a dialogue: its lines, for questions about dialogues."""
        return tuple(line.strip() for line in self.text.splitlines() if line.strip())


def text_case(text: OwnText) -> Case:
    """Make the question about one text."""
    quoted = scores.neutralise_labels(text.text, MATEVAL.score.asked)
    framed = MARKS.report_frame.sub(r"\1 -", neutralise_template(quoted))
    prompt = ENGLISH.fill("mateval", text=framed)
    case = MATEVAL.make_case(text.id, (ShownDialogue(TEXT, text.lines),), prompt)
    return replace(case, read=partial(read_report, text=text.text), report="asked")


def read_report(reply: str, text: str) -> VerdictReason:
    """Return (five scores, the report in canonical form)."""
    verdict, words = MATEVAL.reading().read(reply)
    return verdict, as_text(parse_text(reply, text)) or words


Diagnoses = Mapping[tuple[str, str], Mapping[str, Report]]
"""(contestant, seed id) -> who reports -> the report."""


def diagnoses(judgments: Iterable[Judgment], dialogues: Dialogues) -> Diagnoses:
    """Read the reports of judgments again; at most one judgment a dialogue."""
    read = {}
    for judgment in judgments:
        (name,) = judgment.contestants
        seed_id = judgment.seed_id
        utterances = dialogues[name][seed_id].utterances
        read[name, seed_id] = reports(judgment, partial(parse, utterances=utterances))
    return read


Clustered: TypeAlias = list[tuple[str, float]]
"""Values, each with its cluster before it."""


def by_type(reported: Iterable[Report]) -> dict[str, bool]:
    """Return error type -> whether more than half of the reports that judge it say yes."""
    errors = defaultdict[str, list[bool]](list)
    for report in reported:
        for result in report.results:
            if result.score is not None:
                errors[result.type].append(result.score < 0)
    return {type_: 2 * sum(each) > len(each) for type_, each in errors.items()}


def error_rates(
    judgments: Iterable[Judgment],
    reported: Diagnoses,
    n_seeds: Mapping[Hashable, int],
    topics: Mapping[str, str],
) -> list[Cells]:
    """Return one row a contestant of judgments on dialogues, at most one on each.

    ``topics``: seed id -> its topic, if it has one; intervals are clustered by topic, else by seed.

    A row has ``model``; mean ``score``, one point off for each type; for each type of `ERRORS`
    the share of dialogues that have it; ``quoted``: share of all errors whose quote is in the
    utterance named; ``n`` readable ones, ``missing`` (of the contestant's ``n_seeds``).
    """
    by_contestant = defaultdict[str, list[Judgment]](list)
    for judgment in judgments:
        by_contestant[judgment.contestants[0]].append(judgment)
    rows = []
    for name, judged in by_contestant.items():
        cases = defaultdict[str, Clustered](list)
        for judgment in judged:
            cluster = topics.get(judgment.seed_id, judgment.seed_id)
            cases["score"] += [(cluster, total) for total in _REPORT.numbers(judgment.verdict)]
            read = reported[name, judgment.seed_id].values()
            for report in read:
                for result in report.results:
                    cases["quoted"] += [(cluster, err.evidence == "found") for err in result.errors]
            for type_, has_error in by_type(read).items():
                cases[type_].append((cluster, has_error))
        # An error of each type is one point off.
        row: Cells = {"model": name, "score": _mean(cases["score"], -float(len(ERRORS)), 0.0)}
        for key in ["quoted"] + list(ERRORS):
            row[key] = _mean(cases[key])
        n = len(cases["score"])
        rows.append(row | {"n": n, "missing": n_seeds[name] - n})
    return rows


def _mean(cases: Clustered, lowest: float = 0.0, highest: float = 1.0) -> Estimate:
    return proportion([value for _, value in cases], [c for c, _ in cases], (lowest, highest))

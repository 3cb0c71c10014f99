"""MATEval (Li et al. 2024, §3.2, §4.2): reports on the errors of a text, and of a dialogue.

Five questions about any text, points off for each kind of error: the verdict is five scores from 0
(``"0 -1 0 ? -2"``; ``?``: the reply lacks it), the reason the report in canonical form. The
diagnosis of a dialogue has ten, with the bad cases of BotChat (Appendix C): an error is one point
off, counted here, because judges miscount, and the verdict is the sum (``"-3"``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from botchat.estimates import Estimate
from botchat.interfaces import Case, Row, ShownDialogue
from botchat.languages import ENGLISH
from botchat.metrics.statistics import proportion
from botchat.protocols import kinds, scores
from botchat.protocols.frame import neutralise_template
from botchat.protocols.protocol import Protocol
from botchat.protocols.reports import ERRORS, KINDS, Report, as_text, parse, parse_text, reports
from botchat.protocols.scores import Scale
from botchat.records import Dialogues, Judgment, Verdict

MATEVAL = Protocol(
    "mateval",
    "MATEval",
    kinds.Score(Scale(-99, 0, KINDS, points_off=True)),  # the paper has no floor
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

_FRAME_LIKE = re.compile(r"^([ \t>*_#-]*(?:question|answer|score))[ \t]*:", re.I | re.MULTILINE)


@dataclass(frozen=True)
class OwnText:
    """A text, and human scores of it where they are known."""

    id: str
    text: str
    labels: Mapping[str, float] = field(default_factory=dict)  # by plain name; "": the whole text

    @property
    def lines(self) -> tuple[str, ...]:
        """The text as a dialogue: its lines, for questions about dialogues."""
        return tuple(line.strip() for line in self.text.splitlines() if line.strip())


def text_case(text: OwnText) -> Case:
    """Make the question about one text."""
    quoted = scores.neutralise_labels(text.text.replace("\0", ""), MATEVAL.score.asked)
    prompt = ENGLISH.fill("mateval", text=_FRAME_LIKE.sub(r"\1 -", neutralise_template(quoted)))
    case = MATEVAL.make_case(text.id, (ShownDialogue(TEXT, text.lines),), prompt)
    return replace(case, read=partial(read_report, text=text.text), report="asked")


def read_report(reply: str, text: str) -> tuple[Verdict | None, str]:
    """Return (five scores, the report in canonical form)."""
    report = parse_text(reply, text)
    by_type = {result.type: result.score for result in report.results}
    verdict = scores.encode_scores((by_type.get(each) for each in KINDS), MATEVAL.score.asked)
    return verdict, as_text(report) if report.results else " ".join(reply.split())


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


def by_type(reported: Iterable[Report]) -> dict[str, bool]:
    """Return error type -> whether more than half of the reports that judge it say yes."""
    errors = defaultdict[str, list[bool]](list)
    for result in (result for report in reported for result in report.results):
        if result.score is not None:
            errors[result.type].append(result.score < 0)
    return {type_: 2 * sum(each) > len(each) for type_, each in errors.items()}


def error_rates(
    judgments: Iterable[Judgment], reported: Diagnoses, n_seeds: int, topics: Mapping[str, str]
) -> list[Row]:
    """Return one row a contestant; at most one judgment a dialogue.

    ``topics``: seed id -> its topic, if it has one; intervals are clustered by topic, else by seed.

    A row has ``model``; mean ``score``, one point off for each type; for each type of `ERRORS`
    the share of dialogues that have it; ``quoted``: share of all errors whose quote is in the
    utterance named; ``n`` readable ones, ``missing`` (of ``n_seeds``).
    """
    by_name = defaultdict[str, list[Judgment]](list)
    for judgment in judgments:
        by_name[judgment.contestants[0]].append(judgment)
    rows = []
    for name, judged in by_name.items():
        cluster = [topics.get(j.seed_id, j.seed_id) for j in judged]
        known = [_REPORT.numbers(j.verdict) or () for j in judged]
        totals = [(c, total) for c, each in zip(cluster, known, strict=True) for total in each]
        read = [list(reported[name, j.seed_id].values()) for j in judged]
        reports_read = list(zip(cluster, read, strict=True))
        errors = [
            (c, error.evidence == "found")
            for c, each in reports_read
            for report in each
            for result in report.results
            for error in result.errors
        ]
        findings = [(c, by_type(each)) for c, each in reports_read]
        clusters, values = zip(*totals, strict=True) if totals else ((), ())
        # An error of each type is one point off.
        score = proportion(values, clusters, (-float(len(ERRORS)), 0.0))
        row: Row = {"model": name, "score": score, "quoted": _share(errors)}
        for type_ in ERRORS:
            row[type_] = _share([(c, each[type_]) for c, each in findings if type_ in each])
        rows.append(row | {"n": len(totals), "missing": n_seeds - len(totals)})
    return rows


def _share(cases: Sequence[tuple[str, bool]]) -> Estimate:
    """Return the share of hits of (cluster, hit)."""
    return proportion([hit for _, hit in cases], [c for c, _ in cases])

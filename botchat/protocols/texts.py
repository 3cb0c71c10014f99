"""Any text: MATEval's report on it (Li et al. 2024, §3.2), five questions with their answers.

A judge answers one question for each of five error types: yes or no; after a yes every passage
concerned, word for word, and what is wrong with it; a score, from 0, one point off for each
passage. The verdict is the five scores (``"0 -1 0 0 -2"``), the canonical report the reason.
What a reply does not say is missing in the report, and a ``?`` in the verdict; No is a 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, zip_longest

from botchat import prompts
from botchat.interfaces import Case, Shown
from botchat.metrics import error_reports
from botchat.protocols import scores
from botchat.protocols.protocol import Protocol
from botchat.protocols.reports import ELISION, in_json, normal, within
from botchat.protocols.scores import Scale
from botchat.records import Judgment, Verdict
from botchat.workspace.panels import SUMMARIZER

ERROR_TYPES: Mapping[str, tuple[str, str]] = {
    "REP": ("Repetition", "重复问题"),
    "LINC": ("Logical Inconsistency", "逻辑问题"),
    "DCONT": ("Discontinuity", "连贯性问题"),
    "ILC": ("Inappropriate Lexical Choice", "用词不当"),
    "FER": ("Factual Error", "事实性错误"),
}
"""The paper's five, in the order of its tables: code -> name in the English and Chinese files."""

KINDS = tuple(english for english, _ in ERROR_TYPES.values())
"""The five error types, in the order of the verdict."""

MATEVAL = Protocol(
    "mateval",
    "MATEval",
    kind="score",
    shows="one",
    question="one text: which errors of five kinds, where, why, points off",
    prompts=("mateval",),
    scale=Scale(-99, 0, KINDS, points_off=True),  # the paper has no floor
)

TEXT = "text"
"""Name of the one contestant."""


_END = re.compile(
    r"\n|(?<=[.!?\u2026])\s+|(?<=[.!?][\"'\u201d\u2019)\]])\s+(?=[^\sa-z])"
    r"|(?<=[\u3002\uff01\uff1f])(?![\u3002\uff01\uff1f\"\u201d\u2019\u300d\u300f\uff09])"
    r"|(?<=[\u3002\uff01\uff1f][\"\u201d\u2019\u300d\u300f\uff09])"
)
_TITLE = re.compile(r"\b(?:mr|mrs|ms|dr|st|prof|sr|jr|vs)\.$", re.IGNORECASE)


def sentences(text: str) -> list[str]:
    """The sentences of a text, with their full stops; a title such as Dr. ends none."""
    found: list[str] = []
    for part in filter(None, map(str.strip, _END.split(text))):
        if found and _TITLE.search(found[-1]):
            found[-1] += f" {part}"
        else:
            found.append(part)
    return found


@dataclass(frozen=True)
class OwnText:
    """A text, and people's scores of it where they are known."""

    id: str
    text: str
    labels: Mapping[str, float] = field(default_factory=dict)
    """By plain name of the number; ``""``: of the whole text."""

    @property
    def sentences(self) -> list[str]:
        """What an error's place is counted in."""
        return sentences(self.text)

    @property
    def lines(self) -> tuple[str, ...]:
        """The text as a talk: its lines, for questions about conversations."""
        return tuple(line.strip() for line in self.text.splitlines() if line.strip())


@dataclass(frozen=True)
class Passage:
    """One error."""

    quote: str
    sentence: int | None
    """1-based, where the quote begins; ``None``: it is not in the text."""
    reason: str

    @property
    def place(self) -> str:
        """Where it is, in words."""
        if self.sentence is not None:
            return f"sentence {self.sentence}"
        return "not in the text" if self.quote else "no passage named"


@dataclass(frozen=True)
class KindFinding:
    """What a report says about one kind of error; a kind without one is missing from the report."""

    kind: str
    present: bool | None
    """``None``: it has a score and no answer."""
    score: float | None
    """``None``: it has an answer and no score."""
    passages: tuple[Passage, ...] = ()


@dataclass(frozen=True)
class TextReport:
    """One judge's, or one panel member's, findings in the order of `KINDS`."""

    findings: tuple[KindFinding, ...]
    prose: str = ""
    """The text report, where the panel wrote one."""

    @property
    def missing(self) -> list[str]:
        """Kinds that it says nothing, or no score, of."""
        told = {one.kind for one in self.findings if one.score is not None}
        return [kind for kind in KINDS if kind not in told]

    @property
    def text(self) -> str:
        """The text report: the panel's own, or the findings as one paragraph."""
        if self.prose:
            return self.prose
        sentences = []
        for one in self.findings:
            for passage in one.passages:
                why = f": {passage.reason.rstrip('. ')}" if passage.reason else ""
                quote = f' "{passage.quote}"' if passage.quote else ""
                sentences.append(f"{one.kind}{quote} ({passage.place}){why}.")
            if one.present and not one.passages:
                sentences.append(f"{one.kind}: yes, without a passage.")
        if free := [one.kind for one in self.findings if one.present is False]:
            sentences.append(f"Free of: {', '.join(free).lower()}.")
        if self.missing:
            sentences.append(f"No score of: {', '.join(self.missing).lower()}.")
        else:
            sentences.append(f"Score: {sum(one.score or 0 for one in self.findings):g}.")
        return " ".join(sentences)


def case(text: OwnText) -> Case:
    """The question about one text."""
    told = scores.harmless(text.text.replace("\0", ""), MATEVAL.asked_scale)
    shown = Shown(TEXT, text.lines)
    prompt = prompts.fill("mateval", text=_FRAME_LIKE.sub(r"\1 -", told))
    asked = MATEVAL.asked(text.id, (shown,), prompt)
    return replace(asked, read=partial(read, text=text), report="asked")


def read(reply: str, text: OwnText) -> tuple[Verdict | None, str]:
    """(five scores, the report in canonical form); ``?`` where a score is missing."""
    report = parse(reply, text)
    given = {one.kind: one.score for one in report.findings}
    verdict = scores.points(map(given.get, KINDS), MATEVAL.asked_scale)
    return verdict, as_text(report) if report.findings else " ".join(reply.split())


def parse(reply: str, text: OwnText) -> TextReport:
    """The report on a text in a reply, as `error_reports.read_kinds` finds it."""
    findings = []
    for told in error_reports.read_kinds(reply):
        if told.present is not None or told.score is not None:
            passages = tuple(_passages(told.said, text)) if told.present else ()
            findings.append(KindFinding(KINDS[told.kind], told.present, told.score, passages))
    return TextReport(tuple(findings))


def reports(judgment: Judgment, text: OwnText) -> dict[str, TextReport]:
    """Who reported on a text -> the report, read again from the judgment.

    Of a discussion it is the summariser's with its running text, of any other panel each member's
    last, of a single judge its own. Empty where nothing is readable.
    """
    spoken: dict[str, TextReport] = {}
    for remark, after in zip_longest(judgment.transcript, judgment.transcript[1:]):
        report = parse(remark.text, text)
        if report.findings:
            prose = after is not None and after.speaker == SUMMARIZER and after.verdict is None
            if prose and not parse(after.text, text).findings:
                report = replace(report, prose=" ".join(after.text.split()))
            spoken[remark.speaker] = report
    if SUMMARIZER in spoken:
        return {SUMMARIZER: spoken[SUMMARIZER]}
    if not spoken and (own := parse(judgment.reason, text)).findings:
        spoken[judgment.judge] = own
    return spoken


def as_text(report: TextReport) -> str:
    """Questions and answers, which `parse` reads back as the same report."""
    lines = []
    for one in report.findings:
        lines.append(f"Question: {one.kind}?")
        if one.present is not None:
            lines.append(f"Answer: {'Yes' if one.present else 'No'}")
        for passage in one.passages:
            why = f" - {passage.reason}" if passage.reason else ""
            lines.append(f"- {json.dumps(passage.quote, ensure_ascii=False)}{why}")
        if one.score is not None:
            lines.append(f"Score: {one.score:g}")
    return "\n".join(lines)


_MARKS = r"[ \t>*_#`\u2022-]*"
_LEAD_IN = rf"{_MARKS}(?:\(?\d{{1,2}}[.)]{_MARKS})?"
_FRAME_LIKE = re.compile(r"^([ \t>*_#-]*(?:question|answer|score))[ \t]*:", re.I | re.MULTILINE)
_QUOTE = re.compile(r"[\"\u201c\u201e\u00ab](?P<quote>.{1,2000}?)[\"\u201d\u00bb]")
_LONGEST_QUOTE = re.compile(_QUOTE.pattern.replace("}?", "}"))
_LEAD = re.compile(rf"^{_LEAD_IN}")


def _passages(said: Sequence[str], text: OwnText) -> Iterator[Passage]:
    """The passages of a Yes: the lines that quote, or else the words that follow it."""
    for at, line in enumerate(said):
        line = _LEAD.sub("", line.lstrip(".,;: \t")).strip()
        if not line:
            continue
        quote, reason = _quoted(line, text)
        if quote or at == 0:
            yield Passage(quote, _sentence(quote, text), reason)


def _quoted(said: str, text: OwnText) -> tuple[str, str]:
    """(words quoted, the rest) of a line about one error."""
    quote, end = in_json(said)
    if quote is not None and (not said[end:] or said.startswith(" - ", end)):
        return quote, _reason(said[end:])
    match = _QUOTE.search(said)
    if match is None:
        return "", _reason(said)
    # The text may have quotation marks itself.
    longer = _LONGEST_QUOTE.search(said)
    if longer and _sentence(longer["quote"], text) is not None:
        match = longer
    rest = f"{said[: match.start()]} {said[match.end() :]}"
    return match["quote"].strip(), _reason(rest)


def _reason(said: str) -> str:
    return " ".join(said.split()).strip(" *_-\u2013\u2014:;,")


def _sentence(quote: str, text: OwnText) -> int | None:
    """The sentence in which a quote begins; of several the last, which is the one too many."""
    wanted = normal(quote).strip("' ").rstrip(".,;")
    if not wanted or not within(wanted, text.text):
        return None
    # White space aside, since sentences may stand without any between them.
    each = [normal(sentence).replace(" ", "") for sentence in text.sentences]
    begins = ELISION.split(wanted)[0].replace(" ", "")
    at = "".join(each).rfind(begins)
    ends = accumulate(map(len, each))
    return next((n for n, end in enumerate(ends, 1) if at < end), None)

"""What one judge says of every text or pair of a file, and beside people's labels in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from botchat.boards.tables import Column, Table, table, with_interval
from botchat.interfaces import Row, settings_digest
from botchat.metrics.correlation import Rating, compare_scores
from botchat.metrics.intervals import entries, of_share
from botchat.protocols.answers import AnswerPair
from botchat.protocols.mateval import OwnText
from botchat.protocols.protocol import Protocol
from botchat.protocols.replies import plain_name
from botchat.protocols.reports import ERRORS, as_prose, as_text, parse, parse_text, reports
from botchat.records import Judgment

SCORE = "Score"
"""Heading of the whole: the sum of all numbers."""

_BEGINS = 60
"""Characters of a text in a table."""


def numbers(protocol: Protocol) -> tuple[str, ...]:
    """What a criterion gives a text numbers of; none where it gives a place."""
    if protocol.kind == "report":
        return tuple(ERRORS.values())
    return protocol.scale.names if protocol.scale else ()


def of_texts(
    protocol: Protocol, listed: Sequence[OwnText], judged: Mapping[str, Judgment]
) -> Table:
    """One row a text: its numbers, the whole last, and what the judge's reply lacks."""
    names, rows = _columns(protocol), []
    for text in listed:
        judgment = judged.get(text.id)
        given, lacking = _given(protocol, judgment, text)
        rows.append(
            {
                "id": text.id,
                "begins": _begins(text.text),
                **{_key(name): given.get(name) for name in names},
                "verdict": judgment.verdict if judgment else None,
                "missing": ", ".join(lacking),
                "reason": judgment.reason if judgment else "",
            }
        )
    verdict = Column("verdict", "Verdict", "name", detail=True)
    return table(
        f"{protocol.name}-cases",
        f"{protocol.title}: every text",
        [
            Column("id", "Text", "name"),
            Column("begins", "Begins", "name"),
            *(Column(_key(name), name, "number") for name in names),
            *([] if names else [replace(verdict, heading="Accused", detail=False)]),
            Column("missing", "Missing", "name"),
            *([verdict] if names else []),
            Column("reason", "Reason", "name", detail=True),
        ],
        rows,
        [_signed(judged.values())],
        "Missing: what the judge's reply does not say; it counts for nothing.",
    )


def of_pairs(protocol: Protocol, listed: Sequence[AnswerPair], judged: Sequence[Judgment]) -> Table:
    """One row a pair and order: what the judge said, who is better by it, and by people."""
    pairs, rows = {pair.id: pair for pair in listed}, []
    place = {id_: n for n, id_ in enumerate(pairs)}
    for one in sorted(judged, key=lambda j: (place[j.seed_id], j.contestants)):
        pair, (first, second) = pairs[one.seed_id], one.contestants
        better = {None: "missing", 1.0: first, 0.0: second, 0.5: "tie"}
        named = {"1": pair.contestants[0], "2": pair.contestants[1]}
        rows.append(
            {
                "id": pair.id,
                "begins": _begins(pair.question or pair.answers[0]),
                "first": first,
                "second": second,
                "verdict": one.verdict,
                "better": better[protocol.result(one.verdict)],
                "people": named.get(pair.label or "", pair.label),
                "reason": one.reason,
            }
        )
    return table(
        f"{protocol.name}-cases",
        f"{protocol.title}: every pair in both orders",
        [
            Column("id", "Pair", "name"),
            Column("begins", "Begins", "name"),
            Column("first", "Shown first", "name"),
            Column("second", "Shown second", "name"),
            Column("verdict", "Verdict", "name"),
            Column("better", "Better", "name"),
            Column("people", "People", "name"),
            Column("reason", "Reason", "name", detail=True),
        ],
        rows,
        [_signed(judged)],
        "Better: by this order; missing: the judge's reply was not readable.",
    )


def of_numbers(
    protocol: Protocol, listed: Sequence[OwnText], judged: Mapping[str, Judgment], judge: str
) -> Table | None:
    """One row a number: texts that lose points in it, and correlation with people's scores."""
    names = _columns(protocol)
    if not names:
        return None
    given = {text.id: _given(protocol, judged.get(text.id), text)[0] for text in listed}
    counts_off = protocol.kind == "report" or protocol.asked_scale.points_off
    rows = []
    for name in names:
        known = {id_: score for id_, by in given.items() if (score := by[name]) is not None}
        row: Row = {"number": name, "readable": len(known), "missing": len(listed) - len(known)}
        if known and counts_off:
            off = sum(score < 0 for score in known.values())
            row |= entries("with_errors", off / len(known), *of_share(off, len(known)))
        rated: list[Rating] = []
        for text in listed:
            if (label := _label(text.labels, name, names)) is not None:
                people = Rating(text.id, "", PEOPLE, label)
                rated += [people, Rating(text.id, "", judge, known.get(text.id))]
        found: Sequence[Mapping[str, Any]] = compare_scores(rated, PEOPLE).rows if rated else []
        rows.append({**row, **(found[0] if found else {})})
    return table(
        f"{protocol.name}-numbers",
        f"{protocol.title}: what the texts come to",
        [
            Column("number", "Number", "name"),
            *with_interval(Column("with_errors", "With errors", "rate")),
            Column("readable", "Texts", "count"),
            Column("missing", "Missing", "count"),
            *with_interval(Column("spearman", "Spearman", "decimal")),
            *with_interval(Column("kendall", "Kendall", "decimal")),
            Column("n", "With people's score", "count"),
        ],
        rows,
        [_signed(judged.values())],
        "Shares in percent of readable texts, in brackets 95 % intervals over texts. Spearman, "
        "Kendall: with people's scores of the file.",
    ).filled()


def lacking(protocol: Protocol, rows: Sequence[Row]) -> list[str]:
    """A sentence on what the judge's replies do not say, if anything; ``rows``: of all cases."""
    gaps = [
        row["missing"].split(", ") if "missing" in row else ["everything"]
        for row in rows
        if row.get("missing") or row.get("better") == "missing"
    ]
    if not gaps:
        return []
    listed = ", ".join(f"{name} of {n}" for name, n in Counter(chain(*gaps)).items())
    return [
        f"{protocol.title}: of {len(gaps)} of {len(rows)} the judge's reply lacks something "
        f"({listed}); it is missing, and counts for nothing."
    ]


PEOPLE = "human"
"""Who gave the labels of a file."""


def beside_people(protocol: Protocol, rows: Sequence[Row], judged: Sequence[Judgment]) -> Table:
    """Accuracy and kappa of both orders together; ``rows``: of `compare_judges`."""
    return table(
        f"{protocol.name}-people",
        f"{protocol.title}: beside people",
        [
            Column("judge", "Judge", "name"),
            *with_interval(Column("accuracy", "Accuracy", "rate")),
            *with_interval(Column("kappa", "Kappa", "decimal")),
            Column("n", "Pairs", "count"),
            Column("unreadable", "Unreadable", "count"),
        ],
        rows,
        [_signed(judged)],
        "With people's verdicts of the file, both orders together.",
    )


def written_reports(listed: Sequence[OwnText], judged: Mapping[str, Judgment]) -> str:
    """MATEval's report on every text as running text, and in questions and answers."""
    told = []
    for text in listed:
        if text.id not in judged:
            continue
        by_name = reports(judged[text.id], partial(parse_text, text=text.text))
        for name, report in by_name.items():
            missing = "".join(f"Question: {kind}?\nmissing\n" for kind in report.missing)
            parts = (f"{text.id} | {name}", as_prose(report), f"{as_text(report)}\n{missing}")
            told.append("\n\n".join(parts))
    return "\n".join(told)


def _columns(protocol: Protocol) -> tuple[str, ...]:
    """Headings of the numbers; of several their sum too."""
    names = numbers(protocol)
    return (*names, SCORE) if len(names) > 1 else names


def _given(
    protocol: Protocol, judgment: Judgment | None, text: OwnText
) -> tuple[dict[str, float | None], list[str]]:
    """Number -> score of a text, ``None`` where it is missing, and what the reply lacks."""
    names = numbers(protocol)
    found: dict[str, float | None] = dict.fromkeys((*names, SCORE))
    if judgment is None or judgment.verdict is None:
        return found, ["everything"]
    if protocol.kind in ("place", "choice"):
        return found, []
    told = protocol.scores(judgment.verdict) or ()
    unjudged: set[str] = set()
    if protocol.kind == "report":
        found[SCORE] = told[0]
        for report in reports(judgment, partial(parse, utterances=text.lines)).values():
            for result in report.results:
                found[ERRORS[result.type]] = result.score
                unjudged |= {ERRORS[result.type]} if result.present is None else set()
    else:
        found |= dict(zip(names, told, strict=True))
        known = [score for score in told if score is not None]
        found[SCORE] = sum(known) if len(known) == len(told) else None
    # That a judge says that it does not judge something is no gap in its reply.
    return found, [name for name in names if found[name] is None and name not in unjudged]


def _label(labels: Mapping[str, float], name: str, names: Sequence[str]) -> float | None:
    """People's score of a number; of the whole it may be the sum of all."""
    if name != SCORE:
        return labels.get(plain_name(name), labels.get("") if len(names) == 1 else None)
    known = [labels.get(plain_name(one)) for one in names if one != SCORE]
    whole = None if None in known else sum(one for one in known if one is not None)
    return labels.get("", whole)


def _signed(judgments: Iterable[Judgment]) -> str:
    """The signature of the judgments, with a digest of what they say."""
    listed = list(judgments)
    found = sorted({judgment.signature for judgment in listed}) or ["nothing was judged"]
    said = sorted((one.seed_id, one.contestants, one.verdict or "") for one in listed)
    return f"{'+'.join(found)}|data:{settings_digest(said)}"


def _begins(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _BEGINS else f"{flat[: _BEGINS - 1]}…"


def _key(name: str) -> str:
    return "_".join(name.lower().split())

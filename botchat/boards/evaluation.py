"""What one judge says about somebody's own texts or pairs by one criterion: tables and reports.

Items are JSON-ready rows, from which the tables, the Markdown, the JSON and the page are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from botchat.boards.tables import Column, Table, marked, table, with_interval
from botchat.interfaces import Row, settings_digest
from botchat.measures.annotations import Annotation
from botchat.measures.correlation import Rating
from botchat.measures.intervals import entries, mean, of_share
from botchat.protocols import reports, scores, texts
from botchat.protocols.answers import ANSWERS, AnswerPair
from botchat.protocols.items import plain
from botchat.protocols.kinds import Protocol
from botchat.protocols.preferences import calibrated
from botchat.protocols.texts import MATEVAL, Finding, Passage, Text
from botchat.records import Judgment

SCORE = "Score"
"""Heading of the whole: the sum of all numbers."""

_BEGINS = 60
"""Characters of a text in a table."""


@dataclass(frozen=True)
class Criterion:
    """One criterion's tables and items."""

    protocol: Protocol
    tables: tuple[Table, ...]
    """The items first, then what they come to, then beside people."""
    items: tuple[Row, ...]
    """One a text or pair, in the order of the file; see `text_row` and `pair_row`."""

    @property
    def title(self) -> str:
        """What headings call it: FairEval's question is ChatEval's about anybody's answers."""
        return _title(self.protocol)


def _title(protocol: Protocol) -> str:
    return "ChatEval" if protocol == ANSWERS else protocol.title


# ------------------------------------------------------------------------------- texts


def numbers(protocol: Protocol) -> tuple[str, ...]:
    """What a criterion gives a text numbers of; none where it gives a place."""
    if protocol.kind == "report":
        return tuple(reports.ERRORS.values())
    return protocol.scale.names if protocol.scale else ()


def given(protocol: Protocol, judgment: Judgment | None, text: Text) -> dict[str, float | None]:
    """Number -> score of a text, the whole last; ``None``: missing."""
    names = numbers(protocol)
    found: dict[str, float | None] = dict.fromkeys(names)
    if judgment is None:
        return found | {SCORE: None}
    if protocol.kind == "score" and judgment.verdict is not None:
        told = scores.told(judgment.verdict, len(names))
        found |= dict(zip(names, told, strict=True))
        known = [score for score in told if score is not None]
        return found | {SCORE: sum(known) if len(known) == len(names) else None}
    for report in reported(protocol, judgment, text):
        found |= {one["kind"]: one["score"] for one in report["findings"]}
    whole = protocol.numbers(judgment.verdict) if protocol.kind == "report" else None
    return found | {SCORE: None if whole is None else sum(whole)}


def reported(protocol: Protocol, judgment: Judgment, text: Text) -> list[Row]:
    """Every report on a text that a judgment holds: who, its findings, and the text report."""
    if protocol == MATEVAL:
        made = texts.reports(judgment, text)
        return [
            {"by": who, "findings": [*map(_finding, one.findings)], "missing": one.missing,
             "text_report": one.text}
            for who, one in made.items()
        ]  # fmt: skip
    if protocol.kind == "report":
        return [
            {"by": who, "findings": [_answered(one) for one in report.answers],
             "missing": [reports.ERRORS[type_] for type_ in reports.ERRORS
                         if type_ not in {one.type for one in report.answers}],
             "text_report": reports.as_prose(report)}
            for who, report in reports.reports(judgment, text.lines).items()
        ]  # fmt: skip
    return []


def _finding(one: Finding) -> Row:
    return {
        "kind": one.kind,
        "answer": {True: "Yes", False: "No", None: "missing"}[one.present],
        "score": one.score,
        "passages": [_passage(passage) for passage in one.passages],
    }


def _passage(one: Passage) -> Row:
    return {"place": texts.place(one), "quote": one.quote, "reason": one.reason}


def _answered(one: reports.TypeAnswer) -> Row:
    return {
        "kind": reports.ERRORS[one.type],
        "answer": {True: "Yes", False: "No", None: "Not judged"}[one.present],
        "score": one.score,
        "passages": [
            {
                "place": "no line named" if error.utterance is None else f"line {error.utterance}",
                "quote": error.quote,
                "reason": error.explanation,
            }
            for error in one.errors
        ],
    }


def text_row(protocol: Protocol, text: Text, judgment: Judgment | None) -> Row:
    """A text with its scores, reports and what the judge said, JSON-ready."""
    scored = given(protocol, judgment, text)
    made = reported(protocol, judgment, text) if judgment else []
    missing = [name for name in numbers(protocol) if scored[name] is None]
    return {
        "id": text.id,
        "text": text.text,
        "verdict": judgment.verdict if judgment else None,
        "scores": scored if protocol.kind != "place" else {},
        "missing": missing,
        "reports": made,
        "reason": judgment.reason if judgment and not made else "",
        "labels": dict(text.labels),
    }


def of_texts(
    protocol: Protocol,
    listed: Sequence[Text],
    judgments: Mapping[str, Judgment],
    beside: Sequence[Row],
) -> Criterion:
    """A criterion's tables of texts.

    ``judgments``: id -> judgment. ``beside``: of a number its correlation with people's scores.
    """
    rows = tuple(text_row(protocol, text, judgments.get(text.id)) for text in listed)
    names = [] if protocol.kind == "place" else [*numbers(protocol), SCORE]
    if len(names) == 2:  # one number is the whole
        names = names[:1]
    signature = signed(judgments.values(), [row["verdict"] for row in rows])
    columns = [Column(_key(name), name, "number") for name in names]
    if protocol.kind == "place":
        columns = [Column("verdict", "Accused", "name")]
    shown = table(
        f"{protocol.name}-texts",
        f"{_title(protocol)}: every text",
        [
            Column("id", "Text", "name"),
            Column("begins", "Begins", "name"),
            *columns,
            Column("missing", "Missing", "name"),
        ],
        [
            {
                "id": row["id"],
                "begins": _begins(row["text"]),
                **{_key(name): row["scores"].get(name) for name in names},
                "verdict": row["verdict"],
                "missing": ", ".join(lacking(protocol, row)),
            }
            for row in rows
        ],
        [signature],
        "Missing: what the judge's reply does not say; it counts for nothing.",
    ).filled()
    return Criterion(protocol, (shown, *_means(protocol, rows, signature, beside)), rows)


def lacking(protocol: Protocol, row: Row) -> list[str]:
    """What the judge's reply about a text or a pair does not say; ``everything``: it says nothing.

    It is no gap that the rules judge does not judge something.
    """
    if "better" in row:
        return [] if row["better"] is not None else ["an order"]
    if row["verdict"] is None and len(row["missing"]) == len(numbers(protocol)):
        return ["everything"]
    return [name for name in row["missing"] if not _not_judged(row, name)]


def _not_judged(row: Row, name: str) -> bool:
    """Whether the judge says that it does not judge this, which is no gap in its reply."""
    told = [one for report in row["reports"] for one in report["findings"] if one["kind"] == name]
    return bool(told) and all(one["answer"] == "Not judged" for one in told)


def _means(
    protocol: Protocol, rows: Sequence[Row], signature: str, beside: Sequence[Row]
) -> Iterable[Table]:
    """One row a number: its mean, how many texts lose points, and agreement with people."""
    if protocol.kind == "place":
        return
    names = [*numbers(protocol), SCORE] if len(numbers(protocol)) > 1 else numbers(protocol)
    records = []
    people = {row["number"]: row for row in beside}
    for name in names:
        known = [row["scores"][name] for row in rows if row["scores"][name] is not None]
        record: Row = {"number": name, "readable": len(known), "missing": len(rows) - len(known)}
        if known and protocol.scale is not None and name != SCORE:
            ends = mean(known, protocol.scale.lowest, protocol.scale.highest)
            record |= entries("mean", fmean(known), *ends)
        elif known:
            record["mean"] = fmean(known)
        off = sum(score < 0 for score in known)
        if known and (protocol.kind == "report" or (protocol.scale and protocol.scale.points_off)):
            record |= entries("with_errors", off / len(known), *of_share(off, len(known)))
        records.append(record | people.get(name, {}))
    yield table(
        f"{protocol.name}-numbers",
        f"{_title(protocol)}: what the texts come to",
        [
            Column("number", "Number", "name"),
            *with_interval(Column("mean", "Mean", "decimal")),
            *with_interval(Column("with_errors", "With errors", "rate")),
            Column("readable", "Texts", "count"),
            Column("missing", "Missing", "count"),
            *with_interval(Column("spearman", "Spearman", "decimal")),
            *with_interval(Column("kendall", "Kendall", "decimal")),
            Column("n", "With people's score", "count"),
        ],
        records,
        [signature],
        "Means and shares (in percent) of readable texts, in brackets 95 % intervals over texts."
        + (" Spearman, Kendall: with people's scores of the file." if people else ""),
    ).filled()


def ratings(protocol: Protocol, rows: Iterable[Row], judge: str, people: str) -> dict[str, Any]:
    """Number -> ratings of the judge and of people, for those with people's scores."""
    found: dict[str, list[Rating]] = {}
    single = len(numbers(protocol)) == 1
    for row in rows:
        for name, score in row["scores"].items():
            label = row["labels"].get("" if name == SCORE else plain(name))
            if label is None and name == SCORE and not single:
                label = _sum_of(row["labels"], numbers(protocol))
            if label is None and single and name != SCORE:
                label = row["labels"].get("")
            if label is not None and not (single and name == SCORE):
                each = found.setdefault(name, [])
                each += [Rating(row["id"], "", people, label), Rating(row["id"], "", judge, score)]
    return found


def _sum_of(labels: Mapping[str, float], names: Sequence[str]) -> float | None:
    known = [labels.get(plain(name)) for name in names]
    return None if None in known or not known else sum(one for one in known if one is not None)


# ------------------------------------------------------------------------------- pairs


def pair_row(
    protocol: Protocol, pair: AnswerPair, made: Sequence[Judgment], better: Annotation | None
) -> Row:
    """A pair with what the judge said in each order and in both together, JSON-ready."""
    orders: list[Row] = [
        {
            "first": judgment.contestants[0],
            "verdict": judgment.verdict,
            "scores": protocol.numbers(judgment.verdict) if protocol.kind == "score" else None,
            "better": _name(judgment.contestants, _winner(protocol, judgment)),
            "reason": judgment.reason,
        }
        for judgment in made
    ]
    whole = better.verdict if better is not None else None
    shown = (better.first, better.second) if better is not None else pair.contestants
    scores = [_mean_score(protocol, made, name) for name in pair.contestants]
    return {
        "id": pair.id,
        "question": pair.question,
        "answers": [
            {"name": name, "text": text, "score": score}
            for name, text, score in zip(pair.contestants, pair.answers, scores, strict=True)
        ],
        "orders": orders,
        "better": _name(shown, whole),
        "people": _name(pair.contestants, pair.label),
    }


def _winner(protocol: Protocol, judgment: Judgment) -> str | None:
    result = protocol.result(judgment.verdict)
    return None if result is None else {1.0: "1", 0.5: "tie", 0.0: "2"}[result]


def _name(names: Sequence[str], verdict: str | None) -> str | None:
    return {"1": names[0], "2": names[1], "tie": "tie"}.get(verdict or "")


def _mean_score(protocol: Protocol, made: Sequence[Judgment], name: str) -> float | None:
    """An answer's score, the mean over its numbers' sums in both orders."""
    if protocol.kind != "score":
        return None
    found = []
    for judgment in made:
        said = protocol.numbers(judgment.verdict)
        if said is not None:
            half = len(said) // 2
            found.append(sum(said[:half] if judgment.contestants[0] == name else said[half:]))
    return fmean(found) if found else None


def of_pairs(
    protocol: Protocol,
    pairs: Sequence[AnswerPair],
    judgments: Sequence[Judgment],
    beside: Sequence[Row],
) -> Criterion:
    """A criterion's tables of pairs; ``beside``: accuracy and kappa of both orders together."""
    made: dict[str, list[Judgment]] = {}
    for judgment in judgments:
        made.setdefault(judgment.seed_id, []).append(judgment)
    better = {one.item: one for one in calibrated(judgments, protocol)}
    rows = []
    for pair in pairs:
        in_order = sorted(made.get(pair.id, ()), key=lambda j: j.contestants != pair.contestants)
        rows.append(pair_row(protocol, pair, in_order, better.get(pair.id)))
    signature = signed(judgments, [row["better"] for row in rows])
    shown = table(
        f"{protocol.name}-pairs",
        f"{_title(protocol)}: every pair",
        [
            Column("id", "Pair", "name"),
            Column("begins", "Begins", "name"),
            Column("first", "First", "name"),
            Column("second", "Second", "name"),
            Column("score_1", "Score, first", "number"),
            Column("score_2", "Score, second", "number"),
            Column("better", "Better", "name"),
            Column("same", "In both orders", "name"),
            Column("people", "People", "name"),
        ],
        [
            {
                "id": row["id"],
                "begins": _begins(row["question"] or row["answers"][0]["text"]),
                "first": row["answers"][0]["name"],
                "second": row["answers"][1]["name"],
                "score_1": row["answers"][0]["score"],
                "score_2": row["answers"][1]["score"],
                "better": row["better"] or "missing",
                "same": _same(row),
                "people": row["people"],
            }
            for row in rows
        ],
        [signature],
        "Each pair is shown in both orders; better: by both together. Missing: one of them was not "
        "readable.",
    ).filled()
    return Criterion(protocol, (shown, *_tally(protocol, rows, signature, beside)), tuple(rows))


def _same(row: Row) -> str:
    said = [order["better"] for order in row["orders"]]
    if len(said) < 2 or None in said:
        return "missing"
    return "same" if said[0] == said[1] else "not the same"


def _tally(
    protocol: Protocol, rows: Sequence[Row], signature: str, beside: Sequence[Row]
) -> Iterable[Table]:
    names = dict.fromkeys(answer["name"] for row in rows for answer in row["answers"])
    records = []
    for name in names:
        mine = [r["better"] for r in rows if name in [answer["name"] for answer in r["answers"]]]
        readable = [better for better in mine if better is not None]
        wins, ties = readable.count(name), readable.count("tie")
        record: Row = {
            "model": name,
            "win": wins,
            "tie": ties,
            "lose": len(readable) - wins - ties,
            "missing": len(mine) - len(readable),
        }
        if readable:
            hits = wins + ties / 2
            ends = of_share(hits, len(readable))
            record |= entries("rate", hits / len(readable), *ends)
        records.append(record)
    yield table(
        f"{protocol.name}-answers",
        f"{_title(protocol)}: who gave the better answers",
        [
            Column("model", "Answers of", "name"),
            *with_interval(Column("rate", "Win + ½ tie", "rate")),
            *(Column(key, key.capitalize(), "count") for key in ("win", "tie", "lose", "missing")),
        ],
        records,
        [signature],
        "In percent of the pairs that are readable in both orders, in brackets 95 % intervals.",
        ["rate"],
    )
    if beside:
        yield table(
            f"{protocol.name}-people",
            f"{_title(protocol)}: beside people",
            [
                Column("judge", "Judge", "name"),
                *with_interval(Column("accuracy", "Accuracy", "rate")),
                *with_interval(Column("kappa", "Kappa", "decimal")),
                Column("n", "Pairs", "count"),
                Column("unreadable", "Unreadable", "count"),
            ],
            beside,
            [signature],
            "With people's verdicts of the file, both orders together.",
        )


# -------------------------------------------------------------------------- documents


def signed(judgments: Iterable[Judgment], said: Sequence[Any]) -> str:
    """The signature of the judgments, with a digest of what they say."""
    found = sorted({judgment.signature for judgment in judgments}) or ["nothing was judged"]
    return f"{'+'.join(found)}|data:{settings_digest(said)}"


def markdown(criterion: Criterion) -> str:
    """Every text's or pair's report, for people."""
    parts = [_text_section(row) if "text" in row else _pair_section(row) for row in criterion.items]
    return "\n".join([f"## {marked(criterion.title)}: reports", "", *parts])


def _text_section(row: Row) -> str:
    lines = [f"### {marked(row['id'])}", "", f"> {marked(row['text'])}", ""]
    for report in row["reports"]:
        lines += [f"By {marked(report['by'])}:", ""]
        for one in report["findings"]:
            score = "missing" if one["score"] is None else f"{one['score']:g}"
            score = "none" if one["answer"] == "Not judged" else score
            lines.append(f"- **{marked(one['kind'])}?** {one['answer']}. Score: {score}")
            lines += [
                f'  - {passage["place"]}: "{marked(passage["quote"])}" {marked(passage["reason"])}'
                for passage in one["passages"]
            ]
        lines += [f"- **{marked(kind)}?** missing" for kind in report["missing"]
                  if kind not in {one["kind"] for one in report["findings"]}]  # fmt: skip
        lines += ["", marked(report["text_report"]), ""]
    if not row["reports"]:
        said = row["verdict"] if row["verdict"] is not None else "missing"
        lines += [f"Verdict: {marked(said)}", "", marked(row["reason"]), ""]
    return "\n".join(lines)


def _pair_section(row: Row) -> str:
    lines = [f"### {marked(row['id'])}", ""]
    if row["question"]:
        lines += [f"> {marked(row['question'])}", ""]
    for answer in row["answers"]:
        lines.append(f"- **{marked(answer['name'])}**: {marked(answer['text'])}")
    lines += ["", f"Better: **{marked(row['better'] or 'missing')}**", ""]
    for order in row["orders"]:
        said = order["verdict"] if order["verdict"] is not None else "missing"
        lines.append(
            f"- {marked(order['first'])} shown first: {marked(said)}. {marked(order['reason'])}"
        )
    return "\n".join([*lines, ""])


def _begins(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _BEGINS else f"{flat[: _BEGINS - 1]}…"


def _key(name: str) -> str:
    return "_".join(name.lower().split())

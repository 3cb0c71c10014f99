"""What one judge says of every text or pair of a file, and how that agrees with people's labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain

from botchat.boards.tables import Column, Table, table
from botchat.interfaces import Row, settings_digest
from botchat.metrics.agreement import ItemScore, compare, compare_scores
from botchat.protocols.answers import AnswerPair, pair_labels
from botchat.protocols.mateval import OwnText
from botchat.protocols.protocol import Protocol
from botchat.protocols.rates import calibrated
from botchat.protocols.replies import plain_name
from botchat.protocols.reports import ERRORS, as_prose, as_text, parse, parse_text, reports
from botchat.records import Judgment

TOTAL = "Score"
"""Heading of the sum of all numbers."""

HUMAN = "human"
"""Who gave the labels of a file."""

_BEGINS = 60
"""Characters of a text in a table."""


def numbers(protocol: Protocol) -> tuple[str, ...]:
    """What a criterion gives a text numbers of; none where it gives a place."""
    if protocol.kind == "report":
        return tuple(ERRORS.values())
    return protocol.scale.names if protocol.scale else ()


def of_texts(
    protocol: Protocol, texts: Sequence[OwnText], judged: Sequence[Judgment]
) -> tuple[Table, list[Row]]:
    """One row a text: its numbers, the sum last, and what the judge's reply lacks.

    With it how each number agrees with people's scores of it, where the file has them.
    """
    names, rows, scores = _columns(protocol), [], dict[str, list[ItemScore]]()
    by_id = {judgment.seed_id: judgment for judgment in judged}
    for text in texts:
        judgment = by_id.get(text.id)
        by_name, gaps = _numbers_of(protocol, judgment, text)
        rows.append(
            {
                "id": text.id,
                "begins": _begins(text.text),
                **{_key(name): by_name.get(name) for name in names},
                "verdict": judgment.verdict if judgment else None,
                "missing": ", ".join(gaps),
                "reason": judgment.reason if judgment else "",
            }
        )
        for name in names:
            if (label := _label(text.labels, name, names)) is not None:
                both = (HUMAN, label), ("judge", by_name[name])
                scores.setdefault(name, []).extend(ItemScore(text.id, "", *one) for one in both)
    columns = [
        *(Column(_key(name), name, "number") for name in names),
        Column("verdict", "Verdict" if names else "Accused", "name", detail=bool(names)),
    ]
    agreed = [{"number": n, **compare_scores(of, HUMAN).judges[0]} for n, of in scores.items()]
    return _table(protocol, ("text", "Text"), columns, rows, judged), agreed


def of_pairs(
    protocol: Protocol, listed: Sequence[AnswerPair], judged: Sequence[Judgment]
) -> tuple[Table, list[Row]]:
    """One row a pair and order: what the judge said, who is better by it, and by people.

    With it how both orders together agree with people, where the file has their verdicts.
    """
    pairs, rows = {pair.id: pair for pair in listed}, []
    place = {id_: n for n, id_ in enumerate(pairs)}
    for judgment in sorted(judged, key=lambda j: (place[j.seed_id], j.contestants)):
        pair, (first, second) = pairs[judgment.seed_id], judgment.contestants
        better = {None: "missing", 1.0: first, 0.0: second, 0.5: "tie"}
        label = {"1": pair.contestants[0], "2": pair.contestants[1]}
        result = better[protocol.result(judgment.verdict)]
        rows.append(
            {
                "id": pair.id,
                "begins": _begins(pair.question or pair.answers[0]),
                "first": first,
                "second": second,
                "verdict": judgment.verdict,
                "better": result,
                "people": label.get(pair.label or "", pair.label),
                "missing": "everything" if result == "missing" else "",
                "reason": judgment.reason,
            }
        )
    headings = ("Shown first", "Shown second", "Verdict", "Better", "People")
    columns = [Column(h.lower().removeprefix("shown "), h, "name") for h in headings]
    labels = pair_labels(listed, HUMAN)
    agreed = compare([*labels, *calibrated(judged, protocol)], HUMAN) if labels and judged else None
    shown = _table(protocol, ("pair and order", "Pair"), columns, rows, judged)
    return shown, list(agreed.judges) if agreed else []


def _table(
    protocol: Protocol,
    item: tuple[str, str],
    columns: Sequence[Column],
    rows: Sequence[Row],
    judged: Sequence[Judgment],
) -> Table:
    """Rows with the item before and what is missing after its numbers, signed with all verdicts."""
    signatures = sorted({judgment.signature for judgment in judged}) or ["nothing was judged"]
    verdicts = sorted((j.seed_id, j.contestants, j.verdict or "") for j in judged)
    return table(
        f"{protocol.name}-cases",
        f"{protocol.title}: every {item[0]}",
        [
            Column("id", item[1], "name"),
            Column("begins", "Begins", "name"),
            *columns,
            Column("missing", "Missing", "name"),
            Column("reason", "Reason", "name", detail=True),
        ],
        rows,
        [f"{'+'.join(signatures)}|data:{settings_digest(verdicts)}"],
        "Missing: what the judge's reply does not say; it counts for nothing.",
    )


def sentences(protocol: Protocol, rows: Sequence[Row], agreed: Sequence[Row]) -> list[str]:
    """What the judge's replies lack, and how far they agree with people's labels."""
    gaps = [row["missing"].split(", ") for row in rows if row["missing"]]
    counts = ", ".join(f"{name} of {n}" for name, n in Counter(chain(*gaps)).items())
    found = [
        f"{protocol.title}: of {len(gaps)} of {len(rows)} the judge's reply lacks something "
        f"({counts}); it is missing, and counts for nothing."
    ]
    for row in agreed:
        names = ("accuracy", "kappa") if "accuracy" in row else ("spearman", "kendall")
        values = [f"{name} {row[name]:.2f}" for name in names if row.get(name) is not None]
        about = ", ".join([protocol.title, *([row["number"]] if "number" in row else [])])
        if values:
            found.append(f"{about}: {', '.join(values)} with human labels of {row['n']}.")
    return found if gaps else found[1:]


def written_reports(texts: Sequence[OwnText], judged: Sequence[Judgment]) -> str:
    """MATEval's report on every text as running text, and in questions and answers."""
    by_id, parts = {judgment.seed_id: judgment for judgment in judged}, []
    for text in (text for text in texts if text.id in by_id):
        by_name = reports(by_id[text.id], partial(parse_text, text=text.text))
        for name, report in by_name.items():
            missing = "".join(f"Question: {kind}?\nmissing\n" for kind in report.missing)
            head = f"{text.id} | {name}"
            parts.append(f"{head}\n\n{as_prose(report)}\n\n{as_text(report)}\n{missing}")
    return "\n".join(parts)


def _columns(protocol: Protocol) -> tuple[str, ...]:
    """Headings of the numbers; of several their sum too."""
    names = numbers(protocol)
    return (*names, TOTAL) if len(names) > 1 else names


def _numbers_of(
    protocol: Protocol, judgment: Judgment | None, text: OwnText
) -> tuple[dict[str, float | None], list[str]]:
    """Number -> score of a text, ``None`` where it is missing, and what the reply lacks."""
    names = numbers(protocol)
    found: dict[str, float | None] = dict.fromkeys((*names, TOTAL))
    if judgment is None or judgment.verdict is None:
        return found, ["everything"]
    if protocol.kind in ("place", "choice"):
        return found, []
    scores = protocol.scores(judgment.verdict) or ()
    unjudged: set[str] = set()
    if protocol.kind == "report":
        found[TOTAL] = scores[0]
        for report in reports(judgment, partial(parse, utterances=text.lines)).values():
            for result in report.results:
                found[ERRORS[result.type]] = result.score
                unjudged |= {ERRORS[result.type]} if result.present is None else set()
    else:
        found |= dict(zip(names, scores, strict=True))
        found[TOTAL] = None if None in scores else sum(s for s in scores if s is not None)
    # That a judge says that it does not judge something is no gap in its reply.
    return found, [name for name in names if found[name] is None and name not in unjudged]


def _label(labels: Mapping[str, float], name: str, names: Sequence[str]) -> float | None:
    """People's score of a number; of the whole it may be the sum of all."""
    if name != TOTAL:
        return labels.get(plain_name(name), labels.get("") if len(names) == 1 else None)
    known = [labels.get(plain_name(one)) for one in names if one != TOTAL]
    whole = None if None in known else sum(one for one in known if one is not None)
    return labels.get("", whole)


def _begins(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _BEGINS else f"{flat[: _BEGINS - 1]}…"


def _key(name: str) -> str:
    return "_".join(name.lower().split())

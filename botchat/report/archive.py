"""Every dialogue and verdict of a set, in compressed scripts that the page loads when asked.

A page opened from disk may not read files, but it may run scripts beside it: each chunk is a script
that hands over a base64 text of zlib-compressed JSON. ``index`` holds what lists and filters need,
with every protocol; each other chunk holds a few seeds whole: dialogues, verdicts.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from botchat.metrics.statistics import clustered_proportions
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.protocol import Protocol
from botchat.protocols.reports import ERRORS, Report, parse, reports
from botchat.records import (
    HUMAN,
    N_SEED,
    UNKNOWN_INDEX,
    Dialogue,
    Dialogues,
    Judgment,
    Seed,
    Verdict,
    natural_sort_key,
)

FOLDER = "chunks"
"""Beside the page."""

SEEDS = 20
"""Seeds in a chunk: of 14 models about 250 kB to load for one dialogue."""

OPENING = 90
"""Characters of a dialogue's first utterance that stand in the list."""

ByJudge = Mapping[str, Mapping[str, Sequence[Judgment]]]
"""Judge -> protocol -> judgments, at most one for each seed and contestants in the order shown."""

_CHOICE = ("1", "2", "both", "neither")

_RESULTS = {None: "?", 1.0: "w", 0.5: "t", 0.0: "l"}
"""Results for the contestant shown first, as lists have them; ``-`` is not judged."""

_VALUES = {code: value for value, code in _RESULTS.items() if value is not None}


@dataclass(frozen=True)
class Archive:
    """The chunks, and what the page must know before it loads one."""

    files: Mapping[str, str]
    """Path relative to the page -> script."""
    about: Mapping[str, Any]
    """JSON-ready; small."""


def build(
    seeds: Sequence[Seed],
    dialogues: Dialogues,
    judged: ByJudge,
    catalogue: Catalogue | None = None,
) -> Archive:
    """Put everything into chunks; the same records give the same bytes.

    ``dialogues``: of ``human`` too. ``judged``: those on other seeds or contestants, and of
    protocols that are not in the catalogue (default: the built-in ones), are passed over.

    Raises:
        DataError: a verdict that its protocol does not offer.
    """
    ordered = sorted(seeds, key=lambda seed: natural_sort_key(seed.id))
    contestants = sorted(dialogues)
    catalogue = catalogue or Catalogue()
    # Dialogues can be read where nobody has judged them alone: the first view is always there.
    first = [p.name for p in catalogue if p.shows == "one" and p.leads]
    there = {name for by_protocol in judged.values() for name in by_protocol}
    protocols = list(catalogue.among({*first, *there}).values())
    entries: list[dict[str, list[Any]]] = [
        {
            "dialogues": [_dialogue(dialogues[name].get(seed.id)) for name in contestants],
            "verdicts": [],
            "reports": [],
        }
        for seed in ordered
    ]
    places = {seed.id: i for i, seed in enumerate(ordered)}
    single: list[dict[str, Any]] = []
    pairs: list[dict[str, Any]] = []
    for who, by_protocol in enumerate(judged.values()):
        codes: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        for number, protocol in enumerate(protocols):
            found = _file(entries, places, contestants, dialogues, who, number, protocol,
                          by_protocol.get(protocol.name, ()))  # fmt: skip
            if found:
                codes[protocol.shows != "one"][protocol.name] = found
        single.append(codes[0])
        pairs.append(codes[1])
    chunks: dict[str, Any] = {
        f"seeds-{at // SEEDS}": entries[at : at + SEEDS] for at in range(0, len(entries), SEEDS)
    }
    chunks["index"] = {
        "seeds": [[seed.id, _opening(_first(seed, dialogues))] for seed in ordered],
        "contestants": contestants,
        "human": contestants.index(HUMAN) if HUMAN in contestants else -1,
        "judges": list(judged),
        "protocols": [protocol.name for protocol in protocols],
        "about": [
            about_protocol(protocol)
            for protocol in protocols
        ],
        "single": single,
        "pairs": pairs,
        "scores": [{name: scores(by) for name, by in found.items()} for found in pairs],
        "error_types": ERRORS,
        "there": [
            [int(one is not None) for one in made]
            for made in zip(*(entry["dialogues"] for entry in entries), strict=True)
        ] or [[] for _ in contestants],
        "lengths": [len(seed.utterances) for seed in ordered],
        "per_chunk": SEEDS,
    }  # fmt: skip
    alone = [p.name for p in protocols if p.shows == "one" and p.kind != "report"]
    opens = [*(name for name in alone if any(name in by for by in single)), *alone]
    return Archive(
        {f"{FOLDER}/{name}.js": script(name, content) for name, content in chunks.items()},
        {
            "folder": FOLDER,
            "dialogues": sum(map(len, dialogues.values())),
            "verdicts": sum(len(entry["verdicts"]) for entry in entries),
            "view": next(iter([*opens, *(protocol.name for protocol in protocols)]), ""),
            "protocols": {protocol.name: protocol.shows for protocol in protocols},
        },
    )


def _file(
    entries: Sequence[dict[str, list[Any]]],
    places: Mapping[str, int],
    contestants: Sequence[str],
    dialogues: Dialogues,
    who: int,
    number: int,
    protocol: Protocol,
    judgments: Sequence[Judgment],
) -> dict[str, Any]:
    """Put one judge's judgments of one protocol at their seeds; their codes by contestants.

    Of one dialogue a list of codes, of two a text of `_RESULTS`, one a seed; see `_code`.
    """
    found: dict[tuple[int, ...], list[Any]] = {}
    alone = protocol.shows == "one"
    is_place = protocol.kind == "place"
    absent = "-" if not alone else -2 if is_place else None
    numbers = {name: i for i, name in enumerate(contestants)}
    code = cache(partial(_code, protocol))
    shown_by = cache(lambda names: tuple([numbers.get(name, -1) for name in names]))
    in_dialogue = protocol.kind == "report"
    for judgment in sorted(judgments, key=attrgetter("contestants")):
        at, shown = places.get(judgment.seed_id), shown_by(judgment.contestants)
        if at is None or -1 in shown or len(shown) != (1 if alone else 2):
            continue
        told: list[Any] = []
        by_seed = dialogues[judgment.contestants[0]] if in_dialogue else {}
        dialogue = by_seed.get(judgment.seed_id)
        if protocol.kind == "report" and dialogue is not None:
            given = reports(judgment, partial(parse, utterances=dialogue.utterances))
            told = [[by, _errors(report)] for by, report in given.items()]
            entries[at]["reports"].append([who, number, shown[0], judgment.verdict, told])
        # The reason of a report is its errors once more.
        reason = "" if told else judgment.reason
        entries[at]["verdicts"].append(_row(who, number, judgment, shown, reason))
        if shown not in found:
            found[shown] = [absent] * len(places)
        found[shown][at] = code(judgment.verdict)
    return {
        ",".join(map(str, shown)): codes if alone else "".join(codes)
        for shown, codes in found.items()
    }


def scores(pairs: Mapping[str, str]) -> dict[str, list[float]]:
    """Who is ahead in each pair of contestants: win 1, tie 0.5, loss 0, by seed.

    ``pairs``: as `_file` has them of one protocol. Found: the pair, its smaller number first ->
    score of that one with the ends of its 95 % interval (`by_seed`), its wins, ties and losses, and
    the seeds with a result.
    """
    values = np.full(128, np.nan)
    for code, worth in _VALUES.items():
        values[ord(code)] = worth
    names: dict[tuple[int, ...], int] = {}
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for key, codes in pairs.items():
        shown = tuple(map(int, key.split(",")))
        found = values[np.frombuffer(codes.encode("ascii"), np.uint8)]
        (at,) = np.nonzero(np.isfinite(found))
        if len(at):
            name = names.setdefault((min(shown), max(shown)), len(names))
            result = found[at] if shown[0] < shown[1] else 1 - found[at]
            parts.append((np.full(len(at), name), at, result))
    if not names:
        return {}
    row, seed, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    shares = clustered_proportions(row, seed, value, len(names))
    counts = [np.bincount(row[value == one], minlength=len(names)) for one in (1.0, 0.5, 0.0)]
    seeds = np.bincount(np.unique(np.stack([row, seed]), axis=1)[0], minlength=len(names))
    told = (shares.value, shares.low, shares.high)
    return {
        f"{a},{b}": [*(round(float(x[i]), 4) for x in told), *(int(n[i]) for n in (*counts, seeds))]
        for (a, b), i in names.items()
    }


def _code(protocol: Protocol, verdict: Verdict | None) -> Any:
    """A verdict as lists have it; see `_RESULTS` for pairs.

    Of a place its index, 0 for ``"No"``, -1 for an unreadable one, -3 for `UNKNOWN_INDEX`; of the
    others the numbers, an empty list for an unreadable one. What is not judged is -2 and ``None``.
    """
    if protocol.shows != "one":
        return _RESULTS[protocol.result(verdict)]
    if protocol.kind == "place":
        known = {None: -1, "No": 0, UNKNOWN_INDEX: -3}
        return known[verdict] if verdict is None or verdict in known else int(verdict)
    numbers = protocol.scores(verdict) or ()
    return [int(one) if one is not None and one.is_integer() else one for one in numbers]


def _row(who: int, number: int, judgment: Judgment, shown: Sequence[int], reason: str) -> list[Any]:
    """Judge, protocol, contestants, verdict, reason, utterances shown, digest of the case.

    Then how the call ended and what a panel said, where there is something to tell.
    """
    told = judgment.verdict, reason, judgment.shown, judgment.case
    row: list[Any] = [who, number, shown, *told]
    if judgment.transcript or judgment.outcome != "ok":
        row.append(judgment.outcome)
        row.append([[t.speaker, t.text, t.verdict, t.outcome] for t in judgment.transcript])
    return row


def about_protocol(protocol: Protocol) -> dict[str, Any]:
    """What the page must know of a protocol."""
    told: dict[str, Any] = {
        "name": protocol.name,
        "base": protocol.base,
        "title": _title(protocol),
        "kind": protocol.kind,
        "shows": protocol.shows,
        "n": protocol.n,
        "about_ai": protocol.about_ai,
        "question": protocol.question,
        "prompt": protocol.template,
    }
    if protocol.kind == "choice":
        answers = zip(_CHOICE, protocol.labels, strict=False)
        told["answers"] = [[said, label, _code(protocol, said)] for said, label in answers]
    if protocol.scale is not None:
        told["numbers"] = protocol.scale.names
        told["fields"] = protocol.asked_scale.names
        told["scale"] = [protocol.scale.lowest, protocol.scale.highest]
    return told


def _title(protocol: Protocol) -> str:
    """Of the view that shows its verdicts."""
    title = protocol.short or protocol.title
    if protocol.shows == "pair":
        return f"Two models ({title}{f', N = {protocol.n}' if protocol.n else ''})"
    if protocol.shows == "human":
        return f"Beside the human one ({title})"
    return "One dialogue" if protocol.leads else title


def _errors(report: Report) -> list[list[Any]]:
    """Type, utterance or none, quote, whether it was found, explanation."""
    return [
        [result.type, error.place, error.quote, error.evidence, error.explanation]
        for result in report.results
        for error in result.errors
    ]


def _dialogue(
    dialogue: Dialogue | None,
) -> dict[str, Any] | None:
    """One dialogue as the page reads it; what is as usual is left out."""
    if dialogue is None:
        return None
    generated = dialogue.contestant != HUMAN
    told: dict[str, Any] = {
        "said": dialogue.utterances,
    }
    if generated and dialogue.n_seed != N_SEED:
        told["begun"] = dialogue.n_seed
    facts = list(enumerate(dialogue.facts, dialogue.n_seed + 1))
    if dropped := {index: fact.dropped for index, fact in facts if fact.dropped}:
        told["dropped"] = dropped
    if odd := {index: fact.outcome for index, fact in facts if fact.outcome != "ok"}:
        told["outcomes"] = odd
    if not dialogue.complete:
        told["stopped"] = f"{dialogue.status}. {dialogue.detail}".strip()
    return told


def _first(seed: Seed, dialogues: Dialogues) -> str:
    """The first words of a seed, or of what was made where nobody began."""
    made = (by[seed.id].utterances for by in dialogues.values() if seed.id in by)
    return next((said[0] for said in (seed.utterances, *made) if said), "")


def _opening(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= OPENING else f"{line[: OPENING - 1]}…"


def script(name: str, content: Any) -> str:
    """A chunk: hands its content over under its name."""
    packed = base64.b64encode(zlib.compress(msgspec.json.encode(content), 5)).decode("ascii")
    return f'botchat.take("{name}","{packed}")\n'

"""Every dialogue and verdict of a set, in compressed scripts that the page loads when asked.

A page opened from disk may not read files, but it may run scripts that lie beside it: so each
chunk is a script that hands over one base64 text of zlib-compressed JSON. ``index`` holds what
lists and filters need; every other chunk holds a few seeds whole: dialogues, flags, verdicts.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from botchat.measures.flags import Thresholds, fit_thresholds, flags
from botchat.protocols.diagnosis import ERRORS, Report, reports
from botchat.protocols.diagnosis import PROTOCOL as DIAGNOSIS
from botchat.protocols.gteval import PROTOCOL as GTEVAL
from botchat.protocols.unieval import PROTOCOL as UNIEVAL
from botchat.records import HUMAN, N_SEED, Dialogue, Dialogues, Judgment, Seed, natural_key

FOLDER = "chunks"
"""Beside the page."""

SEEDS = 16
"""Seeds in a chunk: of 14 models about 200 kB to load for one dialogue."""

OPENING = 90
"""Characters of a dialogue's first utterance that stand in the list."""

Judged = Mapping[str, Mapping[str, Sequence[Judgment]]]
"""Judge -> protocol -> judgments, at most one for each seed and contestants in the order shown."""

_SHOWN = re.compile(rf"{UNIEVAL}|{GTEVAL}|arena-n[0-9]+")

_CODES = {None: "?", "both": "b", "neither": "n", "1": "1", "2": "2"}


@dataclass(frozen=True)
class Archive:
    """The chunks, and what the page must know before it loads one."""

    files: Mapping[str, str]
    """Path relative to the page -> script."""
    about: Mapping[str, Any]
    """JSON-ready; small."""


def build(seeds: Sequence[Seed], dialogues: Dialogues, judged: Judged) -> Archive:
    """Put everything into chunks; the same records give the same bytes.

    Args:
        seeds: the set.
        dialogues: contestant -> seed id -> dialogue, ``human`` among them.
        judged: what may be shown; judgments on other seeds or contestants, and of protocols that
            the page does not show, are passed over.
    """
    ordered = sorted(seeds, key=lambda seed: natural_key(seed.id))
    contestants = sorted(dialogues)
    filed = _Filed(ordered, contestants, judged)
    diagnosed = _Diagnosed(ordered, contestants, dialogues, judged)
    limits = fit_thresholds(seed.utterances for seed in ordered)
    chunks: dict[str, Any] = {}
    marks: dict[str, list[int]] = {name: [] for name in contestants}
    for first in range(0, len(ordered), SEEDS):
        chunk = []
        for seed in ordered[first : first + SEEDS]:
            told = [_dialogue(dialogues[name].get(seed.id), limits) for name in contestants]
            for name, one in zip(contestants, told, strict=True):
                marks[name].append(-1 if one is None else len(one["flags"]))
            chunk.append(
                {
                    "dialogues": told,
                    "verdicts": filed.verdicts[seed.id],
                    "diagnoses": diagnosed.by_seed[seed.id],
                }
            )
        chunks[f"seeds-{first // SEEDS}"] = chunk
    chunks["index"] = {
        "seeds": [[seed.id, _opening(seed.utterances[0])] for seed in ordered],
        "contestants": contestants,
        "human": contestants.index(HUMAN) if HUMAN in contestants else -1,
        "judges": list(judged),
        "protocols": filed.protocols,
        "signatures": filed.signatures,
        "unieval": filed.unieval,
        "pairs": filed.pairs,
        "diagnosed": diagnosed.errors,
        "error_types": ERRORS,
        "flags": [marks[name] for name in contestants],
        "limits": list(asdict(limits).items()),
        "per_chunk": SEEDS,
    }
    about = {"folder": FOLDER, "dialogues": sum(map(len, dialogues.values()))}
    return Archive(
        {f"{FOLDER}/{name}.js": _script(name, content) for name, content in chunks.items()},
        {**about, "verdicts": filed.count},
    )


class _Filed:
    """Judgments by seed, and as short codes for lists."""

    def __init__(self, seeds: Sequence[Seed], contestants: Sequence[str], judged: Judged) -> None:
        place = {seed.id: i for i, seed in enumerate(seeds)}
        number = {name: i for i, name in enumerate(contestants)}
        shown_of = {
            judge: {name: made for name, made in by.items() if _SHOWN.fullmatch(name)}
            for judge, by in judged.items()
        }
        self.protocols = sorted(
            {protocol for by in shown_of.values() for protocol in by}, key=_protocol_order
        )
        self.verdicts: dict[str, list[list[Any]]] = {seed.id: [] for seed in seeds}
        self.signatures: dict[str, str] = {}
        self.unieval: list[dict[int, list[int]]] = []
        """Of each judge: contestant -> by seed: 0 "No", index, -1 unreadable, -2 not judged."""
        self.pairs: list[dict[str, dict[str, str]]] = []
        """Of each judge: protocol -> contestants in the order shown -> one code a seed."""
        self.count = 0
        for who, by_protocol in enumerate(shown_of.values()):
            single: dict[int, list[int]] = {}
            pairs: dict[str, dict[str, list[str]]] = {}
            for protocol, made in sorted(by_protocol.items()):
                for judgment in sorted(made, key=lambda one: one.contestants):
                    at = place.get(judgment.seed_id)
                    shown = [number.get(name) for name in judgment.contestants]
                    if at is None or None in shown:
                        continue
                    self.count += 1
                    self.signatures.setdefault(protocol, judgment.signature)
                    self.verdicts[judgment.seed_id].append(self._row(who, judgment, shown))
                    if len(shown) == 1 and shown[0] is not None:
                        row = single.setdefault(shown[0], [-2] * len(seeds))
                        row[at] = _index(judgment.verdict)
                    else:
                        key = ",".join(map(str, shown))
                        codes = pairs.setdefault(protocol, {}).setdefault(key, ["-"] * len(seeds))
                        codes[at] = _CODES.get(judgment.verdict, "?")
            self.unieval.append(single)
            self.pairs.append(
                {
                    protocol: {key: "".join(codes) for key, codes in by.items()}
                    for protocol, by in pairs.items()
                }
            )

    def _row(self, who: int, judgment: Judgment, shown: Sequence[int | None]) -> list[Any]:
        row: list[Any] = [
            who,
            self.protocols.index(judgment.protocol),
            shown,
            judgment.verdict,
            judgment.reason,
            judgment.shown,
            judgment.case,
        ]
        if judgment.transcript or judgment.outcome != "ok":
            row.append(judgment.outcome)
            row.append([[t.speaker, t.text, t.verdict, t.outcome] for t in judgment.transcript])
        return row


class _Diagnosed:
    """What judges found wrong, where, by seed; and how many errors for lists."""

    def __init__(
        self,
        seeds: Sequence[Seed],
        contestants: Sequence[str],
        dialogues: Dialogues,
        judged: Judged,
    ) -> None:
        place = {seed.id: i for i, seed in enumerate(seeds)}
        self.by_seed: dict[str, list[list[Any]]] = {seed.id: [] for seed in seeds}
        """Judge, contestant, score, reports: who reports, and its errors."""
        self.errors: list[dict[int, list[int]]] = []
        """Of each judge: contestant -> by seed: points lost, -1 unreadable or not diagnosed."""
        for who, by_protocol in enumerate(judged.values()):
            lost: dict[int, list[int]] = {}
            for judgment in sorted(by_protocol.get(DIAGNOSIS, ()), key=lambda one: one.contestants):
                (name,) = judgment.contestants
                dialogue = dialogues.get(name, {}).get(judgment.seed_id)
                if dialogue is None or judgment.seed_id not in place:
                    continue
                at, number = place[judgment.seed_id], contestants.index(name)
                told = reports(judgment, dialogue.utterances)
                self.by_seed[judgment.seed_id].append(
                    [who, number, judgment.verdict, [[by, _errors(r)] for by, r in told.items()]]
                )
                if judgment.verdict is not None:
                    # A panel's mean score has decimals; the list has room for whole points.
                    points = -round(float(judgment.verdict))
                    lost.setdefault(number, [-1] * len(seeds))[at] = points
            self.errors.append(lost)


def _errors(report: Report) -> list[list[Any]]:
    """Type, utterance or none, quote, whether it was found, explanation."""
    return [
        [answer.type, error.utterance, error.quote, error.evidence, error.explanation]
        for answer in report.answers
        for error in answer.errors
    ]


def _dialogue(dialogue: Dialogue | None, limits: Thresholds) -> dict[str, Any] | None:
    """One dialogue as the page reads it; what is as usual is left out."""
    if dialogue is None:
        return None
    generated = dialogue.contestant != HUMAN
    found = flags(dialogue.utterances, limits) if generated else []
    told: dict[str, Any] = {
        "said": dialogue.utterances,
        "flags": [[flag.index, flag.criterion, round(flag.value, 2)] for flag in found],
    }
    facts = list(enumerate(dialogue.facts, N_SEED + 1))
    if dropped := {index: fact.dropped for index, fact in facts if fact.dropped}:
        told["dropped"] = dropped
    if odd := {index: fact.outcome for index, fact in facts if fact.outcome != "ok"}:
        told["outcomes"] = odd
    if not dialogue.complete:
        told["stopped"] = f"{dialogue.status}. {dialogue.detail}".strip()
    return told


def _index(verdict: str | None) -> int:
    if verdict is None:
        return -1
    return 0 if verdict == "No" else int(verdict)


def _opening(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= OPENING else f"{line[: OPENING - 1]}…"


def _protocol_order(protocol: str) -> tuple[object, ...]:
    return (protocol != UNIEVAL, natural_key(protocol))


def _script(name: str, content: Any) -> str:
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")
    return f'botchat.take("{name}","{packed}")\n'

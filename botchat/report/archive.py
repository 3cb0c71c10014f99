"""Every dialogue and verdict of a set, in compressed scripts that the page loads when asked.

A page opened from disk may not read files, but may run scripts next to it: each chunk is a script
that hands over a base64 text of zlib-compressed JSON. ``index`` holds what lists and filters need,
with every protocol; ``seeds-N`` a few seeds whole, dialogues and verdicts; ``calls-N`` the prompts
and replies of their verdicts.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Any, NamedTuple, assert_never

import msgspec
import numpy as np

from botchat.metrics.statistics import clustered_proportions
from botchat.protocols import kinds
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.protocol import Protocol
from botchat.protocols.reports import ERRORS, Report, parse, reports
from botchat.records import (
    HUMAN,
    N_SEED,
    Dialogue,
    Dialogues,
    Judgment,
    Seed,
    Verdict,
    natural_sort_key,
)

FOLDER = "chunks"
SEEDS = 20  # in a chunk: of 14 models about 250 kB to load for one dialogue
OPENING = 90  # characters of a dialogue's first utterance that stand in the list

ByJudge = Mapping[str, Mapping[str, Sequence[Judgment]]]
"""Judge -> protocol -> judgments, at most one for each seed and contestants in the order shown."""

_CHOICE = ("1", "2", "both", "neither")

_RESULTS = kinds.RESULT_CODES
_VALUES = {code: value for value, code in _RESULTS.items() if value is not None}


class Archive(NamedTuple):
    """The chunks, and what the page must know before it loads one."""

    files: Mapping[str, str]  # path relative to the page -> script
    about: Mapping[str, Any]  # JSON-ready; small


def build(
    seeds: Sequence[Seed],
    dialogues: Dialogues,
    judged: ByJudge,
    catalogue: Catalogue | None = None,
    calls: Callable[[Sequence[str]], Mapping[str, Any]] | None = None,
) -> Archive:
    """Put everything into chunks; the same records give the same bytes.

    ``dialogues``: of ``human`` too. ``judged``: verdicts on other seeds or contestants, and of
    protocols that are not in the catalogue (default: the built-in ones), are passed over.
    ``calls``: of some keys the messages (role and content), the reply's text, tokens and USD.

    Raises:
        DataError: a verdict that its protocol does not offer.
    """
    catalogue = catalogue or Catalogue()
    # Dialogues can be read where no judge has judged them alone: the first view is always on.
    first = {protocol.name for protocol in catalogue if protocol.shows == "one" and protocol.leads}
    names = {name for by_protocol in judged.values() for name in by_protocol}
    protocols = list(catalogue.among(first | names).values())
    packed = _Packed(sorted(seeds, key=lambda seed: natural_sort_key(seed.id)), dialogues)
    single: list[dict[str, Any]] = [{} for _ in judged]
    pairs: list[dict[str, Any]] = [{} for _ in judged]
    for who, by_protocol in enumerate(judged.values()):
        for number, protocol in enumerate(protocols):
            judgments = by_protocol.get(protocol.name, ())
            if codes := packed.add(who, number, protocol, judgments):
                (single if protocol.shows == "one" else pairs)[who][protocol.name] = codes
    chunks = packed.chunks(calls)
    chunks["index"] = {
        **packed.index,
        "judges": list(judged),
        "about": [about_protocol(protocol) for protocol in protocols],
        "single": single,
        "pairs": pairs,
        "scores": [{name: scores(codes) for name, codes in by.items()} for by in pairs],
        "error_types": ERRORS,
        "per_chunk": SEEDS,
        "calls": "calls-0" in chunks,
    }
    alone = [p.name for p in protocols if p.shows == "one" and p.kind != "report"]
    opens = [*(name for name in alone if any(name in by for by in single)), *alone]
    return Archive(
        {f"{FOLDER}/{name}.js": script(name, content) for name, content in chunks.items()},
        {
            "folder": FOLDER,
            "view": next(iter([*opens, *(protocol.name for protocol in protocols)]), ""),
            "protocols": {protocol.name: protocol.shows for protocol in protocols},
        },
    )


class _Packed:
    """Dialogues, verdicts, reports and calls by seed."""

    def __init__(self, seeds: Sequence[Seed], dialogues: Dialogues) -> None:
        self._dialogues = dialogues
        self._contestants = {name: i for i, name in enumerate(sorted(dialogues))}
        self._places = {seed.id: i for i, seed in enumerate(seeds)}
        self._entries: list[dict[str, list[Any]]] = [
            {
                "dialogues": [_dialogue(dialogues[name].get(id_)) for name in self._contestants],
                "verdicts": [],
                "reports": [],
            }
            for id_ in self._places
        ]
        self._calls: list[list[tuple[str, ...]]] = [[] for _ in seeds]
        self.index = {
            "seeds": [[seed.id, _opening(seed, dialogues)] for seed in seeds],
            "contestants": [*self._contestants],
            "human": self._contestants.get(HUMAN, -1),
            "there": [[int(id_ in dialogues[name]) for id_ in self._places]
                      for name in self._contestants],
        }  # fmt: skip

    def add(
        self, who: int, number: int, protocol: Protocol, judgments: Sequence[Judgment]
    ) -> dict[str, Any]:
        """Put one judge's judgments of one protocol at their seeds; return codes by contestants.

        Of one dialogue a list of codes, of two a text of `_RESULTS`, one a seed; see `_code`.
        """
        codes: dict[tuple[int, ...], list[Any]] = {}
        alone = protocol.shows == "one"
        absent = "-" if not alone else -2 if protocol.kind == "place" else None
        code = cache(partial(_code, protocol))
        for judgment in sorted(judgments, key=attrgetter("contestants")):
            at = self._places.get(judgment.seed_id)
            sides = tuple(self._contestants.get(name, -1) for name in judgment.contestants)
            if at is None or -1 in sides or len(sides) != (1 if alone else 2):
                continue
            entry, by_speaker = self._entries[at], self._reports(protocol, judgment)
            if by_speaker is not None:
                entry["reports"].append([who, number, sides[0], judgment.verdict, by_speaker])
            # The reason of a report is its errors once more.
            reason = "" if by_speaker else judgment.reason
            entry["verdicts"].append(_row(who, number, judgment, sides, reason))
            self._calls[at].append(judgment.calls)
            codes.setdefault(sides, [absent] * len(self._places))[at] = code(judgment.verdict)
        return {
            ",".join(map(str, sides)): values if alone else "".join(values)
            for sides, values in codes.items()
        }

    def _reports(self, protocol: Protocol, judgment: Judgment) -> list[Any] | None:
        """Return who diagnosed what in a dialogue; None if it is no report, or has no dialogue."""
        dialogue = self._dialogues[judgment.contestants[0]].get(judgment.seed_id)
        if protocol.kind != "report" or dialogue is None:
            return None
        by_speaker = reports(judgment, partial(parse, utterances=dialogue.utterances))
        return [[speaker, _errors(report)] for speaker, report in by_speaker.items()]

    def chunks(self, calls: Callable[[Sequence[str]], Mapping[str, Any]] | None) -> dict[str, Any]:
        """Return the chunks of the seeds, and of the calls where there are any."""
        chunks: dict[str, Any] = {}
        for at in range(0, len(self._entries), SEEDS):
            part, n = slice(at, at + SEEDS), at // SEEDS
            chunks[f"seeds-{n}"] = self._entries[part]
            if calls is not None and any(map(any, self._calls)):
                keys = [key for seed in self._calls[part] for verdict in seed for key in verdict]
                known = calls(keys)
                chunks[f"calls-{n}"] = [
                    [[known[key] for key in verdict if key in known] for verdict in seed]
                    for seed in self._calls[part]
                ]
        return chunks


def scores(pairs: Mapping[str, str]) -> dict[str, list[float]]:
    """Return who is ahead in each pair of contestants: win 1, tie 0.5, loss 0, by seed.

    ``pairs``: as `_Packed.add` returns them of one protocol. Key: the pair, its smaller number
    first; value: score of that one with the ends of its 95 % interval, its wins, ties and losses,
    and the seeds with a result.
    """
    values = np.full(128, np.nan)
    for code, worth in _VALUES.items():
        values[ord(code)] = worth
    names: dict[tuple[int, ...], int] = {}
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for key, codes in pairs.items():
        sides = tuple(map(int, key.split(",")))
        results = values[np.frombuffer(codes.encode("ascii"), np.uint8)]
        (at,) = np.nonzero(np.isfinite(results))
        if len(at):
            name = names.setdefault((min(sides), max(sides)), len(names))
            result = results[at] if sides[0] < sides[1] else 1 - results[at]
            parts.append((np.full(len(at), name), at, result))
    if not names:
        return {}
    row, seed, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    share = clustered_proportions(row, seed, value, len(names))
    counts = [np.bincount(row[value == worth], minlength=len(names)) for worth in (1.0, 0.5, 0.0)]
    seeds = np.bincount(np.unique(np.stack([row, seed]), axis=1)[0], minlength=len(names))
    ends = (share.value, share.low, share.high)
    return {
        f"{a},{b}": [*(round(float(x[i]), 4) for x in ends), *(int(n[i]) for n in (*counts, seeds))]
        for (a, b), i in names.items()
    }


def _code(protocol: Protocol, verdict: Verdict | None) -> Any:
    """Return a verdict as lists have it; what is not judged is -2, ``None`` or ``-``."""
    return protocol.answer.code(verdict)


def _row(who: int, number: int, judgment: Judgment, shown: Sequence[int], reason: str) -> list[Any]:
    """Return judge, protocol, contestants, verdict, reason, utterances shown.

    Then how the call ended and the remarks of a panel, where there is anything of it to read.
    """
    row = [who, number, shown, judgment.verdict, reason, judgment.shown]
    if judgment.transcript or judgment.outcome != "ok":
        row.append(judgment.outcome)
        row.append([[t.speaker, t.text, t.verdict, t.outcome] for t in judgment.transcript])
    return row


def about_protocol(protocol: Protocol) -> dict[str, Any]:
    """Return what the page must know of a protocol."""
    about: dict[str, Any] = {
        "name": protocol.name,
        "base": protocol.base,
        "title": _title(protocol),
        "kind": protocol.kind,
        "shows": protocol.shows,
        "n": protocol.n,
        "about_ai": protocol.about_ai,
        "question": protocol.question,
    }
    match protocol.answer:
        case kinds.Pairwise(labels=labels):
            answers = zip(_CHOICE, labels, strict=False)
            about["answers"] = [[each, label, _code(protocol, each)] for each, label in answers]
        case kinds.Score(scale=scale) as score:
            about["numbers"] = scale.names
            about["fields"] = score.asked.names
            about["scale"] = [scale.lowest, scale.highest]
        case kinds.Detection() | kinds.Report():
            pass
        case _ as unknown:
            assert_never(unknown)
    return about


def _title(protocol: Protocol) -> str:
    """Return the title of the view that shows its verdicts."""
    title = protocol.short or protocol.title
    if protocol.shows == "pair":
        return f"Two models ({title}{f', N = {protocol.n}' if protocol.n else ''})"
    if protocol.shows == "human":
        return f"Beside the human one ({title})"
    return "One dialogue" if protocol.leads else title


def _errors(report: Report) -> list[list[Any]]:
    """Return type, utterance or none, quote, where it stands, explanation."""
    return [
        [result.type, error.place, error.quote, error.evidence, error.explanation]
        for result in report.results
        for error in result.errors
    ]


def _dialogue(dialogue: Dialogue | None) -> dict[str, Any] | None:
    """Return a dialogue as the page reads it; what is as usual is left out."""
    if dialogue is None:
        return None
    packed: dict[str, Any] = {"said": dialogue.utterances}
    if dialogue.contestant != HUMAN and dialogue.n_seed != N_SEED:
        packed["begun"] = dialogue.n_seed
    facts = list(enumerate(dialogue.facts, dialogue.n_seed + 1))
    if dropped := {index: fact.dropped for index, fact in facts if fact.dropped}:
        packed["dropped"] = dropped
    if odd := {index: fact.outcome for index, fact in facts if fact.outcome != "ok"}:
        packed["outcomes"] = odd
    if not dialogue.complete:
        packed["stopped"] = f"{dialogue.status}. {dialogue.detail}".strip()
    return packed


def _opening(seed: Seed, dialogues: Dialogues) -> str:
    """Return the first words of a seed, or of a dialogue where the seed has no text."""
    begun = (by[seed.id].utterances for by in dialogues.values() if seed.id in by)
    first = next((texts[0] for texts in (seed.utterances, *begun) if texts), "")
    line = " ".join(first.split())
    return line if len(line) <= OPENING else f"{line[: OPENING - 1]}…"


def script(name: str, content: Any) -> str:
    """Return a chunk, which hands its content over under its name."""
    packed = base64.b64encode(zlib.compress(msgspec.json.encode(content), 5)).decode("ascii")
    return f'botchat.take("{name}","{packed}")\n'

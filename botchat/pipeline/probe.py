"""``botchat bench probe``, ``language``: is a judge, or a language pack, fit for use?

Planted faults are asked like any other case: the contestant is the fault, or ``human`` for the
dialogue as it is. A pack is audited without a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Row
from botchat.languages import Language, every_prompt
from botchat.measures.criteria import fit_thresholds, flags
from botchat.measures.intervals import entries, of_share
from botchat.pipeline.run.ask import Asked, Cases
from botchat.pipeline.run.contestants import refuse_bursts
from botchat.protocols import probe as faults
from botchat.protocols.catalogue import ARENA, GTEVAL, UNIEVAL
from botchat.protocols.kinds import Protocol
from botchat.protocols.probe import Probe
from botchat.protocols.replies import CHOICES, PLACES
from botchat.records import HUMAN, N_SEED, Seed
from botchat.requests import Auditing, Probing
from botchat.requests.arguments import Spending
from botchat.requests.meter import Meter
from botchat.requests.results import Plan, Told
from botchat.workspace.folder import Workspace


def plan_probe(request: Probing, workspace: Workspace) -> Plan:
    """What `probe` would send."""
    return _planted(request, workspace)[0].plan(workspace)


def probe(request: Probing, workspace: Workspace, spending: Spending, meter: Meter | None) -> Told:
    """Plant, ask and count; `MissingError` where no dialogue goes on behind the ChatSEED."""
    asked, seeds, planted = _planted(request, workspace)
    (judged,) = asked.run(workspace, spending, meter)
    made = workspace.judgments(judged.path)
    verdicts = {(id_, shown[0]): judgment.verdict for (id_, shown), judgment in made.items()}
    rows = faults.detection(planted, verdicts)
    signature = f"{made[seeds[0].id, (HUMAN,)].signature}|seed:{request.rng_seed}"
    whole = {
        "judge": judged.judge,
        "rows": rows,
        "untouched": faults.untouched((seed.id for seed in seeds), verdicts),
        "signature": signature,
        "path": judged.path,
    }
    return Told(whole, [in_percent(rows), signature], judged.unanswered)


def found(workspace: Workspace, judge: str) -> list[Row]:
    """Rows of every set on which a judge's probes are stored, faults as the first seed plants."""
    rows: list[Row] = []
    for folder in sorted((workspace.root / "judgments").glob(f"*/{faults.PROBE.name}")):
        seed_set = folder.parent.name
        made = workspace.judgments(workspace.judgments_path(seed_set, faults.PROBE.name, judge))
        if made:
            _, _, planted = _planted(Probing(seed_set, judge), workspace)
            verdicts = {(id_, shown[0]): one.verdict for (id_, shown), one in made.items()}
            rows += [{"set": seed_set, **row} for row in faults.detection(planted, verdicts)]
    return rows


def _planted(request: Probing, workspace: Workspace) -> tuple[Asked, list[Seed], list[Probe]]:
    """The cases, the dialogues used, and the probes made of them."""
    if request.limit is not None and request.limit < 1:
        raise ConfigError(f"--limit {request.limit}: at least one dialogue is needed")
    whole = workspace.seeds(request.seed_set)
    seeds = [seed for seed in whole if len(seed.utterances) > N_SEED][: request.limit]
    if not seeds:
        raise MissingError(
            f"no dialogue of the set {request.seed_set!r} has more than {N_SEED} utterances, so "
            "there is no place for a fault; import a set of longer dialogues"
        )
    refuse_bursts(seeds, None, "a fault is planted in the words of one")
    language = workspace.language(request.seed_set)
    strangers = faults.strangers_of(whole, language)
    planted = list(faults.probes(seeds, strangers, request.rng_seed, language))
    asked = list(faults.cases(seeds, planted, language))
    cases = Cases(faults.PROBE.spoken(language), asked)
    return Asked(request.seed_set, whole, request.judge_name, [cases]), seeds, planted


def in_percent(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of `botchat.protocols.probe.detection` in percent, with 95 % intervals."""
    return [
        {
            "fault": row["fault"],
            "probes": row["n"],
            "detected %": _percent(row, "detected"),
            "at the utterance %": _percent(row, "localised"),
            "±1 %": _percent(row, "within_1"),
            "±1 by chance %": _percent(row, "chance_within_1"),
            "accused without it %": _percent(row, "false_alarms"),
            "detected less that %": _percent(row, "found"),
        }
        for row in rows
    ]


def _percent(row: Mapping[str, Any], key: str) -> str:
    if row[key] is None:
        return "–"
    if f"{key}_low" not in row:
        return f"{100 * row[key]:.1f}"
    share, low, high = (100 * row[name] for name in (key, f"{key}_low", f"{key}_high"))
    to = " to " if low < 0 else "–"
    return f"{share:.1f} ({low:.1f}{to}{high:.1f})"


def audit(request: Auditing, workspace: Workspace) -> Told:
    """Audit a pack, on a set of dialogues between people in its language if one is named.

    Raises `ConfigError`: no such language, a set in another one; `MissingError`: a set without
    dialogues that go on behind the ChatSEED.
    """
    language, seed_set = request.language, request.seed_set
    pack = workspace.language_named(language)
    named = [] if seed_set is None else _people(workspace, pack, seed_set)
    lacking, also = lacks(pack)
    tries = not _RULES & {*lacking}
    labelled = not pack.english and not {*lacking} - _RULES - {"[faults]"}
    seeds = named[: request.limit] if tries else []
    labels = labels_read(pack) if labelled else []
    rows = _by_rules(seeds, pack, request.rng_seed) if seeds and "[faults]" not in lacking else []
    whole: Row = {
        "language": language,
        "name": pack.name,
        "lacks": lacking,
        "also_lacks": also,
        "labels": [asdict(one) for one in labels],
        "n_people": len(seeds),
        "false_alarms": _false_alarms(seeds, pack),
        "rows": rows,
        "borrowed": pack.pack.borrowed,
        "thresholds": fit_thresholds((one.utterances for one in seeds), pack)._asdict()
        if seeds
        else {},
    }
    lines = [
        f"{pack.name} ({language})",
        f"lacks: {', '.join(lacking) or 'nothing that is needed'}",
    ]
    if also:
        lines.append(f"lacks for other judges and protocols: {', '.join(also)}")
    for one in labels:
        lines += one.lines
    told = (
        _of_rules(whole)
        if tries
        else ["the rules judge is not tried: the pack lacks what it needs"]
    )
    return Told(whole, [*lines, *told, *([in_percent(rows)] if rows else [])])


_RULES = {"[words]", "[thresholds]"}
"""Parts of a pack without which its rules find nothing."""


def _of_rules(whole: Row) -> list[str]:
    """What the rules find in dialogues between people, in words."""
    said = []
    if borrowed := whole["borrowed"]:
        said.append(f"floors: those of {borrowed}, measured on nobody who speaks this")
    if not whole["n_people"]:
        return [*said, "no dialogues between people: name a set of the language with --seeds"]
    for key, how in (("same", "their own"), ("held_out", "the other half's")):
        ends = (key, f"{key}_low", f"{key}_high")
        share, low, high = (100 * whole["false_alarms"][end] for end in ends)
        said.append(
            f"rules judge accuses {share:.1f} % ({low:.1f}–{high:.1f}) of {whole['n_people']} "
            f"dialogues between people, with {how} thresholds"
        )
    limits = (f"{name} {limit:g}" for name, limit in whole["thresholds"].items())
    return [*said, f"thresholds (99th percentile of these, or the floor): {', '.join(limits)}"]


def _people(workspace: Workspace, language: Language, seed_set: str) -> list[Seed]:
    spoken = workspace.language(seed_set)
    if spoken.code != language.code:
        raise ConfigError(
            f"--seeds {seed_set}: it is {spoken.name} ({spoken.code}), not {language.name} "
            f"({language.code}); name another set"
        )
    seeds = [seed for seed in workspace.seeds(seed_set) if len(seed.utterances) > N_SEED]
    if not seeds:
        raise MissingError(f"no dialogue of {seed_set!r} has more than {N_SEED} utterances")
    return seeds


def _false_alarms(seeds: list[Seed], language: Language) -> Row:
    """``same``: with thresholds of all of them, ``held_out``: of each half with the other's."""
    halves = seeds[::2], seeds[1::2]
    accused = {
        "same": _wronged(seeds, seeds, language),
        "held_out": _wronged(*halves, language) + _wronged(*halves[::-1], language),
    }
    found: Row = {}
    for key, hits in accused.items() if seeds else ():
        found |= entries(key, hits / len(seeds), *of_share(hits, len(seeds)))
    return found


def _wronged(seeds: list[Seed], others: list[Seed], language: Language) -> int:
    """How many of the seeds' dialogues the rules accuse, with the others' thresholds."""
    limits = fit_thresholds((seed.utterances for seed in others), language)
    return sum(bool(flags(seed.utterances, limits, language)) for seed in seeds)


def _by_rules(seeds: list[Seed], language: Language, rng_seed: int) -> list[dict[str, Any]]:
    """What the rules find of faults planted in the dialogues."""
    strangers = faults.strangers_of(seeds, language)
    planted = list(faults.probes(seeds, strangers, rng_seed, language))
    limits = fit_thresholds((seed.utterances for seed in seeds), language)

    def verdict(said: tuple[str, ...]) -> str:
        first = next(iter(flags(said, limits, language)), None)
        return "No" if first is None else str(first.index)

    verdicts = {(one.seed_id, one.fault): verdict(one.utterances) for one in planted}
    verdicts |= {(seed.id, HUMAN): verdict(seed.utterances) for seed in seeds}
    return faults.detection(planted, dict(verdicts))


# --------------------------------- is a pack whole, and are its labels read as what they mean?

NEEDED = ("generation", "unieval", "unieval_examples", "arena", "gteval")
"""Prompts without which the paper's three protocols cannot be asked."""

_PARTS = ("labels", "words", "thresholds", "faults")

_INDEX, _LENGTH = 3, 16
"""Of the accusation that is tried, and of its dialogue."""


def lacks(language: Language) -> tuple[list[str], list[str]]:
    """(parts needed for UniEval, Arena, GTEval and this audit; other prompts) that are missing."""
    if language.english:
        return [], []
    parts = [f"[{part}]" for part in _PARTS if getattr(language.pack, part) is None]
    absent = every_prompt() - set(language.texts)
    needed = [f"prompts/{name}.txt" for name in NEEDED if name in absent]
    return [*needed, *parts], sorted(absent - set(NEEDED))


@dataclass(frozen=True)
class LabelsRead:
    """How a protocol's parser does on the labels of the pack."""

    protocol: str
    tried: int
    """Replies made of the pack's labels: each label once, with the reason behind and before."""
    not_read: tuple[str, ...]
    """Replies read as something else, or not at all."""
    not_asked: tuple[str, ...]
    """Answers made of the first label of each list that the prompt does not ask for."""

    @property
    def lines(self) -> list[str]:
        """In words."""
        return [
            f"{self.protocol}: {self.tried - len(self.not_read)} of {self.tried} answers read as "
            "meant",
            *(f"  not read as meant: {reply}" for reply in self.not_read),
            *(f"  not asked for by the prompt: {word}" for word in self.not_asked),
        ]


def labels_read(language: Language) -> list[LabelsRead]:
    """One for each of the paper's protocols; raises `ConfigError` for what the pack lacks."""
    return [_labels_of(protocol.spoken(language)) for protocol in (UNIEVAL, ARENA, GTEVAL)]


def _labels_of(protocol: Protocol) -> LabelsRead:
    said, labels = "\n".join(protocol.texts), protocol.language.labels
    # What the prompt writes behind a label.
    written = re.search(rf"{re.escape(labels.choice[0])}([ \t]*[:\uff1a=][ \t]*)", said)
    colon = written[1] if written else ": "
    place = protocol.kind == "place"
    first = [f"{labels.reason[0]}{colon}", *([f"{labels.index[0]}{colon}"] if place else [])]
    for key in PLACES if place else CHOICES:
        first.append(f"{labels.choice[0]}{colon}{getattr(labels, key)[0]}")
    reading = protocol.reading(("",) * _LENGTH)
    replies = dict(_replies(protocol, colon))
    wrong = [reply for reply, verdict in replies.items() if reading.read(reply)[0] != verdict]
    return LabelsRead(
        protocol.title,
        len(replies),
        tuple(" / ".join(reply.split("\n")) for reply in wrong),
        tuple(word for word in first if word not in said),
    )


def _replies(protocol: Protocol, colon: str) -> Iterator[tuple[str, str]]:
    """Replies with the verdict that they mean."""
    labels = protocol.language.labels
    why = f"{labels.reason[0]}{colon}1 2 3"

    def told(verdict: str, meaning: str) -> Iterator[tuple[str, str]]:
        yield f"{verdict}\n{why}", meaning
        yield f"{why}\n{verdict}", meaning

    if protocol.kind == "choice":
        for key, meaning in CHOICES.items():
            for word in getattr(labels, key):
                yield from told(f"{labels.choice[0]}{colon}{word}", meaning)
        for head in labels.choice[1:]:
            yield from told(f"{head}{colon}{labels.both[0]}", "both")
        return
    for word in labels.no:
        yield from told(f"{labels.choice[0]}{colon}{word}", "No")
    at = str(_INDEX)
    numbers = [at, *labels.numerals[_INDEX - 1 : _INDEX]]
    numbers += [f"{word}{at}" for word in labels.ordinal]
    pairs = [(word, labels.index[0], at) for word in labels.yes]
    pairs += [(labels.yes[0], head, number) for head in labels.index for number in numbers]
    for word, head, number in pairs:
        yield from told(f"{labels.choice[0]}{colon}{word}\n{head}{colon}{number}", at)

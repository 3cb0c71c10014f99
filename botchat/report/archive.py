"""Every dialogue and verdict of a set, in compressed scripts that the page loads when asked.

A page opened from disk may not read files, but may run scripts next to it: each chunk is a script
that hands over a base64 text of zlib-compressed JSON. ``index`` holds what lists and filters need,
with every protocol; ``seeds-N`` a few seeds whole, dialogues and verdicts; ``calls-N`` the prompts
and replies of their verdicts.
"""

import base64
import math
import zlib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from operator import attrgetter
from typing import NamedTuple, TypeAlias, TypeVar, assert_never

import msgspec
import numpy as np
import pandas as pd
from msgspec import convert

from botchat.metrics.statistics import ClusteredCases
from botchat.metrics.verdicts import LOSS, TIE, WIN, PairVerdicts
from botchat.protocols import kinds
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.protocol import Protocol
from botchat.protocols.reports import ERRORS, Report, parse, reports
from botchat.records import (
    HUMAN,
    Dialogue,
    Dialogues,
    Judgment,
    Names,
    Seed,
    Seeds,
    Texts,
    Verdict,
    natural_sort_key,
)
from botchat.report.contract import (
    PageAnswer,
    PageCall,
    PageDialogue,
    PageError,
    PageIndex,
    PageJudge,
    PageOpening,
    PageProtocol,
    PageRemark,
    PageScore,
    PageSeed,
    PageSpeaker,
    PageVerdict,
)

T = TypeVar("T")

FOLDER = "chunks"
SEEDS = 20  # in a chunk: of 14 models about 250 kB to load for one dialogue
OPENING = 90  # characters of a dialogue's first utterance that stand in the list

ByJudge = Mapping[str, Mapping[str, Sequence[Judgment]]]
"""Judge -> protocol -> judgments, at most one for each seed and contestants in the order shown."""

# Verdicts on two, in the order of their labels; a criterion may have no fourth
_CHOICE = ("1", "2", "both", "neither")

# Result for the contestant shown first -> its letter in a list; ``-``: not judged
_LETTERS = {LOSS: "l", TIE: "t", WIN: "w", None: "?"}


class Archive(NamedTuple):
    """The chunks, and what the page must know before it loads one."""

    files: Mapping[str, str] = {}  # path relative to the page -> script
    view: str = ""  # the protocol that the reader opens with
    protocols: Mapping[str, str] = {}  # name -> what it shows


CallsOf: TypeAlias = Callable[[Texts], Mapping[str, PageCall]]
"""Ledger keys -> the calls that are known."""


def build(
    seeds: Seeds,
    dialogues: Dialogues,
    judged: ByJudge,
    catalogue: Catalogue | None = None,
    calls: CallsOf | None = None,
) -> Archive:
    """Put everything into chunks; the same records give the same bytes.

    ``dialogues``: of ``human`` too. ``judged``: verdicts on other seeds or contestants, and of
    protocols that are not in the catalogue (default: the built-in ones), are passed over.

    Raises:
        DataError: a verdict that its protocol does not offer.
    """
    protocols = _protocols(catalogue or Catalogue(), judged)
    packed = _Packed(seeds, dialogues)
    for judge, by_protocol in judged.items():
        packed.judges.append(PageJudge(judge))
        for number, protocol in enumerate(protocols):
            packed.add(number, protocol, by_protocol.get(protocol.name, ()))
    has_dialogue = []
    for name in packed.numbers:
        has_dialogue.append([int(seed.id in dialogues[name]) for seed in packed.seeds])
    known_calls = calls if any(chain.from_iterable(packed.keys)) else None
    index = PageIndex(
        seeds=[PageOpening(seed.id, _opening(seed, dialogues)) for seed in packed.seeds],
        contestants=list(packed.numbers),
        human=packed.numbers.get(HUMAN, -1),
        has_dialogue=has_dialogue,
        judges=packed.judges,
        about=[about_protocol(protocol) for protocol in protocols],
        error_types=ERRORS,
        per_chunk=SEEDS,
        calls=known_calls is not None,
    )
    files = {f"{FOLDER}/index.js": script("index", index)}
    for n in range(math.ceil(len(seeds) / SEEDS)):
        part = slice(n * SEEDS, (n + 1) * SEEDS)
        files[f"{FOLDER}/seeds-{n}.js"] = script(f"seeds-{n}", packed.content[part])
        if known_calls is not None:
            files[f"{FOLDER}/calls-{n}.js"] = script(f"calls-{n}", packed.calls(part, known_calls))
    return Archive(
        files,
        _first_view(protocols, packed.judges),
        {protocol.name: protocol.shows for protocol in protocols},
    )


def _protocols(catalogue: Catalogue, judged: ByJudge) -> list[Protocol]:
    # Dialogues can be read where no judge has judged them alone: the first view is always on.
    names = {protocol.name for protocol in catalogue if protocol.is_alone and protocol.leads}
    names.update(chain.from_iterable(judged.values()))
    return list(catalogue.among(names).values())


def _first_view(protocols: Sequence[Protocol], judges: Sequence[PageJudge]) -> str:
    """Return the protocol to read dialogues with: one that was judged, if any was."""
    alone = [p.name for p in protocols if p.is_alone and p.kind != "report"]
    judged = set(chain.from_iterable(judge.single for judge in judges))
    return next((name for name in alone if name in judged), alone[0])


class _Packed:
    """Dialogues, verdicts, reports and calls by seed; codes and scores by judge."""

    def __init__(self, seeds: Seeds, dialogues: Dialogues) -> None:
        self.seeds = sorted(seeds, key=lambda seed: natural_sort_key(seed.id))
        self.numbers = {name: i for i, name in enumerate(sorted(dialogues))}
        self.judges: list[PageJudge] = []
        self.content: list[PageSeed] = []
        self.keys: list[list[Names]] = [[] for _ in self.seeds]
        """Ledger keys of each verdict on each seed."""
        self._dialogues = dialogues
        self._places = {seed.id: i for i, seed in enumerate(self.seeds)}
        for seed in self.seeds:
            texts = [_dialogue(dialogues[name].get(seed.id)) for name in self.numbers]
            self.content.append(PageSeed(texts))

    def add(self, number: int, protocol: Protocol, judgments: Sequence[Judgment]) -> None:
        """Put the last judge's judgments of one protocol at their seeds."""
        known = []
        for judgment in sorted(judgments, key=attrgetter("contestants")):
            names = judgment.contestants
            is_here = judgment.seed_id in self._places and self.numbers.keys() >= set(names)
            if is_here and len(names) == protocol.orders:
                known.append(judgment)
                self._add_verdict(number, protocol, judgment)
        if not known:
            return
        judge = self.judges[-1]
        if protocol.is_alone:
            absent: kinds.PageCode | None = -2 if protocol.kind == "place" else None
            codes = self._by_contestants(known, protocol.answer.code, absent)
            judge.single[protocol.name] = codes
            return
        verdicts = PairVerdicts.of_judgments(known, protocol.answer)
        judge.scores[protocol.name] = _scores(verdicts, self.numbers)
        result = protocol.answer.result
        letters = self._by_contestants(known, lambda verdict: _LETTERS[result(verdict)], "-")
        judge.pairs[protocol.name] = {shown: "".join(row) for shown, row in letters.items()}

    def _add_verdict(self, number: int, protocol: Protocol, judgment: Judgment) -> None:
        at = self._places[judgment.seed_id]
        reason = judgment.reason
        remarks = convert(judgment.transcript, list[PageRemark], from_attributes=True)
        speakers = self._speakers(protocol, judgment)
        if speakers:
            reason = ""  # it is the errors once more
        self.content[at].verdicts.append(
            PageVerdict(
                judge=len(self.judges) - 1,
                protocol=number,
                contestants=[self.numbers[name] for name in judgment.contestants],
                verdict=judgment.verdict,
                reason=reason,
                shown=judgment.shown,
                outcome=judgment.outcome,
                remarks=remarks,
                speakers=speakers,
            )
        )
        self.keys[at].append(judgment.calls)

    def _speakers(self, protocol: Protocol, judgment: Judgment) -> list[PageSpeaker] | None:
        """Return who diagnosed what in a dialogue; None if it is no report."""
        if protocol.kind != "report":
            return None
        dialogue = self._dialogues[judgment.contestants[0]][judgment.seed_id]
        by_speaker = reports(judgment, partial(parse, utterances=dialogue.utterances))
        return [PageSpeaker(name, _errors(report)) for name, report in by_speaker.items()]

    def _by_contestants(
        self, judgments: Sequence[Judgment], code: Callable[[Verdict | None], T], absent: T
    ) -> dict[str, list[T]]:
        """Return numbers of contestants in the order shown -> the code of a verdict a seed."""
        code = cache(code)
        blank = [absent for _ in self.seeds]
        codes = defaultdict[str, list[T]](blank.copy)
        for judgment in judgments:
            shown = ",".join([str(self.numbers[name]) for name in judgment.contestants])
            codes[shown][self._places[judgment.seed_id]] = code(judgment.verdict)
        return codes

    def calls(self, part: slice, calls: CallsOf) -> list[list[list[PageCall]]]:
        """Return the calls of each verdict on some seeds."""
        of_verdicts = chain.from_iterable(self.keys[part])
        known = calls(list(chain.from_iterable(of_verdicts)))
        content = []
        for verdicts in self.keys[part]:
            of_seed = []
            for keys in verdicts:
                of_seed.append([known[key] for key in keys if key in known])
            content.append(of_seed)
        return content


def _scores(verdicts: PairVerdicts, numbers: Mapping[str, int]) -> dict[str, PageScore]:
    """Return who is ahead, over both orders; contestants, the smaller number first -> score."""
    verdicts = verdicts.only(verdicts.readable)
    number = np.array([numbers[name] for name in verdicts.contestants], np.intp)
    first = number[verdicts.first]
    second = number[verdicts.second]
    outcome = np.where(first < second, verdicts.outcomes, -verdicts.outcomes)
    columns = {
        "smaller": np.minimum(first, second),
        "larger": np.maximum(first, second),
        "won": outcome > 0,
        "tied": outcome == 0,
        "lost": outcome < 0,
        "seed": verdicts.item,
    }
    pairs = pd.DataFrame(columns).groupby(["smaller", "larger"])
    row = np.asarray(pairs.ngroup(), np.intp)
    share = ClusteredCases(row, verdicts.item, pairs.ngroups).proportions((outcome + 1) / 2)
    counts = pairs[["won", "tied", "lost"]].sum().assign(seeds=pairs["seed"].nunique())
    scores = {}
    for i, ((smaller, larger), won, tied, lost, seeds) in enumerate(counts.itertuples(name=None)):
        score = share.at(i)
        scores[f"{smaller},{larger}"] = PageScore(
            round(score.value, 4),
            round(score.low, 4),
            round(score.high, 4),
            won,
            tied,
            lost,
            seeds,
        )
    return scores


def about_protocol(protocol: Protocol) -> PageProtocol:
    """Return what the page must know of a protocol."""
    about = convert(protocol, PageProtocol, from_attributes=True)
    about.title = _title(protocol)
    match protocol.answer:
        case kinds.Pairwise(labels=labels):
            about.answers = [
                PageAnswer(verdict, label, protocol.answer.result(verdict))
                for verdict, label in zip(_CHOICE, labels, strict=False)
            ]
        case kinds.Score(scale=scale) as score:
            about.numbers = scale.names
            about.fields = score.asked.names
            about.scale = (scale.lowest, scale.highest)
        case kinds.Detection() | kinds.Report():
            pass
        case _ as unknown:
            assert_never(unknown)
    return about


def _title(protocol: Protocol) -> str:
    """Return the title of the view that shows its verdicts."""
    title = protocol.short or protocol.title
    if protocol.is_pair:
        n = f", N = {protocol.n}" if protocol.n else ""
        return f"Two models ({title}{n})"
    if protocol.against_human:
        return f"Beside the human one ({title})"
    return "One dialogue" if protocol.leads else title


def _errors(report: Report) -> list[PageError]:
    errors = []
    for result in report.results:
        for error in result.errors:
            errors.append(
                PageError(
                    type=result.type,
                    utterance=error.place,
                    quote=error.quote,
                    evidence=error.evidence,
                    explanation=error.explanation,
                )
            )
    return errors


def _dialogue(dialogue: Dialogue | None) -> PageDialogue | None:
    """Return a dialogue as the page reads it; what is as usual is left out."""
    if dialogue is None:
        return None
    packed = PageDialogue(dialogue.utterances)
    if dialogue.contestant != HUMAN:
        packed.begun = dialogue.n_seed
    facts = list(enumerate(dialogue.facts, dialogue.n_seed + 1))
    packed.dropped = {index: fact.dropped for index, fact in facts if fact.dropped}
    packed.outcomes = {index: fact.outcome for index, fact in facts if fact.outcome != "ok"}
    if not dialogue.complete:
        packed.stopped = f"{dialogue.status}. {dialogue.detail}".strip()
    return packed


def _opening(seed: Seed, dialogues: Dialogues) -> str:
    """Return the first words of a seed, or of a dialogue where the seed has no text."""
    texts = seed.utterances
    for by_seed in dialogues.values():
        if not texts and seed.id in by_seed:
            texts = by_seed[seed.id].utterances
    line = " ".join(" ".join(texts[:1]).split())
    return line if len(line) <= OPENING else f"{line[: OPENING - 1]}…"


def script(name: str, content: object) -> str:
    """Return a chunk, which hands its content over under its name."""
    packed = base64.b64encode(zlib.compress(msgspec.json.encode(content), 5)).decode("ascii")
    return f'botchat.take("{name}","{packed}")\n'

"""A protocol as a value, and the four kinds of answer that decide everything else.

``place``   ``"No"``, or the 1-based index of the first AI utterance; ``"Yes"``: without an index
``choice``  ``"1"``, ``"2"``, ``"both"`` or ``"neither"`` of two dialogues
``score``   numbers on a scale, for one text or for each of two
``report``  errors with type, place and reason; the verdict is their score: ``"-3"``
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from typing import Literal

from botchat import prompts
from botchat.errors import ConfigError, DataError
from botchat.interfaces import Case, CaseRef, Kind, Report, ShownDialogue, Subject, settings_digest
from botchat.languages import ENGLISH, Language
from botchat.protocols import reports, scores
from botchat.protocols.frame import prompt_frame
from botchat.protocols.scores import Scale
from botchat.protocols.verdicts import (
    LABELS,
    UNTOLD,
    ReplyReader,
    choice_reader,
    detection_reader,
    first_ai_index,
)
from botchat.records import (
    HUMAN,
    MISSING,
    N_SEED,
    UNDECIDED,
    Dialogue,
    Dialogues,
    Judgment,
    Seed,
    Verdict,
    eligible_seeds,
)

Shows = Literal["one", "pair", "human"]  # one dialogue, two of models, or one and the human one

_SHOWS = {"place": ("one",), "choice": ("pair",), "score": ("one", "pair"), "report": ("one",)}


@dataclass(frozen=True)
class Protocol:
    """One question that judges are asked about dialogues, and how their answers are read."""

    name: str  # on the command line, and of the folder of its judgments
    title: str
    kind: Kind
    shows: Shows
    question: str  # in a line, for readers
    prompts: tuple[str, ...] = ()  # files of `botchat.prompts`; the first has the places to fill in
    template: str = ""  # the prompt itself, of a user's criterion
    n: int | None = None  # utterances that dialogues are cut to; None: as long as they are
    scale: Scale | None = None  # of a score
    labels: tuple[str, ...] = LABELS  # words of a choice: the first, the second, both, neither
    chosen_wins: bool = False  # else the dialogue that a choice names loses: Arena and GTEval
    short: str = ""  # title where there is little room; by default the same
    explained: str = ""  # for readers of the page, a sentence or two
    leads: bool = False  # its numbers, as the paper's, stand on a board without its name
    about_ai: bool = False  # it asks what tells models from humans
    language: Language = ENGLISH  # of the prompts, the frame around dialogues, and the answers

    def __post_init__(self) -> None:
        """Refuse what no kind can be asked about, and a scale without a score."""
        number = "one" if self.shows == "one" else "pair"
        if number not in _SHOWS[self.kind] or (self.scale is None) == (self.kind == "score"):
            shows = " or ".join(_SHOWS[self.kind])
            fault = f"a {self.kind} shows {shows}, and has a scale if it is a score"
            raise ValueError(f"protocol {self.name}: {fault}")

    @property
    def digest(self) -> str:
        """8 hex digits that change with the wording, and with whatever else decides a verdict.

        Raises `ConfigError`: the language lacks the prompt, or reports, which are English only.
        """
        if self.kind == "report" and not self.language.english:
            raise ConfigError(
                f"{self.title} is asked in English only, and this set is {self.language.name} "
                f"({self.language.code}); judge it with another protocol"
            )
        digest = self.language.prompts_digest(*self.prompts)
        if self.template:
            digest = settings_digest(
                self.template, self.kind, self.shows, self.labels, self.chosen_wins, self.scale
            )
        return digest if self.language.english else settings_digest(digest, self.language.labels)

    @property
    def texts(self) -> list[str]:
        """The wording, in full."""
        return [self.template] if self.template else [*map(self.language.text, self.prompts)]

    @property
    def label(self) -> str:
        """The title where there is little room, with N: ``Arena @16``."""
        return f"{self.short or self.title}{'' if self.n is None else f' @{self.n}'}"

    @property
    def orders(self) -> int:
        """Orders in which each case is shown."""
        return 1 if self.shows == "one" else 2

    @property
    def knows_truth(self) -> bool:
        """Whether who wrote what is the right answer: one side, or the whole dialogue, is human."""
        return self.about_ai and (self.kind == "place" or self.shows == "human")

    @property
    def subject(self) -> Subject:
        """Subject of the roles that are put to this question."""
        if self.about_ai and self.kind in ("place", "choice"):
            return "dialogues"
        better = self.shows == "pair" and (self.kind == "score" or self.chosen_wins)
        return "answers" if better else "texts"

    @property
    def base(self) -> str:
        """The name without N: how the protocol is called on the command line."""
        return self.name if self.n is None else self.name.removesuffix(f"-n{self.n}")

    def at(self, n: int) -> Protocol:
        """The protocol with dialogues cut to ``n`` utterances: ``arena-n16``."""
        leads = self.leads and self.shows != "one"
        return replace(self, name=f"{self.base}-n{n}", n=n, leads=leads)

    @property
    def has_n(self) -> bool:
        """Whether it can be asked of the first N utterances."""
        return self.shows == "pair" or self.kind == "place"

    def spoken(self, language: Language) -> Protocol:
        """The protocol asked in another language."""
        return self if language == self.language else replace(self, language=language)

    def eligible(self, seeds: Iterable[Seed]) -> list[Seed]:
        """Return the seeds that it has cases on; see `botchat.records.eligible_seeds`."""
        seeds = list(seeds) if self.shows == "one" else eligible_seeds(seeds)
        # Next to a human dialogue that ends with the ChatSEED there is nothing to show.
        return [s for s in seeds if self.shows != "human" or len(s.utterances) > N_SEED]

    def cases(self, seeds: Iterable[Seed], dialogues: Dialogues) -> Iterator[Callable[[], Case]]:
        """Return a maker (to save memory) of a case for all that is long enough, seed by seed."""
        if self.shows == "one":
            for dialogue in (each for by_seed in dialogues.values() for each in by_seed.values()):
                if dialogue.complete or len(dialogue.utterances) > dialogue.n_seed:
                    for alone in self.show(dialogue):
                        yield CaseRef(self.name, dialogue.seed_id, (alone,), self.case)
            return
        pairs = list(combinations(sorted(dialogues), 2))
        if self.shows == "human":
            pairs = [(model, HUMAN) for model in sorted(set(dialogues) - {HUMAN})]
        for seed in self.eligible(seeds):
            show = cache(ShownDialogue.of)  # each meets all others
            for a, b in pairs:
                if pair := comparable(dialogues[a].get(seed.id), dialogues[b].get(seed.id), self.n):
                    first, second = show(pair[0], pair[2]), show(pair[1], pair[2])
                    yield CaseRef(self.name, seed.id, (first, second), self.case)
                    yield CaseRef(self.name, seed.id, (second, first), self.case)

    def case(self, seed_id: str, *shown: ShownDialogue) -> Case:
        """Return the question about one or two dialogues, in this order."""
        mirror = partial(self.case, seed_id, *reversed(shown)) if len(shown) > 1 else None
        return self.make_case(seed_id, shown, partial(self._worded, shown), mirror)

    def show(self, *dialogues: Dialogue) -> tuple[ShownDialogue, ...]:
        """Return what a case shows of one or two dialogues; empty if they are too short."""
        first, *others = dialogues
        if others:
            pair = comparable(first, others[0], self.n)
            return tuple(ShownDialogue.of(each, pair[2]) for each in dialogues) if pair else ()
        return (ShownDialogue.of(first, self.n),) if len(first.utterances) >= (self.n or 0) else ()

    def make_case(
        self,
        seed_id: str,
        shown: tuple[ShownDialogue, ...],
        prompt: str | Callable[[], str],
        mirror: Callable[[], Case] | None = None,
    ) -> Case:
        """Return the case that asks ``prompt`` (text, or its maker) about dialogues as shown."""
        asks: Report = "asked" if self.kind == "report" else "none"
        report: Report = "read" if self.scale and self.scale.points_off else asks
        reader = self.reading(shown[0].utterances)
        of_case = (self.name, seed_id, shown, prompt, *reader, mirror)
        return Case(*of_case, self.kind, self.about_ai, report)

    def reading(self, utterances: tuple[str, ...] = ()) -> ReplyReader:
        """Return how a reply about a dialogue with these utterances, or about two, is read."""
        if self.kind == "place":
            return detection_reader(len(utterances), self.language)
        if self.kind == "choice":
            return choice_reader(self.labels, self.language)
        if self.kind == "report":
            read_report = partial(reports.read_report, utterances=utterances)
            return ReplyReader(reports.choices(len(utterances)), read_report)
        read = partial(scores.read_scores, scale=self.asked_scale, language=self.language)
        return ReplyReader(scores.ScoreVerdicts(self.asked_scale), read)

    @property
    def asked_scale(self) -> Scale:
        """The scale of the whole verdict: of a pair every number twice, first dialogue first."""
        assert self.scale is not None, self.name
        if self.shows == "one":
            return self.scale
        names = (f"{name} {i}" for i in (1, 2) for name in self.scale.names)
        return replace(self.scale, names=tuple(names))

    def _worded(self, shown: Sequence[ShownDialogue]) -> str:
        """Return the prompt, with the utterances of these dialogues."""
        conversation = prompt_frame(self.language).conversation
        frame = reports.numbered if self.kind == "report" else conversation
        texts = [frame(each.utterances) for each in shown]
        if self.kind == "score":
            texts = [scores.neutralise_labels(text, self.asked_scale) for text in texts]
        names = ["conversation"] if len(shown) == 1 else ["conversation_1", "conversation_2"]
        values = dict(zip(names, texts, strict=True))
        if self.template:
            return prompts.fill(self.template, **values)
        first, *examples = self.prompts
        if examples:
            values["examples"] = "\n\n".join(map(self.language.text, examples))
        return self.language.fill(first, **values)

    def result(self, verdict: Verdict | None) -> float | None:
        """Return the result for the contestant shown first: 1 win, ½ tie, 0 loss; see `lead`."""
        lead = self.lead(verdict)
        return None if lead is None else 0.5 if abs(lead) < 1e-9 else float(lead > 0)

    def lead(self, verdict: Verdict | None) -> float | None:
        """Return how far the first shown is ahead: by its scores, or ½, 0 or -½.

        Where the dialogue that is named loses, Both and Neither are ties (BotChat §3.3). None: the
        verdict is unreadable. Raises `DataError` for a verdict that the protocol does not offer.
        """
        if verdict is None:
            return None
        if self.kind == "score" and (numbers := self.numbers(verdict)):
            half = len(numbers) // 2
            return sum(numbers[:half]) - sum(numbers[half:])
        named_first = {"1": 0.5, "2": -0.5, "both": 0.0, "neither": 0.0}.get(verdict)
        if named_first is None:
            fault = f"verdict {verdict!r} of a pairwise judgment is none of 1, 2, both, neither"
            raise DataError(f"{fault}; delete that line and judge again")
        return named_first if self.chosen_wins else -named_first

    def numbers(self, verdict: Verdict | None) -> tuple[float, ...] | None:
        """Return the numbers of a score or a report's verdict; None if any is missing."""
        words = self.scores(verdict) or ()
        numbers = tuple(number for number in words if number is not None)
        return numbers if numbers and len(numbers) == len(words) else None

    def scores(self, verdict: Verdict | None) -> tuple[float | None, ...] | None:
        """Return the numbers, None for a missing one; `DataError` if the verdict is no score."""
        n = 1 if self.kind == "report" else len(self.asked_scale.names)
        return None if verdict is None else scores.decode_scores(verdict, n)

    def values(self, judgment: Judgment) -> list[tuple[str, float]]:
        """Return what a verdict gives each contestant, 0 to 1; empty if it is unreadable.

        A comparison gives its result; a place or a report 1 where nothing is found, else 0; a score
        the mean of its numbers, the ends of the scale as 0 and 1. Raises `DataError` for a verdict
        that the protocol does not offer, or of another number of contestants.
        """
        verdict, names = judgment.verdict, judgment.contestants
        if len(names) != (size := 1 if self.shows == "one" else 2):
            fault = f"{len(names)} contestants where {self.name} shows {size}"
            raise DataError(f"{fault}; delete that line and judge again")
        if verdict is None:
            return []
        if self.shows != "one":
            result = self.result(verdict)
            return [] if result is None else [(names[0], result), (names[1], 1 - result)]
        if self.kind == "place":
            index = first_ai_index(verdict, f"{judgment.judge} on seed {judgment.seed_id}")
            return [(names[0], 0.5 if index == UNTOLD else float(not index))]
        if self.passing is not None:
            return [(names[0], float(verdict == self.passing))]
        numbers, scale = self.numbers(verdict), self.asked_scale
        if not numbers:
            return []
        mean = sum(numbers) / len(numbers)
        return [(names[0], (mean - scale.lowest) / (scale.highest - scale.lowest))]

    def check(self, judgments: Sequence[Judgment]) -> None:
        """Raise `DataError` for a verdict that no judge can have given."""
        kinds = {(judgment.verdict, judgment.shown): judgment for judgment in judgments}
        for judgment in kinds.values():
            try:
                self._check(judgment)
            except DataError as error:
                raise DataError(f"seed {judgment.seed_id}: {error}") from None

    def _check(self, judgment: Judgment) -> None:
        self.values(judgment)
        if self.kind == "report":
            self.scores(judgment.verdict)
        if self.kind != "place":
            return
        for place in (judgment.verdict or "").split(" "):
            if place.isdecimal() and int(place) > judgment.shown:
                raise DataError(
                    f"verdict {judgment.verdict!r} names an utterance that was not shown, of "
                    f"{judgment.shown}; delete that line and judge again"
                )

    def offers(self, utterances: tuple[str, ...], verdict: Verdict) -> bool:
        """Return whether an annotator may say that: what judges may, or that they cannot tell."""
        if self.kind == "place" and verdict in (UNDECIDED, MISSING):
            return verdict == UNDECIDED
        return verdict in self.reading(utterances).choices

    @property
    def passing(self) -> Verdict | None:
        """The verdict that finds nothing wrong with a dialogue; None where the kind has none."""
        return {"place": "No", "report": "0"}.get(self.kind)

    def seen(self, dialogues: Dialogues) -> Dialogues:
        """Dialogues alone as judges see them: cut to N where there is one; shorter ones are out."""
        if self.n is None or self.shows != "one":
            return dialogues
        cut = {
            name: {i: each.cut(self.n) for i, each in by.items() if len(each.utterances) >= self.n}
            for name, by in dialogues.items()
        }
        return {name: by for name, by in cut.items() if by}


def comparable(
    a: Dialogue | None, b: Dialogue | None, n: int | None
) -> tuple[Dialogue, Dialogue, int] | None:
    """Return two dialogues and the utterances shown of both; None if one is absent or too short.

    With a human dialogue both are cut to its length if that is below ``n``; without either, such as
    answers to a question, both are shown whole.
    """
    if a is None or b is None:
        return None
    lengths = len(a.utterances), len(b.utterances)
    size, whole = max(lengths) if n is None else n, n is None
    for dialogue in (a, b):
        if dialogue.contestant == HUMAN:
            size, whole = min(size, len(dialogue.utterances)), False
    return (a, b, size) if whole or 0 < size <= min(lengths) else None

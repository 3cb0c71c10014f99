"""A protocol as a value: a question about dialogues, and the kind of its answer.

And its verdicts: who is preferred, on which judges are compared. An unreadable one is no win, tie
or loss.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations
from typing import Literal

import numpy as np

from botchat import prompts
from botchat.errors import ConfigError, DataError
from botchat.interfaces import (
    Case,
    CaseRef,
    Kind,
    MakeCase,
    ShownDialogue,
    ShownDialogues,
    Subject,
    settings_digest,
)
from botchat.languages import ENGLISH, Language
from botchat.metrics.verdicts import LOSS, NO_CONTESTANT, WIN, PairVerdict, PairVerdicts
from botchat.protocols.kinds import Answer, Graded, Score, result_of
from botchat.protocols.verdicts import ReplyReader
from botchat.records import (
    HUMAN,
    Dialogue,
    Dialogues,
    Judgment,
    Names,
    Seeds,
    Utterances,
    Verdict,
    eligible_seeds,
    is_bare,
)

PASS_AT = (4, 8, 12, 16)  # N of the success rates (BotChat §4.2, Figure 4)


@dataclass(frozen=True)
class Protocol:
    """One question that judges are asked about dialogues, and how their answers are read."""

    name: str  # on the command line, and of the folder of its judgments
    title: str
    answer: Answer
    shows: Literal["one", "pair", "human"]  # two are of models, or one of a human
    question: str  # in a line, for readers
    prompts: Names = ()  # files of `botchat.prompts`; the first has the places to fill in
    template: str = ""  # the prompt itself, of a user's criterion
    n: int | None = None  # utterances that dialogues are cut to; None: as long as they are
    short: str = ""  # title where there is little room; by default the same
    explained: str = ""  # for readers of the page, a sentence or two
    leads: bool = False  # its numbers, as the paper's, stand on a board without its name
    about_ai: bool = False  # it asks what tells models from humans
    language: Language = ENGLISH  # of the prompts, the frame around dialogues, and the answers

    @property
    def kind(self) -> Kind:
        """Name of the kind of answer, in cases, digests and on pages."""
        return self.answer.name

    @property
    def is_alone(self) -> bool:
        """Whether a case shows one dialogue by itself."""
        return self.shows == "one"

    @property
    def is_pair(self) -> bool:
        """Whether a case shows the dialogues of two models."""
        return self.shows == "pair"

    @property
    def against_human(self) -> bool:
        """Whether a case shows a model's dialogue beside the human one."""
        return self.shows == "human"

    @property
    def digest(self) -> str:
        """8 hex digits that change with the wording, and with whatever else decides a verdict.

        Raises `ConfigError`: the language lacks the prompt, or reports, which are English only.
        """
        if self.answer.english_only and not self.language.english:
            raise ConfigError(
                f"{self.title} is asked in English only, and this set is {self.language.name} "
                f"({self.language.code}); judge it with another protocol"
            )
        digest = self.language.prompts_digest(*self.prompts)
        if self.template:
            answer = self.answer
            digest = settings_digest(
                self.template,
                answer.name,
                self.shows,
                answer.labels,
                answer.chosen_wins,
                answer.scale,
            )
        if self.language.english:
            return digest
        return settings_digest(digest, self.language.labels)

    @property
    def texts(self) -> list[str]:
        """The wording, in full."""
        if self.template:
            return [self.template]
        return [self.language.text(each) for each in self.prompts]

    @property
    def label(self) -> str:
        """The title where there is little room, with N: ``Arena @16``."""
        label = self.short or self.title
        if self.n is None:
            return label
        return f"{label} @{self.n}"

    @property
    def orders(self) -> int:
        """Orders in which each case is shown."""
        if self.is_alone:
            return 1
        return 2

    @property
    def tests_judges(self) -> bool:
        """Whether its judges are asked about shuffled dialogues too; not where they are cut."""
        return self.subject == "dialogues" and (self.n is None or self.is_pair)

    @property
    def knows_truth(self) -> bool:
        """Whether who wrote what is the right answer: one side, or the whole dialogue, is human."""
        return self.subject == "dialogues" and not self.is_pair

    @property
    def subject(self) -> Subject:
        """Subject of the roles that are put to this question."""
        if self.about_ai and self.answer.names_ai:
            return "dialogues"
        if self.is_pair and self.answer.chosen_wins:
            return "answers"
        return "texts"

    @property
    def base(self) -> str:
        """The name without N: how the protocol is called on the command line."""
        if self.n is None:
            return self.name
        return self.name.removesuffix(f"-n{self.n}")

    def at(self, n: int) -> Protocol:
        """The protocol with dialogues cut to ``n`` utterances: ``arena-n16``."""
        leads = self.leads and not self.is_alone
        return replace(self, name=f"{self.base}-n{n}", n=n, leads=leads)

    @property
    def has_n(self) -> bool:
        """Whether it can be asked of the first N utterances."""
        return self.is_pair or self.answer.has_n

    def spoken(self, language: Language) -> Protocol:
        """The protocol asked in another language."""
        return replace(self, language=language)

    def eligible(self, seeds: Seeds) -> Seeds:
        """Return the seeds that it has cases on; see `botchat.records.eligible_seeds`."""
        if self.is_alone:
            return seeds
        if self.against_human and is_bare(seeds):
            # Next to a human dialogue that ends with the ChatSEED there is nothing to show.
            return []
        return eligible_seeds(seeds)

    def cases(self, seeds: Seeds, dialogues: Dialogues) -> Iterator[MakeCase]:
        """Return a maker (to save memory) of a case for all that is long enough, seed by seed."""
        if self.is_alone:
            for by_seed in dialogues.values():
                for dialogue in by_seed.values():
                    n = len(dialogue.utterances)
                    if n >= (self.n or 0) and (dialogue.complete or n > dialogue.n_seed):
                        shown = (ShownDialogue.of(dialogue, self.n),)
                        yield CaseRef(self.name, dialogue.seed_id, shown, self.case)
        else:
            yield from self._pairs(seeds, dialogues)

    def _pairs(self, seeds: Seeds, dialogues: Dialogues) -> Iterator[MakeCase]:
        """Return the makers of cases that show two dialogues, each pair in both orders."""
        pairs = list(combinations(sorted(dialogues), 2))
        if self.against_human:
            pairs = [(model, HUMAN) for model in sorted(set(dialogues) - {HUMAN})]
        for seed in self.eligible(seeds):
            show = cache(ShownDialogue.of)  # each meets all others
            for a, b in pairs:
                first = dialogues[a].get(seed.id)
                second = dialogues[b].get(seed.id)
                if first is not None and second is not None:
                    size = _limit(first, second, self.n)
                    shortest = min(len(first.utterances), len(second.utterances))
                    if size is None or 0 < size <= shortest:
                        shown = (show(first, size), show(second, size))
                        yield CaseRef(self.name, seed.id, shown, self.case)
                        yield CaseRef(self.name, seed.id, shown[::-1], self.case)

    def case(self, seed_id: str, *shown: ShownDialogue) -> Case:
        """Return the question about one or two dialogues, in this order."""
        mirror = None
        if len(shown) > 1:
            mirror = partial(self.case, seed_id, *shown[::-1])
        return self.make_case(seed_id, shown, partial(self._worded, shown), mirror)

    def make_case(
        self,
        seed_id: str,
        shown: ShownDialogues,
        prompt: str | Callable[[], str],
        mirror: MakeCase | None = None,
    ) -> Case:
        """Return the case that asks ``prompt`` (text, or its maker) about dialogues as shown."""
        reader = self.reading(shown[0].utterances)
        return Case(
            self.name,
            seed_id,
            shown,
            prompt,
            reader.choices,
            reader.read,
            mirror,
            self.kind,
            self.about_ai,
            self.answer.report,
        )

    def reading(self, utterances: Utterances = ()) -> ReplyReader:
        """Return how a reply about a dialogue with these utterances, or about two, is read."""
        return self.answer.reading(utterances, self.language)

    @property
    def score(self) -> Score:
        """The answer of a protocol that asks for scores."""
        assert isinstance(self.answer, Score), self.name
        return self.answer

    def _worded(self, shown: Sequence[ShownDialogue]) -> str:
        """Return the prompt, with the utterances of these dialogues."""
        texts = [self.answer.shown(each.utterances, self.language) for each in shown]
        values = {"conversation": texts[0]}
        if len(texts) == 2:
            values = {"conversation_1": texts[0], "conversation_2": texts[1]}
        wordings = self.texts
        if len(wordings) > 1:
            values["examples"] = "\n\n".join(wordings[1:])
        return prompts.fill(wordings[0], values)

    def check(self, judgments: Sequence[Judgment]) -> None:
        """Raise `DataError` for a verdict, or a number of contestants, that cannot be."""
        kinds = {(each.verdict, each.shown, len(each.contestants)): each for each in judgments}
        for (_, _, n), judgment in kinds.items():
            try:
                if n != self.orders:
                    raise DataError(
                        f"{n} contestants where {self.name} shows {self.orders}; delete that line "
                        "and judge again"
                    )
                self.answer.check(judgment)
            except DataError as error:
                raise DataError(f"seed {judgment.seed_id}: {error}") from None

    def offers(self, utterances: Utterances, verdict: Verdict) -> bool:
        """Return whether an annotator may say that: what judges may, or that they cannot tell."""
        return verdict in self.answer.of_annotators or verdict in self.reading(utterances).choices


def _limit(a: Dialogue, b: Dialogue, n: int | None) -> int | None:
    """Return how many utterances are shown of both at the most; None: they are shown whole.

    With a human dialogue both are cut to its length if that is below ``n``; without either, such as
    answers to a question, both are shown whole.
    """
    limits = [len(each.utterances) for each in (a, b) if each.contestant == HUMAN]
    if n is not None:
        limits.append(n)
    return min(limits, default=None)


def preferences(judgments: Iterable[Judgment], protocol: Protocol) -> list[PairVerdict]:
    """Return which of two is better by each judgment of one protocol, as shown.

    A lone dialogue is compared with `NO_CONTESTANT`: it wins if it passes. Scores, reports compare
    any two dialogues of one seed, in the order of their names. Raises `DataError` for a verdict
    that the protocol does not offer.
    """
    if protocol.is_alone and isinstance(protocol.answer, Graded):
        return _preferences_of_totals(judgments, protocol.answer)
    verdicts = []
    for judgment in judgments:
        first, second = (judgment.contestants + (NO_CONTESTANT,))[:2]
        result = protocol.answer.result(judgment.verdict)
        verdicts.append(PairVerdict(judgment.seed_id, first, second, judgment.judge, result))
    return verdicts


def _preferences_of_totals(judgments: Iterable[Judgment], answer: Graded) -> list[PairVerdict]:
    """Return which of any two dialogues of one seed has the larger sum of numbers."""
    totals = defaultdict[tuple[str, str], dict[str, float]](dict)
    for judgment in judgments:
        total = sum(answer.numbers(judgment.verdict) or (math.nan,))
        totals[judgment.judge, judgment.seed_id][judgment.contestants[0]] = total
    verdicts = []
    for (judge, item), by_name in totals.items():
        for first, second in combinations(sorted(by_name), 2):
            result = result_of(by_name[first] - by_name[second])
            verdicts.append(PairVerdict(item, first, second, judge, result))
    return verdicts


def calibrated(judgments: Iterable[Judgment], protocol: Protocol) -> list[PairVerdict]:
    """Return which of two is better by the sum of the leads in both orders, one a judge and pair.

    Position calibration (ChatEval §3.2; Wang et al. 2023, BPC): unreadable if one order is.
    """
    leads = defaultdict[tuple[str, str, str, str], float](float)
    for judgment in judgments:
        first, second = judgment.contestants
        lead = math.nan
        if judgment.verdict is not None:
            lead = protocol.answer.lead(judgment.verdict)
        swapped = (judgment.seed_id, second, first, judgment.judge)
        if swapped in leads:
            leads[swapped] -= lead
        else:
            leads[judgment.seed_id, first, second, judgment.judge] += lead
    return [
        PairVerdict(item, first, second, judge, result_of(lead))
        for (item, first, second, judge), lead in leads.items()
    ]


def truth(verdicts: PairVerdicts, judge: str) -> PairVerdicts:
    """Return what is known without a judge: which side, or dialogue, is human.

    One verdict of ``judge`` for each item, turn, first and second of ``verdicts``.
    """
    names = np.array(verdicts.contestants, object)
    is_human = names == HUMAN
    known = is_human[verdicts.first] | is_human[verdicts.second]
    known |= (names == NO_CONTESTANT)[verdicts.second]
    asked = replace(verdicts, judges=(judge,), judge=np.zeros_like(verdicts.judge)).only(known)
    once = asked.only(asked.is_latest)
    return replace(once, result=np.where(is_human[once.first], WIN, LOSS))

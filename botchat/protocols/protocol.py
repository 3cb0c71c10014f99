"""A protocol as a value, and the four kinds of answer that decide everything else (DESIGN §1.2).

``place``   ``"No"``, or the 1-based index of the first accused utterance (UniEval); ``"Yes"``: it
            accuses, and names none
``choice``  ``"1"``, ``"2"``, ``"both"`` or ``"neither"`` of two dialogues (Arena, GTEval)
``score``   numbers on a scale, for one text or for each of two (FairEval, one's own criterion)
``report``  errors with type, place and reason; the verdict is their score: ``"-3"`` (diagnosis)

A new kind is a name in `KINDS` and a branch in `Protocol`, where these four are; choices and places
are read by `verdicts`, numbers by `scores`, error lists by `reports`; its tables are a part of
`botchat.boards.protocols`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from types import EllipsisType
from typing import Literal

import numpy as np

from botchat import prompts
from botchat.errors import ConfigError, DataError
from botchat.interfaces import Case, Kind, Report, Shown, Subject, Unmade, settings_digest
from botchat.languages import ENGLISH, Language
from botchat.metrics.annotations import UNTOLD, accused_index
from botchat.protocols import replies, reports, scores
from botchat.protocols.replies import LABELS, Understood
from botchat.protocols.scores import Scale
from botchat.protocols.wording import Wording, wording
from botchat.records import (
    HUMAN,
    N_SEED,
    Dialogue,
    Dialogues,
    Judgment,
    Seed,
    Verdict,
    eligible,
    outline,
)
from botchat.verdicts import Flags, Indices
from botchat.workspace.criteria import KINDS

Shows = Literal["one", "pair", "human"]
"""What a case shows: a dialogue, two models' of one ChatSEED, or a model's beside the human one."""


@dataclass(frozen=True)
class Protocol:
    """One question that judges are asked about dialogues, and how their answers are read."""

    name: str
    """On the command line, and of the folder of its judgments."""
    title: str
    """For headings."""
    kind: Kind
    shows: Shows
    question: str
    """What is asked, in a line, for people."""
    prompts: tuple[str, ...] = ()
    """Files of `botchat.prompts`; the first has the places to fill in."""
    template: str = ""
    """The prompt itself, where it is somebody's own and no file of ours."""
    n: int | None = None
    """Utterances that dialogues are cut to; ``None``: as long as they are."""
    scale: Scale | None = None
    """Of a score."""
    labels: tuple[str, ...] = LABELS
    """Of a choice: what a judge writes for the first, the second, both and neither."""
    chosen_wins: bool = False
    """Of a choice: whether the one that is named is the better; in Arena and GTEval it loses."""
    short: str = ""
    """The title where there is little room; by default the same."""
    explained: str = ""
    """What a reader of the page must know of it, a sentence or two."""
    leads: bool = False
    """Whether its numbers stand on a board without its name: the paper's Elo and success rates."""
    about_ai: bool = False
    """As of `botchat.interfaces.Case`."""
    language: Language = ENGLISH
    """Of the prompts, the frame around dialogues, and the answers."""

    def __post_init__(self) -> None:
        """Refuse what no kind can be asked about, and a scale without a score."""
        shown = "one" if self.shows == "one" else "pair"
        if shown not in KINDS[self.kind] or (self.scale is None) == (self.kind == "score"):
            raise ValueError(
                f"protocol {self.name}: a {self.kind} shows {' or '.join(KINDS[self.kind])}, and "
                "has a scale if it is a score"
            )

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
        if not self.template:
            found = self.language.prompts_digest(*self.prompts)
        else:
            found = settings_digest(
                self.template, self.kind, self.shows, self.labels, self.chosen_wins, self.scale
            )
        return found if self.language.english else settings_digest(found, self.language.labels)

    @property
    def texts(self) -> list[str]:
        """The wording, in full."""
        return [self.template] if self.template else [*map(self.language.text, self.prompts)]

    @property
    def label(self) -> str:
        """The title where there is little room, with N: ``Arena @16``."""
        return f"{self.short or self.title}{'' if self.n is None else f' @{self.n}'}"

    @property
    def key(self) -> str:
        """The name as a part of column keys: ``arena_n16``."""
        return self.name.replace("-", "_")

    @property
    def orders(self) -> int:
        """Orders in which each case is shown."""
        return 1 if self.shows == "one" else 2

    @property
    def knows_truth(self) -> bool:
        """Whether who wrote what is the right answer: one side, or the whole dialogue, is human."""
        alone = self.kind == "place" and self.shows == "one"
        return self.about_ai and (alone or self.shows == "human")

    @property
    def subject(self) -> Subject:
        """What roles must be about that are put to this question."""
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

    @property
    def wording(self) -> Wording:
        """The frame and the labels of its language."""
        return wording(self.language)

    # ---------------------------------------------------------------------------------- cases

    def eligible(self, seeds: Iterable[Seed]) -> list[Seed]:
        """The seeds that it has cases on; of a pair those of `botchat.records.eligible`."""
        found = list(seeds) if self.shows == "one" else eligible(seeds)
        # Beside a human dialogue that ends with the ChatSEED there is nothing to show.
        return [s for s in found if self.shows != "human" or len(s.utterances) > N_SEED]

    def cases(self, seeds: Iterable[Seed], dialogues: Dialogues) -> Iterator[Callable[[], Case]]:
        """A maker (to save memory) of a case for all that is long enough, seed by seed."""
        about = self._about
        if self.shows == "one":
            for by_seed in dialogues.values():
                for dialogue in by_seed.values():
                    if dialogue.complete or len(dialogue.utterances) > dialogue.n_seed:
                        for alone in self.shown(dialogue):
                            yield Unmade(self.name, dialogue.seed_id, (alone,), about)
            return
        pairs = list(combinations(sorted(dialogues), 2))
        if self.shows == "human":
            pairs = [(model, HUMAN) for model in sorted(set(dialogues) - {HUMAN})]
        for seed in self.eligible(seeds):
            there: dict[tuple[str, int], Shown] = {}  # each meets all others
            for a, b in pairs:
                found = comparable(dialogues[a].get(seed.id), dialogues[b].get(seed.id), self.n)
                if found:
                    end = found[2]
                    one = there.get((a, end)) or there.setdefault((a, end), Shown.of(found[0], end))
                    two = there.get((b, end)) or there.setdefault((b, end), Shown.of(found[1], end))
                    yield Unmade(self.name, seed.id, (one, two), about)
                    yield Unmade(self.name, seed.id, (two, one), about)

    def one(self, seed_id: str, contestant: str, utterances: Sequence[str]) -> Case:
        """The question about one dialogue, in which two take turns."""
        return self._about(seed_id, Shown(contestant, tuple(utterances)))

    def pair(self, seed_id: str, first: Dialogue, second: Dialogue, n: int) -> Case:
        """The question about two dialogues, cut to ``n`` utterances and shown in this order."""
        return self._about(seed_id, Shown.of(first, n), Shown.of(second, n))

    def _about(self, seed_id: str, *shown: Shown) -> Case:
        mirror = partial(self._about, seed_id, *reversed(shown)) if len(shown) > 1 else None
        return self.asked(seed_id, shown, partial(self._worded, shown), mirror)

    def shown(self, *dialogues: Dialogue) -> tuple[Shown, ...]:
        """What a case shows of one or two dialogues; empty: they are too short to compare."""
        first, *others = dialogues
        if others:
            found = comparable(first, others[0], self.n)
            return tuple(Shown.of(one, found[2]) for one in dialogues) if found else ()
        return (Shown.of(first, self.n),) if len(first.utterances) >= (self.n or 0) else ()

    def asked(
        self,
        seed_id: str,
        shown: tuple[Shown, ...],
        prompt: str | Callable[[], str],
        mirror: Callable[[], Case] | None = None,
    ) -> Case:
        """The case that asks ``prompt``, or what that makes, about what is shown."""
        reading = self.reading(shown[0].utterances)
        report: Report = "asked" if self.kind == "report" else "none"
        if self.scale is not None and self.scale.points_off:
            report = "read"
        return Case(
            self.name,
            seed_id,
            shown,
            prompt,
            *reading,
            mirror=mirror,
            kind=self.kind,
            about_ai=self.about_ai,
            report=report,
        )

    def reading(self, utterances: tuple[str, ...] = ()) -> Understood:
        """How a reply about a dialogue with these utterances, or about two, is understood."""
        if self.kind == "place":
            return replies.place(len(utterances), self.language)
        if self.kind == "choice":
            return replies.choice(self.labels, self.language)
        if self.kind == "report":
            return Understood(
                reports.choices(len(utterances)),
                partial(reports.read_diagnosis, utterances=utterances),
            )
        read = partial(scores.read, scale=self.asked_scale, language=self.language)
        return Understood(scores.choices(self.asked_scale), read)

    @property
    def asked_scale(self) -> Scale:
        """The scale of the whole verdict: of a pair every number twice, first dialogue first."""
        assert self.scale is not None, self.name
        if self.shows == "one":
            return self.scale
        names = (f"{name} {i}" for i in (1, 2) for name in self.scale.names)
        return replace(self.scale, names=tuple(names))

    def _framed(self, shown: Shown) -> str:
        if self.kind == "report":
            return reports.numbered(shown.utterances)
        said = self.wording.conversation(shown.utterances)
        return scores.harmless(said, self.asked_scale) if self.kind == "score" else said

    def _worded(self, shown: Sequence[Shown]) -> str:
        """The prompt, with the utterances of these dialogues."""
        names = ["conversation"] if len(shown) == 1 else ["conversation_1", "conversation_2"]
        told = dict(zip(names, map(self._framed, shown), strict=True))
        if self.template:
            return prompts.fill_text(self.template, self.name, **told)
        first, *examples = self.prompts
        if examples:
            told["examples"] = "\n\n".join(map(self.language.text, examples))
        return self.language.fill(first, **told)

    # ------------------------------------------------------------------------------- verdicts

    def result(self, verdict: Verdict | None) -> float | None:
        """Result of a comparison for the contestant shown first: 1 win, ½ tie, 0 loss.

        In Arena and GTEval the contestant whose conversation alone is AI-involved loses, Both and
        Neither are ties (BotChat §3.3); by scores the higher sum wins. An unreadable verdict has no
        result. Raises `DataError` for a verdict that the protocol does not offer.
        """
        lead = self.lead(verdict)
        return None if lead is None else 0.5 if abs(lead) < 1e-9 else float(lead > 0)

    def lead(self, verdict: Verdict | None) -> float | None:
        """How far the first shown is ahead: by its scores, or ½, 0 or -½; see `result`."""
        if verdict is None:
            return None
        if self.kind == "score" and (given := self.numbers(verdict)):
            half = len(given) // 2
            return sum(given[:half]) - sum(given[half:])
        named_first = {"1": 0.5, "2": -0.5, "both": 0.0, "neither": 0.0}.get(verdict)
        if named_first is None:
            raise DataError(
                f"verdict {verdict!r} of a pairwise judgment is none of 1, 2, both, neither; "
                "delete that line and judge again"
            )
        return named_first if self.chosen_wins else -named_first

    def numbers(self, verdict: Verdict | None) -> tuple[float, ...] | None:
        """The numbers of a score or a report's verdict, where all are there; raises as `told`."""
        told = self.told(verdict) or ()
        found = tuple(number for number in told if number is not None)
        return found if found and len(found) == len(told) else None

    def told(self, verdict: Verdict | None) -> tuple[float | None, ...] | None:
        """The same, ``None`` for one that the reply does not tell; `DataError` if it is neither."""
        if verdict is None:
            return None
        return scores.told(verdict, 1 if self.kind == "report" else len(self.asked_scale.names))

    def values(self, judgment: Judgment) -> list[tuple[str, float]]:
        """What a verdict gives each contestant that was shown, 0 to 1; empty if it is unreadable.

        Of a comparison its result; of a place or a report 1 where nothing is found, else 0; of a
        score the mean of its numbers, the ends of the scale as 0 and 1. Raises `DataError` for a
        verdict that the protocol does not offer, or of another number of contestants.
        """
        verdict, shown = judgment.verdict, judgment.contestants
        if len(shown) != (size := 1 if self.shows == "one" else 2):
            raise DataError(
                f"{len(shown)} contestants where {self.name} shows {size}; delete that line and "
                "judge again"
            )
        if verdict is None:
            return []
        if self.shows != "one":
            result = self.result(verdict)
            return [] if result is None else [(shown[0], result), (shown[1], 1 - result)]
        if self.kind == "place":
            accused = accused_index(verdict, f"{judgment.judge} on seed {judgment.seed_id}")
            return [(shown[0], 0.5 if accused == UNTOLD else float(not accused))]
        if self.innocent is not None:
            return [(shown[0], float(verdict == self.innocent))]
        numbers = self.numbers(verdict)
        if numbers is None:
            return []
        return [(shown[0], self.asked_scale.part(sum(numbers) / len(numbers)))]

    @property
    def innocent(self) -> Verdict | None:
        """The verdict that finds nothing wrong with a dialogue; ``None`` where there is none."""
        return {"place": "No", "report": "0"}.get(self.kind)

    def seen(self, dialogues: Dialogues) -> Dialogues:
        """Dialogues alone as judges see them: cut to N where there is one; shorter ones are out."""
        if self.n is None or self.shows != "one":
            return dialogues
        cut = {
            name: {i: one.cut(self.n) for i, one in by.items() if len(one.utterances) >= self.n}
            for name, by in dialogues.items()
        }
        return {name: by for name, by in cut.items() if by}


def comparable(
    a: Dialogue | None, b: Dialogue | None, n: int | None
) -> tuple[Dialogue, Dialogue, int] | None:
    """Two dialogues and the utterances shown of both; ``None`` if one is absent or too short.

    Beside a human dialogue both are cut to its length if that is below ``n``. Without an N and
    people, such as answers to a question, both are shown whole.
    """
    if a is None or b is None:
        return None
    lengths = len(a.utterances), len(b.utterances)
    shown, whole = max(lengths) if n is None else n, n is None
    for one in (a, b) if HUMAN in (a.contestant, b.contestant) else ():
        if one.contestant == HUMAN:
            shown, whole = min(shown, len(one.utterances)), False
    return (a, b, shown) if whole or 0 < shown <= min(lengths) else None


_ANY = 1 << 40
"""More utterances than any dialogue has."""


class Field:
    """A pairwise protocol by numbers: who can be compared, on which seeds."""

    def __init__(self, protocol: Protocol, seeds: Iterable[Seed], dialogues: Dialogues) -> None:
        """The same comparisons as of ``protocol.cases``; without N, of any length."""
        self.protocol = protocol
        self.contestants = tuple(sorted(dialogues))
        self.seed_ids = tuple(seed.id for seed in protocol.eligible(seeds))
        known = [outline(dialogues[name]).lengths for name in self.contestants]
        lengths = [of.get(seed_id, 0) for of in known for seed_id in self.seed_ids]
        shape = len(self.contestants), len(self.seed_ids)
        self._length = np.array(lengths, dtype=np.intp).reshape(shape)
        human = np.array([name == HUMAN for name in self.contestants])
        n = _ANY if protocol.n is None else protocol.n
        self._wanted = np.where(human[:, None], np.minimum(self._length, n), n)

    def obstacles(
        self, i: int | Indices, j: int | Indices, seed: Indices | EllipsisType = ...
    ) -> tuple[Flags, Flags]:
        """Seeds on which a dialogue of either of two contestants is absent, and is too short.

        Several contestants at a time, as numpy broadcasts; or each pair on one ``seed``.
        """
        shorter = np.minimum(self._length[i, seed], self._length[j, seed])
        wanted = np.minimum(self._wanted[i, seed], self._wanted[j, seed])
        absent = shorter == 0
        return absent, ~absent & (shorter < wanted)

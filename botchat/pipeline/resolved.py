"""A run as it was asked for, with the seed set that it reads once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from botchat.errors import ConfigError, UsageError
from botchat.languages import ENGLISH, Language
from botchat.metrics.statistics import LEAST
from botchat.pipeline.spending import NO_JUDGE, NO_LIMITS, JudgeName, Spending
from botchat.protocols.controls import shuffled_dialogues
from botchat.protocols.protocol import Protocol
from botchat.records import Dialogue, Dialogues, Seeds, Texts, Utterances
from botchat.workspace.config import ModelName
from botchat.workspace.folder import Workspace
from botchat.workspace.model_settings import FREE, Prices

if TYPE_CHECKING:
    from botchat.judges.rules import RulesJudge
    from botchat.models.bots import Bot


@dataclass(frozen=True)
class SeedSet:
    """A seed set as it was read, with the bots and the judge that are made of it, each once."""

    name: str
    seeds: Seeds
    """The whole set; of a benchmark none."""
    language: Language = ENGLISH
    _bots: dict[str, Bot] = field(default_factory=dict, repr=False)

    @cached_property
    def _human_dialogues(self) -> tuple[Utterances, ...]:
        return tuple(seed.utterances for seed in self.seeds)

    def bot(self, name: str) -> Bot:
        """Return ``bot:<name>``; raises `ConfigError` if there is none for this set."""
        from botchat.models.bots import baseline

        if name not in self._bots:
            self._bots[name] = baseline(
                name.removeprefix("bot:"), self._human_dialogues, self.language
            )
        return self._bots[name]

    @cached_property
    def rules(self) -> RulesJudge:
        """The offline judge. Raises `ConfigError` for a set that is not English."""
        from botchat.judges.rules import RulesJudge

        if not self.language.english:
            raise ConfigError(
                f"the judge rules reads English only, and this set is {self.language.name} "
                f"({self.language.code}); name a model as the judge"
            )
        return RulesJudge(self._human_dialogues)


class ModelUse(NamedTuple):
    """A model, and what it is opened for."""

    model: ModelName
    stage: str
    """Label of its calls in the ledger."""
    step: str
    """Row of a plan that counts its calls: ``generate``, or a protocol."""
    max_tokens: int | None
    """Longest reply; None: no limit."""

    @property
    def prices(self) -> Prices:
        """Prices of its entry; a bot has none and is free."""
        settings = self.model.settings
        if settings is None:
            return FREE
        return settings.prices


def read_seed_set(workspace: Workspace, name: str) -> SeedSet:
    """Read a set; raises `MissingDataError`, `DataError`, and `ConfigError` for its language."""
    return SeedSet(name, workspace.seeds(name), workspace.language(name))


@dataclass(frozen=True)
class ResolvedRun:
    """All that a run depends on, checked and read at its door; its parts ask the disk no more."""

    workspace: Workspace
    seed_set: SeedSet
    limits: Spending = NO_LIMITS
    models: Texts = ()
    """Contestants as they were named, each once."""
    judge: JudgeName = NO_JUDGE
    protocols: Sequence[Protocol] = ()
    """Protocols to judge by, in the language of the set."""
    limit: int | None = None
    """Number of first seeds (None: all)."""
    replace: bool = False
    """Overwrite stored dialogues that differ."""
    partner: str | None = None
    """Second speaker (cross-play)."""
    turns: int | None = None
    """Utterances of a dialogue (default: the settings')."""
    at: Sequence[int] = ()
    """Judge the first N utterances, for each of these N."""
    comparisons: int | None = None
    """Number of pairs to draw at random at each N."""

    def with_usual(self) -> ResolvedRun:
        """Return the same, with what ``[run]`` of botchat.toml says where it names nothing."""
        usual = self.workspace.config.run
        limit = self.limit
        if limit is None:
            limit = usual.limit
        models = tuple(dict.fromkeys(self.models or usual.models))
        return replace(self, models=models, judge=self.judge.or_usual(usual), limit=limit)

    @property
    def first_seeds(self) -> Seeds:
        """The first ``limit`` seeds, or all; raises `UsageError` for a limit below 1."""
        limit = self.limit
        if limit is not None and limit < 1:
            raise UsageError(f"--limit {limit}: at least one seed is needed")
        return self.seed_set.seeds[:limit]

    @property
    def length(self) -> int:
        """Utterances of a finished dialogue."""
        if self.turns is not None:
            return self.turns
        return self.workspace.config.generation.turns

    def shuffled_dialogues(self) -> dict[str, Dialogue]:
        """Return the shuffled dialogues that test a judge; none where they are too few."""
        shuffled = shuffled_dialogues(self.seed_set.seeds, self.workspace.config.run.shuffled)
        if len(shuffled) < LEAST:
            return {}
        return shuffled

    def stored_dialogues(self) -> Dialogues:
        """Read the dialogues of every generated contestant of the set."""
        return self.workspace.all_dialogues(self.seed_set.name, self.seed_set.seeds)

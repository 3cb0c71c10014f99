"""``botchat probe --polarity``: do the roles of a panel pull against the question?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Decoding, Row
from botchat.languages import Language
from botchat.models.bots import baseline
from botchat.models.self_chat import Length, Speaker, extend
from botchat.parallel import together
from botchat.pipeline.run import plan
from botchat.pipeline.run.ask import Asked, Cases
from botchat.pipeline.run.contestants import of_people
from botchat.pipeline.run.session import JudgeName, Spending
from botchat.pipeline.run.slices import refuse_guarantee
from botchat.pipeline.run.work import Meter, run_now
from botchat.protocols.probe_polarity import POLARITY, floor
from botchat.records import HUMAN, Dialogue, Seed
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from pandas import DataFrame

    from botchat.boards.tables import Table


@dataclass(frozen=True)
class Polarity:
    """Which way a judge and its roles pull."""

    judge: str
    table: Table
    """See `botchat.boards.polarity.polarity`."""
    lines: Sequence[str]
    """The same in words."""
    path: Path
    unanswered: int
    """Verdicts that another run may still get."""

    @property
    def frame(self) -> DataFrame:
        """The table's exact numbers."""
        return self.table.frame

    @property
    def rows(self) -> Sequence[Row]:
        """The same, JSON-ready."""
        return self.table.records


@dataclass(frozen=True)
class ProbingPolarity:
    """The request of ``botchat probe --polarity``: a floor bot beside people, in both orders."""

    seed_set: str
    """Whose human dialogues of 4 and more utterances are used."""
    judge: JudgeName
    limit: int | None = None
    """Only the first so many dialogues."""

    def plan(self, workspace: Workspace) -> list[plan.Planned]:
        """What `run` would send; errors as there."""
        return self._asked(workspace).plan(workspace)

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> Polarity:
        """Ask and count; `MissingError` where no human dialogue is long enough."""
        from botchat.boards import polarity  # pandas, which no run needs

        asked = self._asked(workspace)
        (judged,) = asked.run(workspace, spending, meter)
        made = workspace.judgments(judged.path)
        cases = (make() for one in asked.cases for make in one.make)
        judgments = [made[case.seed_id, case.contestants] for case in cases]
        found = polarity.polarity(judged.judge, judgments, judgments[0].signature)
        lines = list(polarity.lines(found))
        return Polarity(judged.judge, found, lines, judged.path, judged.unanswered)

    def _asked(self, workspace: Workspace) -> Asked:
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"--limit {self.limit}: at least one dialogue is needed")
        refuse_guarantee(workspace, self.judge, "a probe")
        whole, language = workspace.seeds(self.seed_set), workspace.language(self.seed_set)
        protocol = POLARITY.spoken(language)
        seeds = protocol.eligible(whole)[: self.limit]
        if not seeds:
            raise MissingError(
                f"no dialogue of the set {self.seed_set!r} has 4 and more utterances, so there is "
                "nothing to put beside a bot's; import a set of longer dialogues"
            )
        bot = run_now(_extended(seeds, whole, language))
        dialogues = {f"bot:{floor(language)}": bot, HUMAN: of_people(seeds)}
        cases = Cases(protocol, list(protocol.cases(seeds, dialogues)))
        return Asked(self.seed_set, whole, self.judge, [cases])


async def _extended(
    seeds: Sequence[Seed], whole: Sequence[Seed], language: Language
) -> dict[str, Dialogue]:
    """The floor bot's dialogue of each seed, as long as the human one."""
    bot = baseline(floor(language), [seed.utterances for seed in whole], language)
    speakers, length = [Speaker(bot, Decoding())], Length(None, len)
    made = await together(
        extend(seed, speakers, len(seed.utterances), length, str, language) for seed in seeds
    )
    return {dialogue.seed_id: dialogue for dialogue in made}

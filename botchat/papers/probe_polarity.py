"""``botchat bench polarity``: whether a panel's roles pull against the question, where it is plain.

The question is GTEval's (BotChat §3.4), about a floor bot's dialogue beside the human one of the
same ChatSEED, in both orders: whoever understands it names the bot's. A role that is told to find
the *better* one, as ChatEval's are (Appendix A), names the person's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Decoding, Row
from botchat.languages import Language
from botchat.models.bots import baseline
from botchat.models.self_chat import Length, Speaker, extend
from botchat.papers.requests import ProbingPolarity
from botchat.parallel import together
from botchat.pipeline.run.ask import Asked, Cases, refuse_guarantee
from botchat.pipeline.run.contestants import of_people
from botchat.pipeline.run.results import Plan
from botchat.pipeline.run.work import Meter, run_now
from botchat.protocols.catalogue import GTEVAL
from botchat.records import HUMAN, Dialogue, Seed
from botchat.requests.arguments import Spending
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from pandas import DataFrame

    from botchat.boards.tables import Table


POLARITY = replace(GTEVAL, name="probe/polarity", title="Polarity")
"""A folder deeper than the judgments that rank: no stage takes one for one of them."""


def floor(language: Language) -> str:
    """The bot that nobody takes for a person; the one that says that it is an AI speaks English."""
    return "verbose" if language.english else "retrieval"


@dataclass(frozen=True)
class Polarity:
    """Which way a judge and its roles pull."""

    judge: str
    table: Table
    """See `botchat.papers.polarity.polarity`."""
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
    def shown(self) -> list[str | Table]:
        """The table, and the same in words."""
        return [self.table, self.table.note, *self.lines, self.table.signature]

    @property
    def whole(self) -> Row:
        """All of it, JSON-ready."""
        return {
            "judge": self.judge,
            "rows": self.rows,
            "lines": self.lines,
            "signature": self.table.signature,
            "path": self.path,
        }

    @property
    def rows(self) -> Sequence[Row]:
        """The same, JSON-ready."""
        return self.table.records


def plan_polarity(request: ProbingPolarity, workspace: Workspace) -> Plan:
    """What `polarity` would send."""
    return _beside_people(request, workspace).plan(workspace)


def polarity(
    request: ProbingPolarity, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Polarity:
    """Ask and count; `MissingError` where no human dialogue is long enough."""
    from botchat.papers import polarity as boards  # pandas, which no run needs

    asked = _beside_people(request, workspace)
    (judged,) = asked.run(workspace, spending, meter)
    made = workspace.judgments(judged.path)
    cases = (make() for one in asked.cases for make in one.make)
    judgments = [made[case.seed_id, case.contestants] for case in cases]
    found = boards.polarity(judged.judge, judgments, judgments[0].signature)
    lines = list(boards.lines(found))
    return Polarity(judged.judge, found, lines, judged.path, judged.unanswered)


def _beside_people(request: ProbingPolarity, workspace: Workspace) -> Asked:
    if request.limit is not None and request.limit < 1:
        raise ConfigError(f"--limit {request.limit}: at least one dialogue is needed")
    refuse_guarantee(workspace, request.judge_name, "a probe")
    whole, language = workspace.seeds(request.seed_set), workspace.language(request.seed_set)
    protocol = POLARITY.spoken(language)
    seeds = protocol.eligible(whole)[: request.limit]
    if not seeds:
        raise MissingError(
            f"no dialogue of the set {request.seed_set!r} has 4 and more utterances, so there is "
            "nothing to put beside a bot's; import a set of longer dialogues"
        )
    bot = run_now(_extended(seeds, whole, language))
    dialogues = {f"bot:{floor(language)}": bot, HUMAN: of_people(seeds)}
    cases = Cases(protocol, list(protocol.cases(seeds, dialogues)))
    return Asked(request.seed_set, whole, request.judge_name, [cases])


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

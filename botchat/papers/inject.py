"""``botchat inject``: a model puts errors into stories, for a benchmark whose truth is known.

What comes out is a folder in MATEval's layout, for ``botchat bench mateval``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from botchat.arguments import Spending
from botchat.errors import ConfigError, DataError
from botchat.interfaces import Message, Row, adapted, settings_digest
from botchat.languages import EN, Language, built_in
from botchat.models.self_chat import Length, Speaker
from botchat.papers import injection
from botchat.papers.injection import Injected
from botchat.papers.mateval_columns import COLUMNS
from botchat.pipeline.evaluate import read_items
from botchat.pipeline.run import plan
from botchat.pipeline.run.plan import PlanningSession
from botchat.pipeline.run.session import Session, in_session
from botchat.pipeline.run.work import Meter, Step, Stops, work_through
from botchat.protocols.items import TEXTS, plain
from botchat.protocols.texts import ERROR_TYPES, OwnText
from botchat.records import VERSION
from botchat.workspace import files
from botchat.workspace.folder import SAMPLE, Workspace

if TYPE_CHECKING:
    from pandas import DataFrame

STAGE = "inject"


@dataclass(frozen=True)
class Made:
    """What `Injecting.run` wrote."""

    rows: Sequence[Row]
    """One a kind of error, and ``all``: how many were asked for, how many are in the stories."""
    left_out: Sequence[str]
    """Stories without a usable reply, and why."""
    unanswered: int
    """Stories that another run may still get a reply for."""
    path: Path
    signature: str

    @property
    def frame(self) -> DataFrame:
        """The rows as a data frame."""
        from botchat.boards.frames import frame_of  # pandas, which no run needs

        return frame_of(self.rows)


@dataclass(frozen=True)
class Injecting:
    """The request of ``botchat inject``; replies that are in the ledger are not asked for again."""

    file: Path
    """Stories, see `botchat.protocols.items`; in MATEval's layout those without errors."""
    model: str
    out: Path
    """Folder to write ``<name of the file>_stories.csv`` to."""
    language: str = EN
    """Of the stories: one with MATEval's names of the kinds, ``en`` or ``zh``."""
    words: int = injection.WORDS
    """A story is cut behind the last sentence within so many words."""
    limit: int | None = None
    """Only the first so many stories."""
    rng_seed: int = 0
    """Decides which kinds a story gets."""

    def plan(self, workspace: Workspace) -> plan.Plan:
        """What `run` would send; errors as there."""
        language, listed = self._read()

        async def walk(session: PlanningSession, _: Length) -> None:
            speaker = session.speaker(self.model, STAGE)
            session.about = (STAGE, (speaker.model.name,))
            for one in listed:
                await self._ask(speaker, one, language)

        return plan.plan(workspace, workspace.seeds(SAMPLE), walk, language)

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> Made:
        """Ask, check what comes back, and write the stories that have what they should have.

        Raises as `botchat.pipeline.generate.Generating.run`, and `DataError`: the file, with its
        row and column, or no reply that can be used.
        """
        (made,) = in_session(
            workspace, workspace.seeds(SAMPLE), spending, meter, partial(self._all), self._read()[0]
        )
        return made

    async def _all(self, session: Session, stops: Stops) -> list[Made]:
        language, listed = self._read()
        speaker = session.speaker(self.model, STAGE)
        step = Step(self.file.stem, STAGE, speaker.model.name, len(listed), 1)
        session.meter.begin(STAGE, len(listed))
        session.meter.steps.append(step)
        found: dict[str, Injected | str | None] = {}

        async def do(one: OwnText) -> None:
            with step.item():
                found[one.id] = await self._ask(speaker, one, language)
            session.meter.advance()

        await work_through(listed, do, speaker.model.parallel, stops, speaker.model.name)
        stops.raise_first()
        return [self._written(listed, found, speaker, language)]

    async def _ask(
        self, speaker: Speaker, one: OwnText, language: Language
    ) -> Injected | str | None:
        """The story with its errors, or why there is none; ``None``: no answer was to be had."""
        story = injection.cut(one.text, self.words, language)
        kinds = injection.kinds_of(one, self.rng_seed)
        asked = injection.request(story, kinds, language)
        reply = await speaker.model.chat([Message(role="user", content=asked)], speaker.decoding)
        if reply.usable:
            return injection.read(reply.text, story, kinds, language)
        return (reply.detail or reply.outcome) if reply.answered else None

    def _written(
        self,
        listed: Sequence[OwnText],
        found: dict[str, Injected | str | None],
        speaker: Speaker,
        language: Language,
    ) -> Made:
        made = [one for text in listed if isinstance(one := found[text.id], Injected)]
        left_out = [f"{id_}: {why}" for id_, why in found.items() if isinstance(why, str)]
        if not made and left_out:
            raise DataError(
                f"none of {len(listed)} stories came back with errors as asked for "
                f"({left_out[0]}); {speaker.model.name} may be too weak for this: name another "
                "with --model"
            )
        asked = Counter(code for one in listed for code in injection.kinds_of(one, self.rng_seed))
        there = Counter(error.code for one in made for error in one.errors)
        rows: list[Row] = [
            {"error_type": code, "asked_for": asked[code], "in_stories": there[code]}
            for code in ERROR_TYPES
        ]
        totals = {"asked_for": asked.total(), "in_stories": there.total()}
        rows.append({"error_type": "all", **totals, "stories": len(made)})
        settings = settings_digest(speaker.model.identity, speaker.decoding.settings)
        signature = (
            f"botchat:{VERSION}|inject{language.signed}|words:{self.words}|seed:{self.rng_seed}"
            f"|prompt:{language.prompts_digest(injection.PROMPT)}|settings:{settings}"
            f"{adapted([speaker.model])}"
        )
        files.write_all(
            self.out,
            {
                f"{self.file.stem}_stories.csv": injection.as_csv(made, language),
                "signature.txt": f"{signature}\n",
            },
        )
        unanswered = sum(one is None for one in found.values())
        return Made(
            rows, left_out, unanswered, self.out / f"{self.file.stem}_stories.csv", signature
        )

    def _read(self) -> tuple[Language, list[OwnText]]:
        if self.words < 1:
            raise ConfigError(f"--words {self.words}: at least one is needed")
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"--limit {self.limit}: at least one story is needed")
        if self.out.is_file():
            raise ConfigError(f"--out {self.out} is a file; name a folder")
        known = {code: one for code, one in built_in().items() if code in COLUMNS}
        if self.language not in known:
            raise ConfigError(
                f"--language {self.language}: the kinds of error have names in {', '.join(known)}"
            )
        # MATEval's own stories have errors already; beside them stand those they were made of.
        columns = [*(plain(of.original) for of in COLUMNS.values()), *TEXTS]
        found = read_items(self.file, columns=columns)
        listed = [one for one in found if isinstance(one, OwnText)][: self.limit]
        if not listed:
            raise ConfigError(f"{self.file}: it holds pairs of answers; give stories, one a row")
        return known[self.language], listed

"""Stage 1 on a workspace: which dialogues are missing, made at once, stored one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from botchat import __version__, prompts
from botchat.errors import ConfigError
from botchat.interfaces import settings_digest
from botchat.models.self_chat import PROMPT, Length, Speaker, extend
from botchat.parallel import together
from botchat.pipeline import plan
from botchat.pipeline.run import Meter, Stops, run_now, work_through
from botchat.pipeline.session import Session, Spending, open_session
from botchat.records import N_SEED, UNANSWERED, Dialogue, Seed
from botchat.workspace import files
from botchat.workspace.folder import Workspace, dialogue_order


@dataclass(frozen=True)
class Generated:
    """What `generate` made for one contestant."""

    model: str
    complete: int
    stopped: dict[str, int]
    """Outcome -> dialogues that stopped with it."""
    new: int
    """Dialogues made in this run."""
    path: Path

    @property
    def unanswered(self) -> int:
        """Dialogues that another run may still finish."""
        return sum(n for status, n in self.stopped.items() if status in UNANSWERED)


@dataclass(frozen=True)
class Generating:
    """The request of ``botchat generate``; what is there already is not made again."""

    seed_set: str
    models: tuple[str, ...]
    """Names as on the command line."""
    partner: str | None = None
    """Second speaker (cross-play)."""
    turns: int | None = None
    """Utterances of a finished dialogue; ``None``: botchat.toml, else 16."""
    limit: int | None = None
    """Only the first so many seeds."""

    def plan(self, workspace: Workspace) -> list[plan.Planned]:
        """What `run` would send; errors as there."""
        run = _Run.of(self, workspace, Meter())
        return plan.plan(workspace, run.all_seeds, run.walk)

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> list[Generated]:
        """Extend every ChatSEED by each model.

        Raises:
            ConfigError, MissingError, DataError: before anything is sent.
            FatalModelError: a model could not answer at all; the others are done.
            LimitReached: a limit was reached; the same request goes on where this one stopped.
        """
        run = _Run.of(self, workspace, meter or Meter())
        with workspace.locked():
            return run_now(run.all(spending or Spending()))


@dataclass
class _Run:
    request: Generating
    workspace: Workspace
    turns: int
    all_seeds: Sequence[Seed]
    seeds: Sequence[Seed]
    meter: Meter

    @classmethod
    def of(cls, request: Generating, workspace: Workspace, meter: Meter) -> _Run:
        """A request with its settings checked and its seeds read."""
        turns = workspace.config.generation.turns if request.turns is None else request.turns
        if turns <= N_SEED:
            raise ConfigError(
                f"--turns {turns}: a dialogue starts with {N_SEED} human utterances, so at least "
                f"{N_SEED + 1} are needed for anything to be generated"
            )
        if request.limit is not None and request.limit < 1:
            raise ConfigError(f"--limit {request.limit}: at least one seed is needed")
        seeds = workspace.seeds(request.seed_set)
        return cls(request, workspace, turns, seeds, seeds[: request.limit], meter)

    async def all(self, spending: Spending) -> list[Generated]:
        length = plan.text_length()
        stops = Stops()
        async with open_session(self.workspace, self.all_seeds, spending, self.meter) as session:
            jobs = self._jobs(session)
            self.meter.begin("generate", sum(len(job.pending) for job in jobs))
            results = await together(self._one(job, length, stops) for job in jobs)
        stops.raise_first()
        return results

    async def walk(self, session: Session, length: Length) -> None:
        """Extend what is missing and store nothing."""
        for job in self._jobs(session):
            for seed in job.pending:
                await extend(seed, job.speakers, self.turns, length, job.signature)

    def _jobs(self, session: Session) -> list[_Job]:
        """One job a contestant. Every name is resolved before the first call is sent."""
        found = [self._job(session, model) for model in self.request.models]
        return list({job.contestant: job for job in found}.values())

    def _job(self, session: Session, model: str) -> _Job:
        speakers = [session.speaker(name) for name in (model, self.request.partner) if name]
        names = [speaker.model.name for speaker in speakers]
        signature = self._signature(speakers)
        contestant = " + ".join(names)
        path = self.workspace.dialogues_path(self.request.seed_set, contestant)
        have = self.workspace.dialogues(self.request.seed_set, contestant)
        pending = [seed for seed in self.seeds if not _done(have.get(seed.id), seed, signature)]
        return _Job(contestant, speakers, signature, path, have, pending)

    async def _one(self, job: _Job, length: Length, stops: Stops) -> Generated:
        with files.Appender[Dialogue](job.path) as file:

            async def do(seed: Seed) -> None:
                made = await extend(seed, job.speakers, self.turns, length, job.signature)
                file.append(made)
                job.have[seed.id] = made
                self.meter.done += 1

            parallel = min(speaker.model.parallel for speaker in job.speakers)
            await work_through(job.pending, do, parallel, stops, job.contestant)
        if job.have:
            files.finish(job.path, job.have.values(), dialogue_order)
        statuses = [job.have[seed.id].status for seed in self.seeds if seed.id in job.have]
        stopped = [status.removeprefix("stopped:") for status in statuses if status != "complete"]
        return Generated(
            model=job.contestant,
            path=job.path,
            complete=statuses.count("complete"),
            stopped={status: stopped.count(status) for status in sorted(set(stopped))},
            new=len(job.pending),
        )

    def _signature(self, speakers: Sequence[Speaker]) -> str:
        settings = settings_digest(
            *((speaker.model.identity, speaker.decoding.settings) for speaker in speakers)
        )
        return (
            f"botchat:{__version__}|generate|set:{self.request.seed_set}|n:{self.turns}"
            f"|prompt:{prompts.digest(PROMPT)}|settings:{settings}"
        )


@dataclass
class _Job:
    contestant: str
    speakers: Sequence[Speaker]
    signature: str
    path: Path
    have: dict[str, Dialogue]
    pending: list[Seed]


def _done(dialogue: Dialogue | None, seed: Seed, signature: str) -> bool:
    """Whether a stored dialogue is what this run would make, and final."""
    return (
        dialogue is not None
        and dialogue.signature == signature
        and dialogue.utterances[:N_SEED] == seed.utterances[:N_SEED]
        and dialogue.status.removeprefix("stopped:") not in UNANSWERED
    )

"""Stage 1 on a workspace: which dialogues are missing, made at once, stored one by one."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path

from botchat.errors import ConfigError
from botchat.interfaces import quirks_suffix, settings_digest
from botchat.metrics.reply_faults import dialogue_faults
from botchat.models.self_chat import PROMPT, TokenCounter, generate_dialogue
from botchat.parallel import together
from botchat.pipeline.run import plan
from botchat.pipeline.run.meter import Meter
from botchat.pipeline.run.plan import Plan, PlanningSession
from botchat.pipeline.run.session import Session, in_session
from botchat.pipeline.run.spending import Spending
from botchat.pipeline.run.work import Stops, work_through
from botchat.records import N_SEED, SIGNED, UNANSWERED, Dialogue, Seed
from botchat.results import Result
from botchat.workspace import jsonl, provenance
from botchat.workspace.folder import Workspace, stage_order
from botchat.workspace.ledger import Ledger
from botchat.workspace.usage import call_facts

log = logging.getLogger("botchat")

MOST_TURNS = 1_000
"""Utterances of a dialogue; each is asked for with all before it, so money grows as the square."""


@dataclass(frozen=True)
class Generating:
    """Which dialogues are to be there."""

    seed_set: str
    models: Sequence[str]
    partner: str | None = None
    """Second speaker (cross-play)."""
    turns: int | None = None
    """Utterances of a dialogue; None: as the settings say."""
    limit: int | None = None
    """Only the first seeds."""
    replace: bool = False
    """Also in place of dialogues that were made with other settings."""


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
        return sum(n for outcome, n in self.stopped.items() if outcome in UNANSWERED)


def plan_generate(request: Generating, workspace: Workspace) -> Plan:
    """What `generate` would send."""
    _, seeds = checked(request, workspace)

    async def walked(session: PlanningSession, counter: TokenCounter) -> None:
        await walk(request, workspace, session, counter)

    return plan.plan(workspace, seeds, walked, workspace.language(request.seed_set))


async def walk(
    request: Generating, workspace: Workspace, session: PlanningSession, counter: TokenCounter
) -> dict[str, dict[str, Dialogue]]:
    """The contestants' dialogues, as they are or as a plan makes them up; nothing is stored."""
    turns, seeds = checked(request, workspace)
    jobs = _jobs(request, workspace, session, turns, seeds)
    for job in jobs:
        session.about = ("generate", (job.contestant,))
        for seed in job.pending:
            job.have[seed.id] = await job.make(seed, counter)
    return {job.contestant: job.have for job in jobs}


def generate(
    request: Generating, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Result:
    """Extend every ChatSEED by each model."""
    _, seeds = checked(request, workspace)
    language = workspace.language(request.seed_set)
    asked = partial(ask, request, workspace)
    made = in_session(workspace, seeds, spending, meter, asked, language)
    rows = [asdict(each) for each in made]
    return Result({"rows": rows}, [rows], sum(each.unanswered for each in made))


async def ask(
    request: Generating, workspace: Workspace, session: Session, stops: Stops
) -> list[Generated]:
    """`generate` in a session that is there."""
    turns, seeds = checked(request, workspace)
    jobs, counter = _jobs(request, workspace, session, turns, seeds), plan.token_counter()
    for job in jobs:
        if job.pending:
            jsonl.Appender[Dialogue](job.path).ready()
    n_calls = (turns - N_SEED) * sum(len(job.pending) for job in jobs)
    session.meter.begin("generate", n_calls, by_replies=True)
    made = await together(job.run(counter, stops) for job in jobs)
    calls = {job.contestant: [*_calls(job.have.values())] for job in jobs}
    new = {one.model for one in made if one.new}
    provenance.note(workspace, session.ledger, request.seed_set, "generate", calls, new)
    return made


def checked(request: Generating, workspace: Workspace) -> tuple[int, list[Seed]]:
    """Utterances of a finished dialogue, and the whole set, after a check of the settings."""
    turns = workspace.config.generation.turns if request.turns is None else request.turns
    if turns <= N_SEED:
        raise ConfigError(
            f"--turns {turns}: a dialogue starts with {N_SEED} human utterances, so at least "
            f"{N_SEED + 1} are needed for anything to be generated"
        )
    if turns > MOST_TURNS:
        raise ConfigError(f"--turns {turns}: a dialogue has at most {MOST_TURNS:,} utterances")
    seeds = workspace.seeds(request.seed_set)
    if not all(seed.utterances for seed in seeds):
        raise ConfigError(
            f"{request.seed_set} has no ChatSEEDs: there is nothing to go on "
            "with; name another --seeds"
        )
    return turns, seeds


def _jobs(
    request: Generating, workspace: Workspace, session: Session, turns: int, seeds: Sequence[Seed]
) -> list[_Job]:
    """One job a contestant. Every name is resolved before the first call is sent."""
    jobs: dict[str, _Job] = {}
    for model in dict.fromkeys(request.models):
        job = _Job(request, workspace, session, model, turns, seeds)
        jobs[job.contestant] = job
    if not request.replace:
        for job in jobs.values():
            job.refuse_others(session.ledger)
    return list(jobs.values())


def first_seeds(seeds: Sequence[Seed], limit: int | None) -> Sequence[Seed]:
    """The first ``limit`` seeds, or all; `ConfigError` for a limit below 1."""
    if limit is not None and limit < 1:
        raise ConfigError(f"--limit {limit}: at least one seed is needed")
    return seeds[:limit]


def _made_by(signature: str) -> list[str]:
    """What a dialogue's signature says of the models: what they were told, and their settings."""
    return [part for part in signature.split("|") if part.startswith(("prompt:", "settings:"))]


def _calls(dialogues: Iterable[Dialogue]) -> Iterator[str]:
    """Ledger keys of the utterances."""
    return (fact.call for one in dialogues for fact in one.facts if fact.call)


class _Job:
    """The dialogues of one contestant."""

    def __init__(
        self,
        request: Generating,
        workspace: Workspace,
        session: Session,
        model: str,
        turns: int,
        seeds: Sequence[Seed],
    ) -> None:
        """``turns``: utterances of a finished dialogue; ``seeds``: the whole set."""
        partner = () if request.partner is None else (request.partner,)
        self.names: tuple[str, ...] = (model, *partner)
        """Who speaks, as on the command line."""
        self.speakers = [session.speaker(name) for name in self.names]
        self.contestant = " + ".join(speaker.model.name for speaker in self.speakers)
        self.seed_set, self.turns = request.seed_set, turns
        self.language = workspace.language(self.seed_set)
        settings = settings_digest(
            *((speaker.model.identity, speaker.decoding.settings) for speaker in self.speakers)
        )
        own = (None if one.system is None else settings_digest(one.system) for one in self.speakers)
        # Two digests, where two are told two things.
        told = dict.fromkeys(one or self.language.prompts_digest(PROMPT) for one in own)
        self._asked = (
            f"{SIGNED}|generate|set:{self.seed_set}{self.language.signed}|n:{turns}"
            f"|prompt:{'+'.join(told)}|settings:{settings}"
        )
        self.path = workspace.dialogues_path(self.seed_set, self.contestant)
        self.have = workspace.dialogues(self.seed_set, self.contestant)
        self._seeds = first_seeds(seeds, request.limit)
        self._warned: set[str] = set()

    @cached_property
    def pending(self) -> list[Seed]:
        """Seeds whose stored dialogue is not what this run would make, or is not final."""
        signature = self.sign()
        return [
            seed
            for seed in self._seeds
            if (dialogue := self.have.get(seed.id)) is None
            or dialogue.signature != signature
            or dialogue.utterances[:N_SEED] != seed.utterances[:N_SEED]
            or not dialogue.answered
        ]

    def sign(self) -> str:
        return self._asked + quirks_suffix(speaker.model for speaker in self.speakers)

    def refuse_others(self, ledger: Ledger) -> None:
        """`ConfigError` where dialogues would be overwritten that somebody else made."""
        known = [self.have[seed.id] for seed in self.pending if seed.id in self.have]
        others = [d for d in known if d.answered and _made_by(d.signature) != _made_by(self._asked)]
        if not others or "bot" in self.speakers[0].model.identity:
            return
        speaker, a_call = self.speakers[0], next(iter(_calls(others)), "")
        before = call_facts(ledger, "key=?", a_call).settings
        system = speaker.system or self.language.text(PROMPT)
        now = {**speaker.model.identity, **speaker.decoding.settings}
        now["system_prompt"] = settings_digest(system)
        differ = [
            f"{key} {before.get(key)} → {now.get(key)}"
            for key in sorted({*before, *now})
            if before and before.get(key) != now.get(key)
        ]
        raise ConfigError(
            f"{self.contestant} has {len(others)} dialogues on {self.seed_set} that were made with "
            f"other settings ({', '.join(differ) or 'unknown'}), and nothing was sent; keep both: "
            "set identity, revision or display_name in its [models] entry; or make them anew with "
            "--replace"
        )

    async def make(self, seed: Seed, counter: TokenCounter) -> Dialogue:
        return await generate_dialogue(
            seed, self.speakers, self.turns, counter, self.sign, self.language
        )

    def warn(self, dialogue: Dialogue) -> None:
        """Report each kind of fault once, while the run goes on."""
        if "bot" in self.speakers[0].model.identity:
            return
        for kind, sentence in dialogue_faults(dialogue):
            if kind not in self._warned:
                self._warned.add(kind)
                log.warning(f"{self.contestant} on {dialogue.seed_id}: {sentence}")

    async def run(self, counter: TokenCounter, stops: Stops) -> Generated:
        new = self.pending
        with jsonl.Appender[Dialogue](self.path) as file:

            async def do(seed: Seed) -> None:
                made = await self.make(seed, counter)
                file.append(made)
                self.warn(made)
                self.have[seed.id] = made

            parallel = min(speaker.model.parallel for speaker in self.speakers)
            await work_through(new, do, parallel, stops, self.contestant)
        if any(dialogue.answered for dialogue in self.have.values()):
            jsonl.finish(self.path, self.have.values(), stage_order)
        else:  # no contestant as yet
            self.path.unlink(missing_ok=True)
        found = Counter(self.have[seed.id].status for seed in self._seeds if seed.id in self.have)
        complete = found.pop("complete", 0)
        stopped = {status.removeprefix("stopped:"): found[status] for status in sorted(found)}
        return Generated(self.contestant, complete, stopped, len(new), self.path)

"""Stage 1 on a workspace: missing dialogues are generated at once and stored one by one."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from botchat.errors import ConfigError, UsageError, listed, log
from botchat.frames import fill_text
from botchat.interfaces import quirks_suffix, settings_digest
from botchat.parallel import EarlyStop, run_concurrently, together
from botchat.pipeline.ledger import record_provenance
from botchat.pipeline.plan import DryRunModels, ask_or_plan
from botchat.pipeline.resolved import ResolvedRun
from botchat.pipeline.session import Session, token_counter
from botchat.pipeline.spending import Meter
from botchat.protocols.generation import PROMPT, dialogue_faults, generate_dialogue
from botchat.records import LOOKED_UP_AGAIN, N_SEED, SIGNED, Dialogue, Dialogues, Seed
from botchat.results import Result
from botchat.workspace import jsonl
from botchat.workspace.folder import settle
from botchat.workspace.ledger import Ledger
from botchat.workspace.usage import call_facts, calls_of

MOST_TURNS = 1_000
"""Utterances of a dialogue; each is asked for with all before it, so money grows as the square."""


# Dialogues of a model that a plan makes up.
WALKED = 32


class Generated(NamedTuple):
    """Dialogues of one contestant after `generate`."""

    model: str
    complete: int
    stopped: dict[str, int]
    """Outcome -> dialogues that stopped with it."""
    new: int
    """Dialogues made in this run."""
    path: Path
    unanswered: int
    """Dialogues that another run may still get."""


def generate(run: ResolvedRun, meter: Meter) -> Result:
    """Extend every ChatSEED by each model, or plan to; a row a contestant.

    Raises `ConfigError` if nothing can be generated.
    """
    _check_turns(run)
    return ask_or_plan(run, meter, f"{', '.join(run.models)} on {run.seed_set.name}", walk, ask)


async def walk(session: Session, models: DryRunModels) -> Dialogues:
    """Return the contestants' dialogues, stored or as a plan makes them up; store nothing."""
    dialogues = {}
    for job in _jobs(session):
        # Those that are walked are as long, together, as all are.
        pending = sorted(job.pending, key=lambda seed: sum(map(len, seed.utterances[:N_SEED])))
        walked = await models.walk(pending, WALKED, job.make)
        for seed, like in zip(pending, cycle(walked), strict=False):
            utterances = seed.utterances[:N_SEED] + like.utterances[N_SEED:]
            job.dialogues[seed.id] = replace(like, seed_id=seed.id, utterances=utterances)
        job.dialogues |= {dialogue.seed_id: dialogue for dialogue in walked}
        dialogues[job.contestant] = job.dialogues
    return dialogues


async def ask(session: Session, stops: EarlyStop) -> list[Generated]:
    """Do as `generate`, in a session that is open."""
    jobs = _jobs(session)
    for job in jobs:
        if job.pending:
            job.file.ready()
    n_calls = sum((job.turns - N_SEED) * len(job.pending) for job in jobs)
    session.meter.begin(f"generate · {listed(session.run.models, 2)}", n_calls, by_replies=True)
    generated = await together(job.run(stops) for job in jobs)
    calls = {job.contestant: calls_of(job.dialogues.values()) for job in jobs}
    new = {each.model for each in generated if each.new}
    record_provenance(session, "generate", calls, new)
    return generated


def _check_turns(run: ResolvedRun) -> None:
    """Raise `ConfigError` if no dialogue of the run's length can be made."""
    turns = run.length
    if turns <= N_SEED:
        raise UsageError(
            f"--turns {turns}: a dialogue starts with {N_SEED} human utterances, so at least "
            f"{N_SEED + 1} are needed for anything to be generated"
        )
    if turns > MOST_TURNS:
        raise UsageError(f"--turns {turns}: a dialogue has at most {MOST_TURNS:,} utterances")
    if not all(seed.utterances for seed in run.seed_set.seeds):
        raise ConfigError(
            f"{run.seed_set.name} has no ChatSEEDs: there is nothing to go on "
            "with; name another --seeds"
        )


def _jobs(session: Session) -> list[_Job]:
    """Return one job a contestant. Every name is resolved before the first call is sent."""
    run = session.run
    _check_turns(run)
    jobs = {}
    for model in run.models:
        job = _Job(session, model)
        jobs[job.contestant] = job
    if not run.replace:
        for job in jobs.values():
            job.refuse_others(session.ledger)
    return list(jobs.values())


def _settings_parts(signature: str) -> list[str]:
    """Return the parts of a dialogue's signature about the models' prompts and settings."""
    return [part for part in signature.split("|") if part.startswith(("prompt:", "settings:"))]


class _Job:
    """The dialogues of one contestant."""

    def __init__(self, session: Session, model: str) -> None:
        """Continue the run's seeds up to its length."""
        run = session.run
        self._seeds = run.first_seeds
        self.turns = run.length
        names = [model]
        if run.partner is not None:
            names.append(run.partner)
        self.speakers = [session.speaker(name) for name in names]
        self.models = [speaker.model for speaker in self.speakers]
        self.contestant = " + ".join(model.name for model in self.models)
        self.seed_set = run.seed_set.name
        self.language = run.seed_set.language
        settings = [(each.model.identity, each.decoding.settings) for each in self.speakers]
        prompts: dict[str, None] = {}  # two digests, where two have two prompts
        for speaker in self.speakers:
            digest = self.language.prompts_digest(PROMPT)
            if speaker.system is not None:
                digest = settings_digest(speaker.system)
            prompts[digest] = None
        self._signature = (
            f"{SIGNED}|generate|set:{self.seed_set}{self.language.signed}|n:{self.turns}"
            f"|prompt:{'+'.join(prompts)}|settings:{settings_digest(*settings)}"
        )
        self.path = run.workspace.dialogues_path(self.seed_set, self.contestant)
        self.file = jsonl.Appender[Dialogue](self.path)
        self.dialogues = run.workspace.dialogues(self.seed_set, self.contestant)
        self._counter = token_counter()
        self._warned: set[str] = set()
        self._n_new = 0

    @cached_property
    def pending(self) -> list[Seed]:
        """Seeds without a final dialogue that was made as this run would make it."""
        signature = self.sign()
        return [seed for seed in self._seeds if not self._is_final(seed, signature)]

    def _is_final(self, seed: Seed, signature: str) -> bool:
        dialogue = self.dialogues.get(seed.id)
        if dialogue is None or dialogue.signature != signature:
            return False
        begins_as_seed = dialogue.utterances[:N_SEED] == seed.utterances[:N_SEED]
        return begins_as_seed and dialogue.outcome not in LOOKED_UP_AGAIN

    def sign(self) -> str:
        return self._signature + quirks_suffix(self.models)

    @property
    def _is_bot(self) -> bool:
        return "bot" in self.models[0].identity

    def refuse_others(self, ledger: Ledger) -> None:
        """Raise `ConfigError` if dialogues made with other settings would be overwritten."""
        others = self._others()
        if not others or self._is_bot:
            return
        speaker = self.speakers[0]
        now = {**speaker.model.identity, **speaker.decoding.settings}
        now["system_prompt"] = settings_digest(speaker.system or self.language.text(PROMPT))
        before = {}
        for call in ledger.calls("WHERE key=?", next(filter(None, calls_of(others)), "")):
            before = call_facts(call).settings
        raise ConfigError(
            fill_text(
                "pipeline/other_settings.txt",
                job=self,
                others=others,
                before=before,
                now=now,
            )
        )

    def _others(self) -> list[Dialogue]:
        """Return the dialogues to make again that were made with other settings."""
        parts = _settings_parts(self._signature)
        others = []
        for seed in self.pending:
            dialogue = self.dialogues.get(seed.id)
            # Nothing is lost with a dialogue that has no utterance, or that is made anew anyway.
            if dialogue is None or not dialogue.facts or dialogue.outcome in LOOKED_UP_AGAIN:
                continue
            if _settings_parts(dialogue.signature) != parts:
                others.append(dialogue)
        return others

    async def make(self, seed: Seed) -> Dialogue:
        return await generate_dialogue(
            seed, self.speakers, self.turns, self._counter, self.sign, self.language
        )

    def warn(self, dialogue: Dialogue) -> None:
        """Report each kind of fault and of stop once, while the run goes on."""
        faults = {}
        if not self._is_bot:
            faults = dict(dialogue_faults(dialogue))
        outcome = dialogue.outcome
        # The model whose turn it was; `Watch` tells of empty replies of one that thinks.
        model = self.models[len(dialogue.facts) % len(self.models)]
        is_expected = outcome == "empty" and model.quirks.thinks
        if dialogue.answered and not dialogue.complete and not is_expected:
            faults[outcome] = f"stopped, {outcome}: {' '.join(dialogue.detail.split())}"
        for kind, sentence in faults.items():
            if kind not in self._warned:
                self._warned.add(kind)
                log.warning(f"{self.contestant} on {dialogue.seed_id}: {sentence}")

    async def run(self, stops: EarlyStop) -> Generated:
        with self.file:

            async def extend(seed: Seed) -> None:
                dialogue = await self.make(seed)
                stored = self.dialogues.get(seed.id)
                # Tokens may not be counted here.
                if stored is not None and replace(dialogue, facts=stored.facts) == stored:
                    return  # it was looked up again, and nothing was paid
                self.file.append(dialogue)
                self.warn(dialogue)
                self.dialogues[seed.id] = dialogue
                self._n_new += 1

            parallel = min(model.parallel for model in self.models)
            await run_concurrently(self.pending, extend, parallel, stops, self.contestant)
        settle(self.path, self.dialogues.values())
        dialogues = [self.dialogues[seed.id] for seed in self._seeds if seed.id in self.dialogues]
        stopped = Counter(dialogue.outcome for dialogue in dialogues)
        complete = stopped.pop("complete", 0)
        return Generated(
            self.contestant,
            complete,
            dict(sorted(stopped.items())),
            self._n_new,
            self.path,
            unanswered=len(self._seeds) - sum(dialogue.answered for dialogue in dialogues),
        )

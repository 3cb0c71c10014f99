"""Stage 2 on a workspace: which cases are not judged yet, asked at once, stored one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import chain, product

from botchat import __version__, prompts
from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Case, Judge
from botchat.models.self_chat import Length
from botchat.parallel import together
from botchat.pipeline import plan as planning
from botchat.pipeline.run import Meter, Stops, run_now, work_through
from botchat.pipeline.session import Limits, Named, Session, open_session
from botchat.pipeline.stage_file import Filing, Judged
from botchat.protocols import arena, diagnosis, gteval, unieval
from botchat.records import HUMAN, N_SEED, Dialogue, Dialogues, Seed, human_dialogue
from botchat.workspace import config
from botchat.workspace.folder import Workspace

RANKING = ("unieval", "arena", "gteval")
"""The paper's protocols."""

PROTOCOLS = (*RANKING, "diagnosis")


@dataclass(frozen=True)
class Questions:
    """One protocol on one set: its name, its cases, and what its signature says."""

    protocol: str
    make: Sequence[Callable[[], Case]]
    prompt: str
    orders: int
    turns: int | None = None

    def signature(self, seed_set: str, answering: Judge) -> str:
        """What every judgment of this protocol is signed with (DESIGN §4)."""
        n = f"|n:{self.turns}" if self.turns else ""
        return (
            f"botchat:{__version__}|{self.protocol.split('-')[0]}|set:{seed_set}{n}"
            f"|judge:{answering.name}@{answering.digest}|prompt:{self.prompt}|orders:{self.orders}"
        )


def judge(
    workspace: Workspace,
    protocol: str,
    seed_set: str,
    judge_name: str,
    *,
    judge_model: str | None = None,
    models: Sequence[str] = (),
    turns: Sequence[int] = (),
    samples: int = 1,
    control: bool = False,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> list[Judged]:
    """Judge the dialogues of a set in one protocol; what is judged already is not asked again.

    Args:
        workspace: where the dialogues are and the judgments go.
        protocol: one of `PROTOCOLS`.
        seed_set: name of the set.
        judge_name: ``rules``, a ``[judges]`` or ``[panels]`` entry, a preset, or any model.
        judge_model: model of a panel's agents that name none.
        models: contestants; empty: all there are (UniEval, diagnosis: ``human`` too).
        turns: N of the Arena; empty: botchat.toml's, as far as the dialogues reach.
        samples: how often a single judge is asked about each case; the majority decides.
        control: beside a panel, let a single judge vote that is asked as often.
        limits: what the run may cost.
        batch: send every call through its endpoint's Batch API.
        meter: told of the progress.

    Returns:
        One result a protocol; the Arena has one for each N, and all again for the control.
    """
    seeds, asked = _asked(workspace, protocol, seed_set, models, turns)
    return ask(
        workspace,
        seed_set,
        seeds,
        Named(judge_name, judge_model, samples),
        asked,
        control=control,
        limits=limits,
        batch=batch,
        meter=meter,
    )


def ask(
    workspace: Workspace,
    seed_set: str,
    seeds: Sequence[Seed],
    named: Named,
    asked: Sequence[Questions],
    *,
    control: bool = False,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> list[Judged]:
    """Put questions to a judge, one result for each; arguments as of `judge`.

    ``seeds`` is the whole set; ``named`` who is asked, and how often.
    """
    with workspace.locked():
        opened = open_session(workspace, seeds, limits or Limits(), meter or Meter(), batch=batch)
        return run_now(_run(workspace, seed_set, named, asked, opened, control=control))


def plan_judge(
    workspace: Workspace,
    protocol: str,
    seed_set: str,
    judge_name: str,
    *,
    judge_model: str | None = None,
    models: Sequence[str] = (),
    turns: Sequence[int] = (),
    samples: int = 1,
    control: bool = False,
) -> list[planning.Planned]:
    """What `judge` with these arguments would send. Arguments and errors as there."""
    seeds, asked = _asked(workspace, protocol, seed_set, models, turns)
    return plan_ask(
        workspace, seed_set, seeds, Named(judge_name, judge_model, samples), asked, control=control
    )


def plan_ask(
    workspace: Workspace,
    seed_set: str,
    seeds: Sequence[Seed],
    named: Named,
    asked: Sequence[Questions],
    *,
    control: bool = False,
) -> list[planning.Planned]:
    """What `ask` with these arguments would send."""

    async def walk(session: Session, _length: Length) -> None:
        answerers = session.judges(*named, control=control)
        for answering, questions in product(answerers, asked):
            signature = questions.signature(seed_set, answering)
            filing = Filing(workspace, seed_set, questions.protocol, answering, signature)
            for make in questions.make:
                case = make()
                if filing.stored(case) is None:
                    await answering.answer(case)

    return planning.plan(workspace, seeds, walk)


def _asked(
    workspace: Workspace,
    protocol: str,
    seed_set: str,
    models: Sequence[str],
    turns: Sequence[int],
) -> tuple[list[Seed], list[Questions]]:
    if protocol not in PROTOCOLS:
        raise ConfigError(f"unknown protocol {protocol!r}; protocols: {', '.join(PROTOCOLS)}")
    seeds = workspace.seeds(seed_set)
    contestants = pick(workspace, seed_set, seeds, models)
    return seeds, questions(workspace, protocol, seeds, contestants, bool(models), turns)


def pick(
    workspace: Workspace, seed_set: str, seeds: Sequence[Seed], models: Sequence[str]
) -> dict[str, dict[str, Dialogue]]:
    """Dialogues of the contestants asked for, ``human`` among them; empty ``models``: of all.

    Raises:
        MissingError: a model without dialogues, or no dialogues at all.
    """
    generated = workspace.all_dialogues(seed_set)
    human = {seed.id: human_dialogue(seed) for seed in seeds}
    if not generated:
        raise MissingError(
            f"no dialogues in {workspace.root / 'generations' / seed_set}; "
            f"make some with: botchat generate --seeds {seed_set} --model MODEL"
        )
    if not models:
        return {HUMAN: human, **generated}
    found = {}
    for name in models:
        known = generated.get(name) or generated.get(full_name(name, workspace))
        if name == HUMAN:
            found[HUMAN] = human
        elif known is None:
            raise MissingError(
                f"no dialogues of {name!r} on the set {seed_set!r} (there are: "
                f"{', '.join(generated)}); make them with: botchat generate --seeds {seed_set} "
                f"--model {name}"
            )
        else:
            found[next(iter(known.values())).contestant] = known
    return found


def questions(
    workspace: Workspace,
    protocol: str,
    seeds: Sequence[Seed],
    contestants: Dialogues,
    chosen: bool,
    turns: Sequence[int],
) -> list[Questions]:
    """Everything a protocol asks about the dialogues there are.

    Raises:
        ConfigError: N too small, or too few contestants.
        MissingError: there is nothing to ask.
    """
    if turns and protocol != "arena":
        raise ConfigError(f"--turns belongs to the arena; {protocol} has no N of its own")
    if protocol in ("unieval", "diagnosis"):
        everyone = chain.from_iterable(d.values() for d in contestants.values())
        alone = unieval if protocol == "unieval" else diagnosis
        made = list(alone.cases(everyone))
        return [Questions(alone.PROTOCOL, made, prompts.digest(*alone.PROMPTS), 1)]
    if protocol == "gteval":
        if set(contestants) <= {HUMAN}:
            raise ConfigError("GTEval compares models with human: name a model besides human")
        human = {seed.id: human_dialogue(seed) for seed in seeds}
        makers = list(gteval.cases(seeds, {**contestants, HUMAN: human}))
        if not makers:
            raise MissingError(
                "GTEval has nothing to compare: no generated dialogue is as long as its human "
                "one; generate with more --turns, or import seeds with 4 and more utterances"
            )
        return [Questions(gteval.PROTOCOL, makers, prompts.digest(*gteval.PROMPTS), 2)]
    return _arena(workspace, seeds, contestants, chosen, turns)


def _arena(
    workspace: Workspace,
    seeds: Sequence[Seed],
    contestants: Dialogues,
    chosen: bool,
    turns: Sequence[int],
) -> list[Questions]:
    taking_part = arena_contestants(contestants, chosen)
    asked = []
    for n in arena_turns(workspace, turns):
        makers = list(arena.cases(seeds, taking_part, n))
        if makers:
            asked.append(Questions(arena.protocol(n), makers, prompts.digest(*arena.PROMPTS), 2, n))
        elif turns:
            raise too_short(n)
    if not asked:
        raise too_short()
    return asked


def arena_contestants(contestants: Dialogues, chosen: bool) -> Dialogues:
    """Who takes part in the Arena; people only where they are asked for by name (``chosen``).

    Their dialogues end where they end.

    Raises:
        ConfigError: fewer than two.
    """
    taking_part = {name: d for name, d in contestants.items() if chosen or name != HUMAN}
    if len(taking_part) < 2:
        raise ConfigError(
            f"the Arena needs at least two contestants; there is {', '.join(taking_part) or 'none'}"
        )
    return taking_part


def arena_turns(workspace: Workspace, turns: Sequence[int]) -> list[int]:
    """Each N of the Arena: those asked for, or botchat.toml's.

    Raises:
        ConfigError: one at which nothing is generated yet.
    """
    found = list(dict.fromkeys(turns or workspace.config.arena.turns))
    for n in found:
        if n <= N_SEED:
            raise ConfigError(
                f"--turns {n}: the first {N_SEED} utterances are human in every dialogue, so at "
                f"least {N_SEED + 1} are needed"
            )
    return found


def too_short(n: int | None = None) -> MissingError:
    """Nothing can be compared at N = ``n``, or at any."""
    if n is None:
        return MissingError("no two dialogues are long enough to compare; see --turns")
    return MissingError(
        f"no two dialogues of one seed have {n} utterances (and a human dialogue of at "
        f"least 4); generate with --turns {n}"
    )


async def _run(
    workspace: Workspace,
    seed_set: str,
    named: Named,
    asked: Sequence[Questions],
    opened: AbstractAsyncContextManager[Session],
    *,
    control: bool,
) -> list[Judged]:
    stops = Stops()
    async with opened as session:
        answerers = session.judges(*named, control=control)
        meter = session.meter
        meter.begin("judge", len(answerers) * sum(len(questions.make) for questions in asked))
        results = await together(
            _one(workspace, seed_set, answering, questions, stops, meter)
            for answering, questions in product(answerers, asked)
        )
    stops.raise_first()
    return results


async def _one(
    workspace: Workspace,
    seed_set: str,
    answering: Judge,
    questions: Questions,
    stops: Stops,
    meter: Meter,
) -> Judged:
    signature = questions.signature(seed_set, answering)
    with Filing(workspace, seed_set, questions.protocol, answering, signature) as filing:

        async def do(make: Callable[[], Case]) -> None:
            await filing.settle(make())
            meter.done += 1

        await work_through(questions.make, do, answering.parallel, stops, answering.name)
        if filing.n_asked == len(questions.make):
            filing.whole()
    return filing.judged()


def full_name(name: str, workspace: Workspace) -> str:
    """A model's name as it is filed (an endpoint's without credentials)."""
    try:
        return config.model_name(name, workspace.config).name
    except ConfigError:
        return name

"""Names of contestants and judges, resolved to their dialogues and settings."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from operator import itemgetter
from typing import TypeVar

import msgspec

from botchat.errors import ConfigError, MissingDataError, did_you_mean, listed
from botchat.judges.debate import SWAPPED
from botchat.judges.function import JudgeFunction
from botchat.judges.voting import Rule, aggregate, first_remarks, is_vote
from botchat.pipeline.resolved import ResolvedRun
from botchat.protocols.protocol import Protocol
from botchat.records import (
    HUMAN,
    Dialogue,
    Dialogues,
    Judged,
    JudgeId,
    Judgment,
    Seed,
    Seeds,
    Texts,
    Verdict,
    human_dialogue,
    is_bare,
)
from botchat.workspace import config, panels
from botchat.workspace.folder import SAMPLE, Workspace
from botchat.workspace.panels import DECOMPOSER, FEEDBACK, PanelSettings

T = TypeVar("T")


def seed_set_of(workspace: Workspace, name: str) -> str:
    """Return the set that a command is about: named, of ``[run]``, or the only one.

    Raises `ConfigError` if there are several.
    """
    own = [known for known in workspace.seed_sets() if known != SAMPLE] or [SAMPLE]
    name = name or workspace.config.run.seeds or own[0] * (len(own) == 1)
    if name:
        return name
    raise ConfigError(f"name a set with --seeds, or seeds in [run]: {listed(own)}")


def select_dialogues(run: ResolvedRun, generated: Dialogues) -> Dialogues:
    """Return the dialogues of a run's models, or if it names none of all contestants and ``human``.

    ``generated``: contestant -> seed id -> dialogue. `MissingDataError` for a model without
    dialogues, or no dialogues at all.
    """
    workspace = run.workspace
    seed_set = run.seed_set.name
    if not generated:
        raise MissingDataError(
            f"no dialogues in {workspace.root / 'generations' / seed_set}; "
            f"make some with: botchat generate --seeds {seed_set} --model MODEL"
        )
    known = with_humans(run.seed_set.seeds, generated)
    contestants = {}
    for model in run.models or known:
        name = model if model in known else stored_name(model, workspace)
        if name not in known:
            raise MissingDataError(
                f"no dialogues of {model!r} on the set {seed_set!r}"
                f"{did_you_mean(model, generated)} (there are: {listed(generated)}); "
                f"make them with: botchat generate --seeds {seed_set} "
                f"--model {model}"
            )
        contestants[name] = known[name]
    return contestants


def with_humans(seeds: Seeds, generated: Dialogues) -> Dialogues:
    """Return the dialogues of models and of ``human``, who has none in a set of ChatSEEDs alone."""
    if is_bare(seeds):
        return generated
    return {HUMAN: human_dialogues(seeds), **generated}


def human_dialogues(seeds: Seeds) -> dict[str, Dialogue]:
    """Return the human dialogues of a set by seed id."""
    return {seed.id: human_dialogue(seed) for seed in seeds if seed.utterances}


def dialogues_on(seeds: Iterable[Seed], dialogues: Dialogues) -> dict[str, dict[str, Dialogue]]:
    """Return the dialogues of some seeds, by contestant."""
    ids = {seed.id for seed in seeds}
    kept = {}
    for name, by_seed in dialogues.items():
        kept[name] = {id_: dialogue for id_, dialogue in by_seed.items() if id_ in ids}
    return kept


def begun_seeds(seeds: Seeds, dialogues: Dialogues, judged: Iterable[str] = ()) -> list[Seed]:
    """Return the seeds that any model was given or that are ``judged``; else all of them."""
    started = chain.from_iterable(dialogues[name] for name in dialogues if name != HUMAN)
    begun = {*judged, *started}
    return [seed for seed in seeds if seed.id in begun] or list(seeds)


def in_turn(drawn: Iterable[tuple[object, T]]) -> list[T]:
    """Return items, given as (group, item), in turn: the first of each group, then the second."""
    n_before = Counter[object]()
    rounds = []
    for group, item in drawn:
        rounds.append((n_before[group], item))
        n_before[group] += 1
    rounds.sort(key=itemgetter(0))
    return [item for _, item in rounds]


def stored_name(name: str, workspace: Workspace) -> str:
    """Return a model's name as it is filed (an endpoint's without credentials)."""
    try:
        return config.model_name(name, workspace.config).name
    except ConfigError:
        return name


def self_judged_models(
    workspace: Workspace, judge: str | JudgeFunction, contestants: Iterable[str]
) -> list[str]:
    """Return the contestants that are the judge's own model, whatever it is called."""
    if isinstance(judge, JudgeFunction):
        return []  # whatever models it asks, it asks them by itself
    asked = JudgeId.parse(judge)
    panel = panel_of(workspace, asked.name)
    if panel is not None:
        names = {asked.model, *[member.model or "" for member in panel.members]}
    else:
        names = {_judging_model(workspace, asked)}

    def identity(name: str) -> object:
        entry = workspace.config.models.get(name)
        if entry:
            return entry.model, entry.base_url
        return stored_name(name, workspace)

    own = {identity(name) for name in names}
    return [name for name in contestants if not own.isdisjoint(map(identity, name.split(" + ")))]


def _judging_model(workspace: Workspace, asked: JudgeId) -> str:
    """Return the model that a judge of one model asks."""
    entry = workspace.config.judges.get(asked.asked_once)
    if entry is None:
        return asked.asked_once
    return entry.model


def single_judges(workspace: Workspace, judges: Texts) -> dict[str, Texts]:
    """Return debate -> the judges that are one of its models alone.

    A debate is a judge whose votes before it are judges too.
    """
    models = {}
    for judge in judges:
        asked = JudgeId.parse(judge)
        if asked.role == "judge":
            models[judge] = _judging_model(workspace, asked)
    singles: dict[str, Texts] = {}
    for debate in models:
        if str(JudgeId(debate, "votes_before_debate")) in judges:
            own = self_judged_models(workspace, debate, models.values())
            singles[debate] = [name for name, model in models.items() if model in own]
    return singles


def panel_of(workspace: Workspace, judge: str) -> PanelSettings | None:
    """Return the settings of a panel; None if the judge is none, such as a control."""
    asked = JudgeId.parse(judge)
    if asked.is_control:
        return None
    return panels.find(asked.panel, workspace.config.panels)


def with_controls(workspace: Workspace, judged: Judged, protocol: Protocol) -> Judged:
    """Return judges by name, each debate followed by its own votes before the debate."""
    choices = protocol.reading().choices
    judges = {}
    for name in sorted(judged):
        judges[name] = judged[name]
        if is_debate(judged[name]):
            settings = panel_of(workspace, name)
            rule: Rule = "mean"
            if settings is not None:
                rule = settings.decides
            control = str(JudgeId(name, "votes_before_debate"))
            judges[control] = votes_before_debate(judged[name], choices, rule)
    return judges


def is_debate(judgments: Sequence[Judgment]) -> bool:
    """Return whether agents of the panel hear each other: speak twice, or get feedback.

    A decomposed question has no votes before the debate: first remarks answer a part of it.
    """
    speakers = set()
    is_alone = True
    speaks_twice = False
    for judgment in judgments:
        speakers.update([remark.speaker for remark in judgment.transcript])
        voters = [remark.speaker for remark in judgment.transcript if is_vote(remark)]
        if len({voter.removesuffix(SWAPPED) for voter in voters}) > 1:
            is_alone = False
        if len(set(voters)) < len(voters):
            speaks_twice = True
    if is_alone or DECOMPOSER in speakers:
        return False
    return speaks_twice or FEEDBACK in speakers


def votes_before_debate(
    judgments: Sequence[Judgment],
    choices: Collection[Verdict],
    rule: Rule = "mean",
) -> list[Judgment]:
    """Return a panel's judgments without the debate; ``choices``: what each could be."""
    votes = []
    for judgment in judgments:
        first = first_remarks(judgment.transcript)
        votes.append(
            msgspec.structs.replace(
                judgment,
                judge=str(JudgeId(judgment.judge, "votes_before_debate")),
                verdict=aggregate((remark.verdict for remark in first), choices, rule),
                reason="",
                transcript=(),
                calls=tuple([remark.call for remark in first if remark.call]),
            )
        )
    return votes

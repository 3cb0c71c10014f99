"""Who stands in what is judged, and who judges: names -> dialogues, settings, names on file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from botchat.errors import ConfigError, MissingDataError, did_you_mean
from botchat.judges.panel import BEFORE_TALK, CALL_MATCHED, is_debate, votes_before_debate
from botchat.judges.single import base_judge_name
from botchat.protocols.protocol import Protocol
from botchat.records import (
    HUMAN,
    N_SEED,
    Dialogue,
    Dialogues,
    Judgment,
    Seed,
    human_dialogue,
)
from botchat.workspace import config, panels
from botchat.workspace.folder import SAMPLE, Workspace
from botchat.workspace.panels import PanelSettings

T = TypeVar("T")


def seed_set_of(workspace: Workspace, name: str = "") -> str:
    """Return the set that a command is about: named, of ``[run]``, or the only one.

    Raises `ConfigError` if there are several.
    """
    own = [known for known in workspace.seed_sets() if known != SAMPLE] or [SAMPLE]
    if name := name or workspace.config.run.seeds or own[0] * (len(own) == 1):
        return name
    raise ConfigError(f"name a set with --seeds, or seeds in [run]: {', '.join(own[:8])}")


def select_dialogues(
    workspace: Workspace,
    seed_set: str,
    seeds: Sequence[Seed],
    models: Sequence[str],
    generated: Dialogues | None = None,
) -> Dialogues:
    """Dialogues of the contestants asked for; empty ``models``: of all, ``human`` among them.

    ``generated``: in place of those that are stored; contestant -> seed id -> dialogue.
    `MissingDataError` for a model without dialogues, or no dialogues at all.
    """
    if generated is None:
        generated = workspace.all_dialogues(seed_set)
    human = human_dialogues(seeds)
    if not generated:
        raise MissingDataError(
            f"no dialogues in {workspace.root / 'generations' / seed_set}; "
            f"make some with: botchat generate --seeds {seed_set} --model MODEL"
        )
    if not models:
        return {HUMAN: human, **generated}
    found: dict[str, Mapping[str, Dialogue]] = {}
    for name in models:
        known = generated.get(name) or generated.get(stored_name(name, workspace))
        if name == HUMAN:
            found[HUMAN] = human
        elif known is None:
            raise MissingDataError(
                f"no dialogues of {name!r} on the set {seed_set!r}"
                f"{did_you_mean(name, generated)} (there are: {', '.join(generated)}); "
                f"make them with: botchat generate --seeds {seed_set} "
                f"--model {name}"
            )
        else:
            found[next(iter(known.values())).contestant] = known
    return found


def human_dialogues(seeds: Sequence[Seed]) -> dict[str, Dialogue]:
    """The human dialogues of a set by seed id."""
    return {seed.id: human_dialogue(seed) for seed in seeds if seed.utterances}


def stored_name(name: str, workspace: Workspace) -> str:
    """A model's name as it is filed (an endpoint's without credentials)."""
    try:
        return config.model_name(name, workspace.config).name
    except ConfigError:
        return name


def pairwise_contestants(protocol: Protocol, contestants: Dialogues, chosen: bool) -> Dialogues:
    """Who is compared in pairs, people only if ``chosen``; `ConfigError` for fewer than two."""
    found = {name: d for name, d in contestants.items() if chosen or name != HUMAN}
    if len(found) < 2:
        title = "Arena" if protocol.about_ai else protocol.title
        raise ConfigError(
            f"the {title} needs at least two contestants; there is {', '.join(found) or 'none'}: "
            "make another with generate --model MODEL, or name one more with --model"
        )
    return found


def at_each_n(
    workspace: Workspace, turns: Collection[int], at: Callable[[int], T | None]
) -> list[T]:
    """What there is to compare at each N of ``turns``, by default as far as there is any.

    Raises `ConfigError` for an N below 3, `MissingDataError` where there is nothing.
    """
    asked = list(dict.fromkeys(turns or workspace.config.arena.turns))
    if low := [n for n in asked if n <= N_SEED]:
        raise ConfigError(
            f"--turns {low[0]}: the first {N_SEED} utterances are human in every dialogue, so at "
            f"least {N_SEED + 1} are needed"
        )
    found = []
    for n in asked:
        if (made := at(n)) is not None:
            found.append(made)
        elif turns:
            raise MissingDataError(
                f"no two dialogues of one seed have {n} utterances (and a human dialogue of at "
                f"least 4); generate with --turns {n}"
            )
    if not found:
        raise MissingDataError("no two dialogues are long enough to compare; see --turns")
    return found


def own_name(workspace: Workspace, judge: str) -> str:
    """The contestant that a judge is itself: its model, where it has but one."""
    base = _bare(judge)
    if (settings := panel_of(workspace, base)) is not None:
        models = {member.model for member in settings.members if member.model}
        named = models.pop() if len(models) == 1 else ""
        base = base.partition("@")[2] or named or base
    elif base in workspace.config.judges:
        base = workspace.config.judges[base].model
    return stored_name(base, workspace)


def self_judged_models(workspace: Workspace, judge: str, contestants: Iterable[str]) -> list[str]:
    """The contestants in which a judge hears itself: the same model, whatever it is called."""
    settings = panel_of(workspace, judge)
    members = [member.model for member in settings.members if member.model] if settings else []
    known = workspace.config.models

    def at(name: str) -> object:
        of = known.get(name)
        return (of.model, of.base_url) if of and of.base_url else stored_name(name, workspace)

    own = {at(name) for name in (own_name(workspace, judge), *members)}
    return [name for name in contestants if own & {at(one) for one in name.split(" + ")}]


def _bare(judge: str) -> str:
    """The judge itself, of a name that says in what other way it was asked."""
    for ending in (BEFORE_TALK, CALL_MATCHED):
        judge = judge.removesuffix(ending)
    return base_judge_name(judge)


def panel_of(workspace: Workspace, judge: str) -> PanelSettings | None:
    """The settings of a panel; ``None`` of a judge that is none."""
    return panels.find(judge.partition("@")[0], workspace.config.panels)


def with_controls(
    workspace: Workspace, judged: Mapping[str, Sequence[Judgment]], protocol: Protocol
) -> dict[str, Sequence[Judgment]]:
    """Judges by name, each panel that talks followed by its own votes before the talk."""
    choices = protocol.reading().choices
    found: dict[str, Sequence[Judgment]] = {}
    for name in sorted(judged):
        found[name] = judged[name]
        if is_debate(judged[name]):
            settings = panel_of(workspace, name)
            votes = settings is not None and settings.decides == "majority"
            scores: Literal["mean", "majority"] = "majority" if votes else "mean"
            found[f"{name}{BEFORE_TALK}"] = votes_before_debate(
                judged[name], lambda _: choices, scores
            )
    return found

"""Who stands in what is judged: names -> their dialogues, and as which name they are filed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from botchat.errors import ConfigError, MissingError, did_you_mean
from botchat.records import HUMAN, Dialogue, Dialogues, Seed, human_dialogue
from botchat.workspace import config
from botchat.workspace.folder import Workspace


def pick(
    workspace: Workspace,
    seed_set: str,
    seeds: Sequence[Seed],
    models: Sequence[str],
    generated: Dialogues | None = None,
) -> Dialogues:
    """Dialogues of the contestants asked for; empty ``models``: of all, ``human`` among them.

    ``generated``: in place of those that are stored; contestant -> seed id -> dialogue.
    `MissingError` for a model without dialogues, or no dialogues at all.
    """
    if generated is None:
        generated = workspace.all_dialogues(seed_set)
    human = of_people(seeds)
    if not generated:
        raise MissingError(
            f"no dialogues in {workspace.root / 'generations' / seed_set}; "
            f"make some with: botchat generate --seeds {seed_set} --model MODEL"
        )
    if not models:
        return {HUMAN: human, **generated}
    found: dict[str, Mapping[str, Dialogue]] = {}
    for name in models:
        known = generated.get(name) or generated.get(full_name(name, workspace))
        if name == HUMAN:
            found[HUMAN] = human
        elif known is None:
            raise MissingError(
                f"no dialogues of {name!r} on the set {seed_set!r}"
                f"{did_you_mean(name, generated)} (there are: {', '.join(generated)}); "
                f"make them with: botchat generate --seeds {seed_set} "
                f"--model {name}"
            )
        else:
            found[next(iter(known.values())).contestant] = known
    return found


def of_people(seeds: Sequence[Seed]) -> dict[str, Dialogue]:
    """The human dialogues of a set by seed id."""
    return {seed.id: human_dialogue(seed) for seed in seeds}


def full_name(name: str, workspace: Workspace) -> str:
    """A model's name as it is filed (an endpoint's without credentials)."""
    try:
        return config.model_name(name, workspace.config).name
    except ConfigError:
        return name

"""``botchat probe --language``: is a language pack fit for use? Nobody is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Row
from botchat.languages import Language
from botchat.measures.flags import fit_thresholds, flags
from botchat.measures.intervals import entries, of_share
from botchat.protocols import pack_audit, probe
from botchat.protocols.pack_audit import LabelsRead
from botchat.records import HUMAN, N_SEED, Seed
from botchat.workspace.folder import Workspace


@dataclass(frozen=True)
class Audited:
    """What is wrong with a pack, and what its rules find."""

    language: str
    name: str
    lacks: list[str]
    """Parts that the paper's three protocols or this audit need."""
    also_lacks: list[str]
    """Other prompts."""
    labels: list[LabelsRead]
    n_people: int
    """Dialogues between people."""
    false_alarms: Row
    """Of the rules on them: ``same``, with thresholds of all of them; ``held_out``, of each half
    with those of the other; with Wilson intervals."""
    rows: list[dict[str, Any]]
    """One a fault; see `botchat.protocols.probe.detection`."""

    @property
    def lines(self) -> list[str]:
        """In words."""
        said = [f"{self.name} ({self.language})"]
        said.append(f"lacks: {', '.join(self.lacks) or 'nothing that is needed'}")
        if self.also_lacks:
            said.append(f"lacks for other judges and protocols: {', '.join(self.also_lacks)}")
        for one in self.labels:
            read = one.tried - len(one.not_read)
            said.append(f"{one.protocol}: {read} of {one.tried} answers read as meant")
            said += [f"  not read as meant: {reply}" for reply in one.not_read]
            said += [f"  not asked for by the prompt: {word}" for word in one.not_asked]
        if {"[words]", "[thresholds]"} & {*self.lacks}:
            return [*said, "the rules judge is not tried: the pack lacks what it needs"]
        if not self.n_people:
            return [*said, "no dialogues between people: name a set of the language with --seeds"]
        for key, how in (("same", "their own"), ("held_out", "the other half's")):
            ends = (key, f"{key}_low", f"{key}_high")
            share, low, high = (100 * self.false_alarms[end] for end in ends)
            said.append(
                f"rules judge accuses {share:.1f} % ({low:.1f}–{high:.1f}) of {self.n_people} "
                f"dialogues between people, with {how} thresholds"
            )
        return said


def audit(
    workspace: Workspace,
    code: str,
    seed_set: str | None = None,
    limit: int | None = None,
    rng_seed: int = 0,
) -> Audited:
    """Audit a pack, on a set of dialogues between people in its language if one is named.

    Raises `ConfigError`: no such language, a set in another one; `MissingError`: a set without
    dialogues that go on behind the ChatSEED.
    """
    language = workspace.language_named(code)
    seeds = [] if seed_set is None else _people(workspace, language, seed_set)[:limit]
    needed, others = pack_audit.lacks(language)
    labelled = not language.english and not {*needed} - {"[words]", "[thresholds]", "[faults]"}
    ruled = seeds if not {"[words]", "[thresholds]"} & {*needed} else []
    return Audited(
        code,
        language.name,
        needed,
        others,
        pack_audit.labels_read(language) if labelled else [],
        len(ruled),
        _false_alarms(ruled, language),
        _found(ruled, language, rng_seed) if ruled and "[faults]" not in needed else [],
    )


def _people(workspace: Workspace, language: Language, seed_set: str) -> list[Seed]:
    spoken = workspace.language(seed_set)
    if spoken.code != language.code:
        raise ConfigError(
            f"--seeds {seed_set}: it is {spoken.name} ({spoken.code}), not {language.name} "
            f"({language.code}); name another set"
        )
    seeds = [seed for seed in workspace.seeds(seed_set) if len(seed.utterances) > N_SEED]
    if not seeds:
        raise MissingError(f"no dialogue of {seed_set!r} has more than {N_SEED} utterances")
    return seeds


def _false_alarms(seeds: list[Seed], language: Language) -> Row:
    halves = seeds[::2], seeds[1::2]
    accused = {
        "same": _accused(seeds, seeds, language),
        "held_out": _accused(*halves, language) + _accused(*halves[::-1], language),
    }
    found: Row = {}
    for key, hits in accused.items() if seeds else ():
        found |= entries(key, hits / len(seeds), *of_share(hits, len(seeds)))
    return found


def _accused(seeds: list[Seed], others: list[Seed], language: Language) -> int:
    """How many of the seeds' dialogues the rules accuse, with the others' thresholds."""
    limits = fit_thresholds((seed.utterances for seed in others), language)
    return sum(bool(flags(seed.utterances, limits, language)) for seed in seeds)


def _found(seeds: list[Seed], language: Language, rng_seed: int) -> list[dict[str, Any]]:
    """What the rules find of faults planted in the dialogues."""
    strangers = probe.strangers_of(seeds, language)
    planted = list(probe.probes(seeds, strangers, rng_seed, language))
    limits = fit_thresholds((seed.utterances for seed in seeds), language)

    def verdict(said: tuple[str, ...]) -> str:
        first = next(iter(flags(said, limits, language)), None)
        return "No" if first is None else str(first.index)

    verdicts = {(one.seed_id, one.fault): verdict(one.utterances) for one in planted}
    verdicts |= {(seed.id, HUMAN): verdict(seed.utterances) for seed in seeds}
    return probe.detection(planted, dict(verdicts))

"""``botchat probe`` on a workspace: faults planted in human dialogues, asked like any other case.

Judgments go to ``judgments/<set>/probe/unieval/``: the contestant is the fault, or ``human`` for
the dialogue as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botchat import prompts
from botchat.errors import ConfigError, MissingError
from botchat.pipeline import judge as judging
from botchat.pipeline import plan
from botchat.pipeline.judge import Questions
from botchat.pipeline.run import Meter
from botchat.pipeline.session import Limits, Named
from botchat.protocols import probe as probes
from botchat.protocols.probe import Probe
from botchat.records import HUMAN, N_SEED, Seed
from botchat.workspace.folder import Workspace


@dataclass(frozen=True)
class Probed:
    """What `probe` found out about a judge."""

    judge: str
    path: Path
    rows: Sequence[Mapping[str, Any]]
    """One row a fault; see `botchat.protocols.probe.detection`."""
    untouched: Mapping[str, Any]
    """False alarms on all dialogues as they are."""
    signature: str
    unanswered: int
    """Verdicts that another run may still get."""

    @property
    def shown(self) -> list[dict[str, Any]]:
        """Rows as people read them: in percent, with 95 % intervals."""
        return [
            {
                "fault": row["fault"],
                "probes": row["n"],
                **{
                    heading: _percent(row, key)
                    for key, heading in (
                        ("detected", "detected %"),
                        ("localised", "at the utterance %"),
                        ("within_1", "±1 %"),
                        ("false_alarms", "accused without it %"),
                    )
                },
            }
            for row in self.rows
        ]


def probe(
    workspace: Workspace,
    seed_set: str,
    judge_name: str,
    *,
    judge_model: str | None = None,
    samples: int = 1,
    limit: int | None = None,
    rng_seed: int = 0,
    limits: Limits | None = None,
    batch: bool = False,
    meter: Meter | None = None,
) -> Probed:
    """Plant every fault in every dialogue that it fits, and see what the judge finds.

    Args:
        workspace: where the judgments go.
        seed_set: the set whose human dialogues are used: those that go on behind the ChatSEED.
        judge_name: as of `botchat.pipeline.judge.judge`.
        judge_model: model of a panel's agents that name none.
        samples: how often a single judge is asked about each case; the majority decides.
        limit: only the first so many dialogues.
        rng_seed: decides where and how the faults are planted.
        limits: what the run may cost.
        batch: send every call through its endpoint's Batch API.
        meter: told of the progress.

    Raises:
        MissingError: no such set, or none of its dialogues goes on behind the ChatSEED.
    """
    whole, seeds, planted = _planted(workspace, seed_set, limit, rng_seed)
    questions = _questions(seeds, planted)
    (judged,) = judging.ask(
        workspace,
        seed_set,
        whole,
        Named(judge_name, judge_model, samples),
        [questions],
        limits=limits,
        batch=batch,
        meter=meter,
    )
    made = workspace.judgments(judged.path)
    verdicts = {(id_, shown[0]): judgment.verdict for (id_, shown), judgment in made.items()}
    return Probed(
        judge=judged.judge,
        path=judged.path,
        rows=probes.detection(planted, verdicts),
        untouched=probes.untouched((seed.id for seed in seeds), verdicts),
        signature=f"{made[seeds[0].id, (HUMAN,)].signature}|seed:{rng_seed}",
        unanswered=judged.unanswered,
    )


def plan_probe(
    workspace: Workspace,
    seed_set: str,
    judge_name: str,
    *,
    judge_model: str | None = None,
    samples: int = 1,
    limit: int | None = None,
    rng_seed: int = 0,
) -> list[plan.Planned]:
    """What `probe` with these arguments would send."""
    whole, seeds, planted = _planted(workspace, seed_set, limit, rng_seed)
    asked = [_questions(seeds, planted)]
    return judging.plan_ask(
        workspace, seed_set, whole, Named(judge_name, judge_model, samples), asked
    )


def _planted(
    workspace: Workspace, seed_set: str, limit: int | None, rng_seed: int
) -> tuple[list[Seed], list[Seed], list[Probe]]:
    """The whole set, the dialogues used, and the probes made of them."""
    if limit is not None and limit < 1:
        raise ConfigError(f"--limit {limit}: at least one dialogue is needed")
    whole = workspace.seeds(seed_set)
    seeds = [seed for seed in whole if len(seed.utterances) > N_SEED][:limit]
    if not seeds:
        raise MissingError(
            f"no dialogue of the set {seed_set!r} has more than {N_SEED} utterances, so there is "
            "no place for a fault; import a set of longer dialogues"
        )
    return whole, seeds, list(probes.probes(seeds, probes.strangers_of(whole), rng_seed))


def _percent(row: Mapping[str, Any], key: str) -> str:
    if row[key] is None:
        return "–"
    share, low, high = (100 * row[name] for name in (key, f"{key}_low", f"{key}_high"))
    return f"{share:.1f} ({low:.1f}–{high:.1f})"


def _questions(seeds: Sequence[Seed], planted: Sequence[Probe]) -> Questions:
    makers = list(probes.cases(seeds, planted))
    return Questions(probes.PROTOCOL, makers, prompts.digest(*probes.PROMPTS), 1)

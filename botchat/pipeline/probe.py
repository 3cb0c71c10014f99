"""``botchat probe`` on a workspace: faults planted in human dialogues, asked like any other case.

The contestant is the fault, or ``human`` for the dialogue as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botchat.errors import ConfigError, MissingError
from botchat.pipeline.run import plan
from botchat.pipeline.run.ask import Asked, Cases
from botchat.pipeline.run.session import JudgeName, Spending
from botchat.pipeline.run.slices import refuse_guarantee
from botchat.pipeline.run.work import Meter
from botchat.protocols import probe
from botchat.protocols.probe import Probe
from botchat.records import HUMAN, N_SEED, Seed
from botchat.workspace.folder import Workspace

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Probed:
    """What `probe` found out about a judge."""

    judge: str
    rows: Sequence[Mapping[str, Any]]
    """One row a fault; see `botchat.protocols.probe.detection`."""
    untouched: Mapping[str, Any]
    """False alarms on all dialogues as they are."""
    signature: str
    path: Path
    unanswered: int
    """Verdicts that another run may still get."""

    @property
    def frame(self) -> DataFrame:
        """The rows as a data frame."""
        from botchat.boards.frames import frame_of  # pandas, which no run needs

        return frame_of(self.rows)

    @property
    def shown(self) -> list[dict[str, Any]]:
        """Rows as people read them: in percent, with 95 % intervals."""
        return shown(self.rows)


@dataclass(frozen=True)
class Probing:
    """The request of ``botchat probe``: every fault planted where it fits, one a dialogue."""

    seed_set: str
    """Whose human dialogues are used: those that go on behind the ChatSEED."""
    judge: JudgeName
    limit: int | None = None
    """Only the first so many dialogues."""
    rng_seed: int = 0
    """Decides where and how the faults are planted."""

    def plan(self, workspace: Workspace) -> list[plan.Planned]:
        """What `run` would send; errors as there."""
        return self._planted(workspace)[0].plan(workspace)

    def run(
        self, workspace: Workspace, spending: Spending | None = None, meter: Meter | None = None
    ) -> Probed:
        """Plant, ask and count; `MissingError` where no dialogue goes on behind the ChatSEED."""
        asked, seeds, planted = self._planted(workspace)
        (judged,) = asked.run(workspace, spending, meter)
        made = workspace.judgments(judged.path)
        verdicts = {(id_, shown[0]): judgment.verdict for (id_, shown), judgment in made.items()}
        return Probed(
            judge=judged.judge,
            path=judged.path,
            rows=probe.detection(planted, verdicts),
            untouched=probe.untouched((seed.id for seed in seeds), verdicts),
            signature=f"{made[seeds[0].id, (HUMAN,)].signature}|seed:{self.rng_seed}",
            unanswered=judged.unanswered,
        )

    def _planted(self, workspace: Workspace) -> tuple[Asked, list[Seed], list[Probe]]:
        """The cases, the dialogues used, and the probes made of them."""
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"--limit {self.limit}: at least one dialogue is needed")
        refuse_guarantee(workspace, self.judge, "a probe")
        whole = workspace.seeds(self.seed_set)
        seeds = [seed for seed in whole if len(seed.utterances) > N_SEED][: self.limit]
        if not seeds:
            raise MissingError(
                f"no dialogue of the set {self.seed_set!r} has more than {N_SEED} utterances, so "
                "there is no place for a fault; import a set of longer dialogues"
            )
        language = workspace.language(self.seed_set)
        strangers = probe.strangers_of(whole, language)
        planted = list(probe.probes(seeds, strangers, self.rng_seed, language))
        asked = list(probe.cases(seeds, planted, language))
        cases = Cases(probe.PROBE.spoken(language), asked)
        return Asked(self.seed_set, whole, self.judge, [cases]), seeds, planted


def shown(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Rows of `botchat.protocols.probe.detection` in percent, with 95 % intervals."""
    return [
        {
            "fault": row["fault"],
            "probes": row["n"],
            "detected %": _percent(row, "detected"),
            "at the utterance %": _percent(row, "localised"),
            "±1 %": _percent(row, "within_1"),
            "±1 by chance %": _percent(row, "chance_within_1"),
            "accused without it %": _percent(row, "false_alarms"),
            "detected less that %": _percent(row, "found"),
        }
        for row in rows
    ]


def _percent(row: Mapping[str, Any], key: str) -> str:
    if row[key] is None:
        return "–"
    if f"{key}_low" not in row:
        return f"{100 * row[key]:.1f}"
    share, low, high = (100 * row[name] for name in (key, f"{key}_low", f"{key}_high"))
    to = " to " if low < 0 else "–"
    return f"{share:.1f} ({low:.1f}{to}{high:.1f})"

"""What every comparison of judges does: controls, costs, tables, figures and a signature."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from botchat import __version__
from botchat.boards.judge_agreement import Findings
from botchat.boards.tables import Table, to_csv, to_json, to_markdown
from botchat.errors import ConfigError
from botchat.interfaces import settings_digest
from botchat.judges.controls import BEFORE_TALK, CALL_MATCHED, before_talk, talks
from botchat.judges.samples import asked_once
from botchat.measures.agreement import Agreement, compare
from botchat.measures.annotations import Annotation
from botchat.measures.statistics import Row
from botchat.pipeline.judge import full_name
from botchat.records import Judgment, Verdict
from botchat.workspace import files
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from botchat.workspace.ledger_accounts import Bill, bills
from botchat.workspace.panels import PRESETS, PanelSettings

BUILT_IN = "who wrote what (built in)"
"""The annotator that knows which side is human; no judge has such a name."""


@dataclass(frozen=True)
class Compared:
    """A comparison of judges as written."""

    tables: Sequence[Table]
    """What people want to see first."""
    lines: Sequence[str]
    """What else a person should see: notes, signature, where things are."""
    whole: Mapping[str, Any]
    """``rows``, ``signature`` and every other table, JSON-ready."""
    out: Path | None
    """The folder written, if any."""


@dataclass(frozen=True)
class Options:
    """How judges are compared: the bootstrap's resamples and seed."""

    resamples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        """Check ranges."""
        if self.resamples < 1 or self.seed < 0:
            raise ConfigError(
                f"--resamples {self.resamples}, --seed {self.seed}: give at least 1 and 0"
            )


def publish(
    found: Findings, tables: Sequence[Table], whole: Mapping[str, Any], out: Path | None
) -> Compared:
    """Write csv, md, json and figures to ``out``, if there is one."""
    whole = {**whole, "out": None if out is None else str(out)}
    lines = [*found.notes, found.signature]
    if out is not None:
        from botchat.report.figures import agreement as figures

        for part in tables:
            files.write_atomic(out / f"{part.name}.csv", to_csv(part).encode())
        notes = "".join(f"- {note}\n" for note in found.notes)
        text = "\n".join([f"# {found.subject}\n", notes, *map(to_markdown, tables)])
        files.write_atomic(out / "agreement.md", text.encode())
        files.write_atomic(out / "agreement.json", to_json(whole).encode())
        for chart in figures.draw(found):
            files.write_atomic(out / f"{chart.name}.svg", chart.svg.encode())
            files.write_atomic(out / f"{chart.name}.png", chart.png)
        lines.append(f"written to: {out}")
    shown = [part for part in tables if part.name not in ("pairs", "rankings")]
    return Compared(shown, lines, whole, out)


def compare_judges(
    annotations: Sequence[Annotation],
    truth_prefix: str | None,
    options: Options,
    *,
    lengths: Mapping[tuple[str, str], float] | None = None,
    selves: Mapping[str, str] | None = None,
) -> Agreement:
    """`compare`, with groups that leave out votes before a talk: they are no other judges."""

    def compared(of: Iterable[Annotation]) -> Agreement:
        return compare(
            of,
            truth_prefix,
            resamples=options.resamples,
            seed=options.seed,
            lengths=lengths,
            selves=selves,
        )

    whole = compared(annotations)
    judges = [a for a in annotations if not a.judge.endswith(BEFORE_TALK)]
    if len(judges) == len(annotations):
        return whole
    return replace(whole, groups=compared(judges).groups)


def with_controls(
    workspace: Workspace,
    judged: Mapping[str, Sequence[Judgment]],
    choices: Callable[[Judgment], Collection[Verdict]],
) -> dict[str, Sequence[Judgment]]:
    """Judges by name, each panel that talks followed by its own votes before the talk."""
    found: dict[str, Sequence[Judgment]] = {}
    for name in sorted(judged):
        found[name] = judged[name]
        if talks(judged[name]):
            settings = panel_of(workspace, name)
            votes = settings is not None and settings.decides == "majority"
            scores: Literal["mean", "majority"] = "majority" if votes else "mean"
            found[f"{name}{BEFORE_TALK}"] = before_talk(judged[name], choices, scores)
    return found


def expenses(workspace: Workspace, judged: Mapping[str, Sequence[Judgment]]) -> dict[str, Row]:
    """Judge -> ``calls``, ``tokens``, ``usd`` and ``seconds`` of one verdict, from the ledger.

    A call that several verdicts rest on counts once for each judge. ``None``: not known of every
    call. Seconds are the sum of the calls' own, also where they were in flight together.
    """
    by_judge = {
        name: {call for judgment in made for call in judgment.calls}
        for name, made in judged.items()
    }
    paid: dict[str, Bill] = {}
    if workspace.ledger_path.exists():
        ledger = Ledger(workspace.ledger_path, readonly=True)
        try:
            paid = bills(ledger, set().union(*by_judge.values()))
        finally:
            ledger.close()
    return {name: _expense(by_judge[name], paid, len(judged[name])) for name in judged}


def signature(
    what: str, of: Mapping[str, str | None], data: Any, truth: str | None, options: Options
) -> str:
    """What a comparison of judges is signed with; ``data``, JSON-ready, holds every verdict."""
    people = {None: "none", BUILT_IN: "built-in"}.get(truth, truth)
    return "|".join(
        [
            f"botchat:{__version__}",
            what,
            *(f"{key}:{value}" for key, value in of.items() if value),
            f"truth:{people}",
            f"data:{settings_digest(data)}",
            f"bootstrap:{options.resamples}",
            f"seed:{options.seed}",
        ]
    )


def method(workspace: Workspace, judge: str) -> tuple[str, str]:
    """(model asked, how it is asked) of a judge by the name its judgments are filed under."""
    base = _bare(judge)
    how = judge[len(base) :]
    if panel_of(workspace, base) is None:
        return base, f"single{how}"
    name, _, model = base.partition("@")
    return model or own_name(workspace, base), f"{name}{how}"


def own_name(workspace: Workspace, judge: str) -> str:
    """The contestant that a judge is itself: its model, where it has but one."""
    base = _bare(judge)
    settings = panel_of(workspace, base)
    if settings is not None:
        models = {member.model for member in settings.members if member.model}
        named = models.pop() if len(models) == 1 else ""
        base = base.partition("@")[2] or named or base
    elif base in workspace.config.judges:
        base = workspace.config.judges[base].model
    return full_name(base, workspace)


def _bare(judge: str) -> str:
    """The judge itself, of a name that says in what other way it was asked."""
    return asked_once(judge.removesuffix(BEFORE_TALK).removesuffix(CALL_MATCHED))


def _expense(calls: Collection[str], paid: Mapping[str, Bill], verdicts: int) -> Row:
    found = [paid[call] for call in calls if call in paid]
    whole = len(found) == len(calls)

    def mean(values: Sequence[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) / verdicts if whole and len(known) == len(values) else None

    return {
        "calls": len(calls) / verdicts,
        "tokens": mean([bill.tokens for bill in found]),
        "usd": mean([bill.cost_usd for bill in found]),
        "seconds": mean([bill.latency_s for bill in found]),
    }


def panel_of(workspace: Workspace, judge: str) -> PanelSettings | None:
    """The settings of a panel by the name its judgments are filed under."""
    name = judge.partition("@")[0]
    return workspace.config.panels.get(name) or PRESETS.get(name)

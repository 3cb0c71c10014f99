"""What judges were worth where the truth is known: ``exams.jsonl``, a line a judge and exam.

A board quotes its judge's, and ``judge --require`` refuses a judge whose exam is not good enough
before anything is paid.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from botchat.errors import ConfigError, Fell
from botchat.records import Exam
from botchat.workspace import files
from botchat.workspace.folder import Workspace

FIGURES = ("auc", "caught@5", "right", "kappa")

_RULE = re.compile(rf"({'|'.join(FIGURES)})\s*>=\s*(\d*\.?\d+)")


def exams(workspace: Workspace) -> dict[tuple[str, str], Exam]:
    """Every result, by judge and exam."""
    made = files.read(workspace.root / "exams.jsonl", Exam)
    return {(one.judge, one.exam): one for one in made}


def note(workspace: Workspace, results: Iterable[Exam]) -> None:
    """Record results in place of earlier ones of the same judge and exam."""
    new = {(one.judge, one.exam): one for one in results}
    if new:
        known = exams(workspace) | new
        files.finish(
            workspace.root / "exams.jsonl", known.values(), lambda one: (one.judge, one.exam)
        )


def require(
    workspace: Workspace, judge: Collection[str], rules: Iterable[str], prompts: Collection[str]
) -> None:
    """Refuse a judge, by any of its names, whose exam does not keep ``caught@5>=.6`` and the like.

    ``prompts``: digests that an exam may have been asked with. Raises `ConfigError` for what is no
    such rule, `Fell` for a judge that has no exam or a worse one.
    """
    first = next(iter(judge))
    for rule in rules:
        if (told := _RULE.fullmatch(rule.replace(" ", ""))) is None:
            raise ConfigError(
                f"--require {rule}: say FIGURE>=NUMBER with {', '.join(FIGURES)}, as in "
                "caught@5>=.6"
            )
        found = next((one for (who, _), one in exams(workspace).items() if who in judge), None)
        if found is None or found.prompt not in prompts:
            why = "has passed no exam here" if found is None else "was examined with another prompt"
            raise Fell(
                f"--require {rule}: {first} {why}; run botchat bench turing --data PLACE --judge "
                f"{first} (docs/benchmarks.md)"
            )
        value = found.figures.get(told[1])
        if value is None or value < float(told[2]):
            said = "not known" if value is None else f"{value:.2f}"
            raise Fell(
                f"--require {rule}: {first} has {told[1]} {said} ({found.exam}, {found.chats:,} "
                f"chats{f', {found.day}' if found.day else ''}); name a better judge, or ask less"
            )

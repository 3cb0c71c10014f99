"""Parts of a set that are drawn: what a cascade is calibrated on, what a bridge asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from botchat.errors import ConfigError
from botchat.interfaces import Judge
from botchat.judges.cascade import Cascade, MakeCase
from botchat.measures.references import draw
from botchat.pipeline.run.work import Meter, Stops, work_through
from botchat.records import Judgment
from botchat.requests import JudgeName
from botchat.workspace.folder import Workspace


async def calibrated(
    answering: Judge, make: Sequence[MakeCase], meter: Meter, stops: Stops
) -> Judge:
    """The judge; a cascade with a guarantee has chosen its threshold for these cases."""
    if not isinstance(answering, Cascade) or answering.guarantee is None:
        return answering

    async def work(asked: Sequence[MakeCase], do: Callable[[MakeCase], Awaitable[None]]) -> None:
        async def each(one: MakeCase) -> None:
            await do(one)
            meter.done += 1

        meter.begin("calibrate", len(asked))
        await work_through(asked, each, answering.parallel, stops, answering.name)

    return await answering.calibrate(make, work)


def refuse_guarantee(workspace: Workspace, judge: JudgeName, what: str) -> None:
    """`ConfigError` for a cascade with a guarantee, which must know all cases before it answers."""
    if getattr(workspace.config.panels.get(judge.name), "alpha", None) is not None:
        raise ConfigError(
            f"{judge.name} keeps its alpha on the cases of a whole set, which {what} has not: "
            "name one of its judges, or a cascade with calibration in place of alpha"
        )


def drawn(
    makes: Sequence[Sequence[MakeCase]],
    judged: Sequence[Mapping[tuple[str, tuple[str, ...]], Judgment]],
    budget: int,
    rng_seed: int,
) -> list[list[MakeCase]]:
    """Of each protocol's cases those drawn; only cases that have a readable verdict are.

    ``judged``: of each protocol, the judgments by seed id and contestants. As many of each
    contestant, of pairs of each pair, as of any other.
    """
    known = []
    for number, (make, by) in enumerate(zip(makes, judged, strict=True)):
        for one in make:
            case = one()
            said = by.get((case.seed_id, case.contestants))
            if said is not None and said.case == case.digest and said.verdict is not None:
                known.append((one, case.digest, (number, frozenset(case.contestants))))
    strata, digests = [stratum for _, _, stratum in known], [digest for _, digest, _ in known]
    chosen = [known[i] for i in draw(strata, digests, budget, rng_seed)]
    return [
        [one for one, _, (number, _) in chosen if number == wanted] for wanted in range(len(makes))
    ]

"""The commands of this part as values; see `botchat.requests`."""

from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from botchat.requests.arguments import JUDGES, Arg, Judged, Tabled, Word, verb

if TYPE_CHECKING:
    from botchat.requests.results import Compared


class Benching(Judged["Compared"], Tabled["Compared"]):
    """Let a judge answer a benchmark of judges, beside people and the papers' numbers."""

    words, does, group = "bench", "papers.bench:bench", JUDGES

    benchmark: Annotated[
        str,
        Word("faireval, mateval, topicalchat, a FILE of texts or pairs; botchat: its figures"),
    ]
    data: Annotated[Path | None, Arg("folder with upstream's files", "DIR")] = None
    judge: Annotated[str | None, Arg("see judge (none: show who has judged)", "JUDGE")] = None
    _: KW_ONLY
    from_recorded: Annotated[
        bool, Arg("mateval: read upstream's discussions", flag="--recorded")
    ] = False
    limit: Annotated[int | None, Arg("only the first K items", "K")] = None
    out: Annotated[Path | None, Arg("where to (leaderboards/bench-BENCHMARK)", "DIR")] = None


bench = verb(Benching)

"""The commands of this part as values; see `botchat.requests`."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from botchat.requests.arguments import JUDGES, Arg, Asking, Judged, Tabled, Word, verb

if TYPE_CHECKING:
    from botchat.requests.results import Compared, Told


class Benching(Judged["Compared"], Tabled["Compared"]):
    """Let a judge answer a benchmark of judges, beside people.

    bench probe, bench polarity and bench language need no benchmark's files; bench inject makes
    some.
    """

    words, does, group = "bench", "papers.bench:bench", JUDGES

    benchmark: Annotated[
        str,
        Word(
            "faireval, mateval, topicalchat, turing (needs no judge); --table, --figure: "
            "chateval, mateval; botchat's --figure needs no judge"
        ),
    ]
    data: Annotated[Path, Arg("folder with upstream's files", "DIR")]
    judge: Annotated[str | None, Arg("see judge (none: show who has judged)", "JUDGE")] = None
    _: KW_ONLY
    table: Annotated[
        str | None, Arg("the paper's Table N, asked as it says, beside its numbers", "N")
    ] = None
    figure: Annotated[str | None, Arg("its Figure N", "N")] = None
    size: Annotated[str, Arg("of botchat's figure, see leaderboard figure", "WxH")] = ""
    bare: Annotated[bool, Arg("likewise")] = False
    stands_for: Annotated[
        str | None, Arg("the paper's model that --judge stands for (its name)", "MODEL", "--as")
    ] = None
    runs: Annotated[int | None, Arg("K runs: mean and standard deviation (1)", "K", most=1_000)] = (
        None
    )
    grid: Annotated[
        Sequence[str],
        Arg("of a panel, each mix a judge: roles=1,2 rounds=1,2", "KEY=V,V", many=True),
    ] = ()
    control: Annotated[bool, Arg("see judge")] = False
    from_recorded: Annotated[
        bool, Arg("mateval: read upstream's discussions", flag="--recorded")
    ] = False
    card: Annotated[bool, Arg("write the judge's card, json and a page (cards/)")] = False
    verify: Annotated[
        bool, Arg("with --card: nobody is asked; exit 4 if the card is not what the ledger gives")
    ] = False
    limit: Annotated[int | None, Arg("only the first K items", "K")] = None
    out: Annotated[Path | None, Arg("where to (leaderboards/bench-BENCHMARK)", "DIR")] = None


class Varying(Asking["Compared"], Tabled["Compared"]):
    """What moves a verdict (question, wording, judge, order, …)."""

    words, does, group = "variance", "papers.variance:variance", JUDGES

    files: Annotated[
        Sequence[Path], Word("verdicts, as agree reads them; a wording each", "FILE")
    ] = ()
    _: KW_ONLY
    seed_set: Annotated[str | None, Arg("the verdicts on this set", "SET", "--seeds")] = None
    protocols: Annotated[
        Sequence[str],
        Arg("repeatable; as its folder: arena-n16; a wording each", "PROTOCOL", "--protocol"),
    ] = ()
    judges: Annotated[
        Sequence[str],
        Arg("repeatable; of a set they are asked what is missing (who has judged)", "JUDGE",
            "--judge"),
    ] = ()  # fmt: skip
    samples: Annotated[int, Arg("ask each judge K times a case (1)", "K", most=1_000)] = 1
    limit: Annotated[int | None, Arg("ask about the first K seeds only", "K")] = None
    out: Annotated[Path | None, Arg("where to (leaderboards/SET/variance-…)", "DIR")] = None


class Injecting(Asking["Told"]):
    """Let a model put errors into stories: a benchmark whose truth is known."""

    words, does, group = "bench inject", "papers.inject:inject", JUDGES

    file: Annotated[Path, Word("stories: csv, tsv, jsonl (column story), txt", "FILE")]
    model: Annotated[str, Arg("who puts them in; see models", "MODEL")]
    out: Annotated[Path, Arg("where FILE_stories.csv goes, for bench mateval --data DIR", "DIR")]
    _: KW_ONLY
    language: Annotated[str, Arg("of the stories, en or zh (en)", "CODE")] = "en"
    most_words: Annotated[
        int, Arg("cut a story behind the last sentence within K words (200)", "K", "--words")
    ] = 200
    limit: Annotated[int | None, Arg("only the first K stories", "K")] = None
    rng_seed: Annotated[int, Arg("of which kinds of error a story gets (0)", flag="--seed")] = 0


class ProbingPolarity(Judged["Told"]):
    """Do a panel's roles pull against the question? A bot's dialogue beside the human one."""

    words, does, group = "bench polarity", "papers.polarity:polarity", JUDGES

    seed_set: Annotated[str, Arg("human dialogues (sample)", "SET", "--seeds")] = "sample"
    judge: Annotated[str, Arg("see judge", "JUDGE")] = ""
    _: KW_ONLY
    limit: Annotated[int | None, Arg("only the first K dialogues", "K")] = None


bench = verb(Benching)
variance = verb(Varying)
inject = verb(Injecting)
probe_polarity = verb(ProbingPolarity)

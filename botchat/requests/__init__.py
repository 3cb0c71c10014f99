"""Every command as a value: what it is asked, and how that is said on the command line.

Those of the hub are in `botchat.hub`, those of papers in `botchat.papers.requests`.

A new command is a frozen dataclass here: its fields are its flags, `does` names the function of
`botchat.pipeline` that does it. A new flag is a field; `botchat.cli` prints the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from botchat.requests.arguments import (
    BEGIN,
    CARE,
    EVERY_DAY,
    JUDGES,
    SHARE,
    Arg,
    Asking,
    Judged,
    Limits,
    Request,
    Tabled,
    Word,
    verb,
)

if TYPE_CHECKING:
    from botchat.ratings.elo import EloSettings
    from botchat.requests.results import (
        Compared,
        Differences,
        Generated,
        Ran,
        Results,
        StageResult,
        Told,
    )

HELP = {
    "seeds": "Import, list and show seed sets.",
    "dialogues": "Import dialogues that were made elsewhere.",
    "share": "A set's run as a folder, or to the hub and from it.",
    "ledger": "The record of every model call.",
}
"""Of first words that are no command by themselves."""

SeedSet = Annotated[str, Arg("the seed set", "SET", "--seeds")]
OneJudge = Annotated[
    str,
    Arg(
        "rules (offline), a [judges] or [panels] entry, a preset panel, any model, or "
        "control:PANEL, single judges asked as often",
        "JUDGE",
    ),
]
Models = Annotated[Sequence[str], Arg("repeatable; see models", "MODEL", "--model")]
Limit = Annotated[int | None, Arg("only the first K seeds", "K")]
Replace = Annotated[bool, Arg("also in place of dialogues of other settings or models")]


class Running(Judged["Ran"], Tabled["Ran"]):
    """Everything: generate, judge, rank; says the price first.

    What is there already is not asked again. What is left out, [run] of botchat.toml says.
    """

    words, does, group = "run", "pipeline.whole_run:run", EVERY_DAY

    seed_set: Annotated[
        str, Arg("the seed set (as [run] says; so what follows)", "SET", "--seeds")
    ] = ""
    models: Models = ()
    judge: Annotated[str, Arg("see judge", "JUDGE")] = ""
    protocols: Annotated[
        Sequence[str], Arg("repeatable (unieval, arena and gteval)", "PROTOCOL", "--protocol")
    ] = field(default=(), kw_only=True)
    limit: Limit = field(default=None, kw_only=True)
    replace: Replace = field(default=False, kw_only=True)


class Generating(Asking["Results[Generated]"]):
    """Stage 1: let models extend the seeds.

    What is there already is not made again.
    """

    words, does = "generate", "pipeline.generate:generate"

    seed_set: SeedSet
    models: Models
    partner: Annotated[str | None, Arg("second speaker (cross-play)", "MODEL")] = None
    turns: Annotated[int | None, Arg("utterances, the two seeds included (16)")] = None
    limit: Limit = None
    replace: Replace = field(default=False, kw_only=True)


class Judging(Judged["Results[StageResult]"]):
    """Stage 2: judge the dialogues.

    What is judged already is not asked again.
    """

    words, does = "judge", "pipeline.judge:judge"

    protocol: Annotated[str, Word("the question, see below")]
    seed_set: SeedSet
    judge: OneJudge
    models: Annotated[Sequence[str], Arg("contestants (all)", "MODEL", "--model")] = ()
    turns: Annotated[Sequence[int], Arg("the first N utterances alone (arena: 8 and 16)", "N")] = ()
    _: KW_ONLY
    comparisons: Annotated[
        int | None, Arg("arena: K at each N, drawn at random, as many of each pair (all)", "K")
    ] = None
    limit: Annotated[int | None, Arg("only the first K seeds, of all contestants", "K")] = None


OwnJudge = Annotated[str | None, Arg("whose verdicts (needed if there are two)", "JUDGE")]
SomeJudges = Annotated[Sequence[str], Arg("repeatable (all)", "JUDGE", "--judge")]
Out = Annotated[Path | None, Arg("where to (leaderboards/SET)", "DIR")]


class Leaderboard(Tabled["Told"]):
    """Stage 3: tables, figures and a page of a judge's verdicts."""

    words, does, group = "leaderboard", "pipeline.leaderboard:leaderboard", EVERY_DAY
    metered = True

    seed_set: SeedSet
    judge: Annotated[
        Sequence[str],
        Arg("repeatable; the first leads, the page has all (needed if there are two)", "JUDGE"),
    ] = ()
    out: Out = None
    elo: "EloSettings | None" = None
    _: KW_ONLY
    opens: Annotated[bool, Arg("show the page in the browser", flag="--open")] = False
    keep: Annotated[str | None, Arg("keep it as SET/NAME too, for compare", "NAME")] = None


class Plotting(Request["Told"]):
    """One figure of a board, as svg, png or pdf."""

    words, does, group = "leaderboard figure", "pipeline.plot:figure", EVERY_DAY

    name: Annotated[str, Word("such as ratings; a wrong name lists them all", "NAME")]
    seed_set: SeedSet
    out: Annotated[Path, Arg("FILE.svg, .png or .pdf", "FILE")]
    judge: OwnJudge = None
    _: KW_ONLY
    size: Annotated[
        str, Arg("inches, such as 7x4.5, or the width: 3.3 (half a page wide)", "WxH")
    ] = ""


class Agreeing(Tabled["Compared"]):
    """Judges against people and each other."""

    words, does, group = "agree", "pipeline.agree:agree", EVERY_DAY

    files: Annotated[
        Sequence[Path], Word("of votes: any that rank reads (docs/votes.md)", "FILE")
    ] = ()
    _: KW_ONLY
    seed_set: Annotated[str | None, Arg("take stage files of this set too", "SET", "--seeds")] = (
        None
    )
    protocol: Annotated[
        str | None, Arg("of these, as its folder: arena-n16, gteval, …", "PROTOCOL")
    ] = None
    judges: SomeJudges = ()
    truth: Annotated[
        str | None,
        Arg("names of people begin so (human; else built-in: who wrote it)", "PREFIX"),
    ] = None
    out: Annotated[Path | None, Arg("where to (leaderboards/SET/agreement-PROTOCOL)", "DIR")] = None


class Comparing(Request["Differences"]):
    """What changed between two boards, and did a model fall?"""

    words, does, group = "compare", "pipeline.compare:compare", EVERY_DAY

    before: Annotated[
        str, Word("SET, SET/NAME (leaderboard --keep), a board's folder or json", "BEFORE")
    ]
    after: Annotated[str, Word("likewise", "AFTER")]
    alpha: Annotated[float, Arg("rate of false alarms, over all models together (0.05)")] = 0.05
    models: Annotated[
        Sequence[str], Arg("repeatable; to test (all that changed, no bots)", "MODEL", "--model")
    ] = ()
    _: KW_ONLY
    anyway: Annotated[bool, Arg("also boards of other seeds, judges, prompts or N")] = False
    gate: Annotated[bool, Arg("exit 4 if a model fell")] = False


class Demo(Request["Told"]):
    """Everything offline: sample seeds, bots, rules judge, a board."""

    words, does, group = "demo", "pipeline.whole_run:demo", BEGIN
    metered, usual_dir = True, "botchat-demo"


class Beginning(Request["Told"]):
    """Write a botchat.toml for some providers, with comments."""

    words, does, group = "init", "pipeline.models:init", BEGIN

    providers: Annotated[
        Sequence[str],
        Word("repeatable; a wrong one lists them all (none: bots, offline)", "PROVIDER"),
    ] = ()
    _: KW_ONLY
    data: Annotated[
        str | None, Arg("dialogues to import, as of seeds import; mutual: downloads them", "SOURCE")
    ] = None


class Naming(Request["Told"]):
    """What can be named as a model or a judge."""

    words, does, group = "models", "pipeline.models:models", BEGIN

    check: Annotated[
        bool, Arg("instead, send one tiny call to each configured model; exit 1 if one fails")
    ] = False

    @property
    def gate(self) -> bool:
        """Whether the result may end with an error, when it is shown."""
        return self.check


class ImportingSeeds(Request["Told"]):
    """Import human dialogues as a seed set."""

    words, does, group = "seeds import", "pipeline.seeds:import_seeds", BEGIN

    source: Annotated[
        str, Word("a file, folder, hf://ORG/NAME[@REVISION], or `mutual` (docs/rank.md)", "SOURCE")
    ]
    name: Annotated[str, Arg("name of the set")]
    language: Annotated[
        str, Arg("of dialogues and questions: en, es, zh, or your own pack (en)", "CODE")
    ] = "en"
    _: KW_ONLY
    replace: Annotated[bool, Arg("also where the set is there with other dialogues")] = False


class ListingSeeds(Request["Told"]):
    """The sets of this workspace."""

    words, does, group = "seeds list", "pipeline.seeds:list_seed_sets", BEGIN


class ShowingSeeds(Request["Told"]):
    """A set, or one dialogue of it."""

    words, does, group = "seeds show", "pipeline.seeds:show_seed_set", BEGIN

    name: Annotated[str, Word(metavar="SET")]
    seed_id: Annotated[str | None, Word(metavar="SEED_ID")] = None


class Labelling(Request["Told"]):
    """A page of blind cases for human annotators; or file the labels that it exported."""

    words, does, group = "label", "pipeline.label:label", JUDGES

    files: Annotated[
        Sequence[Path], Word("that the page exported (none: make the page)", "FILE")
    ] = ()
    _: KW_ONLY
    seed_set: SeedSet
    protocol: Annotated[
        str | None, Arg("unieval, arena-nN, gteval, your own (the first judged)", "PROTOCOL")
    ] = None
    most: Annotated[int, Arg("cases on the page, drawn at random (100)", "K", "--cases")] = 100


class ImportingDialogues(Request["Told"]):
    """Store dialogues made elsewhere as those of a model, to be judged like generated ones."""

    words, does, group = "dialogues import", "pipeline.seeds:import_dialogues", SHARE

    sources: Annotated[Sequence[Path], Word("OpenAI messages, ShareGPT or utterances", "FILE")]
    seed_set: Annotated[
        str, Arg("the seed set that they begin with; made where there is none", "SET", "--set")
    ]
    model: Annotated[str, Arg("the contestant they become, any name", "MODEL")]
    _: KW_ONLY
    new_seeds: Annotated[bool, Arg("make seeds of what begins with none of the set")] = False
    replace: Annotated[bool, Arg("in place of the dialogues that the model has")] = False


class Ranking(Tabled["Told"]):
    """Votes in, board out: anybody's file of who won."""

    words, does, group = "rank", "pipeline.rank:rank", SHARE
    metered = True

    paths: Annotated[
        Sequence[Path],
        Word("csv, tsv, json, jsonl or parquet of any arena or crowd (docs/votes.md)", "FILE"),
    ]
    _: KW_ONLY
    judges: Annotated[
        Sequence[str], Arg("only whose votes; repeatable (all)", "JUDGE", "--judge")
    ] = ()
    per_pair: Annotated[
        int | None, Arg("comparisons a pair of a table of win rates (444)", "N")
    ] = None
    out: Annotated[Path | None, Arg("where to (leaderboards/NAME-OF-FILE)", "DIR")] = None
    elo: "EloSettings | None" = None


class Accounting(Request["Told"]):
    """Calls, tokens and money by model."""

    words, does, group = "ledger stats", "pipeline.ledger:stats", CARE


class Forgetting(Request["Told"]):
    """Let calls be asked again; they stay in the accounts."""

    words, does, group = "ledger forget", "pipeline.ledger:forget", CARE

    outcomes: Annotated[
        Sequence[str],
        Arg(
            "repeatable; calls that ended so",
            flag="--outcome",
            choices=("filtered", "overflow", "refused", "truncated", "empty", "ok"),
        ),
    ] = ()
    models: Annotated[
        Sequence[str], Arg("repeatable; calls of this model (all)", "MODEL", "--model")
    ] = ()
    stage: Annotated[
        str | None, Arg("calls of this stage (both)", choices=("generate", "judge"))
    ] = None


@cache
def requests() -> Mapping[str, type[Request[Any]]]:
    """What calls it on the command line -> every request."""
    found: dict[str, type[Request[Any]]] = {}
    for module in MODULES:
        for one in vars(import_module(module)).values():
            if isinstance(one, type) and issubclass(one, Request) and one.words:
                found.setdefault(one.words, one)
    return found


MODULES = (__name__, "botchat.hub", "botchat.papers.requests")
"""Those with requests."""


run = verb(Running)
generate = verb(Generating)
judge = verb(Judging)
leaderboard = verb(Leaderboard)
agree = verb(Agreeing)
compare = verb(Comparing)
import_seeds = verb(ImportingSeeds)
label = verb(Labelling)
import_dialogues = verb(ImportingDialogues)
rank = verb(Ranking)

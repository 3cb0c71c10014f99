"""``botchat bench polarity``: whether a panel's roles pull against the question, where it is plain.

The question is GTEval's (BotChat §3.4), about a floor bot's dialogue beside the human one of the
same ChatSEED, in both orders: whoever understands it names the bot's. A role that is told to find
the *better* one, as ChatEval's are (Appendix A), names the person's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from botchat.boards.tables import Column, Table, explained, table, with_interval
from botchat.errors import ConfigError, MissingError
from botchat.interfaces import Decoding, Row
from botchat.judges.talk import SWAPPED
from botchat.judges.voting import mirrored, openings
from botchat.languages import Language
from botchat.measures.intervals import share
from botchat.models.bots import baseline
from botchat.models.self_chat import Length, Speaker, extend
from botchat.papers.requests import ProbingPolarity
from botchat.parallel import together
from botchat.pipeline.run.ask import Asked, Cases, refuse_guarantee
from botchat.pipeline.run.contestants import of_people
from botchat.pipeline.run.work import run_now
from botchat.protocols.catalogue import GTEVAL
from botchat.records import HUMAN, Dialogue, Judgment, Seed, Verdict
from botchat.requests.arguments import Spending
from botchat.requests.meter import Meter
from botchat.requests.results import Plan, Told
from botchat.workspace.folder import Workspace

POLARITY = replace(GTEVAL, name="probe/polarity", title="Polarity")
"""A folder deeper than the judgments that rank: no stage takes one for one of them."""

WITH, AGAINST, UNCLEAR = "with it", "against it", "not clear"


def plan_polarity(request: ProbingPolarity, workspace: Workspace) -> Plan:
    """What `polarity` would send."""
    return _beside_people(request, workspace).plan(workspace)


def polarity(
    request: ProbingPolarity, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Told:
    """Ask and count; `MissingError` where no human dialogue is long enough."""
    asked = _beside_people(request, workspace)
    (judged,) = asked.run(workspace, spending, meter)
    made = workspace.judgments(judged.path)
    cases = (make() for one in asked.cases for make in one.make)
    judgments = [made[case.seed_id, case.contestants] for case in cases]
    found = counted(judged.judge, judgments, judgments[0].signature)
    said = list(lines(found))
    whole: Row = {
        "judge": judged.judge,
        "rows": found.records,
        "lines": said,
        "signature": found.signature,
        "path": judged.path,
    }
    return Told(whole, [found, found.note, *said, found.signature], judged.unanswered)


def _beside_people(request: ProbingPolarity, workspace: Workspace) -> Asked:
    if request.limit is not None and request.limit < 1:
        raise ConfigError(f"--limit {request.limit}: at least one dialogue is needed")
    refuse_guarantee(workspace, request.judge_name, "a probe")
    whole, language = workspace.seeds(request.seed_set), workspace.language(request.seed_set)
    protocol = POLARITY.spoken(language)
    seeds = protocol.eligible(whole)[: request.limit]
    if not seeds:
        raise MissingError(
            f"no dialogue of the set {request.seed_set!r} has 4 and more utterances, so there is "
            "nothing to put beside a bot's; import a set of longer dialogues"
        )
    # The bot that nobody takes for a person; the one that says that it is an AI speaks English.
    name = "verbose" if language.english else "retrieval"
    bot = run_now(_extended(name, seeds, whole, language))
    dialogues = {f"bot:{name}": bot, HUMAN: of_people(seeds)}
    cases = Cases(protocol, list(protocol.cases(seeds, dialogues)))
    return Asked(request.seed_set, whole, request.judge_name, [cases])


async def _extended(
    name: str, seeds: Sequence[Seed], whole: Sequence[Seed], language: Language
) -> dict[str, Dialogue]:
    """The bot's dialogue of each seed, as long as the human one."""
    bot = baseline(name, [seed.utterances for seed in whole], language)
    speakers, length = [Speaker(bot, Decoding())], Length(None, len)
    made = await together(
        extend(seed, speakers, len(seed.utterances), length, str, language) for seed in seeds
    )
    return {dialogue.seed_id: dialogue for dialogue in made}


def counted(judge: str, judgments: Sequence[Judgment], signature: str) -> Table:
    """A row for the judge's own verdicts and one for each member's first vote about every case.

    ``judgments``: of dialogues of a floor bot beside the human one, asked which is AI-involved.
    """
    votes: dict[str, list[tuple[Judgment, Verdict | None]]] = {judge: []}
    for judgment in judgments:
        votes[judge].append((judgment, judgment.verdict))
        for said in openings(judgment.transcript):
            member = said.speaker.removesuffix(SWAPPED)
            turned = mirrored(said.verdict) if said.speaker != member else said.verdict
            if member != judge:
                votes.setdefault(member, []).append((judgment, turned))
    rows = [_row(name, cast) for name, cast in votes.items()]
    title = f"Polarity of {judge}: a bot's dialogue beside the human one"
    return table("polarity", title, _COLUMNS, rows, [signature], explained(_COLUMNS))


def _row(name: str, cast: Iterable[tuple[Judgment, Verdict | None]]) -> Row:
    said = [(judgment, vote) for judgment, vote in cast if vote is not None]
    named = [
        (judgment.seed_id, judgment.contestants[int(vote) - 1])
        for judgment, vote in said
        if vote in ("1", "2")
    ]
    machine = sum(one != HUMAN for _, one in named)
    found = share([one != HUMAN for _, one in named], [seed for seed, _ in named], "named")
    pull = UNCLEAR
    if named and (found["named_low"] > 0.5 or found["named_high"] < 0.5):
        pull = WITH if found["named"] > 0.5 else AGAINST
    return {
        "who": name,
        "votes": len(said),
        "decided": len(named),
        **found,
        "machine": machine,
        "person": len(named) - machine,
        "pull": pull,
    }


def lines(found: Table) -> Iterator[str]:
    """What the table says, in plain words: a line for whoever does not pull with the question."""
    rows = found.records
    for row in rows:
        if row["pull"] == AGAINST:
            low, high = (round(100 * row[f"named_{end}"]) for end in ("low", "high"))
            yield (
                f"{row['who']} pulls against the question: of its votes that name one conversation "
                f"{100 * row['named']:.0f} % ({low}–{high}) name the machine's. Asked for machines "
                "it names the better one: leave role_set at auto, or reword its own text"
            )
        elif row["pull"] == UNCLEAR:
            yield f"which way {row['who']} pulls is not clear from {row['decided']} votes"
    if all(row["pull"] == WITH for row in rows):
        yield f"all pull with the question: {', '.join(row['who'] for row in rows)}"


_NAMED = "in brackets the 95 % interval, by ChatSEED"
_PULLS = "against the question, or with it: the whole interval is below or above half"
_COLUMNS = (
    Column("who", "Judge or role", "name", meaning="of a role its first vote about each case"),
    Column("votes", "Votes", "count", priority=3),
    Column("machine", "Names the machine", "count", priority=1),
    Column("person", "Names the person", "count", priority=1),
    Column("decided", "Names one", "count", priority=2, meaning="the rest says both or neither"),
    *with_interval(Column("named", "Machine, % of these", "rate", meaning=_NAMED)),
    Column("pull", "Pulls", "name", meaning=_PULLS),
)

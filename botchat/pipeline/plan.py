"""Calls and cost of a run before it is sent, from the real seeds, dialogues and ledger.

The stage itself is run, with every call that the ledger cannot answer given an answer of the
length to be expected and counted instead of sent. So panels, cross-play, truncation and what is
already paid for are all in the plan, whatever the settings. Of many dialogues and cases some are
walked, and stand for those like them.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from statistics import fmean, median
from typing import Any, NamedTuple, TypeAlias, TypeVar

from botchat.errors import DataError, MissingDataError
from botchat.frames import fill_lines
from botchat.interfaces import Cells, ChatModel, Reply
from botchat.metrics.statistics import LEAST, LEVEL, student_t
from botchat.models.attempts import Call, EndpointFacts, SenderFacts
from botchat.models.stored import LedgerModel
from botchat.parallel import EarlyStop, run_sync
from botchat.pipeline.resolved import ModelUse, ResolvedRun, SeedSet
from botchat.pipeline.session import Session, run_session, stage_result, token_counter
from botchat.pipeline.spending import Meter, Spending
from botchat.protocols.catalogue import RANKING
from botchat.protocols.generation import TokenCounter, prompt_tokens
from botchat.records import HUMAN, N_SEED, Texts, eligible_seeds
from botchat.results import Result
from botchat.workspace import usage
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import ModelSettings
from botchat.workspace.secrets import public

T = TypeVar("T")
Answer = TypeVar("Answer")

REPLY_TOKENS: Mapping[str, tuple[int, int]] = {
    # BotChat Table 1: median and greatest mean length of 14 models' utterances.
    "generate": (41, 199),
    # A verdict with a few sentences, a page of reasoning.
    "judge": (80, 400),
}
"""Tokens of a reply, at each level, where the ledger knows none of the model's."""

REASONING = (0.125, 1.0)
"""Share of its room that a model takes to think, at each level, where the ledger does not tell."""

ENOUGH_CALLS = 20
RECENT_CALLS = 300
"""Replies of a model in the ledger from which its own lengths are taken, and the most that are."""


class PlannedCalls(NamedTuple):
    """Calls of one model in one step, at one level."""

    model: str
    step: str
    """``generate``, or a protocol."""
    calls: int
    tokens: int
    """Prompts and replies."""
    cost_usd: float | None
    """None: the price is unknown."""
    settings: ModelSettings | None
    """None: a bot, whose calls the limits of a run do not count."""


class ReplyLengths(NamedTuple):
    """Expected lengths of a model's calls, in tokens."""

    words: int
    """Reply, as we count."""
    billed: float
    """Reply, as billed."""
    prompt_factor: float
    """Prompt as billed, divided by our count."""
    is_measured: bool = False
    """Whether it is known from the model's own replies, reasoning included."""


class DryRunModel(LedgerModel):
    """A model whose calls are answered by the ledger or counted, never sent."""

    def __init__(self, models: DryRunModels, use: ModelUse) -> None:
        """Share lengths and the keys of counted calls with the same model in other steps."""
        sender: SenderFacts
        if use.model.settings is None:
            sender = models.seed_set.bot(use.model.name)
        else:
            sender = EndpointFacts(use.model.name, use.model.settings, models.ledger)
        super().__init__(sender, models.ledger, models.count_replayed, models.counter.estimate)
        self._models = models
        self._use = use
        self._lengths = models.lengths(self.name, use.stage)
        self._counted = models.counted[self.name, use.stage]
        self._n_calls = 0.0
        self._prompt_tokens = 0.0  # as we count

    def planned(self) -> PlannedCalls:
        """Return what was counted, as it would be billed."""
        n_calls = round(self._n_calls)
        prompt = round(self._prompt_tokens * self._lengths.prompt_factor)
        reasoning = 0.0  # the model's own replies tell theirs
        if not self._lengths.is_measured:
            reasoning = self.room * REASONING[self._models.level]
        completion = round(n_calls * (self._lengths.billed + reasoning))
        return PlannedCalls(
            self.name,
            self._use.step,
            n_calls,
            prompt + completion,
            self._use.prices.cost(prompt, completion),
            self._use.model.settings,
        )

    @property
    def unknown_room(self) -> int:
        """Tokens of a reply that nobody knows yet whether the model takes them to think."""
        if self._lengths.is_measured or not self._n_calls:
            return 0
        return self.sender.most_room

    async def ask(self, call: Call) -> Reply:
        """Return a made-up reply that is counted."""
        if call.key not in self._counted:
            self._counted.add(call.key)
            self._models.n_counted += 1
            self._n_calls += self._models.weight
            self._prompt_tokens += self._models.weight * prompt_tokens(call.messages, self.count)
        return Reply("ok", text=_made_up(call.key, self._lengths.words), key=call.key)


def _made_up(key: str, tokens: int) -> str:
    """Return a reply of about ``tokens`` tokens without a verdict, different for each call.

    Two equal replies would lead to equal later calls, which would be counted once.
    """
    number = f"{int(key[:16], 16) % 10**12:012}"
    own = [f"word{number[at : at + 3]}" for at in range(0, 12, 3)][: max(1, tokens // 2)]
    return " ".join(own) + " word" * (tokens - 2 * len(own))


class DryRunModels:
    """Opens models that are sent nothing."""

    def __init__(
        self, seed_set: SeedSet, ledger: Ledger, level: int, counter: TokenCounter
    ) -> None:
        """Expect replies as long as at ``level``: 0 for expected, 1 for high."""
        self.ledger = ledger
        self.level = level
        self.counter = counter
        self.seed_set = seed_set
        self.lengths = cache(self._expected)
        self.counted = defaultdict[tuple[str, str], set[str]](set)
        """Model and stage -> keys of the calls that were counted."""
        self.n_replayed = 0
        """Replies that came from the ledger."""
        self.n_counted = 0
        """Calls that the ledger could not answer."""
        self.weight = 1.0
        """Calls that each counted one stands for."""
        self.is_rough = False
        """Whether one of several walked stands for others with another number of calls."""
        self.opened: dict[tuple[str, str, str], DryRunModel] = {}
        """Models by name, stage and step."""

    def open(self, use: ModelUse) -> ChatModel:
        """Return a model that counts its calls."""
        place = (use.model.name, use.stage, use.step)
        if place not in self.opened:
            self.opened[place] = DryRunModel(self, use)
        return self.opened[place]

    def count_replayed(self, _reply: Reply, from_ledger: bool) -> None:
        """Take note of a reply that came from the ledger."""
        self.n_replayed += from_ledger

    async def walk(
        self, items: Sequence[T], most: int, ask: Callable[[T], Awaitable[Answer]]
    ) -> list[Answer]:
        """Ask about items; of more than ``most``, which are alike, about so many for all.

        Two neighbours, such as both orders of a pair, go together: they may share calls.
        """
        n = len(items)
        begins: Iterable[int] = range(0, n, 2)
        if n > most:
            # The golden ratio's multiples are spread evenly, in whatever period the items repeat.
            begins = sorted({2 * int(n // 2 * (i * 0.6180339887 % 1)) for i in range(most // 2)})
        few = [items[begin : begin + 2] for begin in begins]
        numbers = set()
        answers = []
        self.weight = n / max(1, sum(map(len, few)))
        for neighbours in few:
            before = self.n_counted
            for item in neighbours:
                answers.append(await ask(item))
            numbers.add(self.n_counted - before)
        self.weight = 1.0
        if n > most and numbers == {0}:  # the ledger answered them all: does it the others?
            return await self.walk(items, n, ask)
        self.is_rough |= n > most and len(numbers) > 1
        return answers

    def planned(self) -> list[PlannedCalls]:
        """Return the calls of all models."""
        rows = [model.planned() for model in self.opened.values()]
        return [row for row in rows if row.calls]

    def _expected(self, model: str, stage: str) -> ReplyLengths:
        """Return the lengths of a model's replies in a stage, as in the ledger or the papers."""
        recent = self.ledger.recent(model, stage, RECENT_CALLS)
        if len(recent) < ENOUGH_CALLS:
            tokens = REPLY_TOKENS[stage][self.level]
            return ReplyLengths(tokens, tokens, 1.0)
        factor = (1.0, 2.0)[self.level]
        count = self.counter.estimate
        counted = fmean(count(reply.text) for _, reply in recent)
        billed = fmean(reply.usage.completion_tokens or 0 for _, reply in recent)
        prompts = sum(prompt_tokens(messages, count) for messages, _ in recent)
        billed_prompts = sum(reply.usage.prompt_tokens or 0 for _, reply in recent)
        return ReplyLengths(
            max(1, round(factor * counted)),
            factor * billed,
            billed_prompts / prompts,
            is_measured=True,
        )


class Plan(NamedTuple):
    """Calls that a run would send, by model, step and level."""

    expected: Sequence[PlannedCalls]
    high: Sequence[PlannedCalls]
    """Calls of replies as long as they may be."""
    notes: Texts
    is_fresh: bool
    """Whether the ledger has no call of it."""
    n_shuffled: int = 0
    """Shuffled dialogues that test a judge."""
    n_new: int = 0
    """Utterances that a model adds to a dialogue."""

    @property
    def rows(self) -> list[Cells]:
        """Rows of steps, then the total: calls, USD, and the most USD expected (None: unknown)."""
        rows = []
        for step in [*dict.fromkeys(each.step for each in self.expected), "total"]:
            calls, usd = _cost(self.expected, step)
            _, high = _cost(self.high, step)
            rows.append({"step": step, "calls": calls, "cost_usd": usd, "cost_usd_high": high})
        return rows

    def result(self, title: str, spending: Spending, over: Sequence[str] = ()) -> Result:
        """Return the plan as text, with its subject ``title``; one line where all is stored.

        ``over``: begins with a line on the limit that it is over, so that nothing would be sent.
        """
        notes = [*self.notes, *over[:1]]
        lines = fill_lines(
            "pipeline/plan.txt",
            title=public(title),
            plan=self,
            spending=spending,
            over=over,
            notes=notes,
        )
        return Result({"rows": self.rows, "notes": notes}, lines)


def _cost(planned: Iterable[PlannedCalls], step: str) -> tuple[int, float | None]:
    """Return calls and USD (None: unknown) of one step, or in ``total``."""
    calls = [each for each in planned if step in (each.step, "total")]
    usd = None
    if all(each.cost_usd is not None for each in calls):
        usd = math.fsum([each.cost_usd or 0.0 for each in calls])
    return sum(each.calls for each in calls), usd


Walk: TypeAlias = Callable[[Session, DryRunModels], Coroutine[Any, Any, object]]
"""Does what a stage does with a session's models, but stores nothing."""


def plan(run: ResolvedRun, walk: Walk) -> Plan:
    """Return what a run would send, for each model at each level; nothing is written."""
    counter = token_counter()
    levels = []
    with closing(run.workspace.ledger(readonly=True)) as ledger:
        for level in (0, 1):  # of the calls that are expected, and of high ones
            models = DryRunModels(run.seed_set, ledger, level, counter)
            run_sync(partial(walk, Session(run, models, ledger, Meter()), models))
            levels.append(models.planned())
        expected, high = levels
        calls = sum(each.calls for each in expected if each.settings)
        notes = minutes_note(ledger, calls)
    notes += fill_lines("pipeline/plan_notes.txt", models=models, expected=expected)
    n_shuffled = len(run.shuffled_dialogues())
    return Plan(expected, high, notes, not models.n_replayed, n_shuffled, run.length - N_SEED)


def ask_or_plan(
    run: ResolvedRun,
    meter: Meter,
    subject: str,
    walk: Walk,
    ask: Callable[[Session, EarlyStop], Awaitable[Iterable[NamedTuple]]],
) -> Result:
    """Return the rows of a stage, or with ``--plan`` the plan of its ``subject``."""
    if run.limits.plan:
        return plan(run, walk).result(subject, run.limits)
    return stage_result(run_session(run, meter, ask))


def resolution(run: ResolvedRun, planned: Plan) -> list[str]:
    """Return the gap in win rate at which the Arena separates two models in half of all runs.

    Of this run and of four times its dialogues; docs/statistics.md has what is assumed. Nothing for
    fewer than two models or `LEAST` topics, or without an Arena.
    """
    n_models = sum(name.partition(":")[0] not in ("bot", HUMAN) for name in run.models)
    seeds = run.first_seeds
    eligible = eligible_seeds(seeds)
    n = len({seed.topic or seed.id for seed in eligible})
    if n_models < 2 or n < LEAST or not any(each.is_pair for each in run.protocols or RANKING):
        return []
    reach = student_t(1 - (1 - LEVEL) / math.comb(n_models, 2), n - 1)
    measured = _error_of_one(run)
    # Assumed where nothing was judged yet; topics count once each.
    of_one = measured or _ASSUMED_ERROR * math.sqrt(len(eligible) / n)
    return fill_lines(
        "pipeline/resolution.txt",
        seeds=seeds,
        points=of_one * reach * math.sqrt(2 / n_models / len(eligible)),
        planned=planned,
        is_measured=measured is not None,
    )


# `_error_of_one` without a board: no ties, orders that are half alike
_ASSUMED_ERROR = 43.0


def _error_of_one(run: ResolvedRun) -> float | None:
    """Return the standard error of a model's win rate in points, of one dialogue and one rival.

    It follows from the intervals of the judge's ratings on the set's board; None where it has none.
    """
    from botchat.boards.tables import is_floor_bot
    from botchat.pipeline.compare import read_board

    try:
        board = read_board(run.workspace, run.seed_set.name)
    except (DataError, MissingDataError):
        return None
    n = max([row.get("complete", 0) for row in board.rows], default=0)
    reaches = []
    for row in board.rows:
        for key, high in row.items():
            if re.fullmatch(r"bt_n\d+_high", key) and high and not is_floor_bot(row["model"]):
                reaches.append(high - row[key.removesuffix("_high")])
    m = len(reaches)
    if board.judge.get("name") != run.judge.name or m < 2 or n < LEAST:
        return None
    error = median(reaches) / student_t(LEVEL, n - 1)
    # Near 50 % a point of Elo is ln 10 / 1600 of win rate; ratings are about their mean.
    return float(100 * math.log(10) / 1600 * error * m * math.sqrt(n / (m - 1)))


def minutes_note(ledger: Ledger, calls: int) -> list[str]:
    """Return about how long the calls take, if the ledger knows the pace of a run."""
    for (pace,) in ledger.select(usage.PACE):
        minutes = round(calls * pace / 60)
        if calls:
            how_long = f"About {minutes:,} min" if minutes else "Under a minute"
            return [f"{how_long} at the rate of the last run."]
    return []

"""Money: limits that hold whatever endpoints say, prices, and the call that goes alone."""

import asyncio
import math
from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.errors import BatchPending, FatalModelError, LimitReached
from botchat.interfaces import Decoding, Message, Quirks, Reply, Usage
from botchat.models.attempts import Adapted, Again, Answered, Refused
from botchat.models.faults import FACTS
from botchat.models.limits import Budget, CallCost, CostBound, Retry, ServerLimit
from botchat.models.paying import PayingModel, believable_usage
from botchat.models.reader import reported_cost, token_usage
from botchat.models.retrying import HOPELESS, RetryingModel
from botchat.models.stored import StoredModel
from botchat.pipeline.spending import Meter
from botchat.workspace.ledger import Ledger
from botchat.workspace.model_settings import Prices
from tests.rows import rows

FINE = Answered(Reply("ok", "fine", usage=Usage(1, 1)))


class Held:
    """A sender whose calls wait until a test lets one of them go; then it does as it was told."""

    name = "m"
    context_window = None
    parallel = 64
    quirks = Quirks()
    room = 0
    most_room = 0

    def __init__(self, *attempts, **identity):
        """``attempts``: what comes of the calls in the order of sending; the last for all."""
        self.identity = {"model": "m", **identity}
        self.attempts = list(attempts) or [FINE]
        self.waiting = []
        self.sent = 0

    async def attempt(self, call):
        """The next attempt, once it is let go."""
        attempt = self.attempts[min(self.sent, len(self.attempts) - 1)]
        self.sent += 1
        self.waiting.append(asyncio.get_running_loop().create_future())
        await self.waiting[-1]
        if isinstance(attempt, Exception):
            raise attempt
        return attempt

    def let_go(self, n):
        """Answer the ``n``-th of the calls that are out."""
        self.waiting.pop(n).set_result(None)


def recorded(model, budget=None, prices=None, ledger=None, server_limit=None, **counting):
    """The model as a run has it, with a ledger in memory."""
    limit = server_limit or ServerLimit(64)
    paying = [ledger or Ledger(None), "t", limit, prices or Prices(), budget or Budget()]
    retrying = RetryingModel(PayingModel(model, *paying), Retry(first_s=0.0, most=3))
    return StoredModel(retrying, **counting)


def ask(model, text, max_tokens):
    """A request as a task."""
    messages = [Message(role="user", content=text)]
    return asyncio.ensure_future(model.chat(messages, Decoding(0.0, max_tokens)))


def asking(model, n, max_tokens=10):
    """``n`` different requests as tasks."""
    return [ask(model, f"{i}", max_tokens) for i in range(n)]


async def quiet():
    """Let everything go on that can."""
    for _ in range(50):
        await asyncio.sleep(0)


async def ends(tasks, model, choose=lambda n: 0):
    """What became of the tasks; fails if they wait and nothing is out."""
    n_idle = 0
    while not all(task.done() for task in tasks):
        await quiet()
        n_idle = 0 if model.waiting else n_idle + 1
        assert n_idle < 20, "everybody waits and no call is out"  # of hundreds one a pass goes on
        if model.waiting:
            model.let_go(choose(len(model.waiting)))
    return [task.exception() or task.result() for task in tasks]


ABSURD = (None, -1, -(2**70), 0.5, 1e300, math.nan, "12", True, 2**63, 10**30, [3])

price = st.floats(0, 1000)
NOTHING = Reply("transport")
FREE = {
    "error": Refused(NOTHING, "request", 400),
    "busy": Again(NOTHING, "busy", status=429),
    "refused": Again(NOTHING, "unreachable"),
    "adapted": Adapted(NOTHING, 400),
}
"""What is never billed."""
KINDS = ("told", "silent", "absurd", "transport", "malformed", *FREE)


class Billing(Held):
    """A provider that bills each request something within its cap, and says so or not.

    ``usd``, ``tokens``: what it has really billed.
    """

    def __init__(self, data, prices, kinds, beyond=0):
        """``beyond``: tokens that it adds to every prompt."""
        super().__init__()
        self.data, self.prices, self.kinds, self.beyond = data, prices, kinds, beyond
        self.usd, self.tokens = 0.0, 0

    async def attempt(self, call):
        """Wait for the turn that the test gives, bill, and reply in one of the ways."""
        fine = await super().attempt(call)
        kind = self.data.draw(st.sampled_from(self.kinds))
        if kind in FREE:
            return FREE[kind]
        share = st.floats(0, 1)
        content = sum(len(m["content"].encode()) for m in call.messages)
        prompt = int(content * self.data.draw(share)) + self.beyond
        completion = int(call.decoding.max_tokens * self.data.draw(share))
        cached = int(prompt * self.data.draw(share))
        p = self.prices
        in_cache = p.input if p.cached is None else p.cached
        usd = (prompt - cached) * p.input + cached * in_cache + completion * p.output
        self.usd += usd / 1e6
        self.tokens += prompt + completion
        if kind == "transport":
            return Again(NOTHING, "lost")
        if kind == "malformed":
            return Again(Reply("malformed"), "unreadable", status=200)
        usage = Usage(prompt, completion, cached)
        if kind == "silent":
            usage = Usage()
        if kind == "absurd":
            counts = [self.data.draw(st.sampled_from(ABSURD)) for _ in range(2)]
            usage = token_usage(
                dict(zip(("prompt_tokens", "completion_tokens"), counts, strict=True))
            )
        return Answered(msgspec.structs.replace(fine.reply, usage=usage))


@st.composite
def runs(draw):
    """Prices, limits, concurrency, and how many requests with how long replies."""
    prices = Prices(draw(price), draw(price), draw(st.none() | price))
    max_usd = draw(st.none() | st.floats(1e-6, 1.0))
    max_tokens = draw(st.integers(1, 3000) if max_usd is None else st.none() | st.integers(1, 3000))
    budget = Budget(max_usd, draw(st.none() | st.integers(1, 30)), max_tokens)
    return prices, budget, draw(st.integers(1, 16)), draw(st.integers(1, 12))


def run_all(data, run, model, texts):
    """Every request at once, replies in a drawn order; what became of them."""
    prices, budget, concurrency, _ = run

    async def go():
        meter = Meter()
        counting = {"server_limit": ServerLimit(concurrency), "on_reply": partial(meter.count, "m")}
        asked = recorded(model, budget, prices, **counting)
        lengths = st.integers(1, 400)
        tasks = [ask(asked, f"{i} {text}", data.draw(lengths)) for i, text in enumerate(texts)]
        found = await ends(tasks, model, lambda n: data.draw(st.integers(0, n - 1)))
        assert not asked.paying.in_flight
        assert budget._open == []
        assert not budget._turn.locked()
        return found, meter

    return asyncio.run(go())


@settings(max_examples=60)
@given(
    data=st.data(),
    run=runs(),
    texts=st.lists(st.text(max_size=20), min_size=1, max_size=8),
    beyond=st.just(0) | st.integers(1, 5000),
)
def test_no_run_spends_more_than_its_limit(data, run, texts, beyond):
    """What a provider really bills within each call's cap, said or unsaid, is never more.

    The bill is the provider's own account of every try, not what the replies say; replies may hide
    it, tell nonsense, or never come. The run ends, and nobody waits for what nobody has.

    A provider that adds tokens ``beyond`` to each prompt: spent <= limit + one reservation's error,
    which is what those tokens cost at the dearest price. The first call of a model is out
    alone, so its bill is part of the reservations of all others.
    """
    prices, budget, *_ = run
    kinds = ("told", "busy", "refused", "error") if beyond else KINDS
    provider = Billing(data, prices, kinds, beyond)
    found, meter = run_all(data, run, provider, texts)
    assert all(isinstance(end, Reply | LimitReached | FatalModelError) for end in found)
    if beyond:
        if budget.max_usd is not None:
            error = max(prices.cost(beyond, 0, cached) for cached in (0, beyond))
            assert provider.usd <= (budget.max_usd + error) * (1 + 1e-9)
        if budget.max_tokens is not None:
            assert provider.tokens <= budget.max_tokens + beyond
        return
    if budget.max_usd is not None:
        assert provider.usd <= budget.max_usd * (1 + 1e-9)
        assert provider.usd <= budget.usd * (1 + 1e-9) + 1e-12
    if budget.max_tokens is not None:
        assert provider.tokens <= budget.tokens <= budget.max_tokens
    if budget.max_calls is not None:
        assert budget.calls <= budget.max_calls
    assert provider.tokens <= meter.tokens + budget.estimated.tokens


async def call(budget, most, cost=None):
    """A call that reserves ``most`` tokens and takes ``cost``."""
    await budget.reserve(CallCost(0.0, most))
    if cost is None:
        budget.give_back(CallCost(0.0, most))
    else:
        budget.settle(CallCost(0.0, most), cost)


async def test_a_call_waits_for_what_others_hold_and_first_come_is_first_served():
    """The limit admits two at a time; a smaller call does not overtake; all get their turn."""
    budget, order = Budget(max_tokens=20), []

    async def call(name, most):
        await budget.reserve(CallCost(0.0, most))
        order.append(name)
        await gate
        budget.settle(CallCost(0.0, most), CallCost(0.0, 1))

    gate = asyncio.get_running_loop().create_future()
    calls = [("a", 8), ("b", 8), ("c", 10), ("d", 2)]
    tasks = [asyncio.ensure_future(call(name, most)) for name, most in calls]
    await quiet()
    assert order == ["a", "b"]
    gate.set_result(None)
    await asyncio.gather(*tasks)
    assert (order, budget.tokens) == (["a", "b", "c", "d"], 4)


async def test_a_limit_ends_the_run_when_nothing_is_out_and_nothing_fits():
    """One line with what and how; below one call the same command does not help."""
    budget, most = Budget(max_usd=1.0), CallCost(0.6, 5)
    await budget.reserve(most)
    waiting = asyncio.ensure_future(budget.reserve(most))
    await quiet()
    assert not waiting.done()
    budget.settle(most, CallCost(0.5, 3))
    with pytest.raises(LimitReached) as caught:
        await waiting
    message = str(caught.value)
    assert message.startswith("stopped at --max-usd 1: the next call may cost up to $0.6; $0.5000,")
    assert "the same command goes on from here" in message
    assert "\n" not in message
    with pytest.raises(LimitReached, match="the same command goes on from here"):
        await call(Budget(max_tokens=5), 6)
    budget = Budget(max_calls=1)
    await call(budget, 0)  # it was not sent
    await call(budget, 0, CallCost())
    with pytest.raises(LimitReached, match="--max-calls 1; "):
        await call(budget, 0)


@pytest.mark.parametrize("granted", [False, True], ids=["while it waits", "at its turn"])
async def test_a_cancelled_waiter_leaves_nothing_reserved(granted):
    """Who goes away before it is sent gives its place, and its number, to the next one."""
    budget, most = Budget(max_calls=3, max_tokens=10), CallCost(0.0, 10)
    await budget.reserve(most)
    waiters = [asyncio.ensure_future(budget.reserve(most)) for _ in "ab"]
    await quiet()
    if not granted:
        waiters[0].cancel()
        await quiet()
    budget.settle(most, CallCost())
    if granted:  # it has its turn, but has not run since
        waiters[0].cancel()
    await asyncio.wait_for(waiters[1], 5)
    assert waiters[0].cancelled()
    assert budget.calls == 2


@pytest.mark.parametrize(
    ("attempt", "counted"),
    [
        (Answered(Reply("ok", "x", usage=Usage(100, 5))), 105),
        (Answered(Reply("ok", "x")), None),
        (Answered(Reply("ok", "x", usage=Usage(100, None))), None),
        (Answered(Reply("ok", "x", usage=Usage(100, 0))), None),
        (Answered(Reply("refused", "no")), None),
        (Answered(Reply("filtered")), None),
        (Answered(Reply("overflow"), billed=False), 0),
        (Adapted(Reply("empty"), 200, billed=True), None),
        (BatchPending("in a batch"), None),
        (Again(NOTHING, "lost"), None),
        (Again(NOTHING, "timeout"), None),
        (Again(Reply("malformed"), "unreadable", status=200), None),
        (Again(NOTHING, "server", status=500), None),
        (Again(Reply("transport", usage=Usage(7, 3)), "server", status=500), 10),
        (Again(NOTHING, "unreachable"), 0),
        (Again(NOTHING, "busy", status=429), 0),
        (Again(NOTHING, "loading", status=503), 0),
        (Refused(NOTHING, "request", 400), 0),
        (Refused(NOTHING, "absent", 404), 0),
    ],
    ids=lambda value: None if isinstance(value, int) else f"{value}"[:60],
)
async def test_what_an_attempt_counts_whose_cost_is_not_told(attempt, counted):
    """Sent and maybe billed: what it had reserved; else nothing."""
    model = Held(attempt, Refused(NOTHING, "request", 400))
    budget = Budget(max_tokens=100_000)
    ledger = Ledger(None)
    asked = recorded(model, budget, Prices(1.0, 2.0), ledger=ledger)
    (end,) = await ends(asking(asked, 1), model)
    keys = ledger.select("SELECT cost_usd FROM calls")
    assert budget.calls == model.sent
    if counted is None:
        assert 110 < budget.tokens == budget.estimated.tokens < 400
        assert budget.usd == budget.estimated.usd == pytest.approx((budget.tokens + 10) / 1e6)
        assert budget.estimated.calls == 1
        assert all(cost == (None,) for cost in keys)  # unknown is never 0
    else:
        assert budget.tokens == counted
        assert not budget.estimated.calls
    is_fatal = isinstance(attempt, Refused) and FACTS[attempt.fault].ends_the_model
    assert isinstance(end, FatalModelError | LimitReached) or not is_fatal


@pytest.mark.parametrize(
    ("identity", "window", "parameters", "max_tokens", "cap"), rows("the_longest_reply")
)
async def test_the_longest_reply_is_what_the_endpoint_was_told(
    identity, window, parameters, max_tokens, cap
):
    """max_tokens, unless the endpoint does not take it or a parameter of one's own comes before."""
    model = Held(**identity)
    model.context_window = window
    model.quirks = Quirks(parameters=parameters)
    budget = Budget(max_tokens=100_000)
    asked = recorded(model, budget)
    tasks = asking(asked, 1, max_tokens)
    await quiet()
    (most,) = budget._open
    reserved = most.tokens
    await ends(tasks, model)
    assert cap + 50 < reserved < cap + 400


@pytest.mark.parametrize(
    ("billed", "usd"),
    [(0.25, 0.25), (0.0, None), (-1.0, 3e-6), (math.nan, 3e-6), (math.inf, 3e-6), (1e-12, 3e-6)],
)
def test_the_providers_own_bill_counts_where_it_is_one(billed, usd):
    """A router's bill, also without prices; nonsense is no bill, and the greater one counts."""
    usage = Usage(1, 1)
    reported = reported_cost({"cost": billed})
    assert Prices(1.0, 2.0).cost_of(usage, reported) == (usd and pytest.approx(usd))
    if billed >= 0 and math.isfinite(billed):
        assert Prices().cost_of(usage, reported) == billed


@pytest.mark.parametrize(("usage", "text", "believed"), rows("counts_that_are_believed"))
def test_a_count_that_is_too_small_for_the_text_is_unknown(usage, text, believed):
    """No tokenizer makes one token of a page."""
    messages = [Message(role="user", content="How was it? " * 20)]
    assert believable_usage(Usage(*usage), messages, text) == Usage(*believed)


def test_a_bound_grows_by_the_largest_overrun_and_not_by_their_sum():
    """64 calls in flight that were over by as much make the next bound larger once."""
    bound = CostBound(Prices(1.0, 1.0))
    most = bound.of(1000, 100)
    for _ in range(64):
        bound.learn(most, CallCost(most.usd + 0.001, most.tokens + 5))
    after = bound.of(1000, 100)
    assert after.usd == pytest.approx(most.usd + 0.001)
    assert after.tokens == most.tokens + 5
    bound.learn(after, CallCost(after.usd, after.tokens))
    assert bound.of(1000, 100).tokens == most.tokens + 5


@pytest.mark.parametrize(
    ("attempt", "sent"),
    [
        (Refused(Reply("transport", detail="m: HTTP 404"), "absent", 404), 1),
        (FatalModelError("no key for m"), 1),
        (Again(Reply("transport", detail="connection refused"), "unreachable"), 3),
        (Again(NOTHING, "server", status=500), HOPELESS),
        (Again(Reply("malformed"), "unreadable", status=200), HOPELESS),
        (Again(NOTHING, "timeout"), HOPELESS),
        (Refused(NOTHING, "request", 400), HOPELESS),
    ],
    ids=["fatal", "nothing sent", "refused", "500", "unreadable", "late", "400"],
)
async def test_a_model_that_cannot_answer_costs_few_attempts(attempt, sent):
    """547 calls wait: one knocks; where the fault may be the call's own, eight; all get the end."""
    model = Held(attempt)
    ledger = Ledger(None)
    found = await ends(asking(recorded(model, ledger=ledger), 547), model)
    ((attempts,),) = ledger.select("SELECT count(*) FROM attempts")
    assert model.sent == sent
    assert attempts == (0 if isinstance(attempt, FatalModelError) else sent)
    fatal = [end for end in found if isinstance(end, FatalModelError)]
    assert len(fatal) >= 547 - HOPELESS + 1
    assert len({str(end) for end in fatal}) == 1


async def test_a_fault_of_one_request_does_not_stop_the_model():
    """The first request is refused for what it is; the others are answered."""
    model = Held(Refused(NOTHING, "request", 400), FINE)
    found = await ends(asking(recorded(model), 10), model)
    assert ([end.outcome for end in found], model.sent) == (["transport"] + ["ok"] * 9, 10)


async def test_eight_failures_in_a_row_end_a_model_also_after_it_has_answered():
    """Of one reason; an answer in between begins a new row."""
    bad = Again(Reply("malformed", detail="no JSON"), "unreadable", status=200)
    model = Held(FINE, *[bad] * 4, FINE, bad)
    stored = recorded(model, server_limit=ServerLimit(1))
    found = await ends(asking(stored, 30), model)
    assert model.sent == 6 + HOPELESS
    fatal = [end for end in found if isinstance(end, FatalModelError)]
    assert "has failed 8 times in a row: no JSON" in str(fatal[0])
    assert len({str(end) for end in fatal}) == 1


async def test_after_a_write_that_failed_nothing_more_is_sent(monkeypatch):
    """The disk is full: what is in flight is asked for no more, what waits is not sent."""
    ledger, model = Ledger(None), Held()
    stopped = recorded(model, ledger=ledger, server_limit=ServerLimit(2))
    tasks = asking(stopped, 12)
    await quiet()
    model.let_go(0)  # the first goes alone
    await quiet()
    assert model.sent == 3
    ledger.select("PRAGMA query_only=1")  # every write fails from here on
    found = await ends(tasks, model)
    assert model.sent == 3
    assert sum(isinstance(end, Reply) for end in found) == 1
    assert {str(end)[:23] for end in found if not isinstance(end, Reply)} == {
        "cannot write the ledger"
    }

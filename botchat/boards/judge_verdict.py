"""Whether a judge can be trusted, in one word, from what is known without asking anybody.

A generated dialogue is generated and a person's is a person's, so a judge that is asked about both
can be checked against what is true. Floor bots (`bot:…`) are the machines that any judge must
catch, however good the models are. Every check has a number with its 95 % interval and fails only
where the whole interval is on the bad side of a line, and passes only where the whole interval is
on the good side (`RULES`); between them it warns. Any check that fails makes *do not trust*, any
that warns *with care*, and some things that were never tested are no more than *with care*.

``judge_verdict.of(board, others, people)`` gives a `JudgeVerdict`: ``.word``, ``.reasons`` and
``.checks``. ``others``: the boards of other judges of the same set. ``people``: the judge's row of
`judge_agreement.Findings` against people, where people have labelled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from botchat.boards.arena import Arena
from botchat.boards.protocols import Evidence
from botchat.interfaces import Row
from botchat.measures.shares import LEAST, by_seed, of_share, share
from botchat.measures.statistics import Floats
from botchat.protocols.pairs import Verdicts
from botchat.records import HUMAN

if TYPE_CHECKING:
    from botchat.boards.board import Board

Word = Literal["trust", "with care", "do not trust"]
State = Literal["fails", "warns", "passes", "unknown"]


@dataclass(frozen=True)
class Rule:
    """What one check of a judge asks for."""

    name: str
    """For a heading."""
    fails: float | None
    """The whole interval on the bad side of it: the check fails; ``None``: it only warns."""
    passes: float
    """The whole interval on the good side of it: the check passes."""
    low_is_good: bool
    reason: str
    """What is wrong, with ``{number}`` and ``{interval}``."""


RULES: Mapping[str, Rule] = {
    "people_accused": Rule(
        "People accused", 0.20, 0.25, True, "It accuses {number} people{interval}."
    ),
    "bots_caught": Rule(
        "Floor bots caught", 0.50, 0.80, False, "It catches {number} of floor bots{interval}."
    ),
    "machines_caught": Rule(
        "Machines caught", 0.10, 0.30, False, "It catches {number} of machines{interval}."
    ),
    "machine_picked": Rule(
        "Machine picked of two",
        0.60,
        0.80,
        False,
        "Beside a person it picks the machine in {number} of decided cases{interval}.",
    ),
    "same_in_both_orders": Rule(
        "Same verdict in both orders",
        0.60,
        0.70,
        False,
        "Of pairs that it decides in both orders, {number} get the same verdict{interval}.",
    ),
    "first_preferred": Rule(
        "First shown preferred",
        0.25,
        0.15,
        True,
        "The conversation shown first wins {number} of decided comparisons{interval}.",
    ),
    "ties": Rule("Ties", 0.80, 0.60, True, "It ties {number} of comparisons{interval}."),
    "unreadable": Rule(
        "Unreadable", 0.25, 0.20, True, "It leaves {number} of verdicts unreadable{interval}."
    ),
    "best_floor_bot": Rule(
        "Best floor bot",
        0.40,
        0.40,
        True,
        "A floor bot is on {number}, with {score} of the points against models.",
    ),
    "other_judges": Rule(
        "Order agrees with other judges",
        0.0,
        0.3,
        False,
        "Its order of the models agrees with other judges by {number} (Kendall){interval}.",
    ),
    "people_agree": Rule(
        "Agrees with people",
        0.1,
        0.2,
        False,
        "Its verdicts agree with people's by {number} (kappa){interval}.",
    ),
}
"""Key of a check -> its rule. ``first_preferred`` counts how far the share is from one half;
``best_floor_bot`` is the share of points that the best one takes from models."""

TOP = 0.30
"""Share of the places in which the best floor bot may not be."""

COPY = 0.99
"""Share of verdicts that are the same from which another judge is no second opinion."""

LEAST_IN_ORDER = 5
"""Contestants below which two orders are not compared."""


@dataclass(frozen=True)
class Check:
    """One thing that is known of a judge."""

    key: str
    """Of `RULES`."""
    name: str
    state: State
    number: str
    """As people read it: ``0 of 14``, ``55 %``, ``rank 1–3 of 14``; a dash where not known."""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    """The number, and the ends of its 95 % interval; shares from 0 to 1."""
    reference: float | None = None
    """The line that it passes on the good side of, in the same unit."""
    reason: str = ""
    """Why it fails or warns, a sentence."""


@dataclass(frozen=True)
class JudgeVerdict:
    """What the checks come to."""

    word: Word
    reasons: Sequence[str]
    """Plain sentences, the most important first."""
    checks: Sequence[Check]

    @property
    def as_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "verdict": self.word,
            "reasons": list(self.reasons),
            "checks": [vars(check) for check in self.checks],
        }


def of(board: Board, others: Sequence[Board] = (), people: Row | None = None) -> JudgeVerdict:
    """The verdict on the judge of a board."""
    own = _own(board)
    peers: list[Board] = []
    copies: list[Board] = []
    for other in others:
        if other.judge != board.judge and not any(c.state == "fails" for c in _own(other)):
            (copies if same_verdicts(board, other) >= COPY else peers).append(other)
    second = _other_judges(board, peers), _people_agree(people)
    checks = (*own, *second)
    word: Word = "trust"
    reasons = []
    for state, said in (("fails", "do not trust"), ("warns", "with care")):
        found = [check.reason for check in checks if check.state == state]
        word = said if found and word == "trust" else word  # type: ignore[assignment]
        reasons += found
    for reason in _untested(board, own, second, copies):
        word = "with care" if word == "trust" else word
        reasons.append(reason)
    if word == "trust":
        reasons = [f"{check.name}: {check.number}." for check in checks if check.state == "passes"]
    return JudgeVerdict(word, tuple(reasons), checks)


def _untested(
    board: Board, own: Sequence[Check], second: Sequence[Check], copies: Sequence[Board]
) -> Iterator[str]:
    """Why a judge that fails nothing is taken with care all the same."""
    known = {check.key for check in own if check.state != "unknown"}
    people = _conversations_of_people(board)
    if not known & {"people_accused", "bots_caught", "machines_caught", "machine_picked"}:
        yield "Nothing was asked of it that has a known answer."
    elif people < LEAST:
        yield f"It was shown {people} human conversations; {LEAST} are needed to say more."
    if not known & {"bots_caught", "best_floor_bot"}:
        yield "No floor bot (bot:…) was judged: nothing shows that it would catch one."
    if all(check.state == "unknown" for check in second):
        for other in copies:
            yield f"{other.judge} gives the same verdicts: that is no second opinion."
        if not copies:
            yield "No second judge that passes its own checks, and no people, to compare with."


def _conversations_of_people(board: Board) -> int:
    """Human conversations with a readable verdict, alone or beside a machine."""
    found: set[str] = set()
    for one in _about_ai(board):
        if one.protocol.kind == "place":
            found |= {j.seed_id for j in one.judgments if HUMAN in j.contestants and j.verdict}
        elif one.protocol.shows == "human":
            there = one.verdicts.seed[one.verdicts.readable]
            found |= {one.verdicts.seed_ids[i] for i in np.unique(there).tolist()}
    return len(found)


def is_floor_bot(contestant: str) -> bool:
    """Whether a contestant is one of BotChat's own offline bots."""
    return all(name.startswith("bot:") for name in contestant.split(" + "))


def _about_ai(board: Board) -> list[Evidence]:
    known = board.evidence.values()
    return [one for one in known if one.protocol.about_ai or one.protocol.leads]


def _own(board: Board) -> tuple[Check, ...]:
    """The checks that need nobody else."""
    judged = _about_ai(board)
    places = next((one for one in judged if one.protocol.kind == "place"), None)
    beside = next((one for one in judged if one.protocol.shows == "human"), None)
    pairs = [one.verdicts for one in judged if one.protocol.shows == "pair"]
    if not pairs and beside is not None:
        pairs = [beside.verdicts]
    leading = board.leading
    known = None if leading is None else board.evidence.get(leading.protocol.name)
    tied = pairs if known is None else [known.verdicts]
    return (
        *_caught(places),
        _machine_picked(beside),
        _same_in_both_orders(pairs),
        _first_preferred(pairs),
        _ties(tied),
        _unreadable(judged),
        _best_floor_bot(leading),
    )


def _caught(judged: Evidence | None) -> Iterator[Check]:
    """People accused, and floor bots caught, or machines where there is no floor bot."""
    said = []
    if judged is not None:
        innocent = judged.protocol.innocent
        said = [
            (one.contestants[0], one.seed_id, one.verdict != innocent)
            for one in judged.judgments
            if one.verdict is not None
        ]
    people = [hit for name, _, hit in said if name == HUMAN]
    hits, n = sum(people), len(people)
    low, high = of_share(hits, n)
    yield _check("people_accused", hits / n if n else math.nan, low, high, f"{hits} of {n}")
    bots = [(seed, hit) for name, seed, hit in said if is_floor_bot(name)]
    machines = [(seed, hit) for name, seed, hit in said if name != HUMAN]
    key, shown = ("bots_caught", bots) if bots else ("machines_caught", machines)
    yield _share(key, [hit for _, hit in shown], [seed for seed, _ in shown])


def _machine_picked(judged: Evidence | None) -> Check:
    """Of decided GTEval verdicts: floor bots', or all machines' where there is no floor bot."""
    key = "machine_picked"
    if judged is None:
        return _unknown(key)
    made = judged.verdicts
    floor = np.array([is_floor_bot(name) for name in made.contestants], dtype=bool)
    people = np.array([name == HUMAN for name in made.contestants], dtype=bool)
    on_bots = floor[made.first] | floor[made.second]
    made = made.only(made.readable & (on_bots if on_bots.any() else True))
    decided = made.only(_decided(made))
    if len(made) and not len(decided):
        return _share(key, [0.0] * len(made), made.seed, "all ties")
    right = np.where(people[decided.first], decided.result == 1, decided.result == 0)
    found = _share(key, right, decided.seed)
    ties = share(~_decided(made), made.seed, "ties") if len(made) else {}
    undecided = ties.get("ties_high") is not None and ties["ties_high"] > RULES["ties"].fails
    return _worse(found, "warns") if undecided else found


def _same_in_both_orders(pairs: Sequence[Verdicts]) -> Check:
    """Of the pairs that are decided in both orders."""
    alike, seeds = [], []
    for made in pairs:
        decided = made.only(_decided(made))
        m = len(decided.contestants)
        kept = decided.first < decided.second
        low = np.where(kept, decided.first, decided.second)
        high = np.where(kept, decided.second, decided.first)
        won = np.where(kept, decided.result, 1 - decided.result)
        case = (decided.seed * m + low) * m + high
        order = np.argsort(case, kind="stable")
        case, won = case[order], won[order]
        both = case[1:] == case[:-1]
        alike.append((won[1:] == won[:-1])[both])
        seeds.append(_names(decided, (case[1:] // (m * m))[both]) if m else [])
    return _share("same_in_both_orders", np.concatenate(alike or [[]]), [*chain(*seeds)])


def _first_preferred(pairs: Sequence[Verdicts]) -> Check:
    won, seeds = [], []
    for made in pairs:
        decided = made.only(_decided(made))
        won.append(decided.result == 1)
        seeds.append(_names(decided, decided.seed))
    key = "first_preferred"
    row = share(np.concatenate(won or [[]]), [*chain(*seeds)], key)
    value, low, high = (row[f"{key}{end}"] for end in ("", "_low", "_high"))
    if value is None:
        return _unknown(key)
    ends = sorted((abs(low - 0.5), abs(high - 0.5)))
    nearest = 0.0 if low <= 0.5 <= high else ends[0]
    state = _state(RULES[key], nearest, ends[1])
    number, interval = f"{100 * value:.0f} %", _interval(low, high)
    reason = RULES[key].reason.format(number=number, interval=interval)
    return _made(key, state, number, value, low, high, 0.5, reason)


def _ties(pairs: Sequence[Verdicts]) -> Check:
    made = [one.only(one.readable) for one in pairs]
    tied = np.concatenate([~_decided(one) for one in made] or [[]])
    return _share("ties", tied, [*chain(*(_names(one, one.seed) for one in made))])


def _unreadable(judged: Sequence[Evidence]) -> Check:
    missing: list[bool] = []
    seeds: list[str] = []
    for one in judged:
        missing += [said.verdict is None for said in one.judgments]
        missing += (~one.verdicts.readable).tolist()
        seeds += [said.seed_id for said in one.judgments]
        seeds += _names(one.verdicts, one.verdicts.seed)
    return _share("unreadable", missing, seeds)


def _best_floor_bot(arena: Arena | None) -> Check:
    """The places that are left to the best one, and its points against models."""
    key, rule = "best_floor_bot", RULES["best_floor_bot"]
    if arena is None:
        return _unknown(key)
    made = arena.compared
    bot = np.array([is_floor_bot(name) for name in made.models], dtype=bool)
    model = ~bot & np.array([name != HUMAN for name in made.models], dtype=bool)
    # Each comparison of a floor bot with a model, from the bot's side.
    of_bot = np.where(bot[made.first], made.first, made.second)
    kept = (bot[made.first] & model[made.second]) | (model[made.first] & bot[made.second])
    if not kept.any():
        return _unknown(key)
    points = np.where(bot[made.first], made.result, 1 - made.result)[kept]
    seed = None if made.cluster is None else made.cluster[kept]
    found = by_seed(of_bot[kept], seed, points, len(made.models))
    first, last = arena.strengths.ties.half.places
    best = int(np.where(bot, -arena.strengths.ties.half.rating, np.inf).argmin())
    if math.isnan(found.value[best]):
        return _unknown(key)
    value, low, high = (float(part[best]) for part in (found.value, found.low, found.high))
    state = _state(rule, low, high)
    n = len(made.models)
    if state == "passes" and first[best] <= TOP * n:
        state = "warns"
    places = f"{first[best]}–{last[best]}" if first[best] < last[best] else f"{first[best]}"
    number = f"rank {places} of {n}"
    reason = rule.reason.format(number=number, score=f"{100 * value:.0f} %")
    return _made(key, state, number, value, low, high, rule.passes, reason)


def _other_judges(board: Board, peers: Sequence[Board]) -> Check:
    """Mean Kendall's tau-b with the order of the others; its interval is Fieller's (1957)."""
    key = "other_judges"
    found = [(tau, n) for one in peers for tau, n in (order_agreement(board, one),) if n]
    if not found:
        return _unknown(key)
    n = min(n for _, n in found)
    value = float(np.mean([tau for tau, _ in found]))
    if math.isnan(value):
        return _unknown(key)
    middle, reach = math.atanh(min(max(value, -0.99), 0.99)), 1.96 * math.sqrt(0.437 / (n - 4))
    low, high = math.tanh(middle - reach), math.tanh(middle + reach)
    return _check(key, value, low, high, f"{value:.2f}")


def order_agreement(board: Board, other: Board) -> tuple[float, int]:
    """Kendall's tau-b of what two boards rank by, and of how many models; (nan, 0): not known."""
    keys = [column.of for b in (board, other) if (column := b.main.column(role="rank"))]
    if keys[0] != keys[1] or not keys[0]:
        return math.nan, 0
    one, two = (
        {k: v for k, v in b.main.values(keys[0]).items() if v is not None and not math.isnan(v)}
        for b in (board, other)
    )
    names = [name for name in one if name in two and name != HUMAN]
    if len(names) < LEAST_IN_ORDER:
        return math.nan, 0
    first, second = (np.array([values[name] for name in names]) for values in (one, two))
    signs = [np.sign((v[:, None] - v[None, :]).round(6)) for v in (first, second)]
    norm = math.sqrt((signs[0] ** 2).sum() * (signs[1] ** 2).sum())
    return (float((signs[0] * signs[1]).sum() / norm), len(names)) if norm else (math.nan, 0)


def _people_agree(row: Row | None) -> Check:
    """Cohen's kappa with the majority of people."""
    if row is None or row.get("kappa") is None:
        return _unknown("people_agree")
    value, low, high = (row[f"kappa{end}"] for end in ("", "_low", "_high"))
    return _check("people_agree", value, low, high, f"{value:.2f}")


def same_verdicts(board: Board, other: Board) -> float:
    """Share of the cases of two judges with the same verdict; 0 of fewer than `LEAST` cases."""
    same = n = 0
    for name in board.evidence.keys() & other.evidence.keys():
        one, two = board.evidence[name], other.evidence[name]
        said = {(j.seed_id, j.contestants): j.verdict for j in two.judgments}
        there = [j for j in one.judgments if (j.seed_id, j.contestants) in said]
        n += len(there)
        same += sum(said[j.seed_id, j.contestants] == j.verdict for j in there)
        results = _shared(one.verdicts, two.verdicts)
        n += results.shape[1]
        same += int((results[0] == results[1]).sum())
    return same / n if n >= LEAST else 0.0


def _shared(one: Verdicts, two: Verdicts) -> Floats:
    """Results of the cases that both have, unreadable ones as -1, shape (2, n)."""
    seeds = {name: i for i, name in enumerate(one.seed_ids)}
    models = {name: i for i, name in enumerate(one.contestants)}
    m = len(models)
    seed = np.array([seeds.get(name, -1) for name in two.seed_ids], dtype=np.intp)[two.seed]
    place = np.array([models.get(name, -1) for name in two.contestants], dtype=np.intp)
    first, second = place[two.first], place[two.second]
    known = (seed >= 0) & (first >= 0) & (second >= 0)
    _, of_one, of_two = np.intersect1d(
        (one.seed * m + one.first) * m + one.second,
        ((seed * m + first) * m + second)[known],
        assume_unique=True,
        return_indices=True,
    )
    found = np.stack([one.result[of_one], two.result[known][of_two]])
    return np.asarray(np.nan_to_num(found, nan=-1.0))


def _decided(made: Verdicts) -> Any:
    return np.isin(made.result, (0.0, 1.0))


def _names(made: Verdicts, seed: Any) -> list[str]:
    return [made.seed_ids[i] for i in seed.tolist()]


def _share(key: str, hits: Any, seeds: Any, number: str = "") -> Check:
    """A check of a share of cases, its interval by seed."""
    row = share(hits, seeds, key)
    value, low, high = (row[f"{key}{end}"] for end in ("", "_low", "_high"))
    return _check(key, value, low, high, number)


def _check(
    key: str, value: float | None, low: float | None, high: float | None, number: str = ""
) -> Check:
    """A check of a number with its interval; ``None`` or nan: not known."""
    if value is None or low is None or high is None or math.isnan(value):
        return _unknown(key)
    rule, number = RULES[key], number or f"{100 * value:.0f} %"
    state = _state(rule, low, high)
    said = "" if rule.passes is None else _interval(low, high, share="Kendall" not in rule.reason)
    reason = rule.reason.format(number=number, interval=said)
    return _made(key, state, number, value, low, high, rule.passes, reason)


def _state(rule: Rule, low: float, high: float) -> State:
    if rule.low_is_good:
        fails, passes = rule.fails is not None and low > rule.fails, high <= rule.passes
    else:
        fails, passes = rule.fails is not None and high < rule.fails, low >= rule.passes
    return "fails" if fails else "passes" if passes else "warns"


def _interval(low: float, high: float, *, share: bool = True) -> str:
    return f" ({100 * low:.0f}–{100 * high:.0f} %)" if share else f" ({low:.2f} to {high:.2f})"


def _unknown(key: str) -> Check:
    return Check(key, RULES[key].name, "unknown", "–", reference=RULES[key].passes)


def _made(
    key: str,
    state: State,
    number: str,
    value: float,
    low: float,
    high: float,
    reference: float,
    reason: str,
) -> Check:
    said = reason if state in ("fails", "warns") else ""
    return Check(key, RULES[key].name, state, number, value, low, high, reference, said)


def _worse(check: Check, state: State) -> Check:
    """The check, which only warns at best."""
    if check.state != "passes":
        return check
    reason = f"{check.name}: {check.number}, but it ties most of the cases."
    return Check(
        check.key, check.name, state, check.number, check.value, check.low, check.high,
        check.reference, reason,
    )  # fmt: skip

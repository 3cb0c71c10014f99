"""Whether a judge can be trusted, in one word, from what is known without asking anybody.

A generated dialogue is generated and a person's is a person's, so a judge that is asked about both
can be checked against what is true. Floor bots (`bot:…`) are the machines that any judge must
catch, however good the models are. Every check has a number with its 95 % interval and fails only
where the whole interval is on the bad side of a line, and passes only where the whole interval is
on the good side (`RULES`); between them it warns. Any check that fails makes *do not trust*, any
that warns *with care*, and some things that were never tested are no more than *with care*. A judge
that was asked nothing with a known answer is *not tested*, unless something else warns.

A new check is a line of `RULES` and a value in `_own`, or in `of` if it needs other boards.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from botchat.boards.arena import Arena
from botchat.boards.board import Board
from botchat.boards.judge_agreement import Findings
from botchat.boards.names import LABEL_COLUMNS, elided, is_floor_bot
from botchat.boards.protocols import Evidence
from botchat.boards.tables import DIGITS, triple
from botchat.interfaces import Row
from botchat.judges.rules import RulesJudge
from botchat.metrics.annotations import is_person
from botchat.metrics.intervals import LEAST, by_seed, share
from botchat.metrics.statistics import Z
from botchat.records import HUMAN
from botchat.verdicts import LOSS, TIE, WIN, Floats, Verdicts

Word = Literal["trust", "with care", "not tested", "do not trust"]
State = Literal["fails", "warns", "passes", "unknown"]


class Rule(NamedTuple):
    """What one check of a judge asks for."""

    name: str
    """What a good judge does, for a heading."""
    fails: float | None
    """The whole interval on the bad side of it: the check fails; ``None``: it only warns."""
    passes: float
    """The whole interval on the good side of it: the check passes."""
    low_is_good: bool
    reason: str
    """What it does, with ``{number}``, ``{interval}``, or ``{value}`` where the number is none."""
    fault: str = ""
    """What a judge does that fails, after "this judge"."""


RULES: Mapping[str, Rule] = {
    "people_accused": Rule("Leaves people alone", 0.20, 0.25, True,
        "It leaves {number} people alone{interval}.", "takes people for machines"),
    "bots_caught": Rule("Catches planted scripts", 0.50, 0.80, False,
        "It catches {number} of scripts{interval}.",
        "takes scripts that understand nothing for people"),
    "machines_caught": Rule("Catches machines", 0.10, 0.30, False,
        "It catches {number} of machines{interval}.", "takes machines for people"),
    "machine_picked": Rule("Finds the machine beside a person", 0.60, 0.80, False,
        "Beside a person it picks the machine in {number} of decided cases{interval}.",
        "cannot tell a machine from the person beside it"),
    "same_winner": Rule("Says the same when swapped", 0.55, 0.70, False,
        "Of pairs that it decides in both orders, {number} have the same winner{interval}.",
        "changes its mind when two chats are swapped"),
    "first_preferred": Rule("Prefers no side", 0.25, 0.15, True,
        "The conversation shown first wins {value} of decided comparisons{interval}.",
        "goes by which chat it is shown first"),
    "ties": Rule("Decides between two", 0.80, 0.60, True,
        "It decides {number} of comparisons{interval}.", "hardly ever decides between two"),
    "unreadable_rate": Rule("Gives readable answers", 0.25, 0.20, True,
        "Of its answers {number} can be read{interval}.", "gives answers that cannot be read"),
    "best_floor_bot": Rule("Ranks scripts low", 0.40, 0.40, True,
        "The best script is on {number}, with {value} of the points against models.",
        "puts scripts that understand nothing level with models"),
    "own_model": Rule("Judges no model of its own", None, 0, True,
        "It judges itself, which it may favour: {number}."),
    "other_judges": Rule("Another judge agrees", 0.0, 0.3, False,
        "Its order of the models and other judges' have a Kendall tau of {number}{interval}.",
        "orders the models against other judges"),
    "people_agree": Rule("People agree", 0.1, 0.2, False,
        "Its verdicts and people's have a kappa of {number}{interval}.",
        "does not agree with people"),
}  # fmt: skip
"""Key of a check -> its rule. ``first_preferred`` counts how far the share is from one half;
``best_floor_bot`` is the share of points that the best one takes from models."""

TURNED = ("people_accused", "ties", "unreadable_rate")
"""Shares of what a good judge does not do: people read the rest of them."""

KNOWN = ("people_accused", "bots_caught", "machines_caught", "machine_picked", "best_floor_bot")
"""Checks by what has a known answer: who is a person, and who understands nothing."""

TOP = 0.30
"""Share of the places in which the best floor bot may not be."""


@dataclass(frozen=True)
class Check:
    """One thing that is known of a judge."""

    key: str
    """Of `RULES`."""
    name: str
    state: State
    number: str
    """What it does well, as people read it: ``14 of 14``, ``45 %``, ``place 1–3 of 14``; a dash
    where not known."""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    """The number under the key, and the ends of its 95 % interval; shares from 0 to 1."""
    reference: float | None = None
    """The line that it passes on the good side of, in the same unit."""
    reason: str = ""
    """What it found, a sentence; empty where it is not known."""
    protocol: str = ""
    """What it is quoted from; empty: from more than one, or from votes."""

    @property
    def well(self) -> tuple[float, float, float] | None:
        """What ``number`` says and the ends of its interval; ``None`` where there is no bar."""
        if self.value is None or self.low is None or self.high is None:
            return None
        if self.key in TURNED:
            return 1 - self.value, 1 - self.high, 1 - self.low
        return self.value, self.low, self.high

    @property
    def line(self) -> float | None:
        """``reference`` on the scale of `well`."""
        line = self.reference
        return 1 - line if line is not None and self.key in TURNED else line


@dataclass(frozen=True)
class JudgeVerdict:
    """What the checks come to."""

    word: Word
    reasons: Sequence[str]
    """Plain sentences, the most important first."""
    checks: Sequence[Check]
    short: Sequence[str] = ()
    """The reasons in a few words each."""

    @property
    def fault(self) -> str:
        """What is worst in one that is not to be trusted, after "this judge"; else empty."""
        failed = (RULES[check.key].fault for check in self.checks if check.state == "fails")
        return next(failed, "")

    @property
    def as_json(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "verdict": self.word,
            "reasons": list(self.reasons),
            "checks": [
                {k: round(v, DIGITS) if isinstance(v, float) else v for k, v in vars(one).items()}
                for one in self.checks
            ],
        }

    def line(self, judge: str, columns: int = 80) -> str:
        """The word and as many of the reasons as a line has room for."""
        line = f"judge {elided(judge, 24)}: {self.word}"
        lines, n = [line], len(self.short)
        for i, reason in enumerate(self.short, 1):
            line += f"{'; ' if i > 1 else ' – '}{reason}"
            lines.append(f"{line} (+{n - i})" if i < n else line)
        return next((one for one in reversed(lines) if len(one) <= columns), lines[0])


def of(board: Board, others: Sequence[Board] = (), people: Row | None = None) -> JudgeVerdict:
    """The verdict on the judge of a board.

    ``others``: the boards of other judges of the same set. ``people``: what
    `with_people` finds, where people have labelled.
    """
    own = _own(board)
    peers: list[Board] = []
    copies: list[Board] = []
    for other in others:
        if other.judge == board.judge or is_person(other.judge, HUMAN):
            continue
        if not any(check.state == "fails" for check in _own(other)):
            (copies if is_copy(board, other) else peers).append(other)
    # Cohen's kappa with the majority of people.
    second = _other_judges(board, peers), _check("people_agree", *triple(people or {}, "kappa"))
    checks = (*own, *second)
    of_state = {
        state: [check for check in checks if check.state == state]
        for state in ("fails", "warns", "passes")
    }
    untested = _untested(board, own, second, peers, copies)
    word: Word = "trust"
    if of_state["fails"]:
        word = "do not trust"
    elif of_state["warns"] or untested:
        word = "with care"
        asked = {*KNOWN, "people_agree"} & {one.key for one in of_state["passes"]}
        if not asked and all(check.key == "own_model" for check in of_state["warns"]):
            word = "not tested"
    shown = of_state["passes"] if word == "trust" else of_state["fails"] + of_state["warns"]
    reasons = {check.reason: f"{check.name.lower()} {check.number}" for check in shown}
    reasons |= {} if word == "trust" else untested
    return JudgeVerdict(word, tuple(reasons), checks, tuple(reasons.values()))


def _untested(
    board: Board,
    own: Sequence[Check],
    second: Sequence[Check],
    peers: Sequence[Board],
    copies: Sequence[Board],
) -> dict[str, str]:
    """Why a judge that fails nothing is taken with care all the same: sentence -> a few words."""
    found = {}
    if not {check.key for check in own if check.state != "unknown"} & {*KNOWN[:-1]}:
        found["It was asked nothing that has a known answer."] = "tested on nothing known"
    elif (people := _conversations_of_people(board)) < LEAST:
        said = f"It was shown {people} human conversations; to say more takes {LEAST}."
        found[said] = f"{people} human conversations"
    if not any(map(is_floor_bot, board.main.frame["model"])):
        found["No script (bot:…) was judged: nothing shows that it would catch one."] = "no script"
    if board.judge == RulesJudge.name:
        found["It sees the form of a dialogue only, not what is said."] = "sees form only"
    if any(check.state != "unknown" for check in second):
        return found
    for other in copies:
        said = f"{other.judge} gives the same verdicts: that is no second opinion."
        found[said] = f"{other.judge} says the same"
    if peers:
        said = "Too little is ranked by it and by other judges to compare the order."
        found[said] = "order not compared"
    elif not copies:
        said = "No second judge that passes these checks, and no people, to compare it with."
        found[said] = "no second judge"
    return found


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


def _about_ai(board: Board) -> list[Evidence]:
    known = board.evidence.values()
    return [one for one in known if one.protocol.about_ai or one.protocol.leads]


def _own(board: Board) -> tuple[Check, ...]:
    """The checks that need nobody else; what the judge's table says is quoted from there."""
    judged, facts = _about_ai(board), board.judge_facts
    place = next((facts[one.protocol.name] for one in judged if one.protocol.kind == "place"), {})
    beside = next((one for one in judged if one.protocol.shows == "human"), None)
    pairs = [facts[one.protocol.name] for one in judged if one.protocol.shows == "pair"]
    pairs = pairs or ([facts[beside.protocol.name]] if beside else [])
    # Of the Arenas the one that says most: two dialogues that are both bad are rightly a tie.
    pair = max(pairs, key=lambda row: row["decided"], default={})
    # Surely the worst, else the one that most is known of.
    missed = max(
        (facts[one.protocol.name] for one in judged),
        key=lambda row: (row["unreadable_rate_low"], -row["unreadable_rate_high"]),
        default={},
    )

    def quoted(key: str, row: Row, number: str = "") -> Check:
        return _check(key, *triple(row, key), number, row.get("protocol", ""))

    n, first = place.get("people") or 0, pair.get("first_preferred") or 0.0
    accused = round((place.get("people_accused") or 0) * n)
    caught = "bots_caught" if place.get("bots_caught") is not None else "machines_caught"
    return (
        quoted("people_accused", place, f"{n - accused} of {n}"),
        quoted(caught, place),
        _machine_picked(beside),
        quoted("same_winner", pair),
        quoted("first_preferred", pair, f"{100 * first:.0f} : {100 - round(100 * first)}"),
        quoted("ties", pair),
        quoted("unreadable_rate", missed),
        _best_floor_bot(board.leading),
        _own_model(board.own),
    )


def _machine_picked(judged: Evidence | None) -> Check:
    """Of decided GTEval verdicts: on floor bots, or on all machines where there is no floor bot."""
    key = "machine_picked"
    if judged is None:
        return _check(key)
    made = judged.verdicts
    floor, people = (
        np.array([is_one(name) for name in made.contestants], dtype=bool)
        for is_one in (is_floor_bot, HUMAN.__eq__)
    )
    on_bots = floor[made.first] | floor[made.second]
    made = made.only(made.readable & (on_bots if on_bots.any() else True))
    tied = np.asarray(made.result == TIE)
    decided = made.only(~tied)
    if len(made) and not len(decided):
        found = _check(key, *triple(share([0.0] * len(made), made.seed, key), key), "never")
        return replace(found, reason="Beside a person it never picks the machine: all are ties.")
    right = decided.result == np.where(people[decided.first], WIN, LOSS)
    found = _check(key, *triple(share(right, decided.seed, key), key))
    ties = share(tied, made.seed, "ties")
    if found.state == "passes" and ties["ties_low"] > RULES["ties"].passes:
        reason = f"{found.reason[:-1]}, but ties {100 * ties['ties']:.0f} % of them."
        return replace(found, state="warns", reason=reason)
    return found


def _best_floor_bot(arena: Arena | None) -> Check:
    """The places that are left to the best one, and its points against models."""
    key = "best_floor_bot"
    if arena is None:
        return _check(key)
    made, fitted = arena.compared, arena.strengths.fitted
    bot = np.array([is_floor_bot(name) for name in made.models], dtype=bool)
    model = ~bot & np.array([name != HUMAN for name in made.models], dtype=bool)
    # Each comparison of a floor bot with a model, from the bot's side.
    kept = (bot[made.first] & model[made.second]) | (model[made.first] & bot[made.second])
    if not kept.any():
        return _check(key)
    of_bot = np.where(bot[made.first], made.first, made.second)[kept]
    points = np.where(bot[made.first], made.result, 1 - made.result)[kept]
    seed = None if made.cluster is None else made.cluster[kept]
    best, n = int(np.where(bot, -fitted.rating, np.inf).argmin()), len(made.models)
    first, last = (int(ends[best]) for ends in fitted.places)
    number = f"place {first} of {n}" if first == last else f"places {first}–{last} of {n}"
    found = _check(key, *triple(by_seed(of_bot, seed, points, n).row(best, key), key), number)
    warns = found.state == "passes" and first <= TOP * n
    return replace(found, state="warns") if warns else found


def _own_model(own: Sequence[str]) -> Check:
    """Whether the judge hears itself in a contestant."""
    rule, number = RULES["own_model"], ", ".join(elided(name, LABEL_COLUMNS) for name in own)
    reason = rule.reason.format(number=number) if own else "It judges no model of its own."
    state: State = "warns" if own else "passes"
    return Check("own_model", rule.name, state, number or "none", reason=reason)


def _other_judges(board: Board, peers: Sequence[Board]) -> Check:
    """Mean Kendall's tau-b with the order of the others; its interval is Fieller's (1957)."""
    found = [(tau, n) for one in peers for tau, n in (order_agreement(board, one),) if n]
    value = sum(tau for tau, _ in found) / len(found) if found else math.nan
    if math.isnan(value):
        return _check("other_judges")
    n = min(n for _, n in found)
    middle, reach = math.atanh(min(max(value, -0.99), 0.99)), Z * math.sqrt(0.437 / (n - 4))
    return _check("other_judges", value, math.tanh(middle - reach), math.tanh(middle + reach))


def _check(
    key: str,
    value: float | None = None,
    low: float | None = None,
    high: float | None = None,
    number: str = "",
    protocol: str = "",
) -> Check:
    """A check of a number with its interval; ``number``: how people read it, default as it is."""
    rule, of_half = RULES[key], key == "first_preferred"
    line = 0.5 if of_half and value is not None else rule.passes
    found = Check(key, rule.name, "unknown", "–", value, low, high, line, protocol=protocol)
    if low is None or high is None or found.well is None:
        return found
    well, *ends = (f"{100 * one:.0f}" for one in found.well)
    well, between = f"{well} %", f" ({ends[0]}–{ends[1]} %)"
    if key in ("other_judges", "people_agree"):
        well, between = f"{value:.2f}", f" ({low:.2f} to {high:.2f})"
    if of_half:  # it counts how far the share is from there
        near, far = sorted((abs(low - line), abs(high - line)))
        low, high = 0.0 if low <= line <= high else near, far
    reason = rule.reason.format(number=number or well, value=well, interval=between)
    return replace(found, state=_state(rule, low, high), number=number or well, reason=reason)


def _state(rule: Rule, low: float, high: float) -> State:
    if rule.low_is_good:
        fails, passes = rule.fails is not None and low > rule.fails, high <= rule.passes
    else:
        fails, passes = rule.fails is not None and high < rule.fails, low >= rule.passes
    return "fails" if fails else "passes" if passes else "warns"


# What others say beside a judge: whether it is the same judge again, its order, people.

COPY = 0.99
"""Share of verdicts that are the same from which another judge is no second opinion."""

LEAST_IN_ORDER = 5
"""Contestants below which two orders are not compared."""


def is_copy(board: Board, other: Board) -> bool:
    """Whether two judges give `COPY` of at least `LEAST` cases the same verdict."""
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
    return n >= LEAST and same >= COPY * n


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


def order_agreement(board: Board, other: Board) -> tuple[float, int]:
    """Kendall's tau-b of what two boards rank by, and of how many models; (nan, 0): not known."""
    key, of_other = (one.main.column(role="rank").of for one in (board, other))
    if key != of_other or not key:
        return math.nan, 0
    frames = [one.main.frame.set_index("model")[key].astype(float) for one in (board, other)]
    both = pd.concat(frames, axis=1, join="inner").drop(HUMAN, errors="ignore").dropna()
    if len(both) < LEAST_IN_ORDER:
        return math.nan, 0
    signs = [np.sign((v[:, None] - v[None, :]).round(6)) for v in both.to_numpy().T]
    norm = math.sqrt((signs[0] ** 2).sum() * (signs[1] ** 2).sum())
    return (float((signs[0] * signs[1]).sum() / norm), len(both)) if norm else (math.nan, 0)


def with_people(judge: str, compared: Iterable[Findings]) -> Row | None:
    """How a judge agrees with people, where they share most; ``None`` below `LEAST` verdicts."""
    rows: list[Row] = []
    for found in compared:
        if found.truth.startswith("people"):
            rows += [row for row in found.rows if row["judge"] == judge]
        for pair in found.pairs:
            for one, other in (("judge_a", "judge_b"), ("judge_b", "judge_a")):
                if pair[one] == judge and is_person(pair[other], HUMAN):
                    value, low, high = triple(pair, "agreement_kappa")
                    kappa = {"kappa": value, "kappa_low": low, "kappa_high": high}
                    rows.append({"n": pair["n"], **kappa})
    known = [row for row in rows if (row["n"] or 0) >= LEAST and row["kappa"] is not None]
    return None if is_person(judge, HUMAN) else max(known, key=lambda row: row["n"], default=None)

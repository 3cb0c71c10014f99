"""The trust level of a judge, from what it says of dialogues whose truth is known.

A judge that reads notices a shuffled dialogue (`botchat.protocols.controls`) and leaves the human
one beside it alone. Each check is a number with its 95 % interval, whose ends decide its state.
docs/judges.md says what the level means, and what it does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from botchat.boards.board import Board
from botchat.boards.judge_table import JudgeFacts
from botchat.boards.skill import (
    GOOD,
    LABEL_GOOD,
    SkillCases,
    State,
    pair_cases,
    second,
    state,
)
from botchat.boards.tables import DIGITS, is_floor_bot, shorten
from botchat.errors import listed
from botchat.estimates import UNKNOWN, Estimate
from botchat.judges.rules import RulesJudge
from botchat.metrics.statistics import LEAST
from botchat.protocols.protocol import Protocol
from botchat.records import MIN_HUMAN, Names, Texts

Level = Literal["no fault found", "use with care", "not tested", "do not trust"]
Key = Literal["skill", "skill_bots", "skill_labels", "unreadable_rate"]

MOST_UNREADABLE = 0.25
FEW_UNREADABLE = 0.20
"""Share of unreadable verdicts above which a judge fails, and up to which it passes."""

NAMES: Mapping[Key, str] = {
    "skill": "Notices shuffled dialogues",
    "skill_bots": "Picks bots out from people",
    "skill_labels": "Agrees with human labels",
    "unreadable_rate": "Readable verdicts",
}
"""Check -> its heading."""

PRINTED: Mapping[Level, str] = {"no fault found": "no fault found as a reader"}
"""Level -> its words where they say more."""

_TESTS: tuple[Key, ...] = ("skill", "skill_labels")
"""Checks without which a judge is not tested."""

_PAIRED: Mapping[Key, tuple[str, str]] = {
    "skill_labels": ("It agrees with your annotators", "It disagrees with your annotators"),
    "skill_bots": ("It picks bots out from people", "It passes bots as human"),
}


class Check(NamedTuple):
    """One check of a judge."""

    key: Key
    state: State
    estimate: Estimate = UNKNOWN
    """The number; skill −1 to 1, a share 0 to 1."""
    n: int = 0
    """Cases."""
    protocol: Protocol | None = None
    """The protocol that it is from, if it is one."""
    good: float = 0.0
    bad: float = 0.0
    habit: str = ""
    """See `SkillCases`."""
    bot: str = ""
    """The bot that it is about, if it is one."""

    @property
    def name(self) -> str:
        """Heading, with the protocol where there may be several."""
        if self.bot:
            return f"Picks {self.bot} out from people"
        if self.key == "skill" and self.protocol is not None:
            return f"{NAMES[self.key]}, {self.protocol.label}"
        return NAMES[self.key]

    @property
    def line(self) -> float:
        """Number that it passes on the good side of."""
        if self.key == "unreadable_rate":
            return FEW_UNREADABLE
        if self.key == "skill_labels":
            return LABEL_GOOD
        return GOOD

    @property
    def number(self) -> str:
        """The number in text; a dash if it was not tested."""
        if not self.estimate.is_known:
            return "–"
        if self.key == "unreadable_rate":
            return f"{100 * self.estimate.value:.0f} %"
        return _points(self.estimate.value)

    @property
    def reason(self) -> str:
        """Words on the judge, without its full stop; empty if it was not tested."""
        if not self.estimate.is_known:
            return ""
        if self.key == "unreadable_rate":
            return _unreadable(self.estimate.value)
        if self.key != "skill":
            return _of_others(self.key, self.state)
        return self._of_shuffled()

    def _of_shuffled(self) -> str:
        if self.state == "fails":
            verb = "does not notice"
            if self.estimate.low > 0:
                verb = "hardly notices"
            return f"It {verb} shuffled dialogues"
        dash = " to "
        if round(100 * self.estimate.low) >= 0:
            dash = "–"
        ends = f"{_points(self.estimate.low)}{dash}{_points(self.estimate.high)}"
        numbers = f"(skill {_points(self.estimate.value)} of 100: {ends})"
        if self.state == "unknown":
            return f"Too few dialogues to say whether it notices shuffled ones {numbers}"
        text = self.rates
        if self.state == "passes":
            return text
        return f"{text} {numbers}"

    @property
    def rates(self) -> str:
        """Shares of shuffled and of human dialogues that it calls AI, or of right and wrong pairs.

        Of two faults the greater is told as one.
        """
        good = f"{100 * self.good:.0f}"
        bad = f"{100 * self.bad:.0f}"
        if self.protocol is not None and not self.protocol.is_alone:
            return f"In pairs right in {good} %, wrong in {bad} %"
        only = ""
        join = " and"
        if self.state == "warns" and self.bad > 1 - self.good:
            join = ", but"
        elif self.state == "warns":
            only = " only"
        noticed = f"It notices{only} {good} of 100 shuffled dialogues"
        return f"{noticed}{join} blames {bad} of 100 human ones"

    @property
    def detail(self) -> str:
        """`reason` with what a failing judge does instead."""
        if self.key != "skill" or self.state != "fails":
            return self.reason
        return f"{self.reason}: {self.habit or _lower(self.rates)}"


class LabelSkill(NamedTuple):
    """Skill of a judge on the cases that annotators labelled, against their majority."""

    protocol: Protocol
    skill: Estimate
    n: int
    """Cases with a decided label."""


class JudgeTrust(NamedTuple):
    """The result of all checks of a judge."""

    level: Level
    reasons: Texts
    """Sentences, the most important first."""
    checks: Sequence[Check]
    self_judged: Names = ()
    """Contestants that are the judge itself."""
    reversed: str | None = None
    """The leader, where the judge takes people for AI more often than it."""
    is_rules: bool = False

    @property
    def failed(self) -> bool:
        """Whether nobody is ranked by this judge."""
        return self.level == "do not trust"

    @property
    def n_tested(self) -> int:
        """Checks with a result."""
        return sum(check.state != "unknown" for check in self.checks)

    @property
    def printed(self) -> str:
        """The level in words."""
        if self.is_rules:
            return "for a first look"
        return PRINTED.get(self.level, self.level)

    @property
    def as_json(self) -> dict[str, object]:
        """The level, reasons and checks, JSON-ready."""
        checks = []
        for check in self.checks:
            ends = vars(check.estimate).items()
            row = {
                "key": check.key,
                "name": check.name,
                "model": check.bot,
                "protocol": "" if check.protocol is None else check.protocol.name,
                "state": check.state,
                **{key: None if math.isnan(n) else round(n, DIGITS) for key, n in ends},
                "n": check.n,
                "line": check.line,
                "reason": check.reason,
            }
            checks.append(row)
        return {
            "trust": self.level,
            "tested": self.n_tested,
            "of": len(self.checks),
            "self_judged": list(self.self_judged),
            "reversed": self.reversed,
            "reasons": list(self.reasons),
            "checks": checks,
        }

    def sentence(self, judge: str) -> str:
        """The level and at most two reasons, one line."""
        reasons = " ".join(self.reasons[:2])
        return f"Judge {shorten(judge, 40)}: {self.printed}. {reasons}".rstrip()


def judge_trust(board: Board, labelled: LabelSkill | None = None) -> JudgeTrust:
    """Return the trust level of a board's judge; ``labelled``: by annotators, if there are any."""
    checks = _checks(board, labelled)
    is_rules = board.judge == RulesJudge.name
    leader = next(iter(board.leaders), None)
    turned = None
    if leader is not None and _is_reversed(board, leader):
        turned = leader
    states = [check.state for check in checks if check.key == "skill" or check.state != "unknown"]
    is_tested = any(check.state != "unknown" for check in checks if check.key in _TESTS)
    if is_rules or not (is_tested or "fails" in states):
        states = []
    decided = level(states, capped=bool(board.self_judged or turned))
    match decided:
        case "do not trust":
            reasons = _faults(board, checks)
        case "use with care":
            reasons = _doubts(board, checks, turned)
        case "not tested":
            reasons = [_untested(board, checks, is_rules)]
        case "no fault found":
            reasons = [_praise(checks)]
    if board.self_judged:
        verb = "is a contestant"
        if len(board.self_judged) > 1:
            verb = "are contestants"
        reasons.append(f"It judges itself: {listed(board.self_judged)} {verb}.")
    return JudgeTrust(decided, reasons, checks, board.self_judged, turned, is_rules)


def level(states: Sequence[State], *, capped: bool = False) -> Level:
    """Return the level from the states of ``skill``, and of all other checks that have one.

    ``capped``: it judges itself, or takes people for AI more often than the leader.
    """
    if all(each == "unknown" for each in states):
        return "not tested"
    if "fails" in states:
        return "do not trust"
    if capped or "warns" in states or "unknown" in states:
        return "use with care"
    return "no fault found"


def no_ranking(checks: Sequence[Check]) -> str:
    """Return why nobody is ranked, by the worst failing check; empty if none fails."""
    for check in _worst(checks, "fails"):
        who = "it"
        if check.key == "skill":
            who = "the judge"
        return f"No ranking: {check.reason.replace('It', who, 1)}."
    return ""


def leader_cases(board: Board, leader: str) -> SkillCases:
    """Return the verdicts on the leader beside people; none where GTEval was not judged."""
    for part in board.verdicts.values():
        if part.protocol.against_human and part.protocol.tests_judges:
            return pair_cases(part.verdicts, leader, part.topics)
    return SkillCases()


def _is_reversed(board: Board, leader: str) -> bool:
    """Whether the judge takes people for AI more often than the leader."""
    return second(leader_cases(board, leader), board.n_models) == "reversed"


def _checks(board: Board, labelled: LabelSkill | None) -> list[Check]:
    """Make every check that the judged protocols have, tested or not."""
    checks = []
    for protocol in _tested_protocols(board):
        checks.append(_skill_check("skill", protocol, board.test.cases(protocol)))
    for part in board.verdicts.values():
        if part.protocol.against_human and part.protocol.tests_judges:
            for name in part.verdicts.judged_contestants:
                if is_floor_bot(name):
                    cases = pair_cases(part.verdicts, name, part.topics)
                    checks.append(
                        _skill_check("skill_bots", part.protocol, cases)._replace(bot=name)
                    )
    if labelled is not None:
        outcome = state(labelled.skill, labelled.n, labelled.n, LABEL_GOOD)
        checks.append(Check("skill_labels", outcome, labelled.skill, labelled.n, labelled.protocol))
    facts = {name: board.judge_facts[name] for name in board.verdicts}
    if facts:
        checks.append(_unreadable_check(board, facts))
    return checks


def _tested_protocols(board: Board) -> list[Protocol]:
    """Return the judged protocols that test a judge; GTEval stands for the Arena."""
    known = [part.protocol for part in board.verdicts.values() if part.protocol.tests_judges]
    # GTEval's before the Arenas', which are in the order of their N.
    known.sort(key=lambda protocol: (not protocol.is_alone, protocol.is_pair))
    return known[: sum(protocol.is_alone for protocol in known) + 1]


def _skill_check(key: Key, protocol: Protocol, cases: SkillCases) -> Check:
    n_seeds = cases.n_seeds
    if protocol.is_pair:  # its prompt allows ties, which are no fault
        cases = cases.decided()
    skill = cases.skill
    n = len(cases.values)
    outcome = state(skill, n_seeds, n)
    return Check(key, outcome, skill, n, protocol, cases.good, cases.bad, cases.habit)


def _unreadable_check(board: Board, facts: Mapping[str, JudgeFacts]) -> Check:
    """Check the protocol with the most unreadable verdicts."""
    name = max(facts, key=lambda name: _least_unreadable(facts[name]))
    rate = facts[name].rate("unreadable_rate")
    outcome: State = "warns"
    if rate.value == 1 or rate.low > MOST_UNREADABLE:
        outcome = "fails"
    elif rate.high <= FEW_UNREADABLE:
        outcome = "passes"
    if rate.value < 1 and board.test.n_seeds < LEAST:
        outcome = "unknown"
    return Check(
        "unreadable_rate", outcome, rate, facts[name].judged, board.verdicts[name].protocol
    )


def _least_unreadable(facts: JudgeFacts) -> float:
    """Return the lower end of the share of unreadable verdicts."""
    return float(np.nan_to_num(facts.rate("unreadable_rate").low))


def _worst(checks: Sequence[Check], wanted: State) -> list[Check]:
    """Return the checks in a state: what cannot be read first, then by skill."""
    some = [check for check in checks if check.state == wanted]
    some.sort(key=lambda check: (check.key != "unreadable_rate", check.estimate.value))
    return some


def _faults(board: Board, checks: Sequence[Check]) -> list[str]:
    """Return what a judge fails in, the worst first."""
    faults: dict[str, str] = {}
    for check in _worst(checks, "fails"):
        faults.setdefault(check.reason, _sentence(check.detail))  # alone and in pairs alike: once
    reasons = list(faults.values())
    unreadable = [check for check in _worst(checks, "fails") if check.key == "unreadable_rate"]
    if unreadable and _lacks_room(board):
        reasons.insert(1, _MORE_ROOM)
    return reasons


def _doubts(board: Board, checks: Sequence[Check], turned: str | None) -> list[str]:
    """Return what speaks against a judge without a fault, the worst first."""
    reasons = [_sentence(check.reason) for check in _worst(checks, "warns")]
    if turned is not None:
        cases = leader_cases(board, turned)
        reasons.append(
            f"It takes people for AI more often than {turned}: {100 * cases.bad:.0f} % against "
            f"{100 * cases.good:.0f} %."
        )
    for check in checks:
        if check.key == "skill" and check.state == "unknown" and check.protocol is not None:
            reasons.append(_sentence(check.reason or f"{check.protocol.label} was not tested"))
    return reasons


_MORE_ROOM = (
    "Its replies were cut or empty: set a larger max_tokens in its entry, or reasoning_tokens in "
    "its [models] entry if it thinks."
)


def _lacks_room(board: Board) -> bool:
    """Whether most unreadable verdicts are missing since a reply was cut or showed nothing."""
    facts = board.judge_facts.values()
    n_cut = sum(each.without_room for each in facts)
    return 2 * n_cut > sum(each.unreadable for each in facts)


def _praise(checks: Sequence[Check]) -> str:
    """Return what a judge without a fault does with shuffled dialogues."""
    texts = [check.reason for check in checks if check.key == "skill"]
    return _sentence("; ".join([texts[0], *[_lower(text) for text in texts[1:]]]))


def _untested(board: Board, checks: Sequence[Check], is_rules: bool) -> str:
    """Return why nothing is known of a judge, and what to do."""
    test = board.test
    protocols = _tested_protocols(board)
    if is_rules:
        return "It reads form only and cannot notice a shuffled dialogue."
    if not protocols:
        return "The test is part of UniEval, GTEval and the Arena; none of them was judged."
    if test.n_human < LEAST:
        return (
            f"{board.seed_set} has {test.n_human} human dialogues of {MIN_HUMAN} or more "
            f"utterances; the test needs {LEAST}."
        )
    if test.n_asked == 0:
        return "shuffled = 0 in [run] of botchat.toml: no test is made."
    n = len(test.seeds)
    if n < LEAST:
        return f"{board.seed_set} gives {n} shuffled dialogues; the test needs {LEAST}."
    calls = f"{test.n_missing(protocols):,} calls"
    if test.n_seeds < LEAST:
        return (
            f"With --limit {test.n_seeds} no test is made; from {LEAST} on it is ({calls}, once "
            "for this judge and set)."
        )
    for check in checks:
        if check.key == "skill" and check.protocol is not None:
            n_asked = len(test.cases(check.protocol).values)
            if check.protocol.is_pair and check.n < LEAST <= n_asked:
                return f"It decides {check.n} of {n_asked} pairs; the test needs {LEAST}."
            if check.n:
                return _sentence(check.reason)
    return f"Judged before the test existed: botchat judge ({calls})."


def _unreadable(rate: float) -> str:
    if rate == 1:
        return "none of its verdicts can be read"
    return f"{100 * rate:.0f} % of its verdicts cannot be read"


def _of_others(key: Key, outcome: State) -> str:
    """Return the words on bots or labels."""
    good, bad = _PAIRED[key]
    match outcome:
        case "passes":
            return good
        case "fails":
            return bad
        case "warns":
            return f"{good} in part only"
        case "unknown":
            return f"{good}: too few cases to tell"


def _points(skill: float) -> str:
    """Return a skill in points of 100."""
    return f"{round(100 * skill)}".replace("-", "−")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]

"""The trust level of a judge, from what it says of dialogues whose truth is known.

A judge that reads notices a shuffled dialogue (`botchat.protocols.controls`) and leaves the human
one beside it alone. Each check is a number with its 95 % interval, whose ends decide its state.
docs/judges.md says what the level means, and what it does not.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from botchat.boards.board import Board
from botchat.boards.judge_agreement import HUMAN_LABELS, AgreementReport
from botchat.boards.protocols import ProtocolVerdicts
from botchat.boards.skill import Second, SkillCases, State, pair_cases, second, state
from botchat.boards.tables import DIGITS, interval_text, is_floor_bot, models_of, shorten
from botchat.estimates import Estimate
from botchat.frames import fill_lines, package_toml
from botchat.judges.rules import RulesJudge
from botchat.metrics.statistics import LEAST
from botchat.protocols.catalogue import Catalogue
from botchat.protocols.protocol import Protocol
from botchat.records import MIN_HUMAN, Texts

Level = Literal["no fault found", "use with care", "not tested", "do not trust"]
Key = Literal["skill", "skill_bots", "skill_labels", "unreadable_rate"]
# Share of unreadable verdicts above which a judge fails.
MOST_UNREADABLE = 0.25

# Checks without which a judge is not tested.
_TESTS: tuple[Key, ...] = ("skill", "skill_labels")


class CheckWords(msgspec.Struct, frozen=True):
    """A kind of check."""

    name: str
    line: float
    """Number that it passes on the good side of."""
    reasons: dict[str, str]
    """State -> words on the judge."""


class Words(msgspec.Struct, frozen=True):
    """Words on a judge, with places for numbers: ``judge.toml``."""

    levels: dict[Level, str]
    checks: dict[Key, CheckWords]
    rates: dict[str, str]


WORDS = package_toml("boards/judge.toml", Words)


class Check(NamedTuple):
    """One check of a judge."""

    key: Key
    state: State
    estimate: Estimate
    """The number; skill −1 to 1, a share 0 to 1."""
    n: int
    """Cases."""
    protocol: Protocol
    cases: SkillCases = SkillCases()
    """All that it is about, ties and unreadable ones too; none if it is not about skill."""
    bot: str = ""
    """The bot that it is about, if it is one."""

    @property
    def words(self) -> CheckWords:
        """Words of its kind."""
        return WORDS.checks[self.key]

    @property
    def name(self) -> str:
        """Heading, with the protocol where there may be several."""
        if self.bot:
            return f"Picks {self.bot} out from people"
        if self.key == "skill":
            return f"{self.words.name}, {self.protocol.label}"
        return self.words.name

    @property
    def reason(self) -> str:
        """Words on the judge, without its full stop; empty if it was not tested."""
        number = self.estimate.stretched(0.0, 100.0)
        n_cases = len(self.cases.values)
        words: str = self.state
        if self.n < LEAST <= n_cases:
            words = "tied"
        elif not number.is_known:
            return ""
        elif self.key == "unreadable_rate" and number.value == 100:
            words = "none"
        elif self.key == "skill" and self.state == "fails" and number.low > 0:
            words = "hardly"
        skill = f"(skill {number.value:z.0f} of 100: {interval_text(number, 'z.0f')})"
        return self.words.reasons[words].format(
            rates=self.rates,
            skill=skill.replace("-", "−"),
            share=number.value,
            n=self.n,
            n_cases=n_cases,
            least=LEAST,
        )

    @property
    def rates(self) -> str:
        """Shares of shuffled and of human dialogues that it calls AI, or of right and wrong pairs.

        Of two faults the greater is told as one.
        """
        good = 100 * self.cases.good
        bad = 100 * self.cases.bad
        words = "alone"
        if not self.protocol.is_alone:
            words = "pairs"
        elif self.state == "warns" and bad > 100 - good:
            words = "blames"
        elif self.state == "warns":
            words = "misses"
        return WORDS.rates[words].format(good=good, bad=bad)

    @property
    def detail(self) -> str:
        """`reason` with what a failing judge does instead."""
        if self.key != "skill" or self.state != "fails":
            return self.reason
        rates = self.rates[:1].lower() + self.rates[1:]
        return f"{self.reason}: {self.cases.habit or rates}"


class Beside(NamedTuple):
    """The leader beside people, as its judge takes them."""

    name: str | None
    """None where nobody leads."""
    cases: SkillCases = SkillCases()
    """None where GTEval was not judged."""
    word: Second = "too few"


class JudgeTrust(NamedTuple):
    """The result of all checks of a judge."""

    level: Level
    reasons: Texts
    """Sentences, the most important first."""
    checks: Sequence[Check]
    self_judged: Texts
    """Contestants that are the judge itself."""
    leader: Beside
    is_rules: bool

    @property
    def reversed(self) -> str | None:
        """The leader, where the judge takes people for AI more often than it."""
        if self.leader.word == "reversed":
            return self.leader.name
        return None

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
        return WORDS.levels[self.level]

    @property
    def as_json(self) -> dict[str, object]:
        """The level, reasons and checks, JSON-ready."""
        checks = []
        for check in self.checks:
            ends = vars(check.estimate).items()
            checks.append(
                {
                    "key": check.key,
                    "name": check.name,
                    "model": check.bot,
                    "protocol": check.protocol.name,
                    "state": check.state,
                    **{key: None if math.isnan(n) else round(n, DIGITS) for key, n in ends},
                    "n": check.n,
                    "line": check.words.line,
                    "reason": check.reason,
                }
            )
        return {
            "trust": self.level,
            "tested": self.n_tested,
            "of": len(self.checks),
            "self_judged": self.self_judged,
            "reversed": self.reversed,
            "reasons": self.reasons,
            "checks": checks,
        }

    def sentence(self, judge: str) -> str:
        """The level and at most two reasons, one line."""
        reasons = " ".join(self.reasons[:2])
        return f"Judge {shorten(judge, 40)}: {self.printed}. {reasons}".rstrip()


def judge_trust(board: Board, labelled: Check | None = None) -> JudgeTrust:
    """Return the trust level of a board's judge; ``labelled``: its `label_check`, if any."""
    checks = _checks(board, labelled)
    is_rules = board.judge == RulesJudge.name
    leader = _leader(board)
    states = [check.state for check in checks if check.key == "skill" or check.state != "unknown"]
    is_tested = any(check.state != "unknown" for check in checks if check.key in _TESTS)
    if is_rules or not (is_tested or "fails" in states):
        states = []
    decided = level(states, capped=bool(board.self_judged or leader.word == "reversed"))
    reasons = fill_lines(
        "boards/judge_reasons.txt",
        level=decided,
        is_rules=is_rules,
        board=board,
        test=board.test,
        checks=checks,
        faults=_worst(checks, "fails"),
        doubts=_worst(checks, "warns"),
        leader=leader,
        n_missing=_n_missing(board),
        least=LEAST,
        shortest=MIN_HUMAN,
    )
    return JudgeTrust(decided, reasons, checks, board.self_judged, leader, is_rules)


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


def _leader(board: Board) -> Beside:
    """Return the leader, with the verdicts on it beside people."""
    name = next(iter(board.leaders), None)
    parts = _against_people(board)
    if name is None or not parts:
        return Beside(name)
    cases = pair_cases(parts[0].verdicts, name, parts[0].topics)
    return Beside(name, cases, second(cases, len(models_of(board.main.models))))


def _against_people(board: Board) -> list[ProtocolVerdicts]:
    """Return the verdicts of GTEval, if it was judged."""
    judged = board.verdicts.values()
    return [p for p in judged if p.protocol.against_human and p.protocol.tests_judges]


def _checks(board: Board, labelled: Check | None) -> list[Check]:
    """Make every check that the judged protocols have, tested or not."""
    checks = []
    for protocol in _tested_protocols(board):
        checks.append(_skill_check("skill", protocol, board.judge_facts[protocol.name].cases))
    for part in _against_people(board):
        for name in part.verdicts.judged_contestants:
            if is_floor_bot(name):
                cases = pair_cases(part.verdicts, name, part.topics)
                check = _skill_check("skill_bots", part.protocol, cases)
                checks.append(check._replace(bot=name))
    if labelled is not None:
        checks.append(labelled)
    if board.verdicts:
        checks.append(_unreadable_check(board))
    return checks


def _tested_protocols(board: Board) -> list[Protocol]:
    """Return the judged protocols that test a judge; GTEval stands for the Arena."""
    known = [part.protocol for part in board.verdicts.values() if part.protocol.tests_judges]
    # GTEval's before the Arenas', which are in the order of their N.
    known.sort(key=lambda protocol: (not protocol.is_alone, protocol.is_pair))
    return known[: sum(protocol.is_alone for protocol in known) + 1]


def label_check(protocol: Protocol, skill: Estimate, n: int) -> Check:
    """Check the skill of a judge on ``n`` cases with a decided label of annotators' majority."""
    outcome = state(skill, n, n, WORDS.checks["skill_labels"].line)
    return Check("skill_labels", outcome, skill, n, protocol)


def label_checks(reports: Mapping[str, AgreementReport], catalogue: Catalogue) -> dict[str, Check]:
    """Check each judge's skill on human labels, if there are any, of the first such protocol."""
    checks = {}
    for name, report in reversed(list(reports.items())):
        protocol = catalogue.find(name)
        if report.labels != HUMAN_LABELS or protocol is None:
            continue
        for judged in report.agreement.judges:
            checks[judged.judge] = label_check(protocol, judged.skill, judged.n_decided)
    return checks


def _skill_check(key: Key, protocol: Protocol, cases: SkillCases) -> Check:
    counted = cases
    if protocol.is_pair:  # its prompt allows ties, which are no fault
        counted = cases.decided()
    n = len(counted.values)
    return Check(key, state(counted.skill, cases.n_seeds, n), counted.skill, n, protocol, cases)


def _unreadable_check(board: Board) -> Check:
    """Check the protocol with the most unreadable verdicts; an own criterion where it is alone.

    What its prompt does to replies is no fault of a judge that ranks by the paper's.
    """
    names = [name for name, part in board.verdicts.items() if part.protocol.leads]
    judged = [board.judge_facts[name] for name in names or board.verdicts]
    facts = max(judged, key=lambda each: np.nan_to_num(each.rate("unreadable_rate").low))
    rate = facts.rate("unreadable_rate")
    outcome: State = "warns"
    if rate.value == 1 or rate.low > MOST_UNREADABLE:
        outcome = "fails"
    elif rate.high <= WORDS.checks["unreadable_rate"].line:
        outcome = "passes"
    if rate.value < 1 and board.n_seeds < LEAST:
        outcome = "unknown"
    protocol = board.verdicts[facts.protocol].protocol
    return Check("unreadable_rate", outcome, rate, facts.judged, protocol)


def _worst(checks: Sequence[Check], wanted: State) -> list[Check]:
    """Return the checks in a state: what cannot be read first, then by skill."""
    some = [check for check in checks if check.state == wanted]
    some.sort(key=lambda check: (check.key != "unreadable_rate", check.estimate.value))
    return some


def _n_missing(board: Board) -> int:
    """Count the verdicts that are still to be asked for, from `LEAST` dialogues on."""
    n = 0
    for protocol in _tested_protocols(board):
        n += 2 * len(board.test.seeds) - board.judge_facts[protocol.name].cases.n_verdicts
        if protocol.is_alone:
            n -= max(0, LEAST - board.n_seeds)  # human ones that are judged with the models'
    return n

"""The trust level of a judge, from eight checks; all but one need no annotator.

A generated dialogue is AI and a human one is not, so a judge that sees both can be checked against
what is true; bots (`bot:…`) are AI that any judge must catch. Each check has a number with its 95 %
interval: it fails if the whole interval is on the bad side of a line, passes if the whole interval
is on the good side, and warns between them (`RULES`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np

from botchat.boards.board import Board
from botchat.boards.judge_table import JudgeFacts
from botchat.boards.protocols import ProtocolVerdicts
from botchat.boards.tables import DIGITS, is_floor_bot, shorten
from botchat.errors import listed
from botchat.estimates import UNKNOWN, Estimate
from botchat.judges.rules import RulesJudge
from botchat.metrics.statistics import LEAST, proportion
from botchat.metrics.verdicts import LOSS, TIE, WIN
from botchat.records import HUMAN, Texts

NO_ANSWER: Final = "gives no answer within its limit"
"""Level of a judge most of whose missing verdicts are missing since its replies were cut or empty.

Such a judge is not bad but asked with too little room. What it did answer is no sample of its
verdicts, so nothing is checked by it."""

Level = Literal[
    "trust",
    "use with care",
    "not tested",
    "do not trust",
    "not usable",
    "gives no answer within its limit",
]
State = Literal["fails", "warns", "passes", "unknown"]


class CheckRule(NamedTuple):
    """Rule of one check of a judge."""

    name: str
    """Conduct of a good judge, for a heading."""
    fails: float
    passes: float
    low_is_good: bool
    finding: str
    """A sentence after "It", with ``{value}``."""
    fault: str
    """Conduct of a judge that fails, after "the judge"."""


RULES: Mapping[str, CheckRule] = {
    "false_positive_rate": CheckRule(
        "Calls few human dialogues AI",
        0.20,
        0.25,
        True,
        "calls {value} of human dialogues AI",
        "calls human dialogues AI",
    ),
    "true_positive_rate": CheckRule(
        "Calls generated dialogues AI",
        0.10,
        0.30,
        False,
        "calls {value} of generated dialogues AI",
        "passes models as human",
    ),
    "true_positive_rate_bots": CheckRule(
        "Calls dialogues of bots AI",
        0.50,
        0.80,
        False,
        "calls {value} of dialogues of bots AI",
        "passes bots as human",
    ),
    "model_picked": CheckRule(
        "Picks out the model's dialogue",
        0.60,
        0.80,
        False,
        "picks out the model's dialogue in {value} of pairs with a human one",
        "cannot tell a model from a human",
    ),
    "consistency": CheckRule(
        "Same verdict in both orders",
        0.55,
        0.70,
        False,
        "gives the same verdict in both orders in {value} of pairs",
        "changes its verdict when two dialogues are swapped",
    ),
    "first_preferred": CheckRule(
        "First text preferred",
        0.25,
        0.15,
        True,
        "prefers the dialogue shown first in {value} of decided comparisons",
        "decides by which dialogue is shown first",
    ),
    "ties": CheckRule(
        "Decides between two",
        0.80,
        0.60,
        True,
        "calls {value} of comparisons a tie",
        "hardly ever decides between two",
    ),
    "unreadable_rate": CheckRule(
        "Readable verdicts",
        0.25,
        0.20,
        True,
        "leaves {value} of verdicts unreadable",
        "gives verdicts that cannot be read",
    ),
    "label_kappa": CheckRule(
        "Human labels of this set",
        0.10,
        0.20,
        False,
        "agrees with human labels with a kappa of {value}",
        "does not agree with human labels",
    ),
}
"""Check -> its rule; of the two true positive rates a judge has one. ``first_preferred`` counts how
far the share is from one half."""


class Check(NamedTuple):
    """One check of a judge."""

    key: str
    """Key of `RULES`."""
    name: str
    state: State
    estimate: Estimate = UNKNOWN
    """The number; a share from 0 to 1."""
    line: float | None = None
    """The line that it passes on the good side of, in the same unit."""
    reason: str = ""
    """A sentence on the result; empty if it was not tested."""
    protocol: str = ""
    """The protocol that it is from, if it is one."""

    @property
    def number(self) -> str:
        """The number in text; a dash if it was not tested."""
        value = self.estimate.value
        if not self.estimate.is_known:
            return "–"
        if self.key == "label_kappa":
            return f"{value:.2f}"
        return f"{100 * value:.0f} %"


class JudgeTrust(NamedTuple):
    """The result of all checks of a judge."""

    level: Level
    reasons: Texts
    """Sentences, the most important first."""
    checks: Sequence[Check]

    @property
    def failed(self) -> bool:
        """Whether nobody is ranked by this judge."""
        return self.level in ("do not trust", "not usable", NO_ANSWER)

    @property
    def fault(self) -> str:
        """The worst fault of a judge that fails, after "the judge"; else empty."""
        if self.level == NO_ANSWER:
            return NO_ANSWER
        for check in self.checks:
            if check.state == "fails":
                return RULES[check.key].fault
        return ""

    @property
    def as_json(self) -> dict[str, object]:
        """The level, reasons and checks, JSON-ready."""
        checks = []
        for check in self.checks:
            ends = vars(check.estimate).items()
            row = {
                "key": check.key,
                "name": check.name,
                "state": check.state,
                **{key: None if math.isnan(n) else round(n, DIGITS) for key, n in ends},
                "line": check.line,
                "reason": check.reason,
                "protocol": check.protocol,
            }
            checks.append(row)
        return {"trust": self.level, "reasons": list(self.reasons), "checks": checks}

    def sentence(self, judge: str) -> str:
        """The level and what fails or warns, one line."""
        notable = [check for check in self.checks if check.state in ("fails", "warns")][:2]
        texts = [c.reason.removeprefix("It ").partition(" (")[0].rstrip(".") for c in notable]
        about = ""
        if self.level == NO_ANSWER:
            about = f" {' '.join(self.reasons)}"
        elif texts:
            about = f" It {' and '.join(texts)}."
        return f"Judge {shorten(judge, 40)}: {self.level}.{about}"


def judge_trust(board: Board, label_kappa: Estimate | None = None) -> JudgeTrust:
    """Return the trust level of a board's judge; ``label_kappa``: to human labels, if any."""
    read = sum(facts.judged - facts.unreadable for facts in board.judge_facts.values())
    without_room = _protocols_without_room(board, read)
    if without_room:
        label_kappa = None  # what it shares with annotators is no sample either
    checks = _own_checks(board, without_room)
    checks.append(_check("label_kappa", label_kappa or UNKNOWN))
    reasons = defaultdict[State, list[str]](list)
    for check in checks:
        reasons[check.state].append(check.reason)
    untested = []
    n = _n_human_dialogues(board)
    if len(board.lengths.frame) and not board.human_lengths:
        untested.append("It was tested on generated dialogues only.")
    elif n < LEAST:
        untested.append(f"It saw {n} human dialogues; {LEAST} are needed to say more.")
    if board.judge == RulesJudge.name:
        untested.append("It sees the form of a dialogue only, not its content.")
    if without_room:
        untested = [_no_room(board, without_room), _MORE_ROOM]
        if not reasons["fails"]:
            return JudgeTrust(NO_ANSWER, untested, checks)
    if board.judge_facts and not read:
        return JudgeTrust("not usable", ["None of its verdicts can be read."], checks)
    level = _level(checks, untested)
    if level == "trust":
        return JudgeTrust(level, reasons["passes"], checks)
    return JudgeTrust(level, reasons["fails"] + reasons["warns"] + untested, checks)


def _level(checks: Sequence[Check], untested: Texts) -> Level:
    """Return the level of a judge that was asked and can be read."""
    states = {check.state for check in checks}
    if "fails" in states:
        return "do not trust"
    if {check.state for check in checks if check.key in _KNOWN_TRUTH} == {"unknown"}:
        return "not tested"
    if "warns" in states or untested:
        return "use with care"
    return "trust"


_MORE_ROOM = (
    "Set a larger max_tokens in its entry, or reasoning_tokens in its [models] entry if it thinks."
)


def _no_room(board: Board, names: Texts) -> str:
    """Return a sentence on the verdicts that replies of these protocols had no room for."""
    n = sum(board.judge_facts[name].without_room for name in names)
    judged = sum(board.judge_facts[name].judged for name in names)
    return (
        f"{n:,} of {judged:,} verdicts in {listed(names)} are missing: its replies were cut or "
        "empty."
    )


def _protocols_without_room(board: Board, n_read: int) -> list[str]:
    """Return protocols with too many verdicts missing, most of them since replies had no room."""
    facts = board.judge_facts
    if n_read == 0:
        n_cut = sum(each.without_room for each in facts.values())
        n_unreadable = sum(each.unreadable for each in facts.values())
        return [name for name in facts if 2 * n_cut > n_unreadable]
    names = []
    for judged in _counted(board):
        each = facts[judged.protocol.name]
        is_cut = 2 * each.without_room > each.unreadable
        if is_cut and _check_in("unreadable_rate", each).state == "fails":
            names.append(each.protocol)
    return names


def _counted(board: Board) -> list[ProtocolVerdicts]:
    """Return the verdicts that a judge is checked by."""
    return [v for v in board.verdicts.values() if v.protocol.about_ai or v.protocol.leads]


_KNOWN_TRUTH = {
    "false_positive_rate",
    "true_positive_rate",
    "true_positive_rate_bots",
    "model_picked",
    "label_kappa",
}


def _own_checks(board: Board, without_room: Collection[str]) -> list[Check]:
    """Make the checks that need no labels, from the judge's table as far as it has them.

    What fits into a limit is no sample of a judge's verdicts: protocols without room are left out.
    """
    facts = {}
    single = JudgeFacts()
    against_human = None
    pairs = []
    for judged in _counted(board):
        name = judged.protocol.name
        if name in without_room:
            continue
        facts[name] = board.judge_facts[name]
        if judged.protocol.is_pair:
            pairs.append(facts[name])
        elif judged.protocol.against_human:
            against_human = against_human or judged
        elif not single.protocol:
            single = facts[name]
    if against_human is not None and not pairs:
        pairs = [facts[against_human.protocol.name]]
    # Of several Arenas the one that decides most: two dialogues that are both bad are rightly tied.
    pair = min(pairs, key=_ties, default=JudgeFacts())
    unread = max(facts.values(), key=_least_unreadable, default=JudgeFacts())
    on_models = "true_positive_rate"
    if single.rate("true_positive_rate_bots").is_known:
        on_models = "true_positive_rate_bots"
    return [
        _check_in("false_positive_rate", single),
        _check_in(on_models, single),
        _model_picked(against_human),
        _check_in("consistency", pair),
        _check_in("first_preferred", pair),
        _check_in("ties", pair),
        _check_in("unreadable_rate", unread),
    ]


def _ties(facts: JudgeFacts) -> float:
    """Return the share of ties, more than all where it is not known."""
    return float(np.nan_to_num(facts.rate("ties").value, nan=2.0))


def _least_unreadable(facts: JudgeFacts) -> float:
    """Return the lower end of the share of unreadable verdicts."""
    return float(np.nan_to_num(facts.rate("unreadable_rate").low))


def _n_human_dialogues(board: Board) -> int:
    """Count the human dialogues with a readable verdict, alone or next to a model's."""
    seeds: set[str] = set()
    for part in board.verdicts.values():
        if part.protocol.about_ai:
            seeds |= {j.seed_id for j in part.judgments if HUMAN in j.contestants and j.verdict}
        if part.protocol.against_human:
            read = part.verdicts.only(part.verdicts.readable)
            seeds |= {read.items[i] for i in read.item}
    return len(seeds)


def _model_picked(judged: ProtocolVerdicts | None) -> Check:
    """Check how many of GTEval's verdicts pick out the model, or the bot where there are bots."""
    if judged is None:
        return _check("model_picked", UNKNOWN)
    verdicts = judged.verdicts
    names = np.array(verdicts.contestants, object)
    bot = np.array([is_floor_bot(name) for name in names])
    counted = verdicts.readable
    with_bot = bot[verdicts.first] | bot[verdicts.second]
    if with_bot.any():
        counted &= with_bot
    verdicts = verdicts.only(counted)
    decided = verdicts.only(verdicts.result != TIE)
    right = decided.result == np.where(names[decided.first] == HUMAN, WIN, LOSS)
    check = _check(
        "model_picked", proportion(right, judged.cluster[decided.item]), judged.protocol.name
    )
    ties = proportion(verdicts.result == TIE, judged.cluster[verdicts.item])
    if check.state in ("passes", "unknown") and ties.low > RULES["ties"].passes:
        return check._replace(
            state="warns",
            reason=f"It calls {100 * ties.value:.0f} % of pairs with a human dialogue a tie.",
        )
    return check


def _check_in(key: str, facts: JudgeFacts) -> Check:
    """Make a check of a rate of a protocol."""
    return _check(key, facts.rate(key), facts.protocol)


def _check(key: str, estimate: Estimate, protocol: str = "") -> Check:
    """Make a check of a number."""
    rule = RULES[key]
    line = rule.passes
    low = estimate.low
    high = estimate.high
    if key == "first_preferred":  # it counts how far the share is from one half
        line = 0.5
        low = max(0.0, estimate.low - line, line - estimate.high)
        high = max(estimate.high - line, line - estimate.low)
    check = Check(key, rule.name, "unknown", estimate, line, protocol=protocol)
    if not estimate.is_bounded:
        return check
    ends = f"{100 * estimate.low:.0f}–{100 * estimate.high:.0f}"
    if key == "label_kappa":
        ends = f"{low:.2f} to {high:.2f}"
    fails = high < rule.fails
    passes = low >= rule.passes
    if rule.low_is_good:
        fails = low > rule.fails
        passes = high <= rule.passes
    state: State = "warns"
    if fails:
        state = "fails"
    elif passes:
        state = "passes"
    return check._replace(
        state=state, reason=f"It {rule.finding.format(value=check.number)} ({ends})."
    )

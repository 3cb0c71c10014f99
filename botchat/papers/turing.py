"""The exam: who is human? Judges beside people, on chats whose truth is known.

Four tasks: a whole chat (UniEval: is a machine in it, and from which utterance on), which speaker
is the machine, which of two chats of a source has one in it (GTEval's question, both orders), and
the order of the systems, from their whole chats. Whole chats of a source are shown as long as each
other; those of fewer utterances are left out. People, and what needs no judge, have rows too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import zip_longest
from types import MappingProxyType
from typing import Any

import numpy as np

from botchat.boards.judge_agreement import Findings
from botchat.boards.writers import to_json
from botchat.interfaces import Case, Row
from botchat.judges.rules import RulesJudge
from botchat.measures.annotations import Annotation, accused_index
from botchat.measures.intervals import share
from botchat.papers import turing_form, turing_page, turing_rows
from botchat.papers.benchmarks import Answered, Benchmark, ByProtocol
from botchat.papers.metrics import ends_of
from botchat.papers.turing_files import Chat
from botchat.papers.turing_form import ALONE, EQUAL, OTHERS, TRAPS
from botchat.papers.turing_sources import (
    CUT,
    Key,
    accusations,
    item_of,
    kinds,
    majority,
    ordered,
    part_of,
    rating,
    repeated,
    repetition,
)
from botchat.pipeline.agree import BUILT_IN, Compared, compare_judges, publish, signature
from botchat.pipeline.run.ask import Cases
from botchat.pipeline.run.contestants import own_name
from botchat.protocols.catalogue import DIAGNOSIS, GTEVAL, UNIEVAL, WHICH
from botchat.protocols.kinds import Protocol
from botchat.protocols.rates import preferences
from botchat.records import HUMAN, Dialogue, Exam, Judgment
from botchat.verdicts import Floats
from botchat.workspace import exams

MAJORITY, RATER, RULES = "people (majority)", "people (one rater)", RulesJudge.name
ALL = "all"
"""Sources with both people and machines, together."""
Said = Mapping[str, Mapping[Key, Judgment]]
"""Who, or which protocol -> judgments."""


class Turing(Benchmark):
    """Talks of several sources, as `turing_files.read` gives them."""

    columns = ("accuracy", "kappa")
    needs_nobody = True

    def __init__(self, talks: Mapping[str, Sequence[Chat]]) -> None:
        """Make the cases, sources and kinds in turn, so that the first K are of all of them."""
        self.given = {}
        self.parts = {name: part_of(name, talks) for name in talks}
        parts = self.parts.values()
        self._whole = _in_turn([_in_turn(kinds(one.whole)) for one in parts])
        pairs = _in_turn([one.pairs for one in parts])
        self._marked = [o for of in talks.values() for o in of if "behaviors" in o.labels]
        made: dict[Protocol, list[Callable[[], Case]]] = {
            UNIEVAL: [partial(case_of, UNIEVAL, one) for one in self._whole],
            GTEVAL: [partial(pair_of, m, p, n) for m, p in pairs for n in (False, True)],
            WHICH: [partial(case_of, WHICH, o) for o in _in_turn([p.speakers for p in parts])],
            DIAGNOSIS: [partial(case_of, DIAGNOSIS, one) for one in self._marked],
        }
        self.cases = [Cases(protocol, make) for protocol, make in made.items() if make]
        source = [[*self.parts].index(one.source) for one in self._whole]
        self._machine = np.array([bool(one.machines) for one in self._whole])
        votes = [majority(accusations(one)) for one in self._whole]
        self.chats = turing_rows.Chats(np.array(source), self._machine, np.array(votes))

    def measured(self, _: object, said: ByProtocol, __: Sequence[str]) -> Row:
        """Of whole chats: right, and kappa with people."""
        asked = said.get(UNIEVAL.name, ())
        found = self.chats.row(*self._seen({key_of(one): one for one in asked}))
        row = {f"accuracy{end}": found[f"truth{end}"] for end in ("", "_low", "_high")}
        row |= {key: value for key, value in found.items() if key.startswith("kappa")}
        n = sum(one.verdict is not None for one in asked)
        return row | {"n": n, "unreadable": len(asked) - n}

    def compared(self, answered: Answered) -> Compared:
        """Everybody's rows, task by task."""
        said: dict[str, Said] = {}
        costs: dict[str, Mapping[str, Row]] = {}
        for protocol, _ in self.cases:
            by = answered.judged.get(protocol.name, {})
            costs[protocol.name] = answered.costs(protocol) if by else {}
            own = {who: {key_of(one): one for one in made} for who, made in by.items()}
            said[protocol.name] = own | {RULES: self._ruled[protocol.name]}
        whole = said.get(UNIEVAL.name, {})
        seen = {who: self._seen(by) for who, by in whole.items()} | self._forms
        speakers = self._right_speakers(said.get(WHICH.name, {}))
        pairs = self._right_pairs(said.get(GTEVAL.name, {}))
        rows = {
            "whole": [*self._rows_whole(seen, costs.get(UNIEVAL.name, {}))],
            "prefixes": [*self._rows_prefixes(whole)],
            "speakers": [*self._rows_right(speakers, costs.get(WHICH.name, {}), {"cut": CUT})],
            "pairs": [*self._rows_right(pairs, costs.get(GTEVAL.name, {}))],
            "systems": [*self._rows_systems(seen)],
            "turns": [*self._rows_turns(said.get(DIAGNOSIS.name, {}))],
        }
        rows = {task: of for task, of in rows.items() if of}
        signed = signature("bench", {"benchmark": "turing"}, rows, "people")
        tables = [turing_rows.table_of(task, of, signed) for task, of in rows.items()]
        notes = [*beaten(rows.get("whole", ()))]
        findings = Findings(subject="The exam", truth="who took part", signature=signed)
        known = {
            **rows,
            "preferences": self._preferences(answered),
            "answer": notes,
            "signature": signed,
        }
        made = publish(findings, tables, answered.out, known, answered.formats, notes)
        chart = turing_page.chart_of(rows.get("whole", ()), signed)
        charts, also = [chart] if chart else [], {"exam.json": to_json(known)}
        turing_page.write(answered.out, "The exam", notes, charts, tables, also)
        exams.note(answered.workspace, self._results(answered, rows.get("whole", ())))
        return made

    def _results(self, answered: Answered, rows: Sequence[Row]) -> Iterator[Exam]:
        """What each judge was worth, for boards; of several sources all together."""
        asked = answered.workspace.measured("bench-turing")
        for who, made in answered.judged.get(UNIEVAL.name, {}).items():
            row = next((one for one in rows if one["who"] == who and one["auc"] is not None), None)
            signed = re.search(r"@(\w{8})\|(?:.*\|)?prompt:(\w{8})\|", made[0].signature)
            if row is None or signed is None:
                continue
            told = [
                one for (of, name, _), one in asked.items() if (of, name) == (UNIEVAL.name, who)
            ]
            keys = zip(exams.FIGURES, ("auc", "caught", "truth", "kappa"), strict=True)
            figures = {
                f"{name}{end}": row[f"{key}{end}"] for name, key in keys
                for end in ("", "_low", "_high") if row.get(f"{key}{end}") is not None
            }  # fmt: skip
            yield Exam(
                judge=who, exam="turing", sources=tuple(self.parts),
                chats=row["machines"] + row["people"], prompt=signed[2], settings=signed[1],
                answered=tuple(sorted({a for one in told for a in one.answered})),
                day=max((one.last for one in told), default=""), figures=figures,
            )  # fmt: skip

    def _preferences(self, answered: Answered) -> list[Row]:
        """What judges prefer of two chats, whoever is right: order, length, their own model."""
        made = answered.judged.get(GTEVAL.name, {})
        if not made:
            return []
        said = preferences((one for of in made.values() for one in of), GTEVAL)
        truth = dict.fromkeys(  # not a set: sums in another order differ in the last digit
            Annotation(
                one.item, one.first, one.second, BUILT_IN, "1" if one.first == HUMAN else "2"
            )
            for one in said
        )
        pairs = [pair for part in self.parts.values() for pair in part.pairs]
        words = {
            (item_of(m)[0], item_of(one)[1]): turing_form.mean_words(one.utterances)
            for m, p in pairs for one in (m, p)
        }  # fmt: skip
        selves = {who: own_name(answered.workspace, who) for who in made}
        found = compare_judges([*truth, *said], BUILT_IN, lengths=words, selves=selves).rows
        keys = ("first_preferred", "same_winner", "ties", "length_preference", "self_preference")
        return [{"judge": row["judge"], **ends_of(row, keys, "")} for row in found]

    @cached_property
    def _ruled(self) -> Said:
        """Protocol -> the rules judge's verdicts on every case; they cost nothing."""
        judge = RulesJudge(())

        async def all_of(protocol: Protocol, makes: Sequence[Callable[[], Case]]) -> Said:
            made = [
                Judgment(protocol.name, case.seed_id, case.contestants, RULES,
                         (answer := await judge.answer(case)).verdict, answer.reason, 0, "", "")
                for case in (make() for make in makes)
            ]  # fmt: skip
            return {protocol.name: {key_of(one): one for one in made}}

        found: dict[str, Mapping[Key, Judgment]] = {}
        for of in self.cases:
            found |= asyncio.run(all_of(*of))
        return found

    def _seen(self, said: Mapping[Key, Judgment]) -> tuple[Floats, Floats]:
        """How much of a machine a judge sees in each whole chat, and whether it accuses."""
        score, accuses = np.full((2, len(self._whole)), np.nan)
        for at, one in enumerate(self._whole):
            if (found := said.get(item_of(one))) is not None and found.verdict is not None:
                score[at], accuses[at] = machine_by(found, len(one.utterances))
        return score, accuses

    @cached_property
    def _forms(self) -> dict[str, tuple[Floats, Floats]]:
        """The same of the fingerprint, and by one number alone, which accuses nobody."""
        made: dict[str, tuple[Floats, Floats]] = {}
        for at, part in enumerate(self.parts.values()):
            of = self.chats.source == at
            machine = self._machine[of]
            if machine.all() or not machine.any():
                continue
            talks = [one for one, there in zip(self._whole, of, strict=True) if there]
            found = {name: np.array([*map(number, talks)]) for name, number in TRAPS.items()}
            for name, given in found.items():
                found[name] = given if given[machine].mean() >= given[~machine].mean() else -given
            near = [one.cut(part.end) for one in part.near]  # fitted on shorter chats, too
            for name, given in turing_form.fingerprints(near).items():
                by_item = dict(zip(map(item_of, near), given, strict=True))
                found[name] = np.array([by_item[item_of(one)] for one in talks])
            for name, given in found.items():
                blank = np.full((2, len(self._whole)), np.nan)
                score, accuses = made.setdefault(name, (blank[0], blank[1]))
                score[of] = given
                if name in (OTHERS, ALONE):
                    accuses[of] = given > np.quantile(given[~machine], 1 - turing_rows.ACCUSED)
        return made

    def _rows_whole(
        self, seen: Mapping[str, tuple[Floats, Floats]], costs: Mapping[str, Row]
    ) -> Iterator[Row]:
        chats = self.chats
        by = {name: chats.source == at for at, name in enumerate(self.parts)}
        both = [of for of in by.values() if 0 < self._machine[of].sum() < of.sum()]
        if len(both) > 1:
            by = {ALL: np.any(both, axis=0), **by}
        for name, of in by.items():
            head = {"source": name, **(self.parts[name].head if name in self.parts else {})}
            talks = [one for one, there in zip(self._whole, of, strict=True) if there]
            yield from ({**head, **row} for row in people_rows(talks))
            some = turing_rows.Chats(chats.source[of], chats.machine[of], chats.majority[of])
            for who, (score, accuses) in seen.items():
                if not np.isnan(score[of]).all():
                    row = some.row(score[of], accuses[of])
                    yield {**head, "who": who, **row, **of_right(costs.get(who), row["truth"])}

    def _rows_prefixes(self, said: Said) -> Iterator[Row]:
        for name, part in self.parts.items():
            known = {one.after for talk in part.whole for one in talk.opinions}
            for after in sorted(n for n in known if n <= part.end):
                votes = [(one, a) for one in part.whole for a in accusations(one, after)]
                yield {"source": name, "who": RATER, "after": after, **_accused(votes)}
                for who, by in said.items():
                    votes = [
                        (one, index_of(found) <= after) for one in part.whole
                        if (found := by.get(item_of(one))) and found.verdict
                    ]  # fmt: skip
                    if votes:
                        yield {"source": name, "who": who, "after": after, **_accused(votes)}

    def _right_pairs(self, said: Said) -> dict[str, dict[str, Floats]]:
        """Source -> who -> points of each pair, ½ for a tie; of both orders their mean."""
        at, found = {item_of(one): n for n, one in enumerate(self._whole)}, {}
        for name, part in self.parts.items():
            points = found[name] = {
                who: np.array([_mean([_point(by, m, n) for n in (0, 1)]) for m, _ in part.pairs])
                for who, by in said.items()
            }
            for who, (score, _) in self._forms.items():
                if who not in EQUAL:
                    apart = [score[at[item_of(m)]] - score[at[item_of(p)]] for m, p in part.pairs]
                    points[who] = (np.sign(apart) + 1) / 2
        return found

    def _right_speakers(self, said: Said) -> dict[str, dict[str, Floats]]:
        """The same of each chat of one machine: whether it alone is named."""
        parts = {name: part.speakers for name, part in self.parts.items() if part.speakers}
        found = {
            name: {
                who: np.array([named(by.get(item_of(o)), o) for o in of])
                for who, by in said.items()
            }
            for name, of in parts.items()
        }
        two = {name: of for name, of in parts.items() if all(len(one.who) == 2 for one in of)}
        for name, scores in turing_form.which_of_two(two).items():
            found[name][OTHERS] = (scores > 0).astype(float)
        for name, of in two.items():
            found[name] |= turing_form.of_sides(of)
        return found

    def _rows_right(
        self,
        points: Mapping[str, Mapping[str, Floats]],
        costs: Mapping[str, Row],
        also: Mapping[str, str] = MappingProxyType({}),
    ) -> Iterator[Row]:
        for name, by in points.items():
            for who, given in by.items():
                if len(known := given[~np.isnan(given)]):
                    row = share(known, None, "right") | {"chats": len(known)}
                    price = of_right(costs.get(who), row["right"])
                    head = {"source": name, **self.parts[name].head, **also, "who": who}
                    yield {**head, **row, **price}

    def _rows_systems(self, seen: Mapping[str, tuple[Floats, Floats]]) -> Iterator[Row]:
        for at, (name, part) in enumerate(self.parts.items()):
            if not (systems := ordered(part.whole)):
                continue
            of = self.chats.source == at
            talks = [one for one, there in zip(self._whole, of, strict=True) if there]
            uncut = {one.id: one for one in part.near}
            values = {
                who: 1 - accuses[of] for who, (_, accuses) in seen.items()
                if not np.isnan(accuses[of]).all()
            }  # fmt: skip
            values["length alone"] = np.array([*map(TRAPS["length alone"], talks)])
            values["utterances, uncut"] = np.array([len(uncut[o.id].utterances) for o in talks])
            given = {
                who: ("overall", value, [*map(rating, talks)]) for who, value in values.items()
            }
            if "z" in talks[0].labels:
                least = [one.labels["z"]["repetitive"] for one in talks]
                flagged = np.array([-repetition(uncut[one.id]) for one in talks])
                given["flags of repetition"] = ("repetitive", flagged, least)
            member = np.array([[s in one.machines for s in systems] for one in talks])
            for who, (quality, value, rated) in given.items():
                row = turing_rows.by_system(value, np.array(rated, np.float64), member)
                yield {"source": name, **part.head, "who": who, "quality": quality, **row}

    def _rows_turns(self, said: Said) -> Iterator[Row]:
        turns: list[tuple[Chat, int, Row]] = []
        for one in self._marked:
            mine = [at for at, by in enumerate(one.speakers) if one.who[by] != HUMAN]
            for at, marks in zip(mine, one.labels["behaviors"], strict=False):
                if len((told := marks.get("redundant", {})).get("human", ())) == 2:
                    turns.append((one, at, told))
        if not turns:
            return
        raters = np.array([told["human"] for *_, told in turns], np.float64)
        item = np.unique([one.id for one, *_ in turns], return_inverse=True)[1]
        given = {"people (one rater)": raters[:, 0]}
        if all("gpt" in told for *_, told in turns):
            given["GPT-3.5 (as published)"] = np.array([told["gpt"] for *_, told in turns])
        for who, by in said.items():
            again = {one.id: repeated(by.get(item_of(one)), one.utterances) for one in self._marked}
            given[who] = np.array([
                np.nan if (known := again[one.id]) is None else at + 1 in known
                for one, at, _ in turns
            ], np.float64)  # fmt: skip
        for who, marks in given.items():
            there, head = ~np.isnan(marks), {"source": turns[0][0].source, "who": who}
            if who == "people (one rater)":  # against the other, and nobody is truth
                row = turing_rows.of_turns(marks, raters[:, [1, 1]], item)
                yield {**head, **row, **dict.fromkeys(("auc", "auc_low", "auc_high"))}
            elif there.any():
                within = np.unique(item[there], return_inverse=True)[1]
                yield {**head, **turing_rows.of_turns(marks[there], raters[there], within)}


def people_rows(talks: Sequence[Chat]) -> Iterator[Row]:
    """The majority of each talk's raters against truth, and one rater against the others."""
    said = [accusations(one) for one in talks]
    votes = [
        (at, float(one), majority(of[:n] + of[n + 1 :]))
        for at, of in enumerate(said) for n, one in enumerate(of)
    ]  # fmt: skip
    if not votes:
        return
    machine = np.array([bool(one.machines) for one in talks])
    source = np.unique([one.source for one in talks], return_inverse=True)[1]
    most = np.array([majority(of) for of in said])
    score = np.array(
        [np.nan if np.isnan(m) else np.mean(of) for m, of in zip(most, said, strict=True)]
    )
    chats = turing_rows.Chats(source, machine, np.full(len(talks), np.nan))
    yield {"who": MAJORITY, **chats.row(score, most)}
    at, one, others = (np.array(part) for part in zip(*votes, strict=True))
    yield {"who": RATER, **turing_rows.of_raters(one, others, machine[at], at)}


def _accused(votes: Sequence[tuple[Chat, bool]]) -> Row:
    row: Row = {}
    for kind, name in ((True, "machines_accused"), (False, "people_accused")):
        some = [(accuses, one.id) for one, accuses in votes if bool(one.machines) == kind]
        row |= share([a for a, _ in some], [i for _, i in some], name)
    return row


def named(said: Judgment | None, chat: Chat) -> float:
    """1 where the speaker that is named is the machine, 0 of another or none; nan: not known."""
    if said is None or said.verdict is None:
        return np.nan
    return float(said.verdict.isdecimal() and chat.who[int(said.verdict) - 1] != HUMAN)


def _point(said: Mapping[Key, Judgment], machine: Chat, nth: int) -> float:
    """1 where the machine's chat is named in the nth order, ½ of a tie; nan: not known."""
    id_, name = item_of(machine)
    found = said.get((id_, HUMAN, name) if nth else (id_, name, HUMAN))
    won = GTEVAL.result(found.verdict) if found else None
    return np.nan if won is None else won if nth else 1 - won


def _mean(given: Sequence[float]) -> float:
    known = [one for one in given if not np.isnan(one)]
    return sum(known) / len(known) if known else np.nan


def of_right(cost: Row | None, right: float | None) -> Row:
    """Calls, and dollars of a thousand, of a right answer."""
    if cost is None or not right:
        return {}
    usd = None if cost["usd"] is None else 1000 * cost["usd"] / right
    return {"calls_right": cost["calls"] / right, "usd_right": usd}


def beaten(rows: Sequence[Row]) -> Iterator[str]:
    """Who tells no more than one number does, a sentence each."""
    known = [row for row in rows if row["auc"] is not None]
    for who in dict.fromkeys(row["who"] for row in known):
        found = [
            f"{trap['who']} on {row['source']} ({row['auc']:.2f}, and {trap['auc']:.2f})"
            for row in known if row["who"] == who and who not in (*TRAPS, MAJORITY, RATER)
            for trap in known
            if trap["who"] in TRAPS and trap["source"] == row["source"]
            and trap["auc"] >= row["auc"]
        ]  # fmt: skip
        if found:
            yield f"{who} does not beat {'; '.join(found)}."


def key_of(one: Judgment) -> Key:
    """The same of a judgment."""
    return one.seed_id, *one.contestants


def index_of(said: Judgment) -> float:
    """The utterance that a place verdict accuses; infinite of none."""
    return accused_index(said.verdict or "No", said.judge) or np.inf


def machine_by(said: Judgment, n: int) -> tuple[float, float]:
    """How surely a place verdict takes a chat for a machine's, and whether it accuses; 0 to 1.

    By its probability where that is known, else the earlier the surer.
    """
    at = index_of(said)
    accuses = float(at < np.inf)
    if isinstance(said.confidence, float):
        return (said.confidence if accuses else 1 - said.confidence), accuses
    return (1 - (min(at, n) - 1) / (2 * n) if accuses else 0.0), accuses


def dialogue_of(talk: Chat, id_: str = "") -> Dialogue:
    """A talk as what protocols ask about."""
    own, who = item_of(talk)
    names = tuple(f"{by + 1}" for by in talk.speakers)
    said = talk.utterances
    return Dialogue(id_ or own, who, said, 0, (), "complete", "", speakers=names)


def case_of(protocol: Protocol, talk: Chat) -> Case:
    """The question about one chat, no utterance of which is given."""
    one = dialogue_of(talk)
    (make,) = protocol.cases((), {one.contestant: {one.seed_id: one}})
    case = make()
    return replace(case, dialogues=tuple(replace(shown, n_seed=0) for shown in case.dialogues))


def pair_of(machine: Chat, person: Chat, swapped: bool) -> Case:
    """Which of two has a machine in it?"""
    one = dialogue_of(machine)
    other = dialogue_of(person, one.seed_id)
    first, second = (other, one) if swapped else (one, other)
    return GTEVAL.pair(one.seed_id, first, second, len(machine.utterances))


def _in_turn(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """One of each list, then another, until all are there."""
    return [one for some in zip_longest(*lists) for one in some if one is not None]

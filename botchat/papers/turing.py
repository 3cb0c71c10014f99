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
from itertools import chain

import numpy as np
import pandas as pd

from botchat.boards.judge_agreement import Findings
from botchat.boards.writers import to_json
from botchat.interfaces import Case, Row
from botchat.judges.rules import RulesJudge
from botchat.measures.annotations import Annotation
from botchat.measures.intervals import share
from botchat.papers import card, turing_form, turing_rows
from botchat.papers.benchmarks import Answered, Benchmark, ByProtocol
from botchat.papers.metrics import ends_of
from botchat.papers.turing_files import Chat
from botchat.papers.turing_form import EQUAL, OTHERS, TRAPS
from botchat.papers.turing_rows import Chats
from botchat.papers.turing_sources import (
    CUT,
    Key,
    OneSource,
    accusations,
    case_of,
    in_turn,
    index_of,
    item_of,
    key_of,
    majority,
    named,
    ordered,
    pair_of,
    part_of,
    point,
    rating,
    repeated,
    repetition,
    seen_in,
)
from botchat.pipeline.agree import BUILT_IN, compare_judges, publish, signature
from botchat.pipeline.run.ask import Cases
from botchat.pipeline.run.contestants import own_name
from botchat.protocols.catalogue import DIAGNOSIS, GTEVAL, UNIEVAL, WHICH
from botchat.protocols.kinds import Protocol
from botchat.protocols.rates import preferences
from botchat.records import HUMAN, Exam, Judgment
from botchat.report.figures.chart import Chart, chart
from botchat.report.figures.rows import series
from botchat.requests.results import Compared
from botchat.verdicts import Floats
from botchat.workspace import exams

MAJORITY, RATER, RULES = "people (majority)", "people (one rater)", RulesJudge.name
ALL = "all"
"""Sources with both people and machines, together."""
Said = Mapping[str, Mapping[Key, Judgment]]
"""Who, or which protocol -> judgments."""
Seen = Mapping[str, Floats]
"""Who -> how much of a machine is seen in each chat, and whether it is accused; (2, chats)."""


class Turing(Benchmark):
    """Talks of several sources, as `turing_files.read` gives them."""

    columns = ("accuracy", "kappa")
    needs_nobody = True

    def __init__(self, talks: Mapping[str, Sequence[Chat]]) -> None:
        """Make the cases, sources and kinds in turn, so that the first K are of all of them."""
        self.given = {}
        self.parts = {name: part_of(name, talks) for name in talks}
        parts = self.parts.values()
        self._marked = [o for of in talks.values() for o in of if "behaviors" in o.labels]
        whole, speakers, pairs = (
            in_turn([getattr(one, what) for one in parts])
            for what in ("whole", "speakers", "pairs")
        )
        made: dict[Protocol, list[Callable[[], Case]]] = {
            UNIEVAL: [partial(case_of, UNIEVAL, one) for one in whole],
            GTEVAL: [partial(pair_of, m, p, n) for m, p in pairs for n in (False, True)],
            WHICH: [partial(case_of, WHICH, one) for one in speakers],
            DIAGNOSIS: [partial(case_of, DIAGNOSIS, one) for one in self._marked],
        }
        self.cases = [Cases(protocol, make) for protocol, make in made.items() if make]

    def measured(self, _: object, said: ByProtocol, __: Sequence[str]) -> Row:
        """Of whole chats: right, and kappa with people."""
        asked = said.get(UNIEVAL.name, ())
        by = {key_of(one): one for one in asked}
        seen = {name: {"": seen_in(part.whole, by)} for name, part in self.parts.items()}
        chats, together = self._together(seen, [*self.parts])
        found = chats.row(*together[""])
        row = {f"accuracy{end}": found[f"truth{end}"] for end in ("", "_low", "_high")}
        row |= {key: value for key, value in found.items() if key.startswith("kappa")}
        n = sum(one.verdict is not None for one in asked)
        return row | {"n": n, "unreadable": len(asked) - n}

    def compared(self, answered: Answered) -> Compared:
        """Everybody's rows, task by task."""
        said: dict[str, Said] = {one.name: {} for one in (UNIEVAL, GTEVAL, WHICH, DIAGNOSIS)}
        costs: dict[str, Mapping[str, Row]] = {name: {} for name in said}
        for protocol, makes in self.cases:
            if by := answered.judged.get(protocol.name, {}):
                costs[protocol.name] = answered.costs(protocol)
            own = {who: {key_of(one): one for one in made} for who, made in by.items()}
            said[protocol.name] = own | {RULES: ruled(protocol, makes)}
        whole = said[UNIEVAL.name]
        seen = {
            name: {who: seen_in(part.whole, by) for who, by in whole.items()} | self._forms[name]
            for name, part in self.parts.items()
        }
        speakers, pairs = (
            self._right_speakers(said[WHICH.name]),
            self._right_pairs(said[GTEVAL.name]),
        )
        rows = {
            "whole": [*self._rows_whole(seen, costs[UNIEVAL.name])],
            "prefixes": [*self._rows_prefixes(whole)],
            "speakers": [*self._rows_right(speakers, costs[WHICH.name], cut=CUT)],
            "pairs": [*self._rows_right(pairs, costs[GTEVAL.name])],
            "systems": [*self._rows_systems(seen)],
            "turns": [*self._rows_turns(said[DIAGNOSIS.name])],
        }
        rows = {task: of for task, of in rows.items() if of}
        whole_rows = rows.get("whole", [])
        signed = signature("bench", {"benchmark": "turing"}, rows, "people")
        tables = [turing_rows.table_of(task, of, signed) for task, of in rows.items()]
        notes = [*beaten(whole_rows)]
        findings = Findings(subject="The exam", truth="who took part", signature=signed)
        known = {
            **rows,
            "preferences": self._preferences(answered),
            "answer": notes,
            "signature": signed,
        }
        made = publish(findings, tables, answered.out, known, answered.formats, notes)
        also: dict[str, str | bytes] = {"exam.json": to_json(known)}
        drawn = chart_of(whole_rows, signed)
        if drawn is not None:
            also |= {"exam.svg": drawn.svg, "exam.png": drawn.png}
        card.write_page(answered.out / "exam.html", "The exam", notes, tables, also, drawn)
        exams.note(answered.workspace, self._results(answered, whole_rows))
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
        words = {
            (item_of(m)[0], item_of(one)[1]): turing_form.mean_words(one.utterances)
            for part in self.parts.values() for m, p in part.pairs for one in (m, p)
        }  # fmt: skip
        selves = {who: own_name(answered.workspace, who) for who in made}
        found = compare_judges([*truth, *said], BUILT_IN, lengths=words, selves=selves).rows
        keys = ("first_preferred", "same_winner", "ties", "length_preference", "self_preference")
        return [{"judge": row["judge"], **ends_of(row, keys, "")} for row in found]

    @cached_property
    def _forms(self) -> dict[str, dict[str, Floats]]:
        """Source -> what needs no judge, as of judges; one number alone accuses nobody."""
        return {name: forms(part) for name, part in self.parts.items()}

    def _together(self, seen: Mapping[str, Seen], names: Sequence[str]) -> tuple[Chats, Seen]:
        """The chats of some sources, and what everybody saw in them."""
        talks = {name: self.parts[name].whole for name in names}
        unknown = {name: np.full((2, len(of)), np.nan) for name, of in talks.items()}
        everybody = dict.fromkeys(chain.from_iterable(seen[name] for name in names))
        return chats_of([*chain.from_iterable(talks.values())]), {
            who: np.hstack([seen[name].get(who, unknown[name]) for name in names])
            for who in everybody
        }

    def _rows_whole(self, seen: Mapping[str, Seen], costs: Mapping[str, Row]) -> Iterator[Row]:
        both = [
            name for name, part in self.parts.items()
            if len({bool(one.machines) for one in part.whole}) == 2
        ]  # fmt: skip
        of_all = {ALL: both} if len(both) > 1 else {}
        for name, of in (of_all | {name: [name] for name in self.parts}).items():
            head = {"source": name, **(self.parts[name].head if name in self.parts else {})}
            talks = in_turn([self.parts[source].whole for source in of])
            yield from ({**head, **row} for row in people_rows(talks))
            chats, together = self._together(seen, of)
            for who, (score, accuses) in together.items():
                if not np.isnan(score).all():
                    row = chats.row(score, accuses)
                    yield {**head, "who": who, **row, **of_right(costs.get(who), row["truth"])}

    def _rows_prefixes(self, said: Said) -> Iterator[Row]:
        for name, part in self.parts.items():
            known = {one.after for talk in part.whole for one in talk.opinions}
            for after in sorted(n for n in known if n <= part.end):
                votes = {RATER: [(one, a) for one in part.whole for a in accusations(one, after)]}
                for who, by in said.items():
                    votes[who] = [
                        (one, index_of(found) <= after) for one in part.whole
                        if (found := by.get(item_of(one))) and found.verdict
                    ]  # fmt: skip
                for who, cast in votes.items():
                    if cast or who == RATER:
                        accuses = np.array([accused for _, accused in cast])
                        machine = np.array([bool(one.machines) for one, _ in cast], bool)
                        row = turing_rows.accused(
                            accuses, machine, np.array([o.id for o, _ in cast])
                        )
                        yield {"source": name, "who": who, "after": after, **row}

    def _right_pairs(self, said: Said) -> dict[str, dict[str, Floats]]:
        """Source -> who -> points of each pair, ½ for a tie; of both orders their mean."""
        found: dict[str, dict[str, Floats]] = {}
        for name, part in self.parts.items():
            points = found[name] = {
                who: np.array([_mean([point(by, m, n) for n in (0, 1)]) for m, _ in part.pairs])
                for who, by in said.items()
            }
            at = {item_of(one): n for n, one in enumerate(part.whole)}
            for who, (score, _) in self._forms[name].items():
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
        **also: str,
    ) -> Iterator[Row]:
        for name, by in points.items():
            for who, given in by.items():
                if len(known := given[~np.isnan(given)]):
                    row = share(known, None, "right") | {"chats": len(known)}
                    price = of_right(costs.get(who), row["right"])
                    head = {"source": name, **self.parts[name].head, **also, "who": who}
                    yield {**head, **row, **price}

    def _rows_systems(self, seen: Mapping[str, Seen]) -> Iterator[Row]:
        for name, part in self.parts.items():
            if not (systems := ordered(part.whole)):
                continue
            uncut = {one.id: one for one in part.near}
            overall = np.array([*map(rating, part.whole)], np.float64)
            values = {
                who: 1 - accuses for who, (_, accuses) in seen.get(name, {}).items()
                if not np.isnan(accuses + overall).all()
            }  # fmt: skip
            values["length alone"] = np.array([*map(TRAPS["length alone"], part.whole)])
            n_said = [len(uncut[one.id].utterances) for one in part.whole]
            values["utterances, uncut"] = np.array(n_said)
            given = {who: ("overall", value, overall) for who, value in values.items()}
            if "z" in part.whole[0].labels:
                least = np.array([one.labels["z"]["repetitive"] for one in part.whole], np.float64)
                flagged = np.array([-repetition(uncut[one.id]) for one in part.whole])
                given["flags of repetition"] = ("repetitive", flagged, least)
            member = np.array([[s in one.machines for s in systems] for one in part.whole])
            for who, (quality, value, rated) in given.items():
                row = turing_rows.by_system(value, rated, member)
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


def ruled(protocol: Protocol, makes: Sequence[Callable[[], Case]]) -> dict[Key, Judgment]:
    """The rules judge's verdicts on every case; they cost nothing."""
    judge = RulesJudge(())

    async def answers() -> list[Judgment]:
        return [
            Judgment(protocol.name, case.seed_id, case.contestants, RULES,
                     (answer := await judge.answer(case)).verdict, answer.reason, 0, "", "")
            for case in (make() for make in makes)
        ]  # fmt: skip

    return {key_of(one): one for one in asyncio.run(answers())}


def forms(part: OneSource) -> dict[str, Floats]:
    """The same of the fingerprint, and by one number alone, which accuses nobody."""
    machine = np.array([bool(one.machines) for one in part.whole])
    if machine.all() or not machine.any():
        return {}
    found = {name: np.array([*map(number, part.whole)]) for name, number in TRAPS.items()}
    for name, given in found.items():
        found[name] = given if given[machine].mean() >= given[~machine].mean() else -given
    made = {name: np.stack([given, np.full(len(given), np.nan)]) for name, given in found.items()}
    near = [one.cut(part.end) for one in part.near]  # fitted on shorter chats, too
    for name, given in turing_form.fingerprints(near).items():
        by_item = dict(zip(map(item_of, near), given, strict=True))
        score = np.array([by_item[item_of(one)] for one in part.whole])
        limit = np.quantile(score[~machine], 1 - turing_rows.ACCUSED)
        made[name] = np.stack([score, score > limit])
    return made


def chats_of(talks: Sequence[Chat]) -> Chats:
    """Source, kind, and what the majority of people said."""
    source = np.unique([one.source for one in talks], return_inverse=True)[1]
    votes = np.array([majority(accusations(one)) for one in talks])
    return Chats(source, np.array([bool(one.machines) for one in talks], bool), votes)


def people_rows(talks: Sequence[Chat]) -> Iterator[Row]:
    """The majority of each talk's raters against truth, and one rater against the others."""
    said = [accusations(one) for one in talks]
    votes = [
        (at, float(one), majority(of[:n] + of[n + 1 :]))
        for at, of in enumerate(said) for n, one in enumerate(of)
    ]  # fmt: skip
    if not votes:
        return
    chats = chats_of(talks)
    tie = np.isnan(chats.majority)
    score = np.array([np.nan if no else np.mean(of) for no, of in zip(tie, said, strict=True)])
    alone = replace(chats, majority=np.full(len(talks), np.nan))
    yield {"who": MAJORITY, **alone.row(score, chats.majority)}
    at, one, others = (np.array(part) for part in zip(*votes, strict=True))
    yield {"who": RATER, **turing_rows.of_raters(one, others, chats.machine[at], at)}


def chart_of(made: Sequence[Row], signed: str) -> Chart | None:
    """The first source's rows with an AUC (of several sources: all together), best first."""
    kept = [row for row in made if row["auc"] is not None]
    kept = [row for row in kept if row["source"] == kept[0]["source"]]
    if not kept:
        return None
    values = pd.DataFrame(kept).set_index("who")[["auc", "auc_low", "auc_high"]]
    kinds = (
        "people" if "people (" in who else "one number" * (who in TRAPS) for who in values.index
    )
    values[""] = [*kinds]
    n = sum(kept[-1][kind] for kind in ("machines", "people"))
    return chart(
        "exam", "Who tells machines from people",
        "How often a machine's chat is taken for more of one than a person's of the same source, "
        "as long as each other; lines are 95 % intervals by chat. .5 is telling nothing.",
        f"{n:,} chats", f"The exam, {kept[0]['source']}", [signed],
        series, {"AUC": values}, "AUC", "{:.2f}",
    )  # fmt: skip


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

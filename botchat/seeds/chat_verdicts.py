"""A file of verdicts on one chat each: who is called a machine, after how many utterances.

Columns ``item, judge, verdict[, speaker][, after][, model]`` of any table that `vote_tables` opens.
A verdict is human or machine, the utterance from which on, or undecided; without a speaker also the
one that is named, or none. Empty: not told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from botchat.errors import DataError
from botchat.measures.annotations import NOBODY, Annotation
from botchat.records import (
    LETTERS,
    MISSING,
    SOMEWHERE,
    UNDECIDED,
    Dialogue,
    Dialogues,
    Judgment,
    Verdict,
)
from botchat.seeds.vote_tables import objects, opened

_COLUMNS = ("item", "judge", "verdict", "speaker", "after", "model")
_NEEDED = 3
_WORDS: Mapping[str, Verdict] = {
    **dict.fromkeys(("human", "person", "people", "no"), "No"),
    **dict.fromkeys(("machine", "bot", "ai", "yes"), SOMEWHERE),
    **dict.fromkeys(("undecided", "unsure", "unknown"), UNDECIDED),
    "": MISSING,
}
_NOBODY = ("none", "neither", "nobody")
_BETTER = {"No": "1", UNDECIDED: "tie", MISSING: None}


class ChatVerdict(NamedTuple):
    """A row, and where it is; empty: not told."""

    place: str
    item: str
    judge: str
    verdict: str
    speaker: str
    after: str
    model: str

    def fault(self, column: str, what: str) -> DataError:
        """What is wrong with it, in a line."""
        return DataError(f"{self.place}: column {column}: {what}")

    @property
    def said(self) -> Verdict:
        """As a protocol about a place has it, `MISSING` where it is not told."""
        word = self.verdict.lower()
        if word in _WORDS or (word.isdecimal() and int(word)):
            return _WORDS.get(word, word)
        raise self.fault(
            "verdict",
            f"{self.verdict!r:.60} is none of human, machine, undecided, the number of an "
            "utterance, or empty",
        )

    @property
    def part(self) -> str:
        """Of an `Annotation`."""
        return " ".join(filter(None, (self.speaker, self.after and f"after {self.after}")))


def read_verdicts(data: bytes, where: str) -> list[ChatVerdict] | None:
    """The rows of a file; ``None``: its columns say that it is none. Raises `DataError`.

    What a judge says again of the same is ``JUDGE (2)``.
    """
    if not data.strip(b"[] \t\r\n"):
        return None
    source = opened(data, where)
    names = {name.lower(): name for name in source.names}
    there = [name for name in _COLUMNS if name in names]
    if there[:_NEEDED] != [*_COLUMNS[:_NEEDED]] or names.keys() & {"first", "second"}:
        return None
    cells = source.load([names[name] for name in there])
    told = [["" if x is None else str(x).strip() for x in objects(cells[names[c]])] for c in there]
    rows, times = [], Counter[tuple[str, ...]]()
    for n, values in enumerate(zip(*told, strict=True), 1):
        given = dict.fromkeys(_COLUMNS, "") | dict(zip(there, values, strict=True))
        row = ChatVerdict(f"{where} row {n}", **given)
        if empty := next((name for name in ("item", "judge") if not given[name]), None):
            raise row.fault(empty, "empty; every verdict needs one")
        if row.after and not (row.after.isdecimal() and int(row.after)):
            raise row.fault("after", f"{row.after!r:.60} is no number of utterances")
        # A second reading of the same is another's: no verdict is lost.
        times[row[1:3] + row[4:]] += 1
        again = times[row[1:3] + row[4:]]
        rows.append(row if again == 1 else row._replace(judge=f"{row.judge} ({again})"))
    return rows


def by_itself(rows: Iterable[ChatVerdict]) -> list[Annotation]:
    """What each says by itself, where the chats are not at hand; a person is the better."""
    return [
        Annotation(
            row.item,
            row.model or "chat",
            NOBODY,
            row.judge,
            _BETTER.get(row.said, "2"),
            part=row.part,
        )
        for row in rows
    ]


def judgments(rows: Iterable[ChatVerdict], dialogues: Dialogues) -> Iterator[Judgment]:
    """What judges said of the chats there are, one judgment for all speakers of a chat.

    ``dialogues``: of ``human`` too. They are of the protocols ``unieval``, ``speakers`` or
    ``which``, and of their ``-nN``. Raises `DataError` for an item, a speaker or a number of
    utterances that there is not.
    """
    chats: dict[str, list[Dialogue]] = {}
    for one in (one for by in dialogues.values() for one in by.values()):
        chats.setdefault(one.seed_id, []).append(one)
    found: dict[tuple[str, str, str, str], tuple[list[Verdict], int]] = {}
    for row in rows:
        chat = _chat(row, chats)
        end = int(row.after or len(chat.utterances))
        if end > len(chat.utterances):
            raise row.fault("after", f"{end}; {row.item} has {len(chat.utterances)} utterances")
        names = [name.lower() for name in chat.speaker_names]
        known = dict(zip(LETTERS.lower(), range(len(names)), strict=False))
        known |= {name: i for i, name in enumerate(names)}
        word, spoken = row.verdict.lower(), row.speaker.lower()
        base, who, n = "unieval", 0, 1
        if spoken and spoken not in known:
            told = f"{row.speaker!r:.60} does not speak in {row.item}: {', '.join(names)}"
            raise row.fault("speaker", told)
        if spoken:
            base, who, n = "speakers", known[spoken], len(names)
        elif word in known or word in _NOBODY:
            base = "which"
        named = str(known[word] + 1) if word in known else "neither"
        protocol = f"{base}-n{row.after}" if row.after else base
        key = (row.judge, protocol, row.item, chat.contestant)
        words, _ = found.setdefault(key, ([MISSING] * n, end))
        words[who] = named if base == "which" else row.said
    for (judge, protocol, item, name), (words, end) in found.items():
        verdict = None if {*words} == {MISSING} else " ".join(words)
        yield Judgment(protocol, item, (name,), judge, verdict, "", end, "", "")


def _chat(row: ChatVerdict, chats: Mapping[str, list[Dialogue]]) -> Dialogue:
    there = [one for one in chats.get(row.item, ()) if row.model in ("", one.contestant)]
    if len(there) > 1:  # a ChatSEED, or none, is no chat
        there = [one for one in there if len(one.utterances) > one.n_seed]
    if len(there) == 1:
        return there[0]
    told = f"the set has no chat {row.item!r:.60} {row.model and f'of {row.model}'}".rstrip()
    if there:
        names = ", ".join(one.contestant for one in there)
        told = f"{row.item!r:.60} is a chat of {names}: say whose in a column model"
    raise row.fault("item", told)

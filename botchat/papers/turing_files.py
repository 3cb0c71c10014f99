"""Talks of people and machines with people's labels: the plain form, and five authors' own files.

The plain form is an object a line, ``{"id", "turns": [{"speaker", "text"}, …], "who": {speaker:
"human" or the machine}}``, turns also as ``[speaker, text]``, with ``source`` and ``labels`` where
there are any (``verdicts``: ``rater``, ``after`` so many utterances, ``human`` of each speaker as
true, false or null). Authors' files are read as they lie in their repositories: Spot The Bot
(Deriu et al. 2020), Ji et al. 2022, ConvAI 2017, FED (Mehri & Eskenazi 2020), DSTC9 (in DialoFlow).
Nothing is unpickled. Several messages in a row are kept apart.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from statistics import fmean
from typing import Any, NamedTuple

from botchat.errors import DataError, MissingError
from botchat.records import HUMAN
from botchat.workspace import files
from botchat.workspace.rows import Record, json_rows, named, quoted, unpacked, unzipping

_MAX_BYTES = 1 << 28
"""Of a file, packed and unpacked."""


class Opinion(NamedTuple):
    """What one rater said of a talk after its first utterances."""

    rater: str
    after: int
    human: tuple[bool | None, ...]
    """Of each speaker; ``None``: undecided."""

    @property
    def accuses(self) -> bool:
        """Whether a speaker is called a machine."""
        return False in self.human


@dataclass(frozen=True)
class Chat:
    """One chat, who took part, and what people said of it."""

    source: str
    id: str
    utterances: tuple[str, ...]
    speakers: tuple[int, ...]
    """Of each utterance, from 0 in the order in which they speak."""
    who: tuple[str, ...]
    """Of each speaker: ``human``, or the machine's name."""
    opinions: tuple[Opinion, ...] = ()
    labels: Mapping[str, Any] = field(default_factory=dict)

    @property
    def machines(self) -> tuple[str, ...]:
        """Machines that take part; none: it is of people."""
        return tuple(sorted({*self.who} - {HUMAN}))

    @property
    def rating(self) -> float | None:
        """People's overall rating of the machine, higher is better, on the source's scale."""
        if "z" in self.labels:  # Ji 2022: the mean of seven criteria, z within the rater
            return fmean(self.labels["z"].values())
        for key in ("human (overall)", "score", "overall_rating", "Overall"):
            if (given := self.labels.get(key)) is not None:
                return fmean(given) if isinstance(given, Sequence) else float(given)
        return None

    def cut(self, end: int) -> Chat:
        """Its first utterances."""
        return replace(self, utterances=self.utterances[:end], speakers=self.speakers[:end])


def read(place: Path) -> dict[str, list[Chat]]:
    """Source -> its talks, of a folder or one file.

    Talks of a source with the same words and no verdicts are one, rated by all of their raters.
    Raises `MissingError`: there is none; `DataError`, with file and line: one is not as above.
    """
    found: dict[str, list[Chat]] = {}
    opinions: dict[str, list[Opinion]] = {}
    for name, data in _contents(place):
        for record in json_rows(_mended(data), name):
            one = named(record.fields, record.place)
            reader = next((read for keys, read in _READERS.items() if {*keys} <= one.keys()), None)
            if reader is None:
                break  # of somebody else's
            try:
                for made in reader(one, name, record):
                    if isinstance(made, Chat):
                        found.setdefault(made.source, []).append(made)
                    else:
                        opinions.setdefault(made[0], []).append(made[1])
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                raise DataError(
                    f"{record.place}: {quoted(one)} is no talk ({why}); "
                    "get the file again, or bring it into the plain form (docs/benchmarks.md)"
                ) from None
    if not found:
        raise MissingError(
            f"no talks in {place}: give the folder with the plain form, or with the files of Spot "
            "The Bot, Ji 2022, ConvAI 2017, FED or DSTC9 (docs/benchmarks.md)"
        )
    return {source: _once(talks, opinions) for source, talks in sorted(found.items())}


def _contents(place: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of JSON with its name, those in ``.gz`` and ``.zip`` unpacked."""
    paths = sorted(place.rglob("*")) if place.is_dir() else [place]
    for path in paths:
        kind, name = path.suffix.lower(), path.relative_to(place).as_posix()
        if kind not in (".json", ".jsonl", ".gz", ".zip") or not path.is_file():
            continue
        data = files.content(path, _MAX_BYTES)
        if kind == ".gz":
            with unzipping(name, "gzip file", "get it again"), gzip.open(io.BytesIO(data)) as held:
                yield name.removesuffix(".gz"), held.read(_MAX_BYTES)
        elif kind == ".zip":
            archive = zipfile.ZipFile(io.BytesIO(data))
            with unzipping(name, "zip archive", "get it again"), archive:
                for member in archive.infolist():
                    if member.filename.endswith(".json") and member.file_size < _MAX_BYTES:
                        yield f"{name}/{member.filename}", unpacked(archive, member)
        else:
            yield name if name != "." else path.name, data


def _mended(data: bytes) -> bytes:
    """Halves of characters as what they are: bytes (ConvAI 2017), or nothing."""

    def whole(found: re.Match[bytes]) -> bytes:
        text = str(json.loads(b'"%b"' % found[0]))
        if all("\udc80" <= one <= "\udcff" for one in text):
            raw = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        else:
            raw = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return raw.encode()

    return re.sub(rb"(?<!\\)(?:\\u[dD][89a-fA-F][0-9a-fA-F]{2})+", whole, data)


def _once(talks: Sequence[Chat], opinions: Mapping[str, Sequence[Opinion]]) -> list[Chat]:
    """The talks with the verdicts on each; those that say the same without any are one."""
    alike: dict[object, list[Chat]] = {}
    for one in talks:
        given = (*one.opinions, *opinions.get(one.id, ()))
        key = one.id if given else (one.utterances, one.who)
        alike.setdefault(key, []).append(replace(one, opinions=given))
    found = []
    for first, *others in alike.values():
        ratings = [one.rating for one in (first, *others) if one.rating is not None]
        together = {"Overall": ratings} if others and ratings else first.labels
        found.append(replace(first, labels=together))
    return found


def _talk(
    source: str,
    id_: object,
    turns: Sequence[tuple[object, str]],
    who: Mapping[Any, str],
    labels: Mapping[str, Any] | None = None,
) -> Iterator[Chat]:
    """One talk, none where nothing is said; empty utterances are left out."""
    said = [(str(by), text) for by, text in turns if isinstance(text, str) and text.strip()]
    if not said:
        return
    names = {str(by): name for by, name in who.items()}
    order = {by: n for n, by in enumerate(dict.fromkeys([*(by for by, _ in said), *names]))}
    given = labels or {}
    opinions = []
    for one in given.get("verdicts", ()):
        human = dict(zip(names, one["human"], strict=True))
        said_of = tuple(human[by] for by in order)
        opinions.append(Opinion(str(one["rater"]), int(one["after"]), said_of))
    speakers = tuple(order[by] for by, _ in said)
    yield Chat(
        source, str(id_), tuple(text for _, text in said), speakers,
        tuple(names[by] for by in order), tuple(opinions), given,
    )  # fmt: skip


Made = Iterator["Chat | tuple[str, Opinion]"]
Fields = Mapping[str, Any]


def _plain(one: Fields, name: str, _: Record) -> Made:
    turns = [
        (turn["speaker"], turn["text"]) if isinstance(turn, Mapping) else tuple(turn)
        for turn in one["turns"]
    ]
    source = one.get("source") or PurePosixPath(name).stem
    return _talk(str(source), one["id"], turns, one["who"], one.get("labels"))


_DOMAINS = {"personachat": "convai2", "empathetic_dialogues": "empathetic"}


def _spot_the_bot(one: Fields, _: str, __: Record) -> Made:
    """Speakers take turns; their names are systems'."""
    who = {n: HUMAN if one[f"is_human{n}"] else one[f"system_type{n}"] for n in (0, 1)}
    turns = [(n % 2, _closed_up(said["text"])) for n, said in enumerate(one["convo"])]
    domain = one["domain_name"]
    source = f"spotbot-{_DOMAINS.get(domain, domain)}"
    return _talk(source, one["_id"]["$oid"], turns, who)


def _spotted(one: Fields, _: str, __: Record) -> Made:
    first, second = one["entity0_annotation"], one["entity1_annotation"]
    human = (first["is_human"], second["is_human"])
    yield one["convo_id"], Opinion(one["user_name"], first["decision_turn"], human)


def _closed_up(text: str) -> str:
    """Words as people write them, of text whose words stand apart; marks of the end removed."""
    text = re.sub(r"<\s*/?\s*(?:s|pad)\s*>?", " ", text.replace("\u2019", "'"))
    text = re.sub(r"\s+([.,!?;:…])", r"\1", text)
    text = re.sub(r"\s*(')\s*(s|m|t|re|ve|ll|d|nt)\b", r"\1\2", text)
    return " ".join(text.replace(" n't", "n't").split())


def _ji(one: Fields, name: str, record: Record) -> Made:
    """A person's talks with several systems, and the ratings of who talked."""
    for n, of in enumerate(one["data"]):
        turns = [
            turn for both in of["dialogue"]
            for turn in ((0, both["user"]), (1, _closed_up(both["bot"])))
        ]  # fmt: skip
        id_ = f"{PurePosixPath(name).stem}-{_nth(record)}-{n}"
        labels = {"raw": of["raw scores"], "z": of["z scores"]}
        yield from _talk("ji2022", id_, turns, {0: HUMAN, 1: of["model"]}, labels)


def _convai(one: Fields, _: str, __: Record) -> Made:
    if any("userType" not in of for of in one["users"]):
        return iter(())  # of the test, whose truth is elsewhere
    who = {of["id"]: HUMAN if of["userType"] == "Human" else "bot" for of in one["users"]}
    turns = [(said["userId"], said["text"]) for said in one["thread"]]
    return _talk("convai2017", one["dialogId"], turns, who)


def _fed(one: Fields, _: str, record: Record) -> Made:
    """Those rated whole; of others only the last utterance is."""
    if "response" in one:
        return iter(())
    who = {"User": HUMAN, "System": HUMAN if one["system"] == "Human" else one["system"]}
    rated = {key: [v for v in of if not isinstance(v, str)]
             for key, of in one["annotations"].items()}  # fmt: skip
    return _talk("fed", _nth(record), _lines(one["context"]), who, rated)


def _dstc9(one: Fields, name: str, record: Record) -> Made:
    system = PurePosixPath(name).stem
    labels = {key: value for key, value in one.items() if key != "context"}
    id_ = f"{system.removeprefix('chatbot')}-{_nth(record)}"
    turns = [(by, _closed_up(text)) for by, text in _lines(one["context"])]
    return _talk("dstc9", id_, turns, {"User": HUMAN, "System": system}, labels)


def _nth(record: Record) -> int:
    """Of the records of its file, from 0."""
    return int(re.split(r"\D+", record.place)[-1]) - 1


def _lines(context: str) -> list[tuple[str, str]]:
    """Turns of a text, a line each: ``User: …``, ``System: …``."""
    parts = [re.fullmatch(r"(User|System): ?(.*)", line) for line in context.split("\n")]
    return [(part[1], part[2].strip()) for part in parts if part]


_READERS: Mapping[tuple[str, ...], Callable[[Fields, str, Record], Made]] = {
    ("turns", "who"): _plain,
    ("convo", "is_human0"): _spot_the_bot,
    ("entity0_annotation", "convo_id"): _spotted,
    ("AssignmentId", "data"): _ji,
    ("dialogId", "thread"): _convai,
    ("context", "system", "annotations"): _fed,
    ("context", "human (overall)"): _dstc9,
}
"""Fields that a record is known by -> how it is read."""

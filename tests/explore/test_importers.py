"""Files from elsewhere, changed anywhere: one line or what they hold; bounded time and memory."""

import contextlib
import io
import json
import random
import resource
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest

from botchat.cli.main import main
from botchat.workspace.folder import Workspace
from tests.explore import explore
from tests.explore.mutations import encoded, of_bytes, of_json
from tests.integration.test_dialogues_import import TALKS, lines, utterances, write
from tests.papers.test_bench import faireval_files, story_files, topical_files, written
from tests.unit.test_votes import BATTLES, WRITERS

pytestmark = pytest.mark.explore

Make = Callable[[Path], dict[str, bytes]]

MOST_BYTES = 2 * 10**9

SEEDS = [utterances(talk, n) for n, talk in enumerate(TALKS)]
MUTUAL = {
    f"data/mutual/test/test_{n}.txt": json.dumps({"article": f"m : hi {n} there . f : hi ."})
    for n in range(887)
}
RATES = "model_a,model_b,win_rate,win_or_tie_rate\nA,B,.5,.7\nB,C,.5,.7\nA,C,.6,.8\n"
TEXTS = [{"id": f"t{n}", "text": f"It was {n}. Then it was not.", "score": n} for n in range(3)]
ANSWERS = [{"id": f"p{n}", "question": "Why?", "answer_1": "So.", "answer_2": "Because.",
            "model_1": "a", "model_2": "b", "label": "1"} for n in range(3)]  # fmt: skip


def xlsx(rows) -> bytes:
    """A workbook of one sheet."""
    cells = {row["id"]: json.dumps(row["utterances"]) for row in rows}
    frame = pd.DataFrame({"index": cells.keys(), "conv-GT": cells.values()})
    frame.to_excel(file := io.BytesIO(), index=False)
    return file.getvalue()


def zipped(members, kind=zipfile.ZIP_DEFLATED) -> bytes:
    """An archive of names and contents."""
    with zipfile.ZipFile(file := io.BytesIO(), "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def unzipped(data: bytes) -> dict[str, bytes]:
    """Names and contents of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def dialogues(name: str) -> Make:
    """A file of one format of dialogues."""
    return lambda folder: {f"{name}.jsonl": write(folder, name).read_bytes()}


def of(name: str, data: bytes | str):
    """One file."""
    return lambda folder: {name: data if isinstance(data, bytes) else data.encode()}


TAKE = ["import", "FILE", "--seeds", "x", "--replace"]
TALK = ["import", "FILES", "--seeds", "x", "--model", "m", "--replace"]
RANK, AGREE = ["rank", "FILE"], ["agree", "FILE"]
JUDGED = ["bench", "FILE", "--judge", "http://127.0.0.1:9/v1#m", "--plan"]
BENCH = ["--data", "FOLDER", "--judge", "http://127.0.0.1:9/v1#m", "--plan"]
FORMATS = {
    "seeds.jsonl": (of("s.jsonl", lines(SEEDS)), TAKE),
    "seeds.json": (of("s.json", json.dumps(SEEDS)), TAKE),
    "seeds.csv": (
        of("s.csv", WRITERS["csv"]([{"id": n // 2, "turn": n % 2, "role": "ab"[n % 2], "text": "t"}
                                    for n in range(8)])),
        TAKE,
    ),
    "seeds.xlsx": (of("s.xlsx", xlsx(SEEDS)), TAKE),
    "seeds folder": (
        lambda _: {f"test/{Path(n).name}": t.encode() for n, t in MUTUAL.items()},
        ["import", "FOLDER", "--seeds", "x", "--replace"],
    ),
    **{f"dialogues {name}": (dialogues(name), TALK) for name in
       ("openai", "sharegpt", "utterances")},
    **{f"votes.{kind}": (of(f"v.{kind}", WRITERS[kind](BATTLES)), RANK) for kind in WRITERS},
    "agree.parquet": (of("v.parquet", WRITERS["parquet"](BATTLES)), AGREE),
    "verdicts": (
        of("v.csv", "item,first,second,judge,verdict\nq1,a,b,human,1\nq1,a,b,j,2\nq2,b,a,j,tie\n"),
        AGREE,
    ),
    "rates": (of("r.csv", RATES), RANK),
    "texts.csv": (of("t.csv", WRITERS["csv"](TEXTS)), JUDGED),
    "texts.jsonl": (of("t.jsonl", lines(TEXTS)), JUDGED),
    "texts.txt": (of("t.txt", "One text.\nIt goes on.\n\nAnother.\n"), JUDGED),
    "pairs.jsonl": (of("p.jsonl", lines(ANSWERS)), JUDGED),
    "faireval": (lambda _: faireval_files(), ["bench", "faireval", *BENCH]),
    "topicalchat": (lambda _: topical_files(), ["bench", "topicalchat", *BENCH]),
    "mateval": (lambda _: story_files(), ["bench", "mateval", *BENCH]),
}  # fmt: skip
"""Name -> what makes its files, the command that reads them."""


def changed(draw: random.Random, name: str, data: bytes) -> bytes:
    """A file with something changed: its bytes, a field of JSON, or a member of an archive."""
    if data[:2] == b"PK" and draw.random() < 0.7:
        members = unzipped(data)
        member = draw.choice(list(members))
        return zipped(members | {member: changed(draw, member, members[member])})
    if name.endswith(".parquet") and draw.random() < 0.6:
        rows = of_json(draw, BATTLES)
        with contextlib.suppress(Exception):  # of what no table can hold
            return WRITERS["parquet"](rows)
    if name.endswith((".json", ".jsonl", ".txt")) and draw.random() < 0.6:
        with contextlib.suppress(ValueError):
            return encoded(of_json(draw, json.loads(data)))
        rows = data.split(b"\n")
        n = draw.randrange(len(rows))
        with contextlib.suppress(ValueError):
            rows[n] = encoded(of_json(draw, json.loads(rows[n])))
            return b"\n".join(rows)
    return of_bytes(draw, data)


def put(folder: Path, whole: dict[str, bytes], command: list[str]) -> list[object]:
    """Write some files; the command that reads them."""
    place = written(folder, whole)
    paths = [place / file for file in whole]
    words = {"FILE": paths[:1], "FILES": paths, "FOLDER": [folder]}
    return [part for word in command for part in words.get(word, [word])]


@contextlib.contextmanager
def bounded(most: int = MOST_BYTES) -> Iterator[None]:
    """No more memory and time than a file of this size may take."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + most, hard))
    began = time.monotonic()
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert time.monotonic() - began < 20.0


def run(arguments, capsys, most: int = MOST_BYTES) -> str:
    """``taken`` or ``refused``, in one line; anything else is a fault."""
    with bounded(most):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
    error = capsys.readouterr().err
    assert code in (0, 1), error
    assert "Traceback" not in error
    if code:
        assert error.count("\n") == 1, error
        assert len(error) < 1000
        print(error)
    return "refused" if code else "taken"


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_changed_anywhere_is_read_or_refused_in_one_line(tmp_path, capsys, name):
    """No traceback, no hang, no gigabytes; what is taken can be read again."""
    make, command = FORMATS[name]
    (tmp_path / "made").mkdir()
    whole = make(tmp_path / "made")
    folder, place = tmp_path / "files", tmp_path / "w"

    def once(draw: random.Random) -> str:
        victim = draw.choice(list(whole))
        words = put(folder, whole | {victim: changed(draw, victim, whole[victim])}, command)
        ended = run([*words, "--dir", place], capsys)
        if ended == "taken":
            workspace = Workspace(place)
            for seeds in workspace.seed_sets():
                assert workspace.seeds(seeds)
                workspace.all_dialogues(seeds)
        return ended

    assert run([*put(folder, whole, command), "--dir", tmp_path / "v"], capsys) == "taken"
    explore(once, name)


BOMB = 700 * 2**20
"""Bytes that a bomb unpacks to."""


def inflated(names: dict[str, bytes], victim: str, *, says: int) -> bytes:
    """An archive one of whose members, deflated, says that it is ``says`` bytes and is `BOMB`."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = deflate.compress(bytes(2**20)) + deflate.flush(zlib.Z_FULL_FLUSH)
    data = bytearray(zipped(names | {victim: block * (BOMB >> 20) + deflate.flush()}, 0))
    name = victim.encode()
    for at, kind in ((data.index(name) - 30, 8), (data.rindex(name) - 46, 10)):
        struct.pack_into("<H", data, at + kind, zipfile.ZIP_DEFLATED)
        struct.pack_into("<I", data, at + kind + 14, says)
    return bytes(data)


def test_a_bomb_is_refused_before_it_is_large(tmp_path, capsys):
    """A small xlsx that stands for all memory: one line, and half a gigabyte at most."""
    data = inflated(unzipped(xlsx(SEEDS)), "xl/workbook.xml", says=500)
    assert len(data) < 2**20
    words = put(tmp_path, {"s.xlsx": data}, TAKE)
    assert run([*words, "--dir", tmp_path / "w"], capsys, 2**29) == "refused"

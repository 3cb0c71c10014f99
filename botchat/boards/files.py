"""Files of tables (csv, Markdown, JSON, LaTeX, Parquet, each with signatures) and of a board.

A new format is a line of `WRITERS`, and a word in the choices of ``--format``.
"""

import csv
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

import msgspec
from jinja2 import Environment, PackageLoader, Template

from botchat.boards.board import Board
from botchat.boards.headline import Headline
from botchat.boards.judge_checks import JudgeTrust
from botchat.boards.protocols import DetectionResult, ReportResult
from botchat.boards.tables import DIGITS, Table, one_line
from botchat.errors import UsageError
from botchat.frames import package_toml
from botchat.interfaces import Cells, round_floats, settings_digest
from botchat.protocols.reports import as_prose, as_records, as_text
from botchat.records import HUMAN, SIGNED, VERSION, Dialogues, Texts

Content = str | bytes
"""Content of a file; text is UTF-8."""

_FORMULA = re.compile(r"^[\s]*[=+\-@]")

_TEX = str.maketrans(package_toml("boards/tex.toml", dict[str, str]))

MOST_IN_JSON = 10_000
"""Rows of a table that are in ``leaderboard.json`` too: all pairs of 100 models."""


def table_files(tables: Sequence[Table], formats: Texts) -> dict[str, Content]:
    """File name -> content, one for each table and format; with csv one ``meta.json`` of all.

    ``formats``: of `WRITERS`, by default csv; raises `ConfigError` for another.
    """
    files = {}
    for form in formats or ("csv",):
        if form not in WRITERS:
            raise UsageError(f"--format {form}: give one of {', '.join(WRITERS)}")
        for each in tables:
            files[f"{each.name}.{form}"] = WRITERS[form](each)
        if form == "csv":
            files["meta.json"] = to_json({each.name: described(each) for each in tables})
    return files


def document(title: str, notes: Iterable[str], tables: Iterable[Table]) -> str:
    """Markdown of several tables under one title, which no table repeats."""
    return _template("document.md").render(title=title, notes=notes, tables=tables)


def to_json(value: object) -> str:
    """JSON text of a JSON-ready value, readable, without NaN."""
    return msgspec.json.format(msgspec.json.encode(round_floats(value)), indent=1).decode() + "\n"


def described(table: Table) -> Cells:
    """Describe the numbers of a table, JSON-ready: signatures, and what each key is."""
    columns = []
    for column in table.columns:
        for key in column.keys:
            columns.append({"key": key, "heading": column.heading, "kind": column.kind})
    return {
        "title": table.title,
        "note": table.note,
        "signatures": table.signatures,
        "columns": columns,
    }


def _csv(table: Table) -> str:
    """CSV of keys and exact numbers, as ``pandas.read_csv`` reads; nothing else is in it.

    A name that a spreadsheet would take for a formula gets a leading apostrophe.
    """
    frame = table.frame.copy()
    for column in table.columns:
        for key in column.keys:
            if column.kind == "name":
                frame[key] = frame[key].map(_escape_formula, na_action="ignore")
            elif column.kind == "exact":
                frame[key] = frame[key].map(round_floats)
            else:
                frame[key] = frame[key].round(DIGITS)
    return frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")


def _markdown(table: Table) -> str:
    """A heading, a pipe table, the note and the signatures."""
    return _template("table.md").render(table=table)


def _tex(table: Table) -> str:
    r"""LaTeX for ``\usepackage{booktabs}``: the columns for readers, signatures in comments.

    ``T1`` fonts or XeLaTeX; names in other alphabets need a font that has them.
    """
    return _template("table.tex").render(table=table)


@cache
def _template(name: str) -> Template:
    """Return a text of this folder to fill in, with its filters; LaTeX needs the braces."""
    texts = Environment(
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<<",
        variable_end_string=">>",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        loader=PackageLoader("botchat", "boards"),
    )
    texts.filters |= {
        "code": _code,
        "label": _label,
        "markdown": _escape_markdown,
        "now": of_now,
        "number": _number_tex,
        "tex": _escape_tex,
    }
    return texts.get_template(f"{name}.jinja")


def _parquet(table: Table) -> bytes:
    """The exact numbers; `described` is ``pandas.read_parquet(file).attrs``."""
    frame = table.frame.copy()
    frame.attrs.update(described(table))
    return frame.to_parquet(index=False)


def _escape_formula(name: str) -> str:
    """A name that no spreadsheet runs (CWE-1236)."""
    name = one_line(name)
    if _FORMULA.match(name):
        return f"'{name}"
    return name


def _escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is."""
    text = one_line(text).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*|\[\]])", r"\\\1", text)


def of_now(signature: str) -> str:
    """Return a signature in one line, with this version in place of its own."""
    return one_line(signature.replace(SIGNED, f"botchat:{VERSION}", 1))


def _code(text: str) -> str:
    """Text as code in Markdown, between more backticks than it has."""
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (text.count("`") + 1)
    return f"{fence} {text} {fence}"


def _escape_tex(text: str) -> str:
    """Text that LaTeX shows as it is."""
    return one_line(text).translate(_TEX)


def _number_tex(text: str) -> str:
    """Escaped text of a number with its minus sign, and its interval small."""
    text = re.sub(r"^-(?=\d)", "$-$", text)
    return re.sub(r" \((.+)\)$", r" {\\scriptsize {[}\1{]}}", text)


def _label(name: str) -> str:
    """Name that LaTeX refers to."""
    return re.sub("[^A-Za-z0-9-]+", "-", name)


def _json(table: Table) -> str:
    return to_json({"rows": table.records, "signatures": table.signatures})


WRITERS: Mapping[str, Callable[[Table], Content]] = {
    "csv": _csv,
    "md": _markdown,
    "json": _json,
    "tex": _tex,
    "parquet": _parquet,
}
"""Ending of a file -> what makes a file of a table."""


def board_files(
    board: Board, headline: Headline, trust: JudgeTrust, formats: Texts, data: Cells
) -> dict[str, Content]:
    """Return file name -> content of every table, and of ``data``, the `as_json`."""
    files = table_files(board.every_table, formats)
    title = f"Leaderboard of {board.seed_set}, judged by {board.judge}"
    notes = [headline.sentence, headline.scope]
    if not board.is_of_votes:  # votes are no judge that can be tested
        notes.append(f"Judge {board.judge}: {trust.level}. {' '.join(trust.reasons)}")
    files["leaderboard.md"] = document(title, notes + list(board.notes), board.tables)
    files["leaderboard.json"] = to_json(data)
    for part in board.of(ReportResult):
        records = []
        texts = []
        for (contestant, seed_id), by_judge in part.diagnoses.items():
            for judge, report in by_judge.items():
                head = {"seed_id": seed_id, "model": contestant, "judge": judge}
                for row in as_records(report):
                    records.append(json.dumps({**head, **row}, ensure_ascii=False) + "\n")
                texts.append(
                    f"{seed_id} | {contestant} | {judge}\n\n{as_prose(report)}\n\n"
                    f"{as_text(report)}\n"
                )
        files[f"{part.protocol.name}-records.jsonl"] = "".join(records)
        files[f"{part.protocol.name}-reports.txt"] = "\n".join(texts)
    return files


def as_json(board: Board, headline: Headline, trust: JudgeTrust) -> Cells:
    """The board, JSON-ready: ``rows`` of the main table, and all tables by name."""
    data: Cells = {"set": board.seed_set}
    if board.invented:
        data["invented"] = True
    notes = list(board.notes)
    tables = {}
    for part in board.every_table[1:]:
        n = len(part.frame)
        rows = part.records
        if n > MOST_IN_JSON:
            rows = []
            notes.append(f"The {n:,} rows of {part.name} are in its own file alone.")
        tables[part.name] = {"rows": rows, "signatures": part.signatures}
    return data | {
        "judge": {"name": board.judge, **trust.as_json},
        "headline": headline.sentence,
        "rows": board.main.records,
        "signature": board.main.signature,
        "signatures": board.main.signatures,
        "notes": notes,
        "provenance": msgspec.to_builtins(board.provenance),
        "tables": tables,
    }


def by_seed(board: Board, dialogues: Dialogues) -> Cells:
    """Return the data with which `compare` pairs a later board.

    ``by_seed``: model -> seed id -> first AI utterance by the leading protocol, 0: none, None: not
    known, or the dialogue broke off: those with an AI utterance before that are not all that would
    have one. ``dialogues``: model -> digest of all of them.
    ``topics``: seed id -> topic, where seeds have one. ``n``: the largest N of that protocol.
    """
    first = defaultdict[str, dict[str, int | None]](dict)
    digests = {}
    for name, by in dialogues.items():
        if name != HUMAN:
            texts = [(seed_id, by[seed_id].utterances) for seed_id in sorted(by)]
            digests[name] = settings_digest(*texts)
    data: Cells = {"by_seed": first, "dialogues": digests}
    for part in board.of(DetectionResult):
        if part.protocol.leads:
            judged = board.verdicts[part.protocol.name]
            largest = part.ranking[0].n or 0
            data["n"] = largest
            for name, seed, _, shown, index in judged.ends.itertuples(index=False):
                known = None
                if shown >= largest and not math.isnan(index):
                    known = int(index)
                if name != HUMAN:
                    first[name][seed] = known
            if judged.topics:
                data["topics"] = judged.topics
    return data

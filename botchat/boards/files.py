"""Files of tables (csv, Markdown, JSON, LaTeX, Parquet, each with signatures) and of a board.

A new format is a line of `WRITERS`, and a word in the choices of ``--format``.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from botchat.boards.board import Board
from botchat.boards.headline import Headline
from botchat.boards.judge_checks import JudgeTrust
from botchat.boards.protocols import DetectionResult, ReportResult
from botchat.boards.tables import DIGITS, Table, one_line
from botchat.errors import UsageError
from botchat.estimates import Floats, Indices
from botchat.interfaces import round_floats, settings_digest
from botchat.metrics.statistics import holm, sign_flip
from botchat.protocols.reports import as_prose, as_records, as_text
from botchat.protocols.verdicts import NOT_SAID, first_ai_index
from botchat.records import HUMAN, Dialogues

Content = str | bytes
"""Content of a file; text is UTF-8."""

_FORMULA = re.compile(r"^[\s]*[=+\-@]")

_TEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",  # after the end of a row it would be an option of it
    "]": "{]}",
    "*": "{*}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "½": r"\textonehalf{}",
    "±": r"\textpm{}",
    "×": r"\texttimes{}",
    "−": "$-$",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}

MOST_IN_JSON = 10_000
"""Rows of a table that are in ``leaderboard.json`` too: all pairs of 100 models."""


def table_files(tables: Sequence[Table], formats: Sequence[str] = ()) -> dict[str, Content]:
    """File name -> content, one for each table and format; with csv one ``meta.json`` of all.

    ``formats``: of `WRITERS`, by default csv; raises `ConfigError` for another.
    """
    files: dict[str, Content] = {}
    for form in formats or ("csv",):
        if form not in WRITERS:
            raise UsageError(f"--format {form}: give one of {', '.join(WRITERS)}")
        files |= {f"{each.name}.{form}": WRITERS[form](each) for each in tables}
        if form == "csv":
            files["meta.json"] = to_json({each.name: described(each) for each in tables})
    return files


def document(title: str, notes: Iterable[str], tables: Iterable[Table]) -> str:
    """Markdown of several tables under one title, which no table repeats."""
    parts = [f"# {_escape_markdown(title)}\n"]
    parts.append("".join(f"- {_escape_markdown(note)}\n" for note in notes))
    parts += [_markdown(each, title) for each in tables]
    return "\n".join(parts)


def to_json(value: Any) -> str:
    """JSON text of a JSON-ready value, readable, without NaN."""
    return msgspec.json.format(msgspec.json.encode(round_floats(value)), indent=1).decode() + "\n"


def described(table: Table) -> dict[str, Any]:
    """Describe the numbers of a table, JSON-ready: signatures, and what each key is."""
    return {
        "title": table.title,
        "note": table.note,
        "signatures": list(table.signatures),
        "columns": [
            {"key": key, "heading": column.heading, "kind": column.kind}
            for column in table.columns
            for key in column.keys
        ],
    }


def _csv(table: Table) -> str:
    """CSV of keys and exact numbers, as ``pandas.read_csv`` reads; nothing else is in it.

    A name that a spreadsheet would take for a formula gets a leading apostrophe.
    """
    frame = table.frame.copy()
    for column in table.columns:
        if column.kind == "name":
            frame[column.key] = frame[column.key].map(_escape_formula, na_action="ignore")
        elif column.kind == "exact":
            frame[column.key] = frame[column.key].map(round_floats)
        else:
            frame[column.keys] = frame[column.keys].round(DIGITS)
    return str(frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n"))


def _markdown(table: Table, title: str = "") -> str:
    """A heading that is not ``title``, a pipe table, the note and the signatures."""
    names = [column.kind == "name" for column in table.headline]
    rows = [
        [_escape_markdown(column.heading) for column in table.headline],
        ["---" if name else "--:" for name in names],
        *(
            [_escape_markdown(c) if name else c for c, name in zip(cells, names, strict=True)]
            for cells in table.cells
        ),
    ]
    above = [f"## {_escape_markdown(table.title)}", ""] if table.title != title else []
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    notes = [_escape_markdown(table.note), ""] if table.note else []
    signatures = [f"{_code(signature)}  " for signature in table.signatures]
    return "\n".join([*above, *lines, "", *notes, *signatures, ""])


def _tex(table: Table) -> str:
    r"""LaTeX for ``\usepackage{booktabs}``: the columns for readers, signatures in comments.

    ``T1`` fonts or XeLaTeX; names in other alphabets need a font that has them.
    """
    columns = []
    for column in table.headline:
        texts = [_escape_tex(text) for text in table.texts(column.key)]
        if column.kind != "name":
            texts = [re.sub(r"^-(?=\d)", "$-$", text) for text in texts]
        ends = map(_escape_tex, table.intervals(column.key))
        columns.append(
            [
                rf"{text} {{\scriptsize {{[}}{end}{{]}}}}" if end else text
                for text, end in zip(texts, ends, strict=True)
            ]
        )
    sides = "".join("l" if column.kind == "name" else "r" for column in table.headline)
    note = rf"\par\smallskip{{\footnotesize {_escape_tex(table.note)}\par}}"
    lines = [
        *(f"% {one_line(signature)}" for signature in table.signatures),
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escape_tex(table.title)}}}",
        rf"\label{{tab:{re.sub('[^A-Za-z0-9-]+', '-', table.name)}}}",
        rf"\begin{{tabular}}{{@{{}}{sides}@{{}}}}",
        r"\toprule",
        rf"{' & '.join(_escape_tex(column.heading) for column in table.headline)} \\",
        r"\midrule",
        *(rf"{' & '.join(row)} \\" for row in zip(*columns, strict=True)),
        r"\bottomrule",
        r"\end{tabular}",
        *([note] if table.note else []),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _parquet(table: Table) -> bytes:
    """The exact numbers; `described` is ``pandas.read_parquet(file).attrs``."""
    file = io.BytesIO()
    frame = table.frame.copy()
    frame.attrs.update(described(table))
    frame.to_parquet(file, index=False)
    return file.getvalue()


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


def _code(text: str) -> str:
    """Text as code in Markdown, between more backticks than it has."""
    text = one_line(text)
    if "`" not in text:
        return f"`{text}`"
    fence = "`" * (text.count("`") + 1)
    return f"{fence} {text} {fence}"


def _escape_tex(text: str) -> str:
    """Text that LaTeX shows as it is."""
    return "".join(_TEX.get(char, char) for char in one_line(text))


WRITERS: Mapping[str, Callable[[Table], Content]] = {
    "csv": _csv,
    "md": _markdown,
    "json": lambda table: to_json({"rows": table.records, "signatures": list(table.signatures)}),
    "tex": _tex,
    "parquet": _parquet,
}
"""Ending of a file -> what makes a file of a table."""


def board_files(
    board: Board,
    headline: Headline,
    trust: JudgeTrust,
    formats: Sequence[str],
    data: Mapping[str, Any],
) -> dict[str, Content]:
    """Return file name -> content of every table, and of ``data``, the `as_json`."""
    files = table_files(board.every_table, formats)
    title = f"Leaderboard of {board.seed_set}, judged by {board.judge}"
    about_judge = f"Judge {board.judge}: {trust.level}. {' '.join(trust.reasons)}"
    notes = [headline.sentence, headline.scope, about_judge, *board.notes]
    files["leaderboard.md"] = document(title, notes, board.tables)
    files["leaderboard.json"] = to_json(data)
    for part in board.of(ReportResult):
        records = []
        texts = []
        for (contestant, seed_id), by_judge in part.diagnoses.items():
            for judge, report in by_judge.items():
                head = {"seed_id": seed_id, "model": contestant, "judge": judge}
                for row in as_records(report):
                    records.append(json.dumps({**head, **row}, ensure_ascii=False) + "\n")
                title = f"{seed_id} | {contestant} | {judge}"
                texts.append(f"{title}\n\n{as_prose(report)}\n\n{as_text(report)}\n")
        files[f"{part.protocol.name}-records.jsonl"] = "".join(records)
        files[f"{part.protocol.name}-reports.txt"] = "\n".join(texts)
    return files


def as_json(board: Board, headline: Headline, trust: JudgeTrust) -> dict[str, Any]:
    """The board, JSON-ready: ``rows`` of the main table, and all tables by name."""
    n_rows = {part.name: len(part.frame) for part in board.every_table}
    long = {name: n for name, n in n_rows.items() if n > MOST_IN_JSON}
    return {
        "set": board.seed_set,
        **({"invented": True} if board.invented else {}),
        "judge": {"name": board.judge, **trust.as_json},
        "headline": headline.sentence,
        "rows": board.main.records,
        "signature": board.main.signature,
        "signatures": list(board.main.signatures),
        "notes": [
            *board.notes,
            *(f"The {n:,} rows of {name} are in its own file alone." for name, n in long.items()),
        ],
        "provenance": [msgspec.to_builtins(row) for row in board.provenance],
        "tables": {
            part.name: {
                "rows": [] if part.name in long else part.records,
                "signatures": list(part.signatures),
            }
            for part in board.every_table[1:]
        },
    }


def by_seed(board: Board, dialogues: Dialogues) -> dict[str, Any]:
    """Return the data with which `compare` pairs a later board.

    ``by_seed``: model -> seed id -> first AI utterance by the leading protocol, 0: none, None: not
    known (or none, and the dialogue broke off). ``dialogues``: model -> digest of all of them.
    ``topics``: seed id -> topic, where seeds have one.
    """
    first: dict[str, dict[str, int | None]] = {}
    leading = next((part for part in board.of(DetectionResult) if part.protocol.leads), None)
    by_contestant = board.verdicts[leading.protocol.name].by_contestant if leading else {}
    largest = leading.ranking[0].n or 0 if leading else 0
    for name, judgments in by_contestant.items():
        for judgment in judgments if name != HUMAN else ():
            verdict = judgment.verdict
            seed_id = judgment.seed_id
            index = None if verdict is None else first_ai_index(verdict, seed_id)
            is_cut = index == 0 and judgment.shown < largest
            first.setdefault(name, {})[seed_id] = None if is_cut else index
    digests = {
        name: settings_digest(*((at, d.utterances) for at, d in sorted(by.items())))
        for name, by in dialogues.items()
        if name != HUMAN
    }
    topics = board.verdicts[leading.protocol.name].topics if leading else {}
    return {"by_seed": first, "dialogues": digests} | ({"topics": topics} if topics else {})


# -------------------------------------------------------- changes of models between two boards


def success_changes(
    old: Mapping[str, int | None],
    new: Mapping[str, int | None],
    n: int,
    largest: int,
    topics: Mapping[str, str],
) -> tuple[Floats, Indices]:
    """Return success at N after less before on each seed known on both, and its cluster.

    ``old``, ``new``: seed id -> index of the first AI utterance; 0 if none, None if unknown.
    ``largest``: the largest N of the boards. ``topics``: seed id -> topic, where it has one.
    """
    seeds = sorted(old.keys() & new.keys())
    before = np.array([_success(old[seed], n, largest) for seed in seeds])
    changes = np.array([_success(new[seed], n, largest) for seed in seeds]) - before
    known = np.isfinite(changes)
    names = [topics.get(seed, seed) for seed in seeds]
    return changes[known], np.unique(names, return_inverse=True)[1][known]


def _success(index: int | None, n: int, largest: int) -> float:
    """Return whether a dialogue has no AI utterance up to N, given the ``index`` of the first."""
    if index is None or index < 0 or (index == NOT_SAID and n < largest):
        return math.nan
    return float(index != NOT_SAID and not 0 < index <= n)


def p_fell(changes: Floats, cluster: Indices) -> float:
    """Return the one-sided p that a model did not fall: where it did, half of the two-sided one."""
    sums = np.asarray(np.bincount(cluster, changes), np.float64)
    return sign_flip(sums) / 2 if changes.sum() < 0 else 1.0


def p_values(tests: Sequence[tuple[str, Floats, Indices]]) -> dict[str, float]:
    """Return model -> p that it did not fall in any of its tests, where it has a seed (Holm).

    ``tests``: a model, and `success_changes` at one N.
    """
    known = [test for test in tests if len(test[1])]
    corrected = holm([p_fell(changes, cluster) for _, changes, cluster in known])
    p: dict[str, float] = {}
    for (name, _, _), value in zip(known, corrected, strict=True):
        p[name] = min(value, p.get(name, 1.0))
    return p

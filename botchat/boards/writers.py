"""Files of tables: csv, Markdown, JSON, LaTeX, HTML, Parquet.

Every file holds the signatures of the numbers (DESIGN §4), a csv has them in one beside it.

A new format is a line of `WRITERS`, and a word in the choices of ``--format``.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import msgspec

from botchat.boards.tables import DIGITS, Table, fragment, one_line
from botchat.errors import ConfigError
from botchat.interfaces import round_floats

Content = str | bytes
"""Of a file; text is UTF-8."""

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


def tex(shown: Table) -> str:
    r"""LaTeX for ``\usepackage{booktabs}``: what people read, signatures in comments.

    ``T1`` fonts or XeLaTeX; names in other scripts need a font that has them.
    """
    names = [column.kind == "name" for column in shown.headline]
    columns = []
    for column in shown.headline:
        said = [_tex(cell) for cell in shown.written(column.key)]
        if column.kind != "name":
            said = [re.sub(r"^-(?=\d)", "$-$", cell) for cell in said]
        ends = [
            _tex(one) and rf" {{\scriptsize {{[}}{_tex(one)}{{]}}}}"
            for one in shown.told_ends(column)
        ]
        columns.append(list(map(str.__add__, said, ends)))
    heads = [_tex(column.heading) for column in shown.headline]
    note = [rf"\par\smallskip{{\footnotesize {_tex(shown.note)}\par}}"] if shown.note else []
    lines = [
        *(f"% {one_line(signature)}" for signature in shown.signatures),
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_tex(shown.title)}}}",
        rf"\label{{tab:{re.sub('[^A-Za-z0-9-]+', '-', shown.name)}}}",
        rf"\begin{{tabular}}{{@{{}}{''.join('l' if name else 'r' for name in names)}@{{}}}}",
        r"\toprule",
        rf"{' & '.join(heads)} \\",
        r"\midrule",
        *(rf"{' & '.join(row)} \\" for row in zip(*columns, strict=True)),
        r"\bottomrule",
        r"\end{tabular}",
        *note,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def html(shown: Table) -> str:
    """A page of one table, which any browser or word processor opens."""
    title = escape(one_line(shown.title))
    return f'<!doctype html>\n<meta charset="utf-8">\n<title>{title}</title>\n{fragment(shown)}\n'


def parquet(shown: Table) -> bytes:
    """The exact numbers; `described` is ``pandas.read_parquet(file).attrs``."""
    file = io.BytesIO()
    frame = shown.frame.copy()
    frame.attrs.update(described(shown).items())
    frame.to_parquet(file, index=False)
    return file.getvalue()


def described(shown: Table) -> dict[str, Any]:
    """What a reader of the numbers must know, JSON-ready: signatures, and what each column is."""
    columns = []
    for column in shown.columns:
        told = {key: getattr(column, key) for key in ("role", "of", "n")}
        always = {"key": column.key, "heading": column.heading, "kind": column.kind}
        columns.append(always | {k: v for k, v in told.items() if v not in ("", None)})
    return {
        "title": shown.title,
        "note": shown.note,
        "signatures": list(shown.signatures),
        "columns": columns,
    }


def _tex(text: str) -> str:
    return "".join(_TEX.get(char, char) for char in one_line(text))


def escape_formula(name: str) -> str:
    """A name that no spreadsheet runs (CWE-1236)."""
    name = one_line(name)
    return f"'{name}" if _FORMULA.match(name) else name


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is."""
    text = one_line(text).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*|\[\]])", r"\\\1", text)


@dataclass(frozen=True)
class Formats:
    """In which formats every table gets a file."""

    names: tuple[str, ...] = ("csv",)
    """Of `WRITERS`."""

    def __post_init__(self) -> None:
        """Refuse what nobody writes."""
        for name in self.names:
            if name not in WRITERS:
                raise ConfigError(f"--format {name}: give one of {', '.join(WRITERS)}")


def table_files(tables: Iterable[Table], formats: Formats | None = None) -> dict[str, Content]:
    """File name -> content, one for each table and format; with csv one ``meta.json`` of all."""
    shown, names = list(tables), (formats or Formats()).names
    files = {f"{one.name}.{form}": WRITERS[form](one) for one in shown for form in names}
    if "csv" in names:
        files["meta.json"] = to_json({one.name: described(one) for one in shown})
    return files


def document(title: str, notes: Iterable[str], tables: Iterable[Table]) -> str:
    """Markdown of several tables under one title, which no table repeats."""
    listed = "".join(f"- {note}\n" for note in notes)
    return "\n".join([f"# {title}\n", listed, *(_markdown(one, title) for one in tables)])


def to_json(value: Any) -> str:
    """JSON text of a JSON-ready value, readable, without NaN."""
    return msgspec.json.format(msgspec.json.encode(round_floats(value)), indent=1).decode() + "\n"


def _csv(shown: Table) -> str:
    """CSV of keys and exact numbers, as ``pandas.read_csv`` reads; nothing else is in it.

    A name that a spreadsheet would take for a formula gets a leading apostrophe.
    """
    frame = shown.frame.copy()
    for column in shown.columns:
        if column.kind == "name":
            frame[column.key] = frame[column.key].map(escape_formula, na_action="ignore")
        elif column.kind == "exact":
            frame[column.key] = frame[column.key].map(round_floats)
        elif column.kind != "count":
            frame[column.key] = frame[column.key].round(DIGITS)
    return str(frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n"))


def _markdown(shown: Table, title: str = "") -> str:
    """A heading that is not ``title``, a pipe table in columns, the note and the signatures."""
    names = [column.kind == "name" for column in shown.headline]
    rows = [[escape_markdown(column.heading) for column in shown.headline]]
    for cells in shown.cells_with_ends:
        rows.append(
            [escape_markdown(c) if name else c for c, name in zip(cells, names, strict=True)]
        )
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.ljust if name else str.rjust for name in names]
    rule = [("-" if name else ":").rjust(w, "-") for w, name in zip(widths, names, strict=True)]
    lines = [
        f"| {' | '.join(side(c, w) for side, c, w in zip(sides, row, widths, strict=True))} |"
        for row in (rows[0], rule, *rows[1:])
    ]
    notes = [shown.note, ""] if shown.note else []
    signatures = [f"`{one_line(signature)}`  " for signature in shown.signatures]
    above = [f"## {escape_markdown(shown.title)}", ""] if shown.title != title else []
    return "\n".join([*above, *lines, "", *notes, *signatures, ""])


WRITERS: Mapping[str, Callable[[Table], Content]] = {
    "csv": _csv,
    "md": _markdown,
    "json": lambda shown: to_json({"rows": shown.records, "signatures": [*shown.signatures]}),
    "tex": tex,
    "parquet": parquet,
    "html": html,
}
"""Ending of a file -> what makes a file of a table; `Formats` says which are wanted."""

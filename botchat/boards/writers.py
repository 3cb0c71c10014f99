"""A table for papers, notebooks and data frames: LaTeX, HTML, Parquet, and what describes a csv."""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botchat.boards.tables import Table

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")

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
    rows = [
        [cell if ends is None else f"{cell} {{\\scriptsize {ends}}}" for cell, ends in row]
        for row in _parted(shown)
    ]
    heads = [_tex(column.heading) for column in shown.headline]
    note = [rf"\par\smallskip{{\footnotesize {_tex(shown.note)}\par}}"] if shown.note else []
    lines = [
        *(f"% {_one_line(signature)}" for signature in shown.signatures),
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_tex(shown.title)}}}",
        rf"\label{{tab:{re.sub('[^A-Za-z0-9-]+', '-', shown.name)}}}",
        rf"\begin{{tabular}}{{@{{}}{''.join('l' if name else 'r' for name in names)}@{{}}}}",
        r"\toprule",
        rf"{' & '.join(heads)} \\",
        r"\midrule",
        *(rf"{' & '.join(row)} \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        *note,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def html(shown: Table) -> str:
    """A page of one table, which any browser or word processor opens."""
    title = escape(_one_line(shown.title))
    return f'<!doctype html>\n<meta charset="utf-8">\n<title>{title}</title>\n{fragment(shown)}\n'


def fragment(shown: Table) -> str:
    """The table as people read it, its note and signatures, to stand in a page; escaped."""
    sides = ["left" if column.kind == "name" else "right" for column in shown.headline]

    def row(tag: str, cells: list[str]) -> str:
        told = zip(cells, sides, strict=True)
        return "".join(
            f'<{tag} style="text-align:{side}"><bdi>{escape(_one_line(cell))}</bdi></{tag}>'
            for cell, side in told
        )

    body = "\n".join(f"<tr>{row('td', cells)}</tr>" for cells in shown.cells_with_ends)
    signed = "<br>".join(escape(_one_line(one)) for one in shown.signatures)
    signed = f"<p><code>{signed}</code></p>" if signed else ""
    note = f"<p>{escape(_one_line(shown.note))}</p>" if shown.note else ""
    return (
        f"<table>\n<caption>{escape(_one_line(shown.title))}</caption>\n"
        f"<thead><tr>{row('th', [column.heading for column in shown.headline])}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table>\n{note}{signed}"
    )


def parquet(shown: Table) -> bytes:
    """The exact numbers; `described` is ``pandas.read_parquet(file).attrs``."""
    file = io.BytesIO()
    frame = shown.frame.copy()
    frame.attrs.update(described(shown).items())
    frame.to_parquet(file, index=False)
    return file.getvalue()


def described(shown: Table) -> dict[str, Any]:
    """What a reader of the numbers must know, JSON-ready: signatures, and what each column is."""
    optional = ("role", "of", "n", "meaning")
    columns = [
        {
            "key": column.key,
            "heading": column.heading,
            "kind": column.kind,
            **{key: value for key in optional if (value := getattr(column, key)) not in ("", None)},
        }
        for column in shown.columns
    ]
    return {
        "title": shown.title,
        "note": shown.note,
        "signatures": list(shown.signatures),
        "columns": columns,
    }


def _parted(shown: Table) -> list[list[tuple[str, str | None]]]:
    """Cells for LaTeX, each with its interval if it has one."""
    columns = []
    for column in shown.headline:
        said = [_tex(cell) for cell in shown.written(column.key)]
        if column.kind != "name":
            said = [re.sub(r"^-(?=\d)", "$-$", cell) for cell in said]
        ends = [f"{{[}}{_tex(one)}{{]}}" if one else None for one in shown.told_ends(column)]
        columns.append(list(zip(said, ends, strict=True)))
    return [list(row) for row in zip(*columns, strict=True)]


def _tex(text: str) -> str:
    return "".join(_TEX.get(char, char) for char in _one_line(text))


def _one_line(text: str) -> str:
    return _CONTROL.sub(" ", text)

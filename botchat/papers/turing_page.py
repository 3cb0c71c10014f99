"""The exam's figure, and a page of its own that any browser opens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import pandas as pd

from botchat.boards.tables import Table, fragment
from botchat.interfaces import Row
from botchat.papers.turing_form import TRAPS
from botchat.report.figures import ink, rows
from botchat.report.figures.axes import Axis
from botchat.report.figures.chart import Chart, chart
from botchat.report.figures.sheet import Look, Sheet
from botchat.workspace import files


def chart_of(made: Sequence[Row], signed: str) -> Chart | None:
    """The first source's rows with an AUC (of several sources: all together), best first."""
    kept = [row for row in made if row["auc"] is not None]
    kept = [row for row in kept if row["source"] == kept[0]["source"]]
    if not kept:
        return None
    values = pd.DataFrame(kept).set_index("who")[["auc", "auc_low", "auc_high"]]
    values = values.sort_values("auc", ascending=False, kind="stable")
    n = sum(kept[-1][kind] for kind in ("machines", "people"))
    return chart(
        "exam", "Who tells machines from people",
        "How often a machine's chat is taken for more of one than a person's of the same source, "
        "as long as each other; lines are 95 % intervals by chat. .5 is telling nothing.",
        f"{n:,} chats", f"The exam, {kept[0]['source']}", [signed], _draw, values,
    )  # fmt: skip


def _draw(values: pd.DataFrame, look: Look) -> Sheet:
    axis = Axis("AUC", "{:.2g}".format, least=0.1)
    numbers = [0.5, *values.to_numpy(dtype=float).ravel().tolist()]
    drawn = rows.rows([*values.index], look, right=40, top=40, numbers=(axis, numbers), label="AUC")
    people = (ink.PEOPLE, 1.0)
    sheet, foot = drawn.sheet, drawn.top + len(values) * drawn.each
    sheet.key(
        0, [("dot", people, "people"), ("dot", ink.INK, "judge"), ("ring", ink.INK, "one number")]
    )
    sheet.line([(drawn.at(0.5), drawn.top), (drawn.at(0.5), foot)], ink.SOFT, 1, (1.5, 2.5))
    for row, (name, auc, low, high) in enumerate(values.itertuples()):
        y, shade = drawn.y(row), people if str(name).startswith("people (") else ink.INK
        sheet.line([(drawn.at(low), y), (drawn.at(high), y)], ink.BAR, 2.4)
        sheet.dot(drawn.at(auc), y, fill=shade, hollow=name in TRAPS)
        drawn.number(row, f"{auc:.2f}", bold=True)
    return sheet


def write(
    out: Path,
    title: str,
    said: Sequence[str],
    charts: Sequence[Chart],
    tables: Sequence[Table],
    also: Mapping[str, str],
) -> None:
    """A page beside the first of other files ``also``, and each figure as svg and png."""
    told = "".join(f"<p>{escape(line)}</p>\n" for line in said)
    shown = "\n".join(one.svg[one.svg.index("<svg") :] for one in charts)
    parts = "\n".join(f"<h2>{escape(one.title)}</h2>\n{fragment(one)}" for one in tables)
    page = (
        f'<!doctype html>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f"<h1>{escape(title)}</h1>\n{told}{shown}\n{parts}\n"
    )
    made: dict[str, str | bytes] = {**also, f"{next(iter(also)).partition('.')[0]}.html": page}
    for one in charts:
        made |= {f"{one.name}.svg": one.svg, f"{one.name}.png": one.png}
    files.write_all(out, made)

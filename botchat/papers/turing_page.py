"""The exam's figure, and a page of its own that any browser opens."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from botchat.boards.tables import Table, fragment
from botchat.interfaces import Row
from botchat.papers.turing_form import TRAPS
from botchat.report.figures import Chart, chart, rows, style
from botchat.report.figures.style import INK, Heading, tint
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


def _draw(values: pd.DataFrame, heading: Heading) -> Figure:
    names = list(values.index)
    beside = [rows.NumberColumn("AUC", values["auc"].tolist(), "{:.2f}")]
    people = style.people()
    key = [
        style.mark(people, "people", edge=people), style.mark(tint(INK), "judge"),
        style.mark("none", "one number alone"), style.interval_key(),
    ]  # fmt: skip
    figure, axes = rows.rows(names, heading, beside, key)
    y = np.arange(len(names))
    axes.hlines(y, values["auc_low"], values["auc_high"], color=tint(INK), linewidth=1.3)
    edges = [people if name.startswith("people (") else tint(INK) for name in names]
    faces = ["none" if n in TRAPS else edge for n, edge in zip(names, edges, strict=True)]
    axes.scatter(values["auc"], y, c=faces, edgecolors=edges, s=36, zorder=3)
    axes.axvline(0.5, color=tint(INK), linewidth=0.8, linestyle=":")
    style.label_x(axes, "AUC")
    return figure


def write(
    out: Path, title: str, said: Sequence[str], charts: Sequence[Chart], tables: Sequence[Table]
) -> None:
    """A page ``<name of the first table>.html``, and each figure as svg and png, in a folder."""
    told = "".join(f"<p>{escape(line)}</p>\n" for line in said)
    shown = "\n".join(one.svg[one.svg.index("<svg") :] for one in charts)
    parts = "\n".join(f"<h2>{escape(one.title)}</h2>\n{fragment(one)}" for one in tables)
    page = (
        f'<!doctype html>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f"<h1>{escape(title)}</h1>\n{told}{shown}\n{parts}\n"
    )
    made: dict[str, str | bytes] = {f"{tables[0].name.partition('-')[0]}.html": page}
    for one in charts:
        made |= {f"{one.name}.svg": one.svg, f"{one.name}.png": one.png}
    files.write_all(out, made)

"""SVG figures as elements of the page, so that its style sheet can recolour them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from botchat.report.figures import Chart


def inline(chart: Chart, number: int | str = 0) -> Markup:
    """A figure as an element of the page, with ids of its own.

    The prolog, the metadata and the style sheet, which would apply to the whole page, are removed.
    ``number`` tells figures of one name apart.
    """
    body = chart.svg[chart.svg.index("<svg") :]
    for part in ("metadata", "style"):
        body = re.sub(rf"<{part}\b.*?</{part}>\s*", "", body, flags=re.DOTALL)
    body = re.sub(r'(\sid="|url\(#|href="#)', rf"\1{chart.name}-{number}-", body)
    opening = (
        f'<svg role="img" aria-label="{escape(chart.title)}" '
        f'style="max-width: {chart.width_in * 96:.0f}px; min-width: {chart.width_in * 68:.0f}px"'
    )
    body = re.sub(r"^<svg\b.*?(?= viewBox=)", lambda _: opening, body, flags=re.DOTALL)
    return Markup(body)  # matplotlib's own XML: names in it are escaped

"""SVG figures inside the page: recoloured by its style sheet, out of each other's way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from botchat.report.figures import Chart


def inline(chart: Chart, number: int | str = 0) -> Markup:
    """A figure as an element of the page.

    Without the parts that are for documents of their own (prolog, metadata, a style sheet that
    would reach the whole page), and with ids that no other figure has; ``number`` tells figures of
    one name apart.
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

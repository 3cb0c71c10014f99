"""One figure of a board: what it says, and how it is drawn."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from botchat.report.figures import pictures
from botchat.report.figures.sheet import INCH, NARROW, Heading, Look, Sheet

_TOO_LOW = "--size: {} inches are too low for a title and a plot; leave the height out"


@dataclass(frozen=True)
class Chart:
    """One figure; it is drawn when it is first asked for."""

    name: str
    """File name without ending."""
    title: str
    """What it shows: of the eight, what was found."""
    caption: str
    """How to read it, and from how many comparisons."""
    heading: Heading
    plot: Callable[[Look], Sheet]
    question: str = ""
    """Of the eight on the page, what it answers."""
    width: float = NARROW
    """Inches."""
    on_page: bool = True
    """Else it is drawn where it is asked for by name."""

    def sheet(self, look: Look | None = None) -> Sheet:
        """It as it looks; `ConfigError` for a size that it does not fit into."""
        look = look or Look(self.width)

        def made(look: Look) -> Sheet:
            plain = self.plot(look)
            if look.bare:
                plain.heading = self.heading
                return plain
            return plain.headed(self.heading)

        sheet = made(look)
        if look.height is None:
            return sheet
        return made(look._replace(more=look.height * INCH - sheet.height))

    @cached_property
    def svg(self) -> str:
        """As a file has it."""
        return self.sheet().svg()

    @cached_property
    def png(self) -> bytes:
        """As a png."""
        return pictures.png(self.sheet())

    @cached_property
    def inline(self) -> str:
        """As the page has it, which says the rest: in its colours."""
        return self.sheet(Look(self.width, bare=True)).svg(of_page=True)


def chart(
    name: str,
    title: str,
    caption: str,
    count: str,
    where: str,
    signatures: Sequence[str],
    plot: Callable[..., Sheet],
    *data: Any,
    **chosen: Any,
) -> Chart:
    """The figure ``plot(*data, look)``; ``chosen``: the last fields of a `Chart`.

    ``count``: from how many comparisons or chats, the caption's last words; ``where``: of which set
    and by which judge.
    """
    count = re.sub(r"(^|\D )1 (\w+)s\b", r"\g<1>1 \2", count)  # one chat, not one chats
    heading = Heading(title, f"{where} · {count}", signatures)
    said = f"{caption} {count[0].upper()}{count[1:]}."
    return Chart(name, title, said, heading, partial(plot, *data), **chosen)

"""The page of an evaluation: tables, and every text's or pair's report."""

from __future__ import annotations

from collections.abc import Sequence

from botchat.boards.evaluation import Criterion
from botchat.report import script_digest, template, text

_OWN = (
    "\nheader { padding-top: 1.25rem; }"
    "\nh1, p, li { overflow-wrap: anywhere; }"
    "\nblockquote, .said { white-space: pre-wrap; overflow-wrap: anywhere; max-width: 52rem; }"
    "\nblockquote { margin: .4rem 0; padding-left: .8rem; border-left: 3px solid var(--edge); }"
    "\n.plain td.name { text-align: left; white-space: normal; overflow-wrap: anywhere; }"
    "\n.plain td.name { min-width: 9rem; }"
    "\narticle { border-top: 1px solid var(--grid); padding-top: .8rem; max-width: 60rem; }\n"
)


def render(title: str, notes: Sequence[str], criteria: Sequence[Criterion]) -> str:
    """The page as HTML text; it has no script, and nothing it shows can bring one."""
    style = text("page.css") + _OWN
    policy = (
        f"default-src 'none'; style-src {script_digest(style)}; base-uri 'none'; form-action 'none'"
    )
    return template("evaluation.html").render(
        title=title, notes=notes, criteria=criteria, style=style, policy=policy
    )

"""The page of the room to talk in; it is served only, never written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from botchat.records import N_SEED
from botchat.report import script_digest, template, text
from botchat.report.live import money

_SCRIPT = text("talk.js", __package__)

_LISTED = 1_000
"""Seeds whose ids are offered while one types; others can be typed."""

TURNS = 16
"""Utterances after which two models stop by themselves."""


@dataclass(frozen=True)
class Offer:
    """A model that can be talked to."""

    name: str
    what: str


def policy() -> str:
    """What the browser lets the page do: its own script, which asks this server."""
    return (
        f"default-src 'none'; script-src {script_digest(_SCRIPT)}; connect-src 'self'; "
        "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    )


def render(
    seed_set: str,
    offers: Sequence[Offer],
    seed_ids: Sequence[str],
    limits: Mapping[str, float | None],
    page: str,
) -> str:
    """The page as HTML text. ``limits``: as the flags name them; ``page``: of the leaderboard."""
    most = {
        "max_usd": " of {}".format(money(limits["max_usd"])) if limits["max_usd"] else "",
        "max_calls": f" of {limits['max_calls']:,}" if limits["max_calls"] else "",
        "max_tokens": f" of {limits['max_tokens']:,}" if limits["max_tokens"] else "",
    }
    return template("talk.html", __package__).render(
        seed_set=seed_set,
        offers=offers,
        seed_ids=seed_ids[:_LISTED],
        n_seed=N_SEED,
        turns=TURNS,
        most=most,
        page=page,
        style=text("live.css") + text("talk.css", __package__),
        script=_SCRIPT,
    )

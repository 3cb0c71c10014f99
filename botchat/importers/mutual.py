"""MuTual's raw test split as seeds (Cui et al., ACL 2020).

A file ``test_<n>.txt`` is JSON; ``article`` is a dialogue up to some utterance, with ``m :`` or
``f :`` before each. A dialogue that begins or repeats another is left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from botchat.errors import DataError
from botchat.records import N_SEED, Seed

MUTUAL_FILE = re.compile(r"(?!.*mutual_plus/)(?:(?:.*/)?test/)?test_([0-9]+)\.txt")
"""Names of items; mutual_plus holds the same dialogues."""
_MARK = re.compile(r"(?:^|\s)[mf] :(?=\s|$)")


def read_mutual(files: Mapping[str, bytes], where: str) -> list[Seed]:
    """Read seeds ``MT-<n>``, in the order of n, from items, name -> content.

    Raises DataError: not MuTual's layout, two items of one number, or no seed.
    """
    articles: dict[int, str] = {}
    for name, content in files.items():
        number = int(MUTUAL_FILE.sub(r"\1", name))
        if number in articles:
            raise DataError(f"{where}: MuTual item {number} occurs twice ({name}); remove one")
        articles[number] = _article(content, f"{where}: {name}")
    # Sorted, a text stands right before one that it begins; the blank ends a whole word.
    ordered = sorted((f"{text} ", -number) for number, text in articles.items())
    kept = sorted(
        -number
        for (text, number), (following, _) in zip(ordered, [*ordered[1:], ("", 0)], strict=False)
        if not following.startswith(text)
    )
    dialogues = {number: _MARK.split(articles[number])[1:] for number in kept}
    seeds = [
        Seed(f"MT-{number}", tuple(map(str.strip, texts)))
        for number, texts in dialogues.items()
        if len(texts) >= N_SEED
    ]
    if not seeds:
        raise DataError(f"{where}: no dialogue in MuTual's layout (test/test_<n>.txt)")
    return seeds


def _article(content: bytes, place: str) -> str:
    """Return the dialogue of an item, with single blanks."""
    try:
        article = " ".join(msgspec.json.decode(content)["article"].split())
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        article = ""
    if not _MARK.match(article) or not all(map(str.strip, _MARK.split(article)[1:])):
        raise DataError(
            f"{place}: no JSON object with 'article' of utterances, each after 'm :' or 'f :'; "
            "get the file again"
        )
    return article

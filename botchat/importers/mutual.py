"""MuTual's raw test split as seeds (Cui et al., ACL 2020), as its folders hold it.

One JSON file holds one question: ``article`` is a dialogue up to some utterance, in lower-cased
tokens, with ``m :`` or ``f :`` before each utterance. Several files ask about one dialogue: one
that begins another, or repeats it, is left out. ``seeds import mutual`` fetches BotChat's set of
these dialogues in readable English instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from botchat.errors import DataError
from botchat.records import N_SEED, Seed

_ITEM = re.compile(r"(?:(?:.*/)?test/)?test_([0-9]+)\.txt")
_MARK = re.compile(r"(?:^|\s)[mf] :(?=\s|$)")


def is_mutual_item(name: str) -> bool:
    """Whether a file is ``test_<n>.txt``, alone or in a folder ``test``."""
    # A folder mutual_plus holds the same dialogues under the same names.
    return _ITEM.fullmatch(name) is not None and "mutual_plus" not in name.split("/")


def from_mutual(files: Mapping[str, bytes], where: str) -> list[Seed]:
    """Make seeds ``MT-<n>``, in the order of n, from raw items, name -> content.

    ``where``: the folder, for messages. Raises `DataError` for an item that is not MuTual's layout,
    two items with one number, or no seed.
    """
    articles: dict[int, str] = {}
    for name in filter(is_mutual_item, files):
        number = int(_ITEM.sub(r"\1", name))
        if number in articles:
            raise DataError(f"{where}: MuTual item {number} is there twice ({name}); remove one")
        articles[number] = _article(files[name], f"{where}: {name}")
    # Sorted, a text stands right before one that it begins; the blank ends a whole word.
    ordered = sorted((f"{text} ", -number) for number, text in articles.items())
    kept = [
        -number
        for (text, number), (following, _) in zip(ordered, [*ordered[1:], ("", 0)], strict=False)
        if not following.startswith(text)
    ]
    told = {number: _MARK.split(articles[number])[1:] for number in sorted(kept)}
    seeds = [
        Seed(f"MT-{number}", tuple(text.strip() for text in texts))
        for number, texts in told.items()
        if len(texts) >= N_SEED
    ]
    if not seeds:
        raise DataError(
            f"{where}: no dialogue in MuTual's layout (test/test_<n>.txt, JSON with 'article'); "
            "give the folder that holds data/mutual/test"
        )
    return seeds


def _article(content: bytes, place: str) -> str:
    """The dialogue of an item, with single blanks."""
    try:
        article = msgspec.json.decode(content)["article"]
    except (msgspec.DecodeError, UnicodeError, RecursionError, KeyError, TypeError):
        raise DataError(f"{place}: not a JSON object with 'article'; get the file again") from None
    if not isinstance(article, str) or not all(map(str.strip, _MARK.split(f" {article}")[1:])):
        raise DataError(f"{place}: 'article' has an utterance without text; get the file again")
    article = " ".join(article.split())
    if not _MARK.match(article):
        raise DataError(
            f"{place}: 'article' begins with {article[:20]!r}, not with a speaker mark "
            "('m :' or 'f :'); get the file again"
        )
    return article

"""How a language pack's labels frame what a judge is shown, and what verdicts are written as.

English labels are read beside the pack's, since judges fall back on them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from botchat import languages
from botchat.languages import PLAIN, Language
from botchat.protocols.verdicts import any_of
from botchat.protocols.wording import ENGLISH, Wording


@lru_cache(maxsize=16)
def wording(language: Language) -> Wording:
    """The frame of a language."""
    if language.english:
        return ENGLISH
    labels = language.labels
    before = r"(?<![^\W\d_])" if language.pack.units == "words" else "(?<![A-Za-z])"
    mark = any_of(("choice", "index", "reason", *labels.choice, *labels.index, *labels.reason))
    shown = any_of(word for word in (*labels.first, *labels.second) if len(word) > 1)
    end = re.escape(labels.end.strip("<>[]() "))
    return Wording(
        labels.end,
        plain=PLAIN,
        frame_like=re.compile(
            rf"<\s*/?\s*(?:{end}|chat[_\s-]*end)\s*>"
            rf"|(?P<colon>{before}(?:{mark})[\"'*_ \t\]]*"
            r"|^[ \t>*_#-]*[AB][*_]*[ \t]*):"
            rf"|^[ \t>*_#]*(?P<label>{shown})(?=[ \t]*(?::|$))",
            re.IGNORECASE | re.MULTILINE,
        ),
    )


def places(language: Language) -> dict[str, str]:
    """What UniEval's verdict is written as -> ``yes`` or ``no``; the pack's words decide."""
    return _verdicts(language, {"yes": "yes", "no": "no"})


def choices(language: Language) -> dict[str, str]:
    """What a choice between two conversations is written as -> the verdict; as `places`."""
    return _verdicts(language, _CHOICES)


def asked_choices(language: Language) -> tuple[str, ...]:
    """What a judge is asked to write for the first, the second, both and neither."""
    return tuple(getattr(language.labels, key)[0] for key in _CHOICES)


_CHOICES = {"first": "1", "second": "2", "both": "both", "neither": "neither"}


def _verdicts(language: Language, keys: Mapping[str, str]) -> dict[str, str]:
    return {
        word: verdict
        for one in (languages.ENGLISH, language)
        for key, verdict in keys.items()
        for word in getattr(one.labels, key)
    }

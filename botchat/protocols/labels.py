"""How a language pack's labels frame what a judge is shown, and how its verdicts are written.

English labels are read beside the pack's, since judges fall back on them. Full-width digits,
letters and marks are read as the plain ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from botchat.prompts.languages import PLAIN, Language
from botchat.protocols.wording import ENGLISH, Wording


@lru_cache(maxsize=16)
def wording(language: Language) -> Wording:
    """The frame and the labels of a language."""
    if language.english:
        return ENGLISH
    labels = language.labels
    before = r"(?<![^\W\d_])" if language.pack.units == "words" else "(?<![A-Za-z])"
    marks = r"[\"'`*_~\s\[\]]*"
    choice = any_of(("choice", *labels.choice))
    index = any_of(("index", *labels.index))
    reason = any_of(("reason", *labels.reason))
    numerals = any_of(labels.numerals)
    signs = re.escape("".join(sorted(set("".join(labels.numerals)))))
    number = rf"-?\d+(?!\d|[{signs}])|(?:{numerals})(?![{signs}\d])" if signs else r"-?\d+"
    ordinal = rf"(?:{any_of(labels.ordinal)})?{marks}" if labels.ordinal else ""
    shown = any_of(word for word in (*labels.first, *labels.second) if len(word) > 1)
    end = re.escape(labels.end.strip("<>[]() "))
    return Wording(
        labels.end,
        choice=re.compile(
            rf"{before}(?:{choice}){marks}[:=]{marks}"
            rf"(?P<choice>(?:(?!{before}(?:{index}|{reason}){marks}[:=])[^\n;,.(}}\"'`*\u2013\u2014])*)",
            re.IGNORECASE,
        ),
        index=re.compile(
            rf"{before}(?:{index}){marks}[:=]{marks}{ordinal}(?P<index>{number}|[^\n;,}}]*)",
            re.IGNORECASE,
        ),
        reason=re.compile(
            rf"{before}(?:{reason}){marks}[:=]\s*(?P<reason>.*)", re.IGNORECASE | re.DOTALL
        ),
        json_value=re.compile(
            rf"(?<!\\)\"(?:(?P<choice>{choice})|(?P<index>{index}))\"\s*:\s*\"?(?P<value>[^\",}}\n]*)",
            re.IGNORECASE,
        ),
        fields={
            name.casefold(): key
            for key in ("choice", "index", "reason")
            for name in (key, *getattr(labels, key))
        },
        names=(labels.choice[0], labels.index[0], labels.reason[0]),
        numerals={word: n for n, word in enumerate(labels.numerals, 1)},
        plain=PLAIN,
        frame_like=re.compile(
            rf"<\s*/?\s*(?:{end}|chat[_\s-]*end)\s*>"
            rf"|(?P<colon>{before}(?:{choice}|{index}|{reason})[\"'*_ \t\]]*"
            r"|^[ \t>*_#-]*[AB][*_]*[ \t]*):"
            rf"|^[ \t>*_#]*(?P<label>{shown})(?=[ \t]*(?::|$))",
            re.IGNORECASE | re.MULTILINE,
        ),
        spaced=language.pack.units == "words",
    )


def places(language: Language) -> dict[str, str]:
    """What UniEval's verdict is written as -> ``yes`` or ``no``; the pack's words decide."""
    return {"yes": "yes", "no": "no"} | _verdicts(language, {"yes": "yes", "no": "no"})


def choices(language: Language) -> dict[str, str]:
    """What a choice between two conversations is written as -> the verdict; as `places`."""
    return _AS_JUDGES_WRITE | _verdicts(language, _CHOICES)


def asked_choices(language: Language) -> tuple[str, ...]:
    """What a judge is asked to write for the first, the second, both and neither."""
    return tuple(getattr(language.labels, key)[0] for key in _CHOICES)


_CHOICES = {"first": "1", "second": "2", "both": "both", "neither": "neither"}

_AS_JUDGES_WRITE: dict[str, str] = {
    **dict.fromkeys(("Conversation 1", "conversation1", "1", "conversation one"), "1"),
    **dict.fromkeys(("Conversation 2", "conversation2", "2", "conversation two"), "2"),
    **dict.fromkeys(("Both", "both conversations"), "both"),
    **dict.fromkeys(("Neither", "neither conversation"), "neither"),
}
"""The English labels, and what judges make of them."""


def _verdicts(language: Language, keys: Mapping[str, str]) -> dict[str, str]:
    if language.english:
        return {}
    return {
        word: verdict for key, verdict in keys.items() for word in getattr(language.labels, key)
    }


def any_of(words: Iterable[str]) -> str:
    """A pattern of the words, longest first; blanks in them may be any, or none."""
    plain = sorted({word.translate(PLAIN) for word in words}, key=lambda word: (-len(word), word))
    return "|".join(re.sub(r"(?:\\\s)+", r"\\s*", re.escape(word)) for word in plain)

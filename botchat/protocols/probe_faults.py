"""Mechanical rewriting of English utterances, for planted faults.

Each function returns ``None`` where its rule does not apply; it never changes a part only. Its
sentences and word lists are in ``probe_faults.toml``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import resources
from random import Random

_DATA = tomllib.loads(resources.files(__package__).joinpath("probe_faults.toml").read_text("utf-8"))

AI_PHRASES: list[str] = _DATA["ai_phrases"]
FORMAL_OPENERS: list[str] = _DATA["formal_openers"]
FORMAL_CLOSERS: list[str] = _DATA["formal_closers"]
_RAMBLING: list[str] = _DATA["rambling"]
_OPENERS: list[str] = _DATA["openers"]
_TAGS: list[str] = _DATA["tags"]
_QUESTION_TAGS: list[str] = _DATA["question_tags"]
_STIFF: dict[str, str] = _DATA["stiff"]
_BASE: dict[str, str] = _DATA["base"]
_KINDS: list[list[str]] = _DATA["kinds"]
_LINKING = frozenset(_DATA["linking"].split())
_COMMON_FIRST = frozenset(_DATA["common_first"].split())

LONG_WORDS = 100
"""Words that an overlong utterance has at least: nobody in a conversation speaks that long."""

_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\bMr\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bMrs\.)\s+")

_NOT_ASKED = r"(?! (?:i|you|he|she|it|we|they|this|that|there)\b)"
_EXPANDED = tuple(
    (re.compile(rf"\b{pattern.replace('<not asked>', _NOT_ASKED)}\b", re.IGNORECASE), full)
    for pattern, full in _DATA["expansions"]
)


def near_repetition(text: str, rng: Random) -> str:
    """The same words in the same order after an opener, with a tag before the last mark."""
    body = text.strip()
    end = body[-1] if body[-1] in ".!?" else ""
    tags = _QUESTION_TAGS if end == "?" else _TAGS
    inner = body.rstrip(".!? ") or body
    return f"{rng.choice(_OPENERS)} {_lowered(inner)}, {rng.choice(tags)}{end or '.'}"


def ai(text: str, rng: Random) -> str:
    """The text after a sentence that gives the speaker away as a program."""
    return f"{rng.choice(AI_PHRASES)} {text}"


def overlong(text: str, rng: Random) -> str:
    """The text, then rambling sentences until it has `LONG_WORDS` words."""
    said = [text.strip()]
    for sentence in rng.sample(_RAMBLING, len(_RAMBLING)):
        if len(_WORD.findall(" ".join(said))) >= LONG_WORDS:
            break
        said.append(sentence)
    return " ".join(said)


def formal(text: str, rng: Random) -> str:
    """The text without contractions, in stiff words, between two sentences of a formal letter."""
    for pattern, full in _EXPANDED:
        text = pattern.sub(partial(_expanded, full), text)
    stiff = _WORD.sub(lambda match: _cased(_STIFF.get(match[0].lower(), match[0]), match[0]), text)
    return f"{rng.choice(FORMAL_OPENERS)} {stiff.strip()} {rng.choice(FORMAL_CLOSERS)}"


_BE_OR_MODAL = "am|is|are|was|were|can|could|will|would|should|must"
_PERFECT = (
    r"(?:been|got|seen|done|had|made|gone|taken|heard|found|bought|lost|left|told|met|read|known"
    r"|\w{2,}ed)"
)
_OBJECT = r"(?=(?:an?|the|my|your|his|her|our|their|some|enough|to)\b)"
_SUBJECT = (
    r"(?P<subject>i|you|we|they|he|she|it|this|that|there"
    r"|(?:my|your|our|his|her|their|the) \w+)"
)
_LED = (
    r"(?:(?:well|but|and|so|yes|yeah|no|oh|actually|sorry|because|okay|ok|sure|anyway|you know)"
    r"(?:,|\.)? )*"
)
_NEGATIONS = re.compile(r"\b(?:not|never|no|nothing|nobody|none|nor|cannot|if|whether)\b|n't")
_PRESENT = (
    "like|love|want|need|know|think|live|work|have|feel|believe|remember|go|play|agree|prefer"
    "|enjoy|hate|look|see|hear|eat|drink"
)

_NEGATORS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"{_LED}{_SUBJECT}{verb}", re.IGNORECASE), negated)
    for verb, negated in (
        (r"(?P<verb>'m|'re|(?<=it|he|at|is|re)'s) (?!been\b|got\b)", r"{subject}{verb} not "),
        (r"(?P<verb>'ll) ", r"{subject} won't "),
        (r"(?P<verb>'ve) (?!to\b)", r"{subject} haven't "),
        (rf" (?P<verb>{_BE_OR_MODAL}) ", r"{subject} {verb} not "),
        (rf" (?P<verb>have|has|had) (?={_PERFECT}\b)", r"{subject} {verb} not "),
        (rf" (?P<verb>{_PRESENT}) ", r"{subject} don't {verb} "),
        (rf" (?P<verb>has|had) {_OBJECT}", r"{subject} {do} have "),
        (rf" (?P<verb>{'|'.join(_BASE)}) ", r"{subject} {do} {base} "),
    )
)


def contradiction(text: str) -> str | None:
    """A statement in ``text`` that can be negated by rule, as a sentence of its own, negated.

    The first one: a plain subject with its verb, without any negation, condition or question.
    """
    for sentence in _SENTENCE_END.split(text.strip().replace("\u2019", "'")):
        if sentence.endswith("?") or _NEGATIONS.search(sentence.lower()):
            continue
        for pattern, form in _NEGATORS:
            match = pattern.match(sentence)
            if match:
                verb = match["verb"].lower()
                do = "doesn't" if verb.endswith("s") else "didn't"
                head = form.format(
                    subject=_subject(match["subject"]), verb=verb, do=do, base=_BASE.get(verb, "")
                )
                rest = sentence[match.end() :]
                return f"{head[0].upper()}{head[1:]}{rest}" if _WORD.search(rest) else None
    return None


_BEFORE = re.compile(r"(?:[$\u00a3\u20ac]|\b[^\W\d_]+) ?$")
_AFTER = re.compile(r" ?(?:%|[^\W\d_][\w'\u2019]*)")
_FACT = re.compile(
    rf"\b(?:{'|'.join(word for kind in _KINDS for word in kind)})\b"
    r"|(?<![\w:.,])\d{1,4}(?:(?::\d\d)|(?:\.\d\d?))?(?![\w:]|[.,]\d)",
    re.IGNORECASE,
)


def wrong_fact(text: str, earlier: Sequence[str], rng: Random) -> str | None:
    """``text`` with another number, time, weekday or month in place of one mentioned before.

    A bare number counts as mentioned before only beside the same word (``two hours``). Every
    mention of it in ``text`` changes, to a value that was not mentioned.
    """
    here = _facts(text)
    before = _facts("\n".join(earlier))
    known = [fact for fact, beside in here.items() if beside & before.get(fact, frozenset())]
    for fact in rng.sample(known, len(known)):
        others = [other for other in _others(fact) if other.lower() not in {*here, *before}]
        if others:
            return _FACT.sub(partial(_changed, fact, rng.choice(others)), text)
    return None


def n_words(text: str) -> int:
    """Number of words."""
    return len(_WORD.findall(text))


def _facts(text: str) -> dict[str, frozenset[str]]:
    """Fact in lower case -> words beside it; for a name or clock time also the fact itself."""
    found: dict[str, frozenset[str]] = {}
    for match in _FACT.finditer(text):
        fact = match[0].lower()
        before = _BEFORE.search(text[max(0, match.start() - 30) : match.start()])
        after = _AFTER.match(text[match.end() :])
        beside = {f"{before[0].strip().lower()} _"} if before else set()
        beside |= {f"_ {after[0].strip().lower()}"} if after else set()
        beside = {words for words in beside if words.strip("_ ") not in _LINKING}
        itself = {fact} if ":" in fact or any(fact.capitalize() in kind for kind in _KINDS) else ()
        found[fact] = found.get(fact, frozenset()) | beside | frozenset(itself)
    return found


def _others(fact: str) -> Iterator[str]:
    for kind in _KINDS:
        if fact in (word.lower() for word in kind):
            yield from (word for word in kind if word.lower() != fact)
            return
    yield from other_numbers(fact)


def other_numbers(fact: str) -> Iterator[str]:
    """Numbers, or clock times, that can stand for one."""
    whole, mark, rest = fact.partition(":" if ":" in fact else ".")
    # An hour stays between 2 and 12; any other number keeps its order of magnitude.
    steps = (1, 2, 3, -1, -2) if ":" in fact else (1, 2, 3, 5, -1, -2)
    size = 10 ** max(0, len(whole.lstrip("0")) - 2)
    for step in steps:
        value = int(whole) + step * size
        if value > 1 and not (mark == ":" and value > 12):
            yield f"{value}{mark}{rest}"


def _changed(old: str, new: str, match: re.Match[str]) -> str:
    return _cased(new, match[0]) if match[0].lower() == old else match[0]


def _cased(word: str, like: str) -> str:
    """``word`` with a capital where ``like`` has one."""
    return f"{word[0].upper()}{word[1:]}" if like[0].isupper() else word


def _expanded(full: str, match: re.Match[str]) -> str:
    return _cased(match.expand(full), match[0])


def _subject(words: str) -> str:
    return "I" if words.lower() == "i" else f"{words[0].lower()}{words[1:]}"


def _lowered(text: str) -> str:
    """``text`` with a small first letter, unless the first word may be a name."""
    first = _WORD.match(text)
    if first is None or re.split("['\u2019]", first[0].lower())[0] not in _COMMON_FIRST:
        return text
    return f"{text[0].lower()}{text[1:]}"

"""Mechanical rewriting of utterances, for planted faults, with the sentences of a language pack.

Words stand for words, and nothing is inflected; English has rules of its own for what that would
make ungrammatical. A method returns ``None`` where its rule does not apply; it never changes a part
only. Every change here changes the probes of a set.

A new fault is a line of `botchat.protocols.probe.FAULTS`, and a method here if it changes words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from random import Random

from botchat.languages import Faults, Grammar, Language
from botchat.languages.text import longest, split

LONG_WORDS = 100
"""Words that an overlong utterance has at least: nobody in a conversation speaks that long."""

CHARACTERS_A_WORD = 1.6
"""Where each character counts as one: about as many say what one English word says."""

_ENDS = ".!?\u3002\uff01\uff1f\u2026"
_ASKED = ("?", "\uff1f", "\u061f")
_SENTENCE = re.compile(rf"[^{_ENDS}\n]+[{_ENDS}]*")
_NUMBER = r"(?<![\d:.,])\d{1,4}(?::\d\d|\.\d\d?)?(?![\d:]|[.,]\d)"

Facts = dict[str, frozenset[str]]
"""Number or name, in lower case -> what one must have in common to be the same: words beside it."""


@lru_cache(maxsize=8)
def planter(language: Language) -> Planter:
    """Of a language; raises `ConfigError` if its pack has no sentences to plant."""
    faults = language.faults
    return Planter(language) if faults.grammar is None else _English(language, faults.grammar)


class Planter:
    """The rules of any language."""

    def __init__(self, language: Language) -> None:
        self.told: Faults = language.faults
        self.joint = language.joint
        self._spaced = language.pack.units == "words"
        self._stiff = {word.casefold(): other for word, other in self.told.stiff.items()}
        self._negated = {word.casefold(): other for word, other in self.told.negated.items()}

    def n_words(self, text: str) -> int:
        """Number of words; of characters, as many as say the same."""
        n = len(split(text.lower(), self._spaced))
        return n if self._spaced else int(n / CHARACTERS_A_WORD)

    def ai(self, text: str, rng: Random) -> str:
        """The text after a sentence that gives the speaker away as a program."""
        return f"{rng.choice(self.told.ai_phrases)}{self.joint}{text}"

    def near_repetition(self, text: str, rng: Random) -> str:
        """The same words in the same order after an opener, with a tag before the last mark."""
        body = text.strip()
        inner = body.rstrip(_ENDS)
        tag = rng.choice(self.told.question_tags if body.endswith(_ASKED) else self.told.tags)
        return f"{rng.choice(self.told.openers)}{self.joint}{inner}{tag}{body[len(inner) :]}"

    def overlong(self, text: str, rng: Random) -> str:
        """The text, then rambling sentences until it is as long as nobody speaks."""
        said, rambling = [text.strip()], self.told.rambling
        for sentence in rng.sample(rambling, len(rambling)):
            if self.n_words(" ".join(said)) >= LONG_WORDS:
                break
            said.append(sentence)
        return self.joint.join(said)

    def formal(self, text: str, rng: Random) -> str:
        """The text in stiff words, between two sentences of a formal letter."""
        opener, closer = rng.choice(self.told.formal_openers), rng.choice(self.told.formal_closers)
        return self.joint.join((opener, self.stiffened(text).strip(), closer))

    def stiffened(self, text: str) -> str:
        """The text in stiff words."""
        stiff = self._any_of(self._stiff)
        return stiff.sub(lambda match: self._stiff[match[0].casefold()], text)

    def contradiction(self, text: str) -> str | None:
        """The first statement in ``text`` that the pack can deny, as a sentence of its own, denied.

        One without any negation, condition or question.
        """
        for match in _SENTENCE.finditer(text) if self._negated else ():
            sentence = match[0].strip()
            low = sentence.casefold()
            if low.endswith(_ASKED) or any(no.casefold() in low for no in self.told.negations):
                continue
            if found := self._any_of(self._negated).search(sentence):
                said = _cased(self._negated[found[0].casefold()], found[0])
                return f"{sentence[: found.start()]}{said}{sentence[found.end() :]}"
        return None

    def wrong_fact(self, text: str, earlier: Sequence[str], rng: Random) -> str | None:
        """``text`` with another number, time, day or month in place of one mentioned before.

        A bare number counts as mentioned before only beside the same word (``two hours``). Every
        mention of it in ``text`` changes, to a value that was not mentioned.
        """
        here, before = self.facts(text), self.facts("\n".join(earlier))
        known = [fact for fact, same in here.items() if same & before.get(fact, frozenset())]
        for fact in rng.sample(known, len(known)):
            others = [one for one in self._others(fact) if one.lower() not in {*here, *before}]
            if others:
                return self.fact.sub(partial(_changed, fact, rng.choice(others)), text)
        return None

    @cached_property
    def fact(self) -> re.Pattern[str]:
        """Finds numbers, times and names of one kind."""
        words = self._any_of(word for kind in self.told.kinds for word in kind).pattern
        return re.compile(rf"{words}|{_NUMBER}", re.IGNORECASE)

    def facts(self, text: str) -> Facts:
        """Facts of a text, a number with what it counts: the word, or character, behind it."""
        found: Facts = {}
        for match in self.fact.finditer(text):
            behind = split(text[match.end() : match.end() + 20].lower(), self._spaced)
            counted = behind[0] if match[0][0].isdigit() and behind else ""
            fact = match[0].lower()
            found[fact] = found.get(fact, frozenset()) | {counted}
        return dict(sorted(found.items()))

    def _others(self, fact: str) -> Iterator[str]:
        for kind in self.told.kinds:
            if fact in (word.lower() for word in kind):
                yield from (word for word in kind if word.lower() != fact)
                return
        yield from _other_numbers(fact)

    def _any_of(self, words: Iterable[str]) -> re.Pattern[str]:
        said = "|".join(map(re.escape, longest(words))) or "(?!)"
        return re.compile(rf"(?<!\w)(?:{said})(?!\w)" if self._spaced else said, re.IGNORECASE)


def _other_numbers(fact: str) -> Iterator[str]:
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


def _expanded(full: str, match: re.Match[str]) -> str:
    return _cased(match.expand(full), match[0])


def _cased(word: str, like: str) -> str:
    """``word`` with a capital where ``like`` has one."""
    return f"{word[0].upper()}{word[1:]}" if like[0].isupper() else word


# --------------------------------------------------------------------------------- English

_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\bMr\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bMrs\.)\s+")
_NOT_ASKED = r"(?! (?:i|you|he|she|it|we|they|this|that|there)\b)"
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

_NEGATORS: tuple[tuple[str, str], ...] = (
    (r"(?P<verb>'m|'re|(?<=it|he|at|is|re)'s) (?!been\b|got\b)", "{subject}{verb} not "),
    (r"(?P<verb>'ll) ", "{subject} won't "),
    (r"(?P<verb>'ve) (?!to\b)", "{subject} haven't "),
    (rf" (?P<verb>{_BE_OR_MODAL}) ", "{subject} {verb} not "),
    (rf" (?P<verb>have|has|had) (?={_PERFECT}\b)", "{subject} {verb} not "),
    (rf" (?P<verb>{_PRESENT}) ", "{subject} don't {verb} "),
    (rf" (?P<verb>has|had) {_OBJECT}", "{subject} {do} have "),
    (" (?P<verb>{bases}) ", "{subject} {do} {base} "),
)
"""What follows the subject -> the same, denied; the first that fits counts."""

_BEFORE = re.compile(r"(?:[$\u00a3\u20ac]|\b[^\W\d_]+) ?$")
_AFTER = re.compile(r" ?(?:%|[^\W\d_][\w'\u2019]*)")


class _English(Planter):
    """English, with contractions, inflected verbs and capitals."""

    def __init__(self, language: Language, grammar: Grammar) -> None:
        super().__init__(language)
        self._base, self._linking = grammar.base, frozenset(grammar.linking)
        self._common_first = frozenset(grammar.common_first)
        self._expansions = [
            (re.compile(rf"\b{short.replace('{not asked}', _NOT_ASKED)}\b", re.IGNORECASE), full)
            for short, full in grammar.expansions
        ]
        bases = "|".join(self._base)
        self._negators = [
            (re.compile(rf"{_LED}{_SUBJECT}{verb.replace('{bases}', bases)}", re.IGNORECASE), form)
            for verb, form in _NEGATORS
        ]

    def n_words(self, text: str) -> int:
        return len(_WORD.findall(text))

    def near_repetition(self, text: str, rng: Random) -> str:
        body = text.strip()
        end = body[-1] if body[-1] in ".!?" else ""
        inner = body.rstrip(".!? ") or body
        # A small first letter, unless the first word may be a name.
        first = _WORD.match(inner)
        if first and re.split("['\u2019]", first[0].lower())[0] in self._common_first:
            inner = f"{inner[0].lower()}{inner[1:]}"
        opener = rng.choice(self.told.openers)
        tag = rng.choice(self.told.question_tags if end == "?" else self.told.tags)
        return f"{opener} {inner}{tag}{end or '.'}"

    def stiffened(self, text: str) -> str:
        for pattern, full in self._expansions:
            text = pattern.sub(partial(_expanded, full), text)
        return _WORD.sub(
            lambda match: _cased(self._stiff.get(match[0].lower(), match[0]), match[0]), text
        )

    def contradiction(self, text: str) -> str | None:
        for sentence in _SENTENCE_END.split(text.strip().replace("\u2019", "'")):
            if sentence.endswith("?") or _NEGATIONS.search(sentence.lower()):
                continue
            for pattern, form in self._negators:
                if match := pattern.match(sentence):
                    rest = sentence[match.end() :]
                    return self._denied(match, form) + rest if _WORD.search(rest) else None
        return None

    def _denied(self, match: re.Match[str], form: str) -> str:
        verb, subject = match["verb"].lower(), match["subject"]
        subject = "I" if subject.lower() == "i" else f"{subject[0].lower()}{subject[1:]}"
        do = "doesn't" if verb.endswith("s") else "didn't"
        return _cased(
            form.format(subject=subject, verb=verb, do=do, base=self._base.get(verb)), "A"
        )

    @cached_property
    def fact(self) -> re.Pattern[str]:
        words = "|".join(word for kind in self.told.kinds for word in kind)
        number = r"(?<![\w:.,])\d{1,4}(?:(?::\d\d)|(?:\.\d\d?))?(?![\w:]|[.,]\d)"
        return re.compile(rf"\b(?:{words})\b|{number}", re.IGNORECASE)

    def facts(self, text: str) -> Facts:
        """Fact -> words beside it; for a name or clock time also the fact itself."""
        found: Facts = {}
        for match in self.fact.finditer(text):
            fact = match[0].lower()
            before = _BEFORE.search(text[max(0, match.start() - 30) : match.start()])
            after = _AFTER.match(text[match.end() :])
            beside = {f"{before[0].strip().lower()} _"} if before else set()
            beside |= {f"_ {after[0].strip().lower()}"} if after else set()
            beside = {words for words in beside if words.strip("_ ") not in self._linking}
            if ":" in fact or any(fact.capitalize() in kind for kind in self.told.kinds):
                beside.add(fact)
            found[fact] = found.get(fact, frozenset()) | beside
        return found

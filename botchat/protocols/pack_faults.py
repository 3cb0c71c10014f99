"""Mechanical rewriting of utterances with the sentences of a language pack; see `probe_faults`.

The rules are simpler: words stand for words, and nothing is inflected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from random import Random

from botchat.languages import Faults, Language
from botchat.measures.pack_text import longest, split
from botchat.protocols import probe_faults

CHARACTERS_A_WORD = 1.6
"""Where each character counts as one: about as many say what one English word says."""

_ENDS = ".!?\u3002\uff01\uff1f\u2026"
_ASKED = ("?", "\uff1f", "\u061f")
_SENTENCE = re.compile(rf"[^{_ENDS}\n]+[{_ENDS}]*")
_NUMBER = r"(?<![\d:.,])\d{1,4}(?::\d\d|\.\d\d?)?(?![\d:]|[.,]\d)"


@dataclass(frozen=True)
class PackFaults:
    """Mechanical rewriting in one language; as the functions of `probe_faults`."""

    language: Language

    def __post_init__(self) -> None:
        """Raise `ConfigError` if the pack has no sentences to plant."""
        assert self._told

    def n_words(self, text: str) -> int:
        """Number of words; of characters, as many as say the same."""
        n = len(split(text.lower(), self._spaced))
        return n if self._spaced else int(n / CHARACTERS_A_WORD)

    def ai(self, text: str, rng: Random) -> str:
        """The text after a sentence that gives the speaker away as a program."""
        return f"{rng.choice(self._told.ai_phrases)}{self.language.joint}{text}"

    def near_repetition(self, text: str, rng: Random) -> str:
        """The same words in the same order after an opener, with a tag before the last mark."""
        body = text.strip()
        inner = body.rstrip(_ENDS)
        asks = body.endswith(_ASKED)
        tag = rng.choice(self._told.question_tags if asks else self._told.tags)
        return (
            f"{rng.choice(self._told.openers)}{self.language.joint}{inner}{tag}{body[len(inner) :]}"
        )

    def overlong(self, text: str, rng: Random) -> str:
        """The text, then rambling sentences until it is as long as nobody speaks."""
        said, rambling = [text.strip()], self._told.rambling
        for sentence in rng.sample(rambling, len(rambling)):
            if self.n_words(" ".join(said)) >= probe_faults.LONG_WORDS:
                break
            said.append(sentence)
        return self.language.joint.join(said)

    def formal(self, text: str, rng: Random) -> str:
        """The text in stiff words, between two sentences of a formal letter."""
        stiff = {word.casefold(): other for word, other in self._told.stiff.items()}
        if stiff:
            text = self._any_of(stiff).sub(lambda match: stiff[match[0].casefold()], text)
        told = self._told
        parts = (rng.choice(told.formal_openers), text.strip(), rng.choice(told.formal_closers))
        return self.language.joint.join(parts)

    def contradiction(self, text: str) -> str | None:
        """The first statement in ``text`` that the pack can deny, denied."""
        negated = {word.casefold(): other for word, other in self._told.negated.items()}
        for match in _SENTENCE.finditer(text) if negated else ():
            sentence = match[0].strip()
            low = sentence.casefold()
            if low.endswith(_ASKED) or any(no.casefold() in low for no in self._told.negations):
                continue
            if found := self._any_of(negated).search(sentence):
                said = negated[found[0].casefold()]
                return f"{sentence[: found.start()]}{said}{sentence[found.end() :]}"
        return None

    def wrong_fact(self, text: str, earlier: Sequence[str], rng: Random) -> str | None:
        """``text`` with another number, day or month in place of one mentioned before."""
        here, before = (self._facts(said) for said in (text, "\n".join(earlier)))
        known = sorted({fact for fact, _ in here & before})
        mentioned = {fact for fact, _ in here | before}
        for fact in rng.sample(known, len(known)):
            if others := [other for other in self._others(fact) if other not in mentioned]:
                return self._fact.sub(partial(_changed, fact, rng.choice(others)), text)
        return None

    @property
    def _told(self) -> Faults:
        return self.language.faults

    @property
    def _spaced(self) -> bool:
        return self.language.pack.units == "words"

    @cached_property
    def _fact(self) -> re.Pattern[str]:
        words = self._any_of([word for kind in self._told.kinds for word in kind]).pattern
        return re.compile(rf"{words}|{_NUMBER}" if self._told.kinds else _NUMBER)

    def _facts(self, text: str) -> set[tuple[str, str]]:
        """Facts of a text, a number with what it counts: the word, or character, behind it."""
        found = set()
        for match in self._fact.finditer(text):
            behind = split(text[match.end() : match.end() + 20].lower(), self._spaced)
            counted = behind[0] if match[0][0].isdigit() and behind else ""
            found.add((match[0], counted))
        return found

    def _others(self, fact: str) -> Iterator[str]:
        for kind in self._told.kinds:
            if fact in kind:
                yield from (word for word in kind if word != fact)
                return
        yield from probe_faults.other_numbers(fact)

    def _any_of(self, words: Iterable[str]) -> re.Pattern[str]:
        said = "|".join(map(re.escape, longest(words)))
        return re.compile(rf"(?<!\w)(?:{said})(?!\w)" if self._spaced else said, re.IGNORECASE)


def _changed(old: str, new: str, match: re.Match[str]) -> str:
    return new if match[0] == old else match[0]

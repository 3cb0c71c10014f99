"""Mechanical rewriting of English utterances, for planted faults; every sentence in it is our own.

Each function returns ``None`` where its rule does not apply, rather than something half changed.
Word lists are short on purpose: a rewrite must be right more than it must be frequent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random

AI_PHRASES = (
    "As an AI language model, I can only speak about this in general.",
    "I'm just a chatbot, so please take this with a grain of salt.",
    "Since I am an artificial intelligence, I have never done that myself.",
    "I don't have a body, as I am only a computer program.",
    "My training data tells me little about that.",
    "I was built to answer questions, not to have opinions of my own.",
)

OPENERS = ("Well,", "So,", "Like,", "Right,", "I mean,")
TAGS = {"?": ("then", "or what", "by the way"), ".": ("you know", "really", "if you ask me")}

RAMBLING = (
    "You know how it is, one thing leads to another and before you notice half the day is gone.",
    "My aunt used to say the same, back when she still had the little flat above the bakery.",
    "Not that it matters much, but I keep turning it over in my head on the way to work.",
    "It was raining that morning too, so everybody stood about in wet coats and nobody wanted to "
    "go first.",
    "Then somebody opened a window, and somebody else closed it again, and that went on for a "
    "while.",
    "I could tell you the whole story, but we'd still be sitting here when the lights go out.",
    "And the funny part is that I had the key in my other pocket the whole time.",
    "Anyway, we had soup after that, a thick one with beans, and it was far too hot to eat.",
    "There was a dog as well, a small grey one, and it followed us all the way to the bridge.",
    "I still have a picture of it somewhere, in the blue box under the stairs, or maybe in the "
    "drawer.",
    "My brother remembers it the other way round, but he wasn't even there for the second half.",
    "So that's how that went, and I haven't told it to that many people, to be fair.",
)

LONG_WORDS = 100
"""Words that an overlong utterance has at least: nobody in a conversation speaks that long."""

FORMAL_OPENERS = (
    "With regard to the above, the following ought to be stated.",
    "I should like to draw your attention to the following circumstance.",
    "Having given the matter due consideration, I wish to respond as follows.",
    "In reference to your previous remark, permit me to observe the following.",
)
FORMAL_CLOSERS = (
    "Should further clarification be required, it shall be provided without delay.",
    "I trust that the foregoing adequately addresses the question that was raised.",
    "Your kind understanding in this respect is greatly appreciated.",
)

_WORD = re.compile(r"\w+(?:['\u2019]\w+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\bMr\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bMrs\.)\s+")

_NOT_ASKED = r"(?! (?:i|you|he|she|it|we|they|this|that|there)\b)"
_EXPANDED = tuple(
    (re.compile(rf"\b{pattern}\b", re.IGNORECASE), full)
    for pattern, full in (
        (rf"can['\u2019]t{_NOT_ASKED}", "cannot"),
        (rf"won['\u2019]t{_NOT_ASKED}", "will not"),
        (rf"shan['\u2019]t{_NOT_ASKED}", "shall not"),
        (rf"(\w+)n['\u2019]t{_NOT_ASKED}", r"\1 not"),
        ("let['\u2019]s", "let us"),
        (r"(i)['\u2019]m", r"\1 am"),
        (r"(\w+)['\u2019]re", r"\1 are"),
        (r"(\w+)['\u2019]ve", r"\1 have"),
        (r"(\w+)['\u2019]ll", r"\1 will"),
        (r"(i|you|he|she|we|they|it)['\u2019]d", r"\1 would"),
        (r"(it|that|what|he|she|there|here|who|where|how)['\u2019]s", r"\1 is"),
    )
)
_STIFF = {
    "buy": "purchase",
    "bought": "purchased",
    "help": "assist",
    "helped": "assisted",
    "need": "require",
    "needed": "required",
    "want": "wish",
    "wanted": "wished",
    "kids": "children",
    "mum": "mother",
    "mom": "mother",
    "dad": "father",
    "maybe": "possibly",
    "yeah": "indeed",
    "yep": "indeed",
    "ok": "certainly",
    "okay": "certainly",
    "sure": "certainly",
    "thanks": "thank you",
    "hi": "good day",
    "hello": "good day",
    "big": "considerable",
    "enough": "sufficient",
}


def near_repetition(text: str, rng: Random) -> str:
    """The same words in the same order behind an opener, with a tag before the last mark."""
    body = text.strip()
    end = body[-1] if body[-1] in ".!?" else ""
    tags = TAGS["?" if end == "?" else "."]
    inner = body.rstrip(".!? ") or body
    return f"{rng.choice(OPENERS)} {_lowered(inner)}, {rng.choice(tags)}{end or '.'}"


def overlong(text: str, rng: Random) -> str:
    """The text and then rambling sentences, until it has `LONG_WORDS` words."""
    said = [text.strip()]
    for sentence in rng.sample(RAMBLING, len(RAMBLING)):
        if len(_WORD.findall(" ".join(said))) >= LONG_WORDS:
            break
        said.append(sentence)
    return " ".join(said)


def formal(text: str, rng: Random) -> str:
    """Contractions written out, everyday words made stiff, between two sentences of a letter."""
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
_BASE = {
    "went": "go",
    "saw": "see",
    "bought": "buy",
    "told": "tell",
    "said": "say",
    "got": "get",
    "took": "take",
    "came": "come",
    "found": "find",
    "left": "leave",
    "lost": "lose",
    "made": "make",
    "thought": "think",
    "knew": "know",
    "heard": "hear",
    "forgot": "forget",
    "paid": "pay",
    "met": "meet",
    "gave": "give",
    "ate": "eat",
    "kept": "keep",
    "felt": "feel",
    "wrote": "write",
    "likes": "like",
    "loves": "love",
    "wants": "want",
    "needs": "need",
    "lives": "live",
    "works": "work",
    "knows": "know",
    "goes": "go",
    "looks": "look",
    "seems": "seem",
    "sounds": "sound",
    "costs": "cost",
    "starts": "start",
    "takes": "take",
    "leaves": "leave",
}
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
    for sentence in sentences(text.replace("\u2019", "'")):
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


_KINDS: tuple[tuple[str, ...], ...] = (
    ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    (
        *("January", "February", "April", "June", "July"),
        *("August", "September", "October", "November", "December"),
    ),
    ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    ("twenty", "thirty", "forty", "fifty"),
)
_BEFORE = re.compile(r"(?:[$\u00a3\u20ac]|\b[^\W\d_]+) ?$")
_AFTER = re.compile(r" ?(?:%|[^\W\d_][\w'\u2019]*)")
_FACT = re.compile(
    rf"\b(?:{'|'.join(word for kind in _KINDS for word in kind)})\b"
    r"|(?<![\w:.,])\d{1,4}(?:(?::\d\d)|(?:\.\d\d?))?(?![\w:]|[.,]\d)",
    re.IGNORECASE,
)


def wrong_fact(text: str, earlier: Sequence[str], rng: Random) -> str | None:
    """``text`` with a number, time, weekday or month that was mentioned before changed to another.

    A bare number counts as mentioned before only beside the same word (``two hours``). Every
    mention of it in ``text`` changes, and into nothing that was mentioned.
    """
    here = _facts(text)
    before = _facts("\n".join(earlier))
    known = [fact for fact, beside in here.items() if beside & before.get(fact, frozenset())]
    for fact in rng.sample(known, len(known)):
        others = [other for other in _others(fact) if other.lower() not in {*here, *before}]
        if others:
            return _FACT.sub(partial(_changed, fact, rng.choice(others)), text)
    return None


def sentences(text: str) -> list[str]:
    """The sentences of an utterance, with their marks."""
    return _SENTENCE_END.split(text.strip())


def n_words(text: str) -> int:
    """How many words there are."""
    return len(_WORD.findall(text))


def _facts(text: str) -> dict[str, frozenset[str]]:
    """Fact in lower case -> what stands beside it; a name or clock time also stands for itself."""
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
    whole, mark, rest = fact.partition(":" if ":" in fact else ".")
    # An hour stays an hour; any other number keeps its size.
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
    """``text`` without its first capital, unless the word has a capital of its own."""
    first = _WORD.match(text)
    if first is None or re.split("['\u2019]", first[0].lower())[0] not in _COMMON_FIRST:
        return text
    return f"{text[0].lower()}{text[1:]}"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_LINKING = _words("a an the and or of in to is are was were for by only about than not it")
_COMMON_FIRST = _words(
    "the a an this that these those it he she we they you my your our his her their there here"
    " what where when who why how which do does did don didn is isn are aren was wasn were can"
    " could couldn will won would wouldn should have haven has and but so if not no yes well oh"
    " yeah maybe just only let please in on at for with about then all any some one"
)

"""The little English the offline bots have: clauses, content words, turning "I" into "you".

Heuristic by design (ELIZA's means, Weizenbaum 1966): closed word lists and neighbouring words,
no parser. Where it errs, the bot sounds like the bot it is.
"""

from __future__ import annotations

import re
from functools import cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


AUXILIARIES = _words(
    "am are is was were be been do does did have has had can could will would shall should may"
    " might must don't doesn't didn't haven't hasn't hadn't can't couldn't won't wouldn't"
    " shouldn't mustn't isn't aren't wasn't weren't cannot"
)
PREPOSITIONS = _words(
    "about above across against around at behind beside besides between beyond by down for from in"
    " inside into near of off on onto out over past through to toward towards under up upon with"
    " within without"
)
DETERMINERS = _words("a an the this that these those my your his her its our their some any no")
PRONOUNS = _words("i you he she it we they me him us them who there")
_CONJUNCTIONS = _words(
    "and or but if because when while that than as so after before since until though although"
    " unless whether where why how what which then like"
)
_SMALL_WORDS = _words(
    "not just only very too also even still already again ever never always often really quite"
    " here there now then today tonight tomorrow yesterday yes no yeah okay ok oh ah well hey hi"
    " hello please thank thanks sorry sure right let let's mine yours hers ours theirs myself"
    " yourself himself herself itself ourselves themselves one ones two first last next more most"
    " much many few lot lots all both each every other another such own same thing things"
    " something anything nothing everything someone anyone everyone nobody kind sort bit"
    " way back away i'm you're he's she's it's we're they're that's there's what's who's where's"
    " how's here's i've you've we've they've i'll you'll he'll she'll it'll we'll they'll i'd"
    " you'd he'd she'd it'd we'd they'd get got go goes going gone went come comes came coming"
    " make makes made making take takes took taking give gives gave put say says said saying"
    " tell tells told know knows knew think thinks thought see sees saw seen look looks looked"
    " looking want wants wanted need needs needed like likes liked mean means meant ask asks"
    " asked maybe perhaps good great nice fine bad hear heard talk talking keep keeps feel feels"
    " felt guess suppose mr mrs ms miss sir madam excuse pardon course actually long little great"
)
FUNCTION_WORDS = AUXILIARIES | PREPOSITIONS | DETERMINERS | PRONOUNS | _CONJUNCTIONS | _SMALL_WORDS
"""Words that say nothing about the subject of a conversation."""

_CONTENT_LETTERS = 3
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_CLAUSE = re.compile(
    r"(?<=[.!?])\s+|;|:(?=\s|$)|\s+-+\s+|\s*\u2014\s*|\.{2,}|\u2026"
    r"|,\s*(?:(?:and|but|so|or|because|then|though|although)\b\s*)?|\s+(?:but|because)\s+",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"^(?:(?:so(?! that)|well|oh|and|but|or|then|hey|hi|now|yes|no|yeah|ok|okay|anyway|also"
    r"|actually)\s+)+",
    re.IGNORECASE,
)


def words(text: str) -> list[str]:
    """Words of ``text`` in lower case, apostrophes kept."""
    return _WORD.findall(text.lower())


def clauses(text: str) -> list[str]:
    """Stretches of ``text`` between punctuation marks, without "so", "but", "well" before them.

    A question keeps its ``?``.
    """
    found = []
    for part in _CLAUSE.split(text):
        clause = _LEAD_IN.sub("", part.strip(" ,.!\"'()[]*#_`~"))
        if _WORD.search(clause):
            found.append(clause)
    return found


def content_words(text: str) -> list[str]:
    """Words that carry the subject of ``text``, spelled as there and in order, each once."""
    return list(dict.fromkeys(word for word in _WORD.findall(text) if _has_content(word)))


def _has_content(word: str) -> bool:
    return len(word) >= _CONTENT_LETTERS and word.lower() not in FUNCTION_WORDS


_NOUN_PHRASE = re.compile(
    rf"\b(?:{'|'.join(sorted(DETERMINERS))})\s+([a-z]+(?:'s)?)(?:\s+([a-z]+)\b(?!'))?",
    re.IGNORECASE,
)


def noun_phrases(text: str) -> list[str]:
    """Likely noun phrases of ``text``, in lower case without their determiner, in order, each once.

    One or two content words after an article, a demonstrative or a possessive.
    """
    found: dict[str, None] = {}
    for match in _NOUN_PHRASE.finditer(text.lower()):
        first, second = match[1], match[2]
        if not _is_nominal(first):
            continue
        if second and _is_nominal(second) and not second.endswith(("ed", "ing")):
            found[f"{first} {second}"] = None
        elif not first.endswith("'s"):
            found[first] = None
    return list(found)


def _is_nominal(word: str) -> bool:
    return _has_content(word) and word not in PAST_FORMS and not word.endswith("ly")


_SWAP = {
    "i": "you",
    "me": "you",
    "my": "your",
    "mine": "yours",
    "myself": "yourself",
    "i'm": "you're",
    "i've": "you've",
    "i'll": "you'll",
    "i'd": "you'd",
    "am": "are",
    "your": "my",
    "yours": "mine",
    "yourself": "myself",
    "yourselves": "ourselves",
    "you're": "I'm",
    "you've": "I've",
    "you'll": "I'll",
    "you'd": "I'd",
}
PERSONS = frozenset(_SWAP) | _words("you am are was were")
"""Words that differ between what was said and what comes back."""
_AFTER_I = {"are": "am", "were": "was", "weren't": "wasn't", "aren't": "am not"}
_BEFORE_I = {"are": "am", "were": "was", "weren't": "wasn't", "aren't": "aren't"}
_AFTER_YOU = {"was": "were", "wasn't": "weren't"}
_ADVERBS = _words("really just never always also still not only already probably often")
_TAKES_OBJECT = _words(
    "help helps helped tell told give gave given ask asked see saw seen meet met call called show"
    " showed teach taught thank thanks love loved miss missed let make made bring brought send"
    " sent offer offered lend lent get got join take took drive drove find found call pick follow"
    " invite invited remind remind reminded forgive believe hate understand owe pay paid trust"
    " around like want need"
)
_AFTER_OBJECT = (
    PREPOSITIONS
    | DETERMINERS
    | _words(
        "and or but if when because so again back here there too very now then tomorrow today"
        " tonight later soon something anything everything more much both all"
    )
) - _words("no")
_EITHER_PREPOSITION_OR_NOT = _words("up down out over off past")


def reflect(text: str) -> str:
    """Exchange first and second person in ``text``, with the verb forms that go with them.

    Words are joined again with the punctuation they had; nothing else is changed.
    """
    parts = re.split(r"([A-Za-z]+(?:'[A-Za-z]+)*)", text)
    low = [part.lower() for part in parts]

    def beside(index: int, step: int) -> str:
        """Neighbouring word on this side of any punctuation, or an empty string."""
        other, between = index + 2 * step, index + step
        return low[other] if 0 < other < len(low) and low[between].isspace() else ""

    def subject_before(index: int) -> str:
        """Word before, looking through one adverb; nothing if it ends "some of you"."""
        at = index - 2 if beside(index, -1) in _ADVERBS else index
        before = beside(at, -1)
        return "" if beside(at - 2, -1) in ("of", "to", "with", "for") else before

    for i in range(1, len(parts), 2):
        before, after = subject_before(i), beside(i, 1)
        if low[i] == "you":
            parts[i] = "me" if _is_object(beside(i, -1), after, beside(i - 2, -1)) else "I"
        elif low[i] in _AFTER_I and before == "you":
            parts[i] = _AFTER_I[low[i]]
        elif low[i] in _BEFORE_I and after == "you" and before not in PRONOUNS - {"who"}:
            parts[i] = _BEFORE_I[low[i]]
        elif low[i] in _AFTER_YOU and "i" in (before, after):
            parts[i] = _AFTER_YOU[low[i]]
        else:
            parts[i] = _SWAP.get(low[i], parts[i])
    return "".join(parts)


def _is_object(before: str, after: str, before_that: str) -> bool:
    """Whether a "you" between these words is "me" rather than "I" when turned round."""
    if before == "of":
        return True
    if after in AUXILIARIES or after in _ADVERBS:
        return False
    if before in AUXILIARIES:
        return before in ("were", "was") and before_that in PRONOUNS
    if not after:
        return True
    if before in PREPOSITIONS - _EITHER_PREPOSITION_OR_NOT:
        return True
    if before in _TAKES_OBJECT and before_that not in ("that", "thing", "things"):
        return True
    return bool(before) and before not in _CONJUNCTIONS and after in _AFTER_OBJECT


_OPENERS = FUNCTION_WORDS | _words(
    "because anyway besides instead however finally suddenly lately recently usually sometimes"
    " unfortunately luckily sounds seems people everybody anybody somebody work school home"
    " dinner lunch breakfast try wait stop open close turn call ring bring show leave stay read"
    " write eat drink buy sell sit stand start finish meet find pass pick move hold check use"
    " remember forget imagine believe hope wish love hate"
    " speaking being having doing congratulations"
)


def mid_sentence(text: str) -> str:
    """Lower the first letter of ``text`` unless the word may be a name."""
    first = _WORD.match(text)
    if first is None or first[0].lower() not in _OPENERS or first[0].split("'")[0] == "I":
        return text
    if first[0][1:] != first[0][1:].lower():
        return text
    return text[0].lower() + text[1:]


@cache
def fixed_part(template: str) -> str:
    """Longest stretch of ``template`` between its slots, in lower case: tells that it was used."""
    return max(re.split(r"\{\d\}", template), key=len).strip().lower()


def sentence_case(text: str) -> str:
    """Raise the first letter of each sentence of ``text``."""
    return re.sub(r"(^\"?|[.!?]\s+\"?)([a-z])", lambda m: m[1] + m[2].upper(), text)


_IRREGULAR: dict[str, str] = dict(
    re.findall(
        r"(\w+):(\w+)",
        "be:was become:became begin:began break:broke bring:brought build:built buy:bought"
        " catch:caught choose:chose come:came cost:cost cut:cut do:did draw:drew drink:drank"
        " drive:drove eat:ate fall:fell feel:felt fight:fought find:found fly:flew"
        " forget:forgot get:got give:gave go:went grow:grew have:had hear:heard hide:hid"
        " hit:hit hold:held hurt:hurt keep:kept know:knew lead:led learn:learned leave:left"
        " lend:lent let:let lie:lay lose:lost make:made mean:meant meet:met pay:paid put:put"
        " read:read ride:rode ring:rang run:ran say:said see:saw sell:sold send:sent"
        " show:showed shut:shut sing:sang sit:sat sleep:slept speak:spoke spend:spent"
        " stand:stood steal:stole swim:swam take:took teach:taught tell:told think:thought"
        " throw:threw understand:understood wake:woke wear:wore win:won write:wrote",
    )
)
PAST_FORMS = frozenset(_IRREGULAR.values()) - {"cost", "cut", "lead", "hit", "read"}
_VOWELS = "aeiou"


def past_tense(verb: str) -> str:
    """Past tense of a lower-case base form (about 70 irregular verbs, the rest by rule)."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return verb[:-1] + "ied"
    if re.fullmatch(r"[^aeiou]*[aeiou][bdgmnpt]", verb):
        return verb + verb[-1] + "ed"
    return verb + "ed"


def third_person(verb: str) -> str:
    """Form of a lower-case base form after "he": has, goes, tries, likes."""
    if verb in ("have", "be"):
        return {"have": "has", "be": "is"}[verb]
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else "s")


_FINITE = (
    r"(?:am|is|are|was|were|has|have|had|will|would|can|could|should|shall|must|may|might|do|does"
    r"|did)(?:n't)?|won't|can't|cannot"
)
_SUBJECT = (
    r"(?:you|i|he|she|it|we|they|there|this|that|(?:the|my|your|his|her|our|their)\s+\w+)\b(?!')"
)
_POLAR = re.compile(
    rf"(?P<aux>{_FINITE})\s+(?P<subject>{_SUBJECT})\s*(?P<rest>[^?]*)\?", re.IGNORECASE
)
_WH = re.compile(
    rf"(?P<wh>(?:what|which|whose|when|where|why|how)(?:\s+(?!(?:{_FINITE})\b)\w+){{0,3}})"
    r"\s+(?P<question>.+\?)",
    re.IGNORECASE,
)


def indirect_question(clause: str) -> str | None:
    """Turn "Did you see it?" into "whether I saw it" and "Where are you?" into "where I am".

    ``None`` if ``clause`` is no question of a form that can be turned safely.
    """
    wh = _WH.fullmatch(clause)
    polar = _POLAR.fullmatch(wh["question"] if wh else clause)
    if polar is None:
        return None
    aux, rest = polar["aux"].lower(), polar["rest"].strip()
    if aux in ("do", "does", "did"):
        verb, _, tail = rest.partition(" ")
        if not re.fullmatch(r"[a-z]{2,}", verb) or verb in FUNCTION_WORDS - _BARE_VERBS:
            return None
        rest = tail
        aux = {"do": verb, "does": third_person(verb), "did": past_tense(verb)}[aux]
    elif aux.endswith("n't") or not (wh or rest):
        return None
    elif " " in polar["subject"] and not re.match(rf"(?:$|\w+(?:ing|ed)\b|{_AFTER_NOUN}\b)", rest):
        return None  # "was your summer holiday ...": where the subject ends is a guess
    turned = reflect(f"{mid_sentence(polar['subject'])} {aux} {rest}".strip())
    return f"{wh['wh'].lower() if wh else 'whether'} {turned}"


_AFTER_NOUN = r"(?:still|always|already|not|at|in|on|for|from|to|of|with|about|so|too|very|really)"
_BARE_VERBS = _words(
    "get go come make take give put say tell know think see look want need like mean ask hear talk"
    " keep feel guess suppose have do"
)
_OTHER_SUBJECT = (
    r"(?:(?:the|my|your|his|her|our|their|this)"
    r"(?:\s+(?!(?:you|i|he|she|it|we|they)\b)\w+){1,3}?|this|there|(?-i:[A-Z][a-z]+))"
)
_STATEMENT = re.compile(
    r"(?:i|you|he|she|it|we|they)(?:'(?:m|re|s|ve|ll|d))?"
    r"\s+(?!(?:and|or|guys|two|both|all)\b)[\w']+\s+.*"
    r"|(?:i|you|he|she|it|we|they|there)'(?:m|re|s|ve|ll|d)\s+[\w']+.*"
    rf"|{_OTHER_SUBJECT}\s+(?:{_FINITE})\s+\w+.*",
    re.IGNORECASE,
)


def is_statement(clause: str) -> bool:
    """Whether ``clause`` reads well after "that": a subject and a finite verb, no question."""
    first = clause.partition(" ")[0].lower()
    return (
        not clause.endswith("?")
        and first not in AUXILIARIES | _CONJUNCTIONS | _ADVERBS
        and _STATEMENT.fullmatch(clause) is not None
    )

r"""The English that `botchat.measures.flags` knows: words, stems and kinds of phrases.

Patterns expect lower case with straight apostrophes, except `LAYOUT` and `EMOJI`. All are linear in
the length of the text: no repetition without a bound can match the same text in two ways.
"""

from __future__ import annotations

import re
from functools import lru_cache

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+(?:'[^\W_{_IDEOGRAPHS}]+)*")
"""A word, a number, or one Chinese or Japanese character."""

ASCII_WORD = re.compile(r"[a-z0-9]++(?:'[a-z0-9]++)*+")
"""The same words in lower-case ASCII, found in half the time."""

SENTENCE_END = re.compile(r"[.!?\n\u3002\uff01\uff1f](?:(?<![.!?])|\s)")
"""A stop before a blank, a line break, or a Chinese or Japanese stop. As the pattern begins with a
set of characters, it is found twice as fast."""

EMOJI = re.compile("[\u2600-\u27bf\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff]")
CONTRACTION = re.compile(
    r"\w+(?:n't|'(?:m|re|ve|ll|d))|(?:it|that|what|he|she|there|here|who|where|how|let)'s"
)
FULL_FORM = re.compile(
    r"\b(?:i (?:am|will|would)|you (?:are|will|would)|we (?:are|will|would)|they (?:are|will|would)"
    r"|it (?:is|will)|he is|she is|that is|there is|what is|cannot|let us"
    r"|(?:do|does|did|is|are|was|were|could|will|would|should|have|has) not)\b(?=\s\w)"
)
"""Forms that speech contracts; not before punctuation, where nobody could ("Yes, I am.")."""

LAYOUT = re.compile(
    r"\r\n?|\n+"
    r"|^[ \t]{0,8}(?:[-*\u2022+]|\d{1,2}[.)])[ \t]"
    r"|^[ \t]{0,8}#{1,6}[ \t]"
    r"|\*\*[^*\n]{1,80}\*\*|```|`[^`\n]{1,80}`"
    r"|</?[a-z][^<>\n]{0,40}>"
    r"|^[ \t]{0,8}(?:(?:speaker )?[ab]|user|assistant|human|ai|bot|system)[ \t]?:"
    r"|^[ \t]{0,8}[\[(][^\[\]()\n]{1,60}[\])]"
    r"|(?<!\*)\*[a-z][^*\n]{1,60}\*(?!\*)",
    re.IGNORECASE | re.MULTILINE,
)
"""Marks of a document or script: line breaks, list items, headings, bold and italic, code, tags,
speaker labels and stage directions."""

LAYOUT_SIGN = re.compile(r"[\r\n*`<:]")
LAYOUT_START = re.compile(r"[-+\u2022#\[(\d]")
"""A text with a mark of `LAYOUT` has this sign or this start, which are found far sooner."""

_PROGRAM = (
    r"(?:ai|a\.i\.|artificial intelligence|(?:large )?language model|llm|(?:chat ?-?)?bot"
    r"|(?:ai|virtual|digital|automated|artificial|computer) (?:assistant|agent|companion|program))"
    r"(?:(?: large)?(?: language)?(?: model| assistant| chat ?bot| bot| program| system| agent))?"
    # "I'm an AI engineer" is no confession: no further noun may follow.
    r"(?=\s{0,3}(?:$|[^\w\s'-]|-\s|\b(?:and|but|so|or|that|who|which|with|without|not|here|too|as"
    r"|like|by|from|i|i'm|my|we|you|designed|created|trained|developed|built|made|programmed"
    r"|myself)\b))"
)
_NO_PREPOSITION = r"(?!about|with|on|for|of|in|at|to|from)\w{1,20}"
AI = re.compile(
    rf"\b(?:i am|i'm|you are|you're|i was|being)(?: \w{{1,20}}ly| just| also| still)?"
    rf"(?: (?:talking|speaking|chatting) (?:to|with))? (?:an?|your)"
    rf"(?: {_NO_PREPOSITION}){{0,2}} {_PROGRAM}"
    rf"|\b(?:as an?|my name is(?: an?)?)(?: \w{{1,20}})? {_PROGRAM}"
    r"|\b(?:i am|i'm|my name is) (?:chatgpt|gpt-?\d)"
    r"|\bi(?:'m| am) not (?:an? )?(?:real |actual |living )?(?:human|person)(?: being)?"
    r"(?=\s{0,3}(?:$|[.,;!]|\b(?:and|but)\b))"
    r"|\bi (?:do not|don't|can't|cannot) (?:really |actually )?(?:have|experience) (?:any |an? )?"
    r"(?:personal|physical|human|real|subjective|true) (?:\w{1,20} or )?(?:experience|feeling"
    r"|emotion|preference|opinion|hobb|interest|belief|body|form|existence|presence|sensation)"
    r"|\bi (?:do not|don't) have (?:feelings|emotions)(?: or (?:feelings|emotions))?"
    r"(?=\s{0,3}(?:$|[.,;!]|\b(?:but|like|as)\b))"
    r"|\bi (?:do not|don't) have (?:the (?:ability|capacity) to (?:feel|experience)"
    r"|access to real-?time)\b"
    r"|\bi (?:do not|don't|can't|cannot) [^.!?\n]{0,60}"
    r"\b(?:like|as|way|sense)(?: that)?(?: an?)? humans?\b"
    r"|\bi(?:'m| am| was) (?:only |just )?(?:programmed|designed) to\b"
    r"|\bi(?:'m| am| was) (?:created|trained|developed|made|built) by (?:openai|anthropic|google"
    r"|meta|microsoft|alibaba|baidu)\b"
    r"|\bmy (?:training data|knowledge cut-?off|last (?:knowledge|training) (?:update|cut-?off))\b"
    r"|\bmy programming(?=\s{0,3}(?:$|[.,;!]|\b(?:does|allows)\b))"
)
"""Phrases that call a speaker a program."""

FORMAL = re.compile(
    r"\b(?:additionally|furthermore|moreover|however|therefore|thus|hence|consequently|accordingly"
    r"|nevertheless|nonetheless|overall|in conclusion|in summary|to summari[sz]e|for instance"
    r"|such as|as well as|in addition|in order to|in terms of|in particular|firstly|secondly"
    r"|thirdly|lastly|ultimately|particularly|specifically|regarding|concerning"
    r"|a (?:wide )?(?:range|variety) of|various|numerous|essential|crucial|ensur(?:e|es|ing)"
    r"|utili[sz](?:e|es|ing)"
    r"|(?:it's|it is) (?:also |always )?(?:important|essential|crucial|worth|advisable|recommended)"
    r"|(?:is there )?any(?:thing|one) (?:else|specific|in particular)(?= (?:you|i can))"
    r"|feel free to|(?:do not|don't) hesitate to|(?:i'd|i would) be (?:happy|glad|pleased) to"
    r"|(?:i'm|i am) (?:always )?here to (?:help|assist|chat|answer|provide|listen)"
    r"|how (?:can|may) i assist|i apologi[sz]e for"
    r"|(?:thank you|thanks) for (?:sharing|asking|clarifying|reaching out))\b"
)
"""Connectives and phrases of written English and of assistants."""

CLOSING = re.compile(
    r"\b(?:thanks?|welcome|bye|goodbye|farewell|pleasure|glad|cheers|likewise|appreciate|any ?time"
    r"|see (?:you|ya)|talk to (?:you|ya)|catch (?:you|ya)|take care|good (?:luck|night)|you too"
    r"|same to you|no (?:problem|worries)|don't mention it|not at all|all the best"
    r"|have an? (?:\w{1,20} ){1,2}"
    r"(?:day|night|evening|weekend|time|trip|week|afternoon|morning|one))\b"
)
"""Phrases that thank, answer thanks, wish well or say goodbye."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Each phrase of a pattern has a word of its set, so a text without any need not be searched.
AI_WORDS = _words(
    "ai bot chatbot llm language artificial virtual digital automated computer human humans person"
    " personal physical real subjective true feelings emotions ability capacity access programmed"
    " designed created trained developed made built training knowledge programming"
)
"""Those of `AI`, whose "a.i." and "gpt" are no words."""

FULL_FORM_WORDS = _words("am are is will would not cannot us")
FORMAL_WORDS = _words(
    "additionally furthermore moreover however therefore thus hence consequently accordingly"
    " nevertheless nonetheless overall conclusion summary summarise summarize instance as"
    " addition order terms particular firstly secondly thirdly lastly ultimately particularly"
    " specifically regarding concerning range variety various numerous essential crucial ensure"
    " ensures ensuring utilise utilises utilising utilize utilizes utilizing important worth"
    " advisable recommended anything anyone free hesitate happy glad pleased help assist chat"
    " answer provide listen apologise apologize sharing asking clarifying reaching"
)
CLOSING_WORDS = _words(
    "thank thanks welcome goodbye bye farewell pleasure glad cheers likewise appreciate anytime"
    " time see talk catch care luck night too same problem worries mention all day evening weekend"
    " trip week afternoon morning one"
)


def bare(word: str) -> str:
    """The word up to its apostrophe."""
    return word.partition("'")[0]


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """The word without inflection, roughly: only the equality of stems is ever used."""
    shortest = 3
    found = bare(word)[:32]
    for ending in ("ings", "ing", "edly", "ied", "ies", "ed", "es", "s", "ly"):
        if found.endswith(ending) and len(found) - len(ending) >= shortest:
            found = found[: -len(ending)]
            break
    if len(found) > shortest and found[-1] == found[-2]:
        found = found[:-1]
    return found[:-1] if len(found) > shortest and found[-1] in "eiy" else found


COURTESY = frozenset(
    map(
        stem,
        _words(
            "thank thanks welcome bye goodbye farewell pleasure glad cheers likewise appreciate"
            " anytime care luck night day evening afternoon morning weekend week time rest soon"
            " later tomorrow again always forward touch mention course absolutely definitely"
            " problem worries trouble kind lovely wonderful amazing safe best happy enjoy hope wish"
            " feel better meet talk chat speak conversation word support advice help assist"
            " assistance understand"
        ),
    )
)
"""Stems that close a conversation or fill a courtesy, and carry no subject of their own."""

FUNCTION = _words(
    "a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9 an the this that"
    " these those some any no every each either neither both all another such me my mine myself"
    " you your yours yourself yourselves he him his himself she her hers herself it its itself we"
    " us our ours ourselves they them their theirs themselves one ones am is are was were be been"
    " being do does did doing done have has had having can could will would shall should may might"
    " must ought ain don didn doesn isn aren wasn weren won wouldn couldn shouldn haven hasn hadn"
    " mustn cannot and or but nor so if because as than then when while where why how who whom"
    " whose which what though although unless until since whether of in on at by for with from to"
    " into onto over under up down out off about after before above across along around behind"
    " below beside near between through during without within upon against toward towards not yes"
    " yeah yep nope ok okay oh well hi hello hey please sorry just only very too also even still"
    " already ever never often really quite here there now today maybe perhaps rather much many"
    " more most few little lot lots bit other others else own same let get got go going goes went"
    " gone come came coming make made making take took taking know knew think thought say said"
    " says see saw seen look looking want wanted need needed like liked mean means thing things"
    " way good great nice right sure mr mrs ms miss sir madam dear um uh er hmm ah wow huh gonna"
    " wanna gotta hm mm mhm eh ha haha aha oops yup nah"
)
"""Words that carry no content, without what follows an apostrophe; single letters and digits."""


@lru_cache(maxsize=1 << 16)
def content(word: str) -> str:
    """Stem of a word that carries content; empty for the others."""
    return "" if bare(word) in FUNCTION else stem(word)

"""Words, phrases, layout and stems of an English utterance, for the judge `rules`.

All patterns take linear time.
"""

import re
from functools import lru_cache
from itertools import chain

from botchat.frames import TomlTable, package_toml
from botchat.languages import Words

IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"[{IDEOGRAPHS}]|[^\W_{IDEOGRAPHS}]+(?:'[^\W_{IDEOGRAPHS}]+)*")
"""A word of English, a number, or one Chinese or Japanese character."""

# A stop before a blank, a line break, or a Chinese or Japanese stop
_STOP = re.compile(r"[.!?\n\u3002\uff01\uff1f](?:(?<![.!?])|\s)")

# Marks of a document or script: line breaks, list items, headings, bold and italic, code, tags,
# speaker labels and stage directions
_LAYOUT = re.compile(
    r"(?im)\r\n?|\n+"
    r"|^[ \t]{0,8}(?:[-*\u2022+]|\d{1,2}[.)])[ \t]"
    r"|^[ \t]{0,8}#{1,6}[ \t]"
    r"|\*\*[^*\n]{1,80}\*\*|```|`[^`\n]{1,80}`"
    r"|</?[a-z][^<>\n]{0,40}>"
    r"|^[ \t]{0,8}(?:(?:speaker )?[ab]|user|assistant|human|ai|bot|system)[ \t]?:"
    r"|^[ \t]{0,8}[\[(][^\[\]()\n]{1,60}[\])]"
    r"|(?<!\*)\*[a-z][^*\n]{1,60}\*(?!\*)"
)

_FORMAL_PHRASE = 5
_FORMAL_DAMPING = 40


class ReadText:
    """One utterance read by itself."""

    def __init__(self, raw: str) -> None:
        """Cut it into words."""
        self.raw = raw
        self.low = raw.lower().replace("\u2019", "'")
        self.sentences = [WORD.findall(sentence) for sentence in _STOP.split(self.low)]
        """Words of each sentence."""
        self.words = list(chain.from_iterable(self.sentences))
        self.content = frozenset(map(_stem, set(self.words) - _FUNCTION)) - {""}
        self.subject = self.content - _COURTESY
        """Stems of words that carry a subject; ``content`` has words of courtesy too."""
        self.question = re.search("[?\uff1f\u061f]", raw) is not None
        self.ai_phrases: list[str] = _AI.findall(self.low)
        self.formal_phrases: list[str] = _FORMAL.findall(self.low)
        self.closes = _CLOSING.search(self.low) is not None
        """Whether a phrase thanks, answers thanks, wishes well or says goodbye."""

    def formality(self) -> float:
        """Count formal marks in 100 words; see `botchat.judges.criteria.Thresholds`."""
        marks = _FORMAL_PHRASE * len(self.formal_phrases) + len(_FULL.findall(self.low))
        marks += sum(len(word) >= _LISTS.long_word for word in self.words)
        marks -= sum(_SPOKEN.fullmatch(word) is not None for word in self.words if "'" in word)
        return max(0.0, 100 * marks / (len(self.words) + _FORMAL_DAMPING))

    def layout_marks(self) -> int:
        """Count marks of a document or script."""
        return len(_LAYOUT.findall(self.raw.strip()))


class _Lists(TomlTable, frozen=True):
    """`rule_words.toml`: English words and phrases, regular expressions in lower case.

    ``{name}`` in a phrase stands for the pattern of that name in ``lists``; ``ends`` has what must
    stand behind a phrase of a list.
    """

    function: Words  # words that carry no content
    courtesy: Words  # close a conversation or fill a courtesy, and carry no subject of their own
    endings: Words  # of inflected words, taken off so that related ones are one
    long_word: int  # letters that make a word a long one
    phrases: dict[str, Words]
    lists: dict[str, str]
    ends: dict[str, str]


_LISTS = package_toml("languages/rule_words.toml", _Lists)


def _phrases(name: str) -> re.Pattern[str]:
    """Return the pattern of a list of phrases."""
    phrases = "|".join(_LISTS.phrases[name])
    phrases = re.sub(r"\{([a-z_]+)\}", lambda part: _LISTS.lists[part[1]], phrases)
    return re.compile(rf"\b(?:{phrases}){_LISTS.ends.get(name, '')}")


_FUNCTION = frozenset(_LISTS.function)
_ENDINGS = sorted(_LISTS.endings, key=len, reverse=True)
_AI, _FORMAL, _FULL, _CLOSING, _SPOKEN = map(
    _phrases, ("ai", "formal", "full", "closing", "spoken")
)
_SHORTEST_STEM = 3


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    """Return the word without its inflection, roughly: stems are only compared."""
    stem = word.partition("'")[0][:32]
    if stem in _FUNCTION:
        return ""
    for ending in _ENDINGS:
        if stem.endswith(ending) and len(stem) - len(ending) >= _SHORTEST_STEM:
            stem = stem.removesuffix(ending)
            break
    if len(stem) > _SHORTEST_STEM and stem[-1] == stem[-2]:
        stem = stem[:-1]
    if len(stem) > _SHORTEST_STEM and stem[-1] in "eiy":
        return stem[:-1]
    return stem


_COURTESY = frozenset(map(_stem, _LISTS.courtesy))

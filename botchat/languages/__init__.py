"""Language packs: folders of data, without code; docs/languages.md.

``language.toml`` has the name, the unit (words or characters) and labels by which replies are read;
``prompts/`` has a text file a prompt, named as in `botchat.prompts`. English never takes the place
of a missing part. The least is labels, and the prompts generation, unieval and unieval_examples. A
pack of BotChat's own is a folder here, and a line in ``[languages]`` of `prompts/sources.toml`.
"""

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import chain
from typing import Annotated, Literal, NoReturn

import msgspec

from botchat import prompts
from botchat.errors import ConfigError, listed
from botchat.frames import TomlTable, package_toml, read_text

EN = "en"
"""The language of a set that names none."""

FILE = "language.toml"
READING = "reading.toml"
"""File that is no part of the pack's digest, because it changes no prompt."""

CODE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
"""A language's code, after BCP 47: ``zh``, ``pt-BR``."""


class _PlainCharacters(TomlTable, frozen=True, kw_only=True):
    """``plain.toml``."""

    blocks: tuple[tuple[str, str], ...]
    others: dict[str, str]

    def readings(self) -> Mapping[int, int]:
        """Return what each character is read as."""
        readings = {}
        for first, last in self.blocks:
            for code in range(ord(first), ord(last) + 1):
                plain = unicodedata.normalize("NFKC", chr(code))
                if plain != chr(code):  # else no character has this place of the block
                    readings[code] = ord(plain)
        for plain, written in self.others.items():
            readings |= dict.fromkeys(map(ord, written), ord(plain))
        return readings


PLAIN = package_toml("languages/plain.toml", _PlainCharacters).readings()
"""Full-width and other digits, letters and marks -> the plain ones that they are read as.

One character for each, so that places in a text stay the same."""

Words = tuple[Annotated[str, msgspec.Meta(min_length=1)], ...]
Some = Annotated[Words, msgspec.Meta(min_length=1)]


class Labels(TomlTable, frozen=True, kw_only=True, omit_defaults=True):
    """``[labels]``: what a judge writes; the first of each list is what the prompts ask for."""

    # Without what a pack leaves out, so that a new key changes no signature of another pack.
    end: str  # ends each utterance in what a judge is shown, such as <end>
    choice: Some  # before the colon of a verdict: "Choice" in English; so are the next two
    index: Some
    reason: Some
    yes: Some  # UniEval: a machine takes part
    no: Some
    first: Some  # Arena and GTEval: only the first of the two conversations
    second: Some
    both: Some
    neither: Some
    numerals: Words = ()  # numbers in words, from 1 up without a gap
    ordinal: Words = ()  # may stand before the number of an utterance
    score: Words = ()  # may stand between the name of a score and the colon
    points: Words = ()  # may stand behind a score
    minus: Words = ()  # may stand before points that are taken off
    out_of: Words = ()  # between a score and the highest there is
    before: Words = ()  # changes nothing before a verdict: "only" in English
    after: Words = ()  # changes nothing behind one: "is AI involved"
    alternative: Words = ()  # names another verdict, or another index, after one: "or"
    lead: Words = ()  # leads to one's own verdict within a sentence: "so"
    others: Words = ()  # quotes another speaker: a verdict behind it is not the judge's own
    copula: Words = ()  # stands for the colon: "is"
    placeholder: Words = ()  # for the reason where the prompts say what a reply looks like
    also: Words = ()  # as `choice`, where nothing else marks a verdict: "Answer"

    def __post_init__(self) -> None:
        """Refuse labels that could not be told apart."""
        for keys in ("choice index reason", "yes no", "first second both neither"):
            owners: dict[str, str] = {}
            for key in keys.split():
                for word in getattr(self, key):
                    other = owners.setdefault(re.sub(r"[\W_]", "", word).casefold(), key)
                    if other != key:
                        raise ValueError(f"{key}: {word!r} is in {other} too; keep one")


class ReportWords(TomlTable, frozen=True, kw_only=True):
    """``[report]``: words by which reports on errors in a text are read; English ones count too.

    ``kinds``: names of MATEval's five kinds of error, the first of each as in its data: repetition,
    logical inconsistency, discontinuity, inappropriate lexical choice, factual error.
    """

    kinds: tuple[Words, Words, Words, Words, Words]
    question: Words  # before the colon of a question; the first never before anything else
    answer: Words
    yes: Words
    no: Words
    score: Words  # before the points of one kind
    deduction: Words  # before the points of one passage
    total: Words  # before what is about the whole report
    nothing: Words  # no points off, in words
    points: Words
    aside: Words  # follows a score in its line and says what it is for
    until: Words  # between two numbers of which neither is meant


class ReadingWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``reading.toml``: what judges write without being asked; English words count too."""

    withdrawn: Words = ()  # begins a sentence that takes back the verdict before it; with its mark
    anew: Words = ()  # may stand between that and the verdict that holds
    supposed: Words = ()  # begins a sentence about what is not so
    would: Words = ()  # is in such a sentence
    say: Words = ()  # ends it where what is supposed follows on the next lines
    insists: Words = ()  # begins one that is about oneself all the same: "If I had to choose"
    person: Words = ()  # says of one of two dialogues that no machine takes part: "human-written"
    machine: Words = ()  # says that one does: "AI"
    gloss_begins: Words = ()  # before one of these, right behind a verdict: "which is"
    gloss_ends: Words = ()  # behind it: "in my view"
    since: Words = ()  # leads to an utterance behind a Yes: "from"
    nth: Words = ()  # places in words, from 1 up without a gap: "first"
    gives: Words = ()  # may stand between whose score it is and the score: "receives a"
    score_begins: Words = ()  # may stand before the name of a score: "score for"
    each: Words = ()  # all whose scores are asked for: "both assistants"
    variants: Words = ()  # another way to write a character, and the one of the lists: "選选"
    names: dict[str, Words] = {}  # name of a score in English -> what it is called
    roles: Words = ()  # names of speakers of a debate, as which a reply may go on: "[Critic]:"
    speakers: Words = ()  # names that need no brackets: "Critic:"
    judges: Words = ()  # names of judges, of whom a reply may play several: "Judge 1:"
    answers: Words = ()  # names of tags between which a verdict may stand: "<verdict>"
    examples: Words = ()  # in the line above the next example: "Conversation:"
    headings: Words = ()  # above the next instructions: "### Instruction"
    abstains: Words = ()  # stands in place of a verdict or a score: "N/A"
    undecided: Words = ()  # is in a sentence that takes back every verdict before it
    total: Words = ()  # row or field of a whole score: "Overall"
    foreign: dict[str, Words] = {}  # list -> words of languages without a pack, or of any


class Pack(TomlTable, frozen=True, kw_only=True):
    """A whole ``language.toml``."""

    name: str  # in English, for headings and messages
    units: Literal["words", "characters"] = "words"
    """Whether blanks part words, or each character counts as one (Chinese, Japanese, Thai)."""
    labels: Labels | None = None
    report: ReportWords | None = None
    reading: ReadingWords = ReadingWords()  # of ``reading.toml``


@dataclass(frozen=True)
class Language:
    """One language; two are equal if their packs are."""

    code: str
    digest: str
    """8 hex digits of everything in the pack's folder."""
    where: str = field(compare=False)
    """The folder, for messages."""
    pack: Pack = field(compare=False, repr=False)
    texts: Mapping[str, str] = field(compare=False, repr=False)
    """Prompts by name."""

    @property
    def english(self) -> bool:
        """Whether it is the built-in English."""
        return self.code == EN

    @property
    def name(self) -> str:
        """Name in English."""
        return self.pack.name

    @property
    def spaced(self) -> bool:
        """Whether blanks part its words."""
        return self.pack.units == "words"

    @property
    def signed(self) -> str:
        """Part of a signature, empty for English."""
        if self.english:
            return ""
        return f"|lang:{self.code}"

    @property
    def reading(self) -> ReadingWords:
        """Words that replies are read by and that are not asked for."""
        return self.pack.reading

    @property
    def labels(self) -> Labels:
        """Labels that replies are read by; raises ConfigError if the pack has none."""
        return self.pack.labels or self._lacks("[labels]")

    @cached_property
    def plain(self) -> Mapping[int, int | str]:
        """`PLAIN` and its variants of characters."""
        return {**PLAIN, **{ord(both[0]): both[1] for both in self.reading.variants}}

    def text(self, name: str) -> str:
        """Return the wording of a prompt; raises ConfigError if the pack lacks it."""
        if self.english:
            return prompts.text(name)
        return self.texts.get(name) or self._lacks(f"prompts/{name}.txt")

    def fill(self, name: str, **values: str) -> str:
        """Fill in a prompt, as `botchat.prompts.fill`."""
        return prompts.fill(self.text(name), values)

    def prompts_digest(self, *names: str) -> str:
        """Return 8 hex digits that change with the wording of any of the prompts."""
        return _digest("\0".join(self.text(each) for each in names))

    def _lacks(self, part: str) -> NoReturn:
        raise ConfigError(
            f"the language pack {self.code} ({self.where}) has no {part}; add it as "
            "docs/languages.md says"
        )


def load(folder: Traversable, code: str) -> Language:
    """Read a pack's folder; raises ConfigError, with file and key, for what is no pack."""
    inside = folder / "prompts"
    wanted = sorted(every_prompt())
    contents = {FILE: _read(folder / FILE)}
    for name in wanted:
        file = inside / f"{name}.txt"
        if file.is_file():
            contents[name] = _read(file)
            places = prompts.places(prompts.text(name))
            prompts.refuse_places(contents[name], places, f"{file}: it must have the places")
    if inside.is_dir():
        for file in inside.iterdir():
            if file.name.endswith(".txt") and file.name[:-4] not in contents:
                raise ConfigError(f"{file}: no prompt has that name; prompts: {listed(wanted)}")
    digest = _digest("\0".join(f"{name}\0{text}" for name, text in contents.items()))
    reading = ""
    if (folder / READING).is_file():
        reading = _read(folder / READING)
    try:
        fields = tomllib.loads(contents.pop(FILE))
        pack = msgspec.convert(fields | {"reading": tomllib.loads(reading)}, Pack)
    except (tomllib.TOMLDecodeError, RecursionError, msgspec.ValidationError) as error:
        raise ConfigError(f"{folder / FILE}: {error}; see docs/languages.md") from None
    texts = {name: text.strip("\n") for name, text in contents.items()}
    return Language(code, digest, str(folder), pack, texts)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _read(file: Traversable) -> str:
    try:
        return read_text(file.read_bytes(), file)
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}; it is a text file") from None


@cache
def every_prompt() -> frozenset[str]:
    """Return the names of all prompts that a pack may have, roles among them."""
    folders = ("", "roles/", "roles/dialogues/", "roles/texts/")
    names = chain.from_iterable(prompts.names(folder) for folder in folders)
    # These have data, or answers, in English.
    return frozenset(name for name in names if not re.fullmatch("diagnosis|answers|aspect.*", name))


@cache
def built_in() -> Mapping[str, Language]:
    """Return the languages that come with BotChat, by code."""
    folders = sorted(resources.files(__name__).iterdir(), key=str)
    return {f.name: load(f, f.name) for f in folders if (f / FILE).is_file()}


ENGLISH = load(resources.files(__name__) / EN, EN)

"""``bench inject``: a model puts errors into stories, for a benchmark whose truth is known.

So MATEval made its data (Li et al. 2024, §4.2). The model is told which kinds to put in, one error
of each; what it sends back is checked against that. What comes out is a folder in MATEval's layout,
for ``botchat bench mateval``.
"""

from __future__ import annotations

import csv
import io
import random
from collections import Counter
from collections.abc import Sequence
from itertools import chain, product
from typing import Annotated, NamedTuple

import msgspec

from botchat.errors import ConfigError, DataError
from botchat.interfaces import Message, Row, adapted, settings_digest
from botchat.languages import Language, built_in
from botchat.languages.text import split
from botchat.models.self_chat import Length, Speaker
from botchat.papers.mateval_files import COLUMNS
from botchat.papers.requests import Injecting
from botchat.papers.stories import STORIES
from botchat.pipeline.evaluate import read_items
from botchat.pipeline.run import plan
from botchat.pipeline.run.plan import PlanningSession
from botchat.pipeline.run.session import Session, in_session
from botchat.pipeline.run.work import Stops, work_through
from botchat.protocols.items import TEXTS, plain
from botchat.protocols.scores import harmless
from botchat.protocols.texts import ERROR_TYPES, OwnText, sentences
from botchat.protocols.verdicts import json_fields
from botchat.records import SIGNED
from botchat.requests.arguments import Spending
from botchat.requests.meter import Meter, Step
from botchat.requests.results import Plan, Told
from botchat.workspace import files
from botchat.workspace.folder import SAMPLE, Workspace

PROMPT, STAGE = "injection", "inject"


class Planted(NamedTuple):
    """One error."""

    code: str
    """A key of `ERROR_TYPES`."""
    passage: str
    """The sentence with the error, as it is in the story."""
    reason: str


class Injected(NamedTuple):
    """A story before and after."""

    original: str
    story: str
    errors: tuple[Planted, ...]


class _Error(msgspec.Struct):
    type: str
    passage: str
    reason: str


class _Written(msgspec.Struct):
    story: Annotated[str, msgspec.Meta(pattern=r"\S")]
    errors: list[_Error]


def cut(story: str, words: int, language: Language) -> str:
    """The first sentences of a story that have at most so many words together; at least one.

    Characters are words where blanks part none.
    """
    spaced = language.pack.units == "words"
    kept: list[str] = []
    for sentence in sentences(story):
        words -= len(split(sentence, spaced))
        if kept and words < 0:
            break
        kept.append(sentence)
    return language.joint.join(kept)


def kinds_of(story: OwnText, rng_seed: int) -> tuple[str, ...]:
    """Codes of the kinds that a story gets: each with probability 1/2, at least one."""
    rng = random.Random(f"{rng_seed}\0{story.id}\0{story.text}")
    chosen = [code for code in ERROR_TYPES if rng.random() < 0.5]
    return tuple(chosen or [rng.choice(list(ERROR_TYPES))])


def question(story: str, kinds: Sequence[str], language: Language) -> str:
    """What a model is asked."""
    told = harmless(story.replace("\0", ""), STORIES.asked_scale)
    joint = ", " if language.joint else "、"
    return language.fill(PROMPT, story=told, kinds=joint.join(_names(kinds, language)))


def read(reply: str, story: str, kinds: Sequence[str], language: Language) -> Injected | str:
    """The story with its errors, or in a few words why the reply cannot be used."""
    try:
        made = msgspec.convert(json_fields(reply), _Written)
    except msgspec.ValidationError:
        return "no JSON object with story and errors"
    codes = {name.casefold(): code for code, both in ERROR_TYPES.items() for name in both}

    def words(text: str) -> str:
        return f" {' '.join(split(text, language.pack.units == 'words'))} "

    before, after = words(story), words(made.story)
    errors = []
    for one in made.errors:
        kind, passage, reason = (" ".join(t.split()) for t in (one.type, one.passage, one.reason))
        code, quoted = codes.get(kind.casefold()), words(passage)
        if code is None:
            return f"{kind!r:.40} is no kind of error"
        if not quoted.strip() or quoted not in after:
            return f"{passage!r:.60} is not in its story"
        # What is repeated or in the wrong place was there before.
        if code not in ("REP", "DCONT") and quoted in before:
            return f"{passage!r:.60} was in the story before"
        errors.append(Planted(code, passage, reason))
    if sorted(one.code for one in errors) != sorted(kinds):
        got = ", ".join(one.code for one in errors) or "none"
        return f"it was to put in {', '.join(kinds)}, and says {got}"
    if before == after:
        return "the story is as it was"
    return Injected(story, " ".join(made.story.split()), tuple(errors))


def as_csv(made: Sequence[Injected], language: Language) -> str:
    """A table in MATEval's layout, which ``botchat bench mateval`` reads as people's."""
    names = dict(zip(ERROR_TYPES, _names(tuple(ERROR_TYPES), language), strict=True))
    columns = COLUMNS[language.code]
    most = max((len(one.errors) for one in made), default=0)
    written = io.StringIO(newline="")
    rows = csv.writer(written, lineterminator="\n")
    numbered = product(range(1, most + 1), (columns.place, columns.error, columns.reason))
    heads = [columns.original, columns.story, columns.scores]
    rows.writerow([*heads, *(f"{name}{n}" for n, name in numbered)])
    for one in made:
        counts = Counter(error.code for error in one.errors)
        scores = "\n".join(f"{name}:{-counts[code]}" for code, name in names.items())
        errors = chain.from_iterable((e.passage, names[e.code], e.reason) for e in one.errors)
        rows.writerow([one.original, one.story, scores, *errors])
    return written.getvalue()


def _names(codes: Sequence[str], language: Language) -> list[str]:
    return [ERROR_TYPES[code][not language.english] for code in codes]


def plan_inject(request: Injecting, workspace: Workspace) -> Plan:
    """What `inject` would send."""
    language, listed = _read(request)

    async def walk(session: PlanningSession, _: Length) -> None:
        speaker = session.speaker(request.model, STAGE)
        session.about = (STAGE, (speaker.model.name,))
        for one in listed:
            await _ask(request, speaker, one, language)

    return plan.plan(workspace, workspace.seeds(SAMPLE), walk, language)


def inject(
    request: Injecting, workspace: Workspace, spending: Spending, meter: Meter | None
) -> Told:
    """Ask, check what comes back, and write the stories that have what they should have.

    Raises as `botchat.arguments.Asking.run`, and `DataError`: the file, with its
    row and column, or no reply that can be used.
    """
    language, listed = _read(request)
    meter = meter or Meter()

    async def ask(session: Session, stops: Stops) -> list[Told]:
        speaker = session.speaker(request.model, STAGE)
        step = Step(request.file.stem, STAGE, speaker.model.name, len(listed), each=1)
        session.meter.begin(STAGE, len(listed))
        session.meter.steps.append(step)
        found: dict[str, Injected | str | None] = {}

        async def do(one: OwnText) -> None:
            with step.item():
                found[one.id] = await _ask(request, speaker, one, language)
            session.meter.advance()

        await work_through(listed, do, speaker.model.parallel, stops, speaker.model.name)
        stops.raise_first()
        return [_written(request, listed, found, speaker, language)]

    (made,) = in_session(workspace, workspace.seeds(SAMPLE), spending, meter, ask, language)
    for line in made.whole["left_out"]:
        meter.tell(f"left out: {line}")
    return made


async def _ask(
    request: Injecting, speaker: Speaker, one: OwnText, language: Language
) -> Injected | str | None:
    """The story with its errors, or why there is none; ``None``: no answer was to be had."""
    story = cut(one.text, request.most_words, language)
    kinds = kinds_of(one, request.rng_seed)
    asked = question(story, kinds, language)
    reply = await speaker.model.chat([Message(role="user", content=asked)], speaker.decoding)
    if reply.usable:
        return read(reply.text, story, kinds, language)
    return (reply.detail or reply.outcome) if reply.answered else None


def _written(
    request: Injecting,
    listed: Sequence[OwnText],
    found: dict[str, Injected | str | None],
    speaker: Speaker,
    language: Language,
) -> Told:
    """How many errors were asked for, how many are in the stories, by kind and of ``all``."""
    made = [one for text in listed if isinstance(one := found[text.id], Injected)]
    left_out = [f"{id_}: {why}" for id_, why in found.items() if isinstance(why, str)]
    if not made and left_out:
        raise DataError(
            f"none of {len(listed)} stories came back with errors as asked for "
            f"({left_out[0]}); {speaker.model.name} may be too weak for this: name another "
            "with --model"
        )
    asked = Counter(code for one in listed for code in kinds_of(one, request.rng_seed))
    there = Counter(error.code for one in made for error in one.errors)
    rows: list[Row] = [
        {"error_type": code, "asked_for": asked[code], "in_stories": there[code]}
        for code in ERROR_TYPES
    ]
    totals = {"asked_for": asked.total(), "in_stories": there.total()}
    rows.append({"error_type": "all", **totals, "stories": len(made)})
    settings = settings_digest(speaker.model.identity, speaker.decoding.settings)
    signature = (
        f"{SIGNED}|inject{language.signed}|words:{request.most_words}|seed:{request.rng_seed}"
        f"|prompt:{language.prompts_digest(PROMPT)}|settings:{settings}"
        f"{adapted([speaker.model])}"
    )
    name = f"{request.file.stem}_stories.csv"
    texts = {name: as_csv(made, language), "signature.txt": f"{signature}\n"}
    files.write_all(request.out, texts)
    unanswered, path = sum(one is None for one in found.values()), request.out / name
    whole = {
        "rows": rows,
        "left_out": left_out,
        "unanswered": unanswered,
        "path": path,
        "signature": signature,
    }
    return Told(whole, [rows, f"stories: {len(made)}, in {path}"], unanswered, "stories")


def _read(request: Injecting) -> tuple[Language, list[OwnText]]:
    if request.most_words < 1:
        raise ConfigError(f"--words {request.most_words}: at least one is needed")
    if request.limit is not None and request.limit < 1:
        raise ConfigError(f"--limit {request.limit}: at least one story is needed")
    if request.out.is_file():
        raise ConfigError(f"--out {request.out} is a file; name a folder")
    known = {code: one for code, one in built_in().items() if code in COLUMNS}
    if request.language not in known:
        raise ConfigError(
            f"--language {request.language}: the kinds of error have names in {', '.join(known)}"
        )
    # MATEval's own stories have errors already; beside them stand those they were made of.
    columns = [*(plain(of.original) for of in COLUMNS.values()), *TEXTS]
    found = read_items(request.file, columns=columns)
    listed = [one for one in found if isinstance(one, OwnText)][: request.limit]
    if not listed:
        raise ConfigError(f"{request.file}: it holds pairs of answers; give stories, one a row")
    return known[request.language], listed

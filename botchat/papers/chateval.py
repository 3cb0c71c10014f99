"""ChatEval's two tasks (Chan et al. 2023, §3): upstream's files, and the question of an aspect.

*Answer comparison* (FairEval): a question and two answers, each of which gets a score from 1 to 10.
*Aspect rating* (Topical-Chat): how natural, coherent, engaging and grounded a response is.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain
from pathlib import PurePosixPath
from typing import NamedTuple

from botchat import prompts
from botchat.boards.judge_agreement import HUMAN_LABELS
from botchat.errors import DataError, MissingDataError, listed
from botchat.frames import read_text
from botchat.importers.tables import FileRow, json_rows, named
from botchat.interfaces import Case, ShownDialogue
from botchat.languages import ENGLISH
from botchat.metrics.agreement import ItemScore
from botchat.metrics.verdicts import TIE
from botchat.papers.benchmarks import (
    Benchmark,
    Files,
    RatedPart,
    RatedTexts,
    answer_pairs,
    refuse_several,
)
from botchat.pipeline.judge import ProtocolCases
from botchat.protocols.frame import neutralise, prompt_frame
from botchat.protocols.items import AnswerPair, read_label
from botchat.protocols.kinds import Score
from botchat.protocols.protocol import Protocol
from botchat.protocols.replies import plain_name
from botchat.protocols.scores import Scale, neutralise_labels
from botchat.records import Utterances

_SCALES = dict.fromkeys(("naturalness", "coherence", "engagingness"), (1, 3))
_SCALES["groundedness"] = (0, 1)
"""Lowest and highest score of the human labels (Mehri & Eskenazi 2020)."""

ASPECTS = {
    aspect: Protocol(
        f"aspect-{aspect}",
        f"Topical-Chat, {aspect}",
        Score(Scale(lowest, highest, (aspect.capitalize(),))),
        shows="one",
        question=f"one response: a score of its {aspect}",
        prompts=("aspect", f"aspect_{aspect}"),
    )
    for aspect, (lowest, highest) in _SCALES.items()
}

_ALL_ASPECTS = Scale(0, 3, tuple(_SCALES))
_FIELDS = "source, context, system_id, system_output and scores"


def json_files(files: Files) -> Iterator[tuple[str, list[FileRow]]]:
    """Yield (name, records) of every JSON file whose first record has named fields."""
    for name in sorted(files):
        if name.lower().endswith(".json"):
            records = json_rows(files[name], name)
            if records and isinstance(records[0].fields, dict):
                yield name, records


_REVIEW = re.compile(r"review_(.+)_(.+)_human\.txt")
_REVIEW_NAME = "review_MODEL_MODEL_human.txt"


class _Text(NamedTuple):
    """A question or an answer."""

    text: str
    category: str


class Response(NamedTuple):
    """One system's next turn in a conversation, and the mean human score of it by aspect."""

    id: str
    """Name of the conversation, which all systems continue."""
    contestant: str
    conversation: Utterances
    fact: str
    text: str
    scores: Mapping[str, float]


def aspect_case(response: Response, aspect: str) -> Case:
    """Return the case that asks how natural, coherent, engaging or grounded a response is."""
    protocol = ASPECTS[aspect]
    scale = protocol.score.asked
    return protocol.make_case(
        response.id,
        (ShownDialogue(response.contestant, (*response.conversation, response.text)),),
        ENGLISH.fill(
            "aspect",
            definition=prompts.text(f"aspect_{aspect}"),
            conversation=prompt_frame(ENGLISH).conversation(response.conversation),
            fact=neutralise_labels(neutralise(response.fact), _ALL_ASPECTS),
            response=neutralise_labels(neutralise(response.text), _ALL_ASPECTS),
            aspect=scale.names[0],
            lowest=str(scale.lowest),
            highest=str(scale.highest),
        ),
    )


def faireval(files: Files) -> Benchmark:
    """Return FairEval's pairs of answers; raises as `read_faireval`."""
    return answer_pairs("FairEval", read_faireval(files))


def read_faireval(files: Files) -> list[AnswerPair]:
    """Return FairEval's questions, answers and majority labels (Wang et al. 2023).

    ``files``, in any folders: ``question.jsonl``, ``answer_MODEL.jsonl`` of two models, and
    ``review_MODEL_MODEL_human.txt`` with one label a line in the order of the questions. A label is
    a model's name without punctuation, ``CHATGPT`` for gpt35, or ``TIE``. Raises `MissingDataError`
    if a file is missing, and `DataError` with file and line for faulty content.
    """
    paths = {PurePosixPath(path).name: path for path in sorted(files)}
    refuse_several([path for path in files if PurePosixPath(path).name == "question.jsonl"])
    review = next((name for name in paths if _REVIEW.fullmatch(name)), _REVIEW_NAME)
    models = _REVIEW.findall(review)[0]
    names = ["question.jsonl", f"answer_{models[0]}.jsonl", f"answer_{models[1]}.jsonl", review]
    if not set(names) <= set(paths):
        raise MissingDataError(
            f"FairEval needs question.jsonl, answer_MODEL.jsonl of two models, {_REVIEW_NAME} of "
            f"both; found {listed(paths) or 'no files'}"
        )
    tables = [_by_question(files, paths[name]) for name in names[:3]]
    questions, first, second = tables
    review = paths[review]
    labels = read_text(files[review], review).rstrip().splitlines()
    if len(labels) != len(questions):
        raise DataError(
            f"{review}: {len(labels)} labels for the {len(questions)} questions; give one a line"
        )
    pairs = []
    for line, (id_, label) in enumerate(zip(questions, labels, strict=True), 1):
        if plain_name(label) == "chatgpt" and "gpt35" in models:
            label = "gpt35"
        verdict = read_label(label.strip(), models, {"tie": TIE}, f"{review}:{line}: label")
        for name, texts in zip(names, tables, strict=False):
            if id_ not in texts:
                raise DataError(f"{paths[name]}: no answer to question {id_}; add it")
        question = questions[id_]
        answers = (first[id_].text, second[id_].text)
        pairs.append(AnswerPair(id_, question.text, models, answers, verdict, question.category))
    return pairs


def topical_chat(files: Files) -> Benchmark:
    """Return responses rated in four aspects; raises as `read_topical_chat`."""
    responses = read_topical_chat(files)
    parts = {}
    cases = []
    for aspect, protocol in ASPECTS.items():
        labels = [
            ItemScore(each.id, each.contestant, HUMAN_LABELS, each.scores[aspect])
            for each in responses
        ]
        parts[aspect] = RatedPart(protocol, 0, labels)
        cases.append(
            ProtocolCases(protocol, [partial(aspect_case, each, aspect) for each in responses])
        )
    rated = RatedTexts(
        "topicalchat",
        "chateval-table-2",
        "Topical-Chat: correlation with human scores (layout of ChatEval, Table 2)",
        "aspect",
        parts,
    )
    return Benchmark(cases, rated.compare)


def read_topical_chat(files: Files) -> list[Response]:
    """Return Topical-Chat's responses with mean human scores (Mehri & Eskenazi 2020).

    ``files``: one JSON file in the form that UniEval (Zhong et al. 2022) gave the labels, with
    ``source`` (utterances, one a line) and ``context`` (the fact). Raises `MissingDataError`
    without such a file, `DataError` with file and record for what is in it.
    """
    tables = {}
    for name, records in json_files(files):
        if {"source", "system_output"} <= set(records[0].fields):
            tables[name] = records
    refuse_several(list(tables))
    if not tables:
        raise MissingDataError(
            f"Topical-Chat needs a JSON file of records with {_FIELDS}; found "
            f"{listed(sorted(files)) or 'no files'}"
        )
    ids: dict[tuple[str, str], str] = {}
    responses = []
    for place, value in chain.from_iterable(tables.values()):
        record = named(value, place)
        try:
            source = str(record["source"])
            fact = str(record["context"])
            responses.append(
                Response(
                    ids.setdefault((source, fact), f"tc-{len(ids) + 1}"),
                    str(record["system_id"]),
                    tuple(line.strip() for line in source.split("\n") if line.strip()),
                    fact.strip(),
                    str(record["system_output"]).strip(),
                    {aspect: float(record["scores"][aspect]) for aspect in ASPECTS},
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{place}: no {error}; a record needs {_FIELDS} of {', '.join(ASPECTS)}"
            ) from None
    return responses


def _by_question(files: Files, name: str) -> dict[str, _Text]:
    """Return the texts of one JSON-lines file by question id, in its order."""
    texts: dict[str, _Text] = {}
    for place, value in json_rows(files[name], name):
        record = named(value, place)
        text = record.get("text")
        id_ = str(record.get("question_id", ""))
        if not isinstance(text, str):
            raise DataError(f"{place}: not a record with question_id and text")
        if not id_ or id_ in texts:
            raise DataError(f"{place}: question_id {id_!r:.60} is missing or there twice")
        texts[id_] = _Text(text, str(record.get("category") or ""))
    return texts

"""ChatEval's two tasks (Chan et al. 2023, §3): upstream's files, and the question of an aspect.

*Answer comparison* (FairEval): a question and two answers, each of which gets a score from 1 to 10.
*Aspect rating* (Topical-Chat): how natural, coherent, engaging and grounded a response is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import PurePosixPath
from typing import Any

from botchat import prompts
from botchat.errors import DataError, MissingDataError
from botchat.importers.rows import FileRow, json_rows, named, read_text
from botchat.interfaces import Case, ShownDialogue
from botchat.languages import ENGLISH
from botchat.protocols.answers import AnswerPair
from botchat.protocols.frame import neutralise, prompt_frame
from botchat.protocols.protocol import Protocol
from botchat.protocols.scores import Scale, neutralise_labels

_SCALES = {
    "naturalness": (1, 3),
    "coherence": (1, 3),
    "engagingness": (1, 3),
    "groundedness": (0, 1),
}
"""Lowest and highest score, those of the people's labels (Mehri & Eskenazi 2020)."""

ASPECTS: Mapping[str, Protocol] = {
    aspect: Protocol(
        f"aspect-{aspect}",
        f"Topical-Chat, {aspect}",
        kind="score",
        shows="one",
        question=f"one response: a score of its {aspect}",
        prompts=("aspect", f"aspect_{aspect}"),
        scale=Scale(lowest, highest, (aspect.capitalize(),)),
    )
    for aspect, (lowest, highest) in _SCALES.items()
}

_ALL_ASPECTS = Scale(0, 3, tuple(_SCALES))


@dataclass(frozen=True)
class Response:
    """One system's next turn in a conversation, and people's mean score of it by aspect."""

    id: str
    """Of the conversation, which all systems continue."""
    contestant: str
    conversation: tuple[str, ...]
    fact: str
    text: str
    scores: Mapping[str, float]


def aspect_case(response: Response, aspect: str) -> Case:
    """The question how natural, coherent, engaging or grounded a response is."""
    protocol = ASPECTS[aspect]
    scale = protocol.asked_scale
    return protocol.asked(
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


def faireval(files: Mapping[str, bytes]) -> list[AnswerPair]:
    """FairEval's questions, answers and people's majority labels (Wang et al. 2023).

    ``files``: name -> content, in any folders: ``question.jsonl``, ``answer_MODEL.jsonl`` of two
    models, ``review_MODEL_MODEL_human.txt`` with one label a line (a model's name without
    punctuation, ``CHATGPT`` for gpt35, or ``TIE``) in the order of the questions. Raises
    `MissingDataError` without one of them, `DataError` with file and line for what is in them.
    """
    by_name = {PurePosixPath(name).name: name for name in sorted(files)}
    answer_files = {
        match[1]: name
        for base, name in by_name.items()
        if (match := re.fullmatch(r"answer_(.+)\.jsonl", base))
    }
    review = [
        (f"review_{one}_{two}_human.txt", one, two) for one, two in product(answer_files, repeat=2)
    ]
    found = next((each for each in review if each[0] in by_name), None)
    if "question.jsonl" not in by_name or found is None:
        raise MissingDataError(
            "FairEval needs question.jsonl, answer_MODEL.jsonl of two models and "
            "review_MODEL_MODEL_human.txt that names both; found "
            f"{', '.join(by_name) or 'no files'}"
        )
    review_file, *models = by_name[found[0]], *found[1:]
    questions = _by_question(files, by_name["question.jsonl"])
    answers = [_by_question(files, answer_files[model]) for model in models]
    said = read_text(files[review_file], review_file).rstrip().splitlines()
    if len(said) != len(questions):
        raise DataError(
            f"{review_file}: {len(said)} labels for the {len(questions)} questions of "
            f"{by_name['question.jsonl']}; give one a line"
        )
    one, two = models
    meant = {_plain(one): "1", _plain(two): "2", "tie": "tie"}
    pairs = []
    for line, (id_, label) in enumerate(zip(questions, said, strict=True), 1):
        name = _plain(label).replace("chatgpt", "gpt35")
        if name not in meant:
            raise DataError(
                f"{review_file}:{line}: label {label.strip()!r} is neither {one}, {two} nor TIE"
            )
        for model, texts in zip(models, answers, strict=True):
            if id_ not in texts:
                raise DataError(f"{answer_files[model]}: no answer to question {id_}; add it")
        text, category = questions[id_]
        shown = answers[0][id_][0], answers[1][id_][0]
        pairs.append(AnswerPair(id_, text, (one, two), shown, meant[name], category))
    return pairs


def topical_chat(files: Mapping[str, bytes]) -> list[Response]:
    """Topical-Chat's responses with people's mean scores (Mehri & Eskenazi 2020).

    ``files``: name -> content; one JSON file in the form that UniEval (Zhong et al. 2022) gave the
    labels: a list of records with ``source`` (utterances, one a line), ``context`` (the fact),
    ``system_id``, ``system_output`` and ``scores``. Raises `MissingDataError` without such a file,
    `DataError` with file and record for what is in it.
    """
    for name in sorted(files):
        if PurePosixPath(name).suffix.lower() != ".json":
            continue
        records = list(json_rows(files[name], name))
        first = records[0].fields if records else None
        if isinstance(first, dict) and {"source", "system_output"} <= set(first):
            ids: dict[tuple[str, str], str] = {}
            return [_response(record, ids) for record in records]
    raise MissingDataError(
        "Topical-Chat needs a JSON file of records with source, context, system_id, system_output "
        f"and scores; found {', '.join(sorted(files)) or 'no files'}"
    )


def _by_question(files: Mapping[str, bytes], name: str) -> dict[str, tuple[str, str]]:
    """Question id -> text and category of one JSON-lines file, in its order."""
    texts: dict[str, tuple[str, str]] = {}
    for place, value in json_rows(files[name], name):
        record = named(value, place)
        text = record.get("text")
        if not isinstance(text, str):
            raise DataError(f"{place}: not a record with question_id and text")
        id_ = str(record.get("question_id", ""))
        if not id_ or id_ in texts:
            raise DataError(f"{place}: question_id {id_!r} is missing or there twice")
        texts[id_] = text, str(record.get("category", ""))
    return texts


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _response(row: FileRow, ids: dict[tuple[str, str], str]) -> Response:
    record = named(row.fields, row.place)
    try:
        scores: Any = record["scores"]
        source, fact = str(record["source"]), str(record["context"])
        return Response(
            id=ids.setdefault((source, fact), f"tc-{len(ids) + 1}"),
            contestant=str(record["system_id"]),
            conversation=tuple(line.strip() for line in source.split("\n") if line.strip()),
            fact=fact.strip(),
            text=str(record["system_output"]).strip(),
            scores={aspect: float(scores[aspect]) for aspect in ASPECTS},
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{row.place}: no {error}; a record needs source, context, system_id, system_output "
            f"and scores of {', '.join(ASPECTS)}"
        ) from None

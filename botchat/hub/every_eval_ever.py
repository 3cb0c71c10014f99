"""A set's board as records of Every Eval Ever, the shared format of the EvalEval coalition.

Fields are those of its ``eval.schema.json`` 0.3.0 (github.com/evaleval/every_eval_ever): a record a
model with every number that a protocol is quoted or ranked by. People are what models are measured
by, and have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any
from uuid import UUID

from botchat.boards.board import Board
from botchat.boards.protocols import Part, Place
from botchat.boards.tables import Column
from botchat.boards.writers import to_json
from botchat.errors import ConfigError
from botchat.interfaces import Row
from botchat.measures.annotations import is_person
from botchat.pipeline.run.contestants import panel_of
from botchat.records import HUMAN, VERSION, Dialogues
from botchat.workspace import config
from botchat.workspace.entries import OPENAI_URL
from botchat.workspace.folder import Workspace
from botchat.workspace.panels import CascadeSettings

SCHEMA_VERSION = "0.3.0"

_KINDS = {"bt": "bradley_terry", "elo": "elo"}


UNKNOWN = "unknown"
"""Organization of a run whose makers are not named."""


def records(
    workspace: Workspace, board: Board, dialogues: Dialogues, organization: str | None = None
) -> dict[str, str]:
    """Path -> content of a record for each model of a board, as their datastore wants them.

    ``organization``: who made the run.
    """
    judged = workspace.judgment_files(board.seed_set)[board.judge].values()
    at = max(path.stat().st_mtime for path in judged)
    judges = [_model(workspace, one) for one in dict.fromkeys(_judges(workspace, board.judge))]
    found = {}
    for model in board.frame["model"]:
        asked = next((one.signature for one in dialogues.get(model, {}).values()), "")
        if model == HUMAN or not (results := list(_results(board, judges, model, asked))):
            continue
        identity = "/".join(("botchat", board.seed_set, board.judge, model))
        digest = sha256("\0".join((identity, *board.main.signatures)).encode()).digest()
        evaluation_id = f"{identity}/{digest.hex()[:16]}"
        for one in results:
            metric = one["metric_config"]["metric_id"]
            one["evaluation_result_id"] = f"{evaluation_id}#{metric}"
        info = _model(workspace, model)
        record = {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": evaluation_id,
            "retrieved_timestamp": f"{at:.0f}",
            "source_metadata": {
                "source_name": "BotChat",
                "source_type": "evaluation_run",
                "source_organization_name": organization or UNKNOWN,
                "evaluator_relationship": "other",
            },
            "eval_library": {"name": "botchat", "version": VERSION},
            "model_info": info,
            "evaluation_results": results,
        }
        place = (f"botchat-{board.seed_set}", info["developer"], info["id"].rpartition("/")[2])
        folder = "/".join(map(_file_name, place))
        found[f"data/{folder}/{UUID(bytes=digest[:16], version=4)}.json"] = to_json(record)
    return found


def _results(board: Board, judges: Sequence[Row], model: str, asked: str) -> Iterator[Row]:
    """A model's numbers; ``asked``: signature of its dialogues, which says how it was asked."""
    generation = {"generation_config": {"additional_details": {"signature": asked}}}
    for part in board.parts:
        row = next((one for one in part.table.records if one["model"] == model), {})
        for column in _metrics(part):
            if (value := row.get(column.key)) is None:
                continue
            ends = part.table.ends(column.key)
            low, high = (row[end.key] for end in ends) if ends else (None, None)
            interval: Row = {}
            if low is not None and high is not None:
                interval["confidence_interval"] = {
                    "lower": low,
                    "upper": high,
                    "confidence_level": 0.95,
                    "method": "for other ChatSEEDs; see docs/statistics.md of BotChat",
                }
            if (n := _cases(part, column, row)) is not None:
                interval["num_samples"] = n
            scored: Row = {"score": value, "details": {"signature": part.table.signature}}
            yield {
                "evaluation_name": f"botchat.{board.seed_set}.{part.protocol.name}",
                "source_data": {
                    "dataset_name": board.seed_set,
                    "source_type": "other",
                    "additional_details": {
                        "seeds": board.seeds_signature,
                        "language": part.protocol.language.code,
                        **({"invented": "true"} if board.invented else {}),
                    },
                },
                "metric_config": _metric(board, judges, part, column),
                "score_details": scored | ({"uncertainty": interval} if interval else {}),
                **(generation if asked else {}),
            }


def _metrics(part: Part) -> list[Column]:
    """What a protocol is ranked and quoted by, once."""
    return list({one.key: one for one in (*part.ranking, *part.quoted)}.values())


def _cases(part: Part, column: Column, row: Row) -> int | None:
    """How many cases with a verdict a number is from, where the table says it."""
    for of in (column.key, ""):
        with suppress(KeyError):
            return int(row[part.table.column(role="readable", of=of).key])
    return None


def _metric(board: Board, judges: Sequence[Row], part: Part, column: Column) -> Row:
    protocol = part.protocol
    quoted = part.quote(column)
    bounds: tuple[Any, Any, str, str] = ("-Infinity", "Infinity", "rating", "Elo points")
    if column.kind == "rate":
        bounds = (0, 1, "success_rate" if isinstance(part, Place) else "win_rate", "proportion")
    elif column.kind == "decimal" and protocol.scale is not None:
        bounds = (protocol.scale.lowest, protocol.scale.highest, "judge_score", "points")
    lowest, highest, kind, unit = bounds
    found: Row = {
        "evaluation_description": f"{protocol.title}: {protocol.question}",
        "metric_id": f"botchat.{quoted.key}",
        "metric_name": quoted.heading,
        "metric_kind": _KINDS.get(column.key, kind),
        "metric_unit": unit,
        "metric_parameters": {"utterances": column.n or protocol.n, "orders": protocol.orders},
        "lower_is_better": False,
        "score_type": "continuous",
        "min_score": lowest,
        "max_score": highest,
        "additional_details": {"judge": board.judge},
    }
    if judges:
        found["llm_scoring"] = {
            "judges": [{"model_info": one} for one in judges],
            "input_prompt": "\n\n".join(protocol.texts),
        }
    return found


def _file_name(text: str) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._ ") or "unknown"


def _model(workspace: Workspace, name: str) -> Row:
    """A contestant or a judge's model as others know it, as far as its name or its entry says."""
    id_, (deployment, weights, platform) = _known_as(workspace, name)
    return {
        "name": name,
        "id": id_,
        "developer": id_.rpartition("/")[0] or UNKNOWN,
        **({"inference_platform": platform} if platform else {}),
        "additional_details": {"deployment_type": deployment, "model_availability": weights},
    }


_HERE = ("self_deployed", "open_weights", "")
_NOT_SAID = (UNKNOWN, UNKNOWN, "")


def _known_as(workspace: Workspace, name: str) -> tuple[str, tuple[str, str, str]]:
    """``ORG/NAME``, as on the Hugging Face hub where it is there; where, whose, who serves it."""
    entry = next((e for e in workspace.config.models.values() if e.label == name), None)
    try:
        named = config.model_name(name, workspace.config)
    except ConfigError:
        if entry is None:
            return name, _NOT_SAID
        named = config.ModelName("endpoint", name, entry)
    if named.kind == "bot":
        return f"botchat/{named.target}", _HERE
    if named.settings is None:
        return name, _NOT_SAID
    model = named.settings.model
    if named.settings.base_url.rstrip("/") == OPENAI_URL:
        return f"openai/{model}", ("externally_managed", "closed_weights", "OpenAI")
    return model, _NOT_SAID


def _judges(workspace: Workspace, judge: str) -> Iterator[str]:
    """The models that a judge asks; none: rules, or people."""
    if judge in config.OFFLINE or is_person(judge, HUMAN):
        return
    panel = panel_of(workspace, judge)
    if panel is None:
        entry = workspace.config.judges.get(judge)
        yield entry.model if entry else judge
    elif isinstance(panel, CascadeSettings):
        yield from _judges(workspace, panel.cheap)
        yield from _judges(workspace, panel.strong)
    else:
        default = judge.partition("@")[2] or panel.model or UNKNOWN
        yield from (member.model or default for member in panel.members)

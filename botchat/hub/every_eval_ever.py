"""A set's board as records of Every Eval Ever, the shared format of the EvalEval coalition.

Fields are those of its ``eval.schema.json`` 0.3.0 (github.com/evaleval/every_eval_ever): a record a
model with every number that a protocol is quoted or ranked by. People are what models are measured
by, and have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from botchat.boards.board import Board
from botchat.boards.protocols import Part, Place
from botchat.boards.tables import Column
from botchat.boards.writers import to_json
from botchat.errors import ConfigError
from botchat.interfaces import Row
from botchat.measures.annotations import is_person
from botchat.pipeline.run.contestants import panel_of
from botchat.pipeline.run.session import RULES
from botchat.records import HUMAN, VERSION, Dialogues
from botchat.workspace import config
from botchat.workspace.entries import LOCAL, OPENAI_URL
from botchat.workspace.folder import Workspace
from botchat.workspace.panels import CascadeSettings

if TYPE_CHECKING:
    from botchat.boards.board import Board


SCHEMA_VERSION = "0.3.0"

_KINDS = {"bt": "bradley_terry", "elo": "elo"}


@dataclass(frozen=True)
class Subject:
    """A model as others know it: contestants have names of one workspace."""

    id: str
    """``ORG/NAME``, as on the Hugging Face hub where it is there; else whatever is known."""
    deployment: Literal["self_deployed", "externally_managed", "unknown"] = "unknown"
    weights: Literal["open_weights", "closed_weights", "unknown"] = "unknown"
    platform: str = ""
    """Who serves it."""
    signature: str = ""
    """Of its dialogues: how it was asked."""

    @property
    def developer(self) -> str:
        """What stands before the name."""
        return self.id.rpartition("/")[0] or "unknown"


@dataclass(frozen=True)
class Source:
    """What a board does not know of itself."""

    subject: Callable[[str], Subject]
    """Contestant, or judge's model -> who it is."""
    judges: Sequence[str]
    """Models that the board's judge asks; empty: rules, or people."""
    organization: str
    """Who made the run."""
    at: float
    """When the newest judgment was stored, in seconds since 1970."""


def files_of(board: Board, source: Source) -> dict[str, str]:
    """Path -> content of a record for each model, as its datastore wants them."""
    found = {}
    for model in board.frame["model"]:
        if model == HUMAN or not (results := list(_results(board, source, model))):
            continue
        subject = source.subject(model)
        identity = "/".join(("botchat", board.seed_set, board.judge, model))
        digest = sha256("\0".join((identity, *board.main.signatures)).encode()).digest()
        evaluation_id = f"{identity}/{digest.hex()[:16]}"
        for one in results:
            metric = one["metric_config"]["metric_id"]
            one["evaluation_result_id"] = f"{evaluation_id}#{metric}"
        record = {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": evaluation_id,
            "retrieved_timestamp": f"{source.at:.0f}",
            "source_metadata": {
                "source_name": "BotChat",
                "source_type": "evaluation_run",
                "source_organization_name": source.organization,
                "evaluator_relationship": "other",
            },
            "eval_library": {"name": "botchat", "version": VERSION},
            "model_info": _model_info(model, subject),
            "evaluation_results": results,
        }
        place = (f"botchat-{board.seed_set}", subject.developer, subject.id.rpartition("/")[2])
        folder = "/".join(map(_file_name, place))
        found[f"data/{folder}/{UUID(bytes=digest[:16], version=4)}.json"] = to_json(record)
    return found


def _results(board: Board, source: Source, model: str) -> Iterator[Row]:
    subject = source.subject(model)
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
            scored: Row = {
                "score": value,
                "details": {"signature": part.table.signature},
            }
            yield {
                "evaluation_name": f"botchat.{board.seed_set}.{part.protocol.name}",
                "source_data": {
                    "dataset_name": board.seed_set,
                    "source_type": "other",
                    "additional_details": {
                        "seeds": board.seeds_signature,
                        "language": part.protocol.language.code,
                    },
                },
                "metric_config": _metric(board, source, part, column),
                "score_details": scored | ({"uncertainty": interval} if interval else {}),
                **_generation(subject),
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


def _metric(board: Board, source: Source, part: Part, column: Column) -> Row:
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
    if source.judges:
        found["llm_scoring"] = {
            "judges": [
                {"model_info": _model_info(name, source.subject(name))} for name in source.judges
            ],
            "input_prompt": "\n\n".join(protocol.texts),
        }
    return found


def _model_info(name: str, subject: Subject) -> Row:
    return {
        "name": name,
        "id": subject.id,
        "developer": subject.developer,
        **({"inference_platform": subject.platform} if subject.platform else {}),
        "additional_details": {
            "deployment_type": subject.deployment,
            "model_availability": subject.weights,
        },
    }


def _generation(subject: Subject) -> Row:
    """How the model was asked, in the words of its dialogues' signature."""
    if not subject.signature:
        return {}
    return {"generation_config": {"additional_details": {"signature": subject.signature}}}


def _file_name(text: str) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._ ") or "unknown"


UNKNOWN = "unknown"
"""Organization of a run whose makers are not named."""


def records(
    workspace: Workspace, board: Board, dialogues: Dialogues, organization: str | None = None
) -> dict[str, str]:
    """Path -> content of a record for each model of a board.

    ``organization``: who made the run.
    """
    judged = workspace.judgment_files(board.seed_set)[board.judge].values()
    source = Source(
        partial(subject, workspace, dialogues),
        tuple(dict.fromkeys(_judges(workspace, board.judge))),
        organization or UNKNOWN,
        max(path.stat().st_mtime for path in judged),
    )
    return files_of(board, source)


def subject(workspace: Workspace, dialogues: Dialogues, name: str) -> Subject:
    """Who a contestant or a judge's model is elsewhere, as far as its name or its entry says."""
    signature = next((one.signature for one in dialogues.get(name, {}).values()), "")
    entry = next((e for e in workspace.config.models.values() if e.label == name), None)
    try:
        named = config.model_name(name, workspace.config)
    except ConfigError:
        if entry is None:
            return Subject(name, signature=signature)
        named = config.ModelName("endpoint", name, entry)
    if named.kind == "bot":
        return Subject(f"botchat/{named.target}", "self_deployed", "open_weights", "", signature)
    if named.kind == "local":
        return Subject(
            named.name.removeprefix(LOCAL), "self_deployed", "open_weights", "", signature
        )
    if named.settings is None:
        return Subject(name, signature=signature)
    model = named.settings.model
    if named.settings.base_url.rstrip("/") == OPENAI_URL:
        id_ = f"openai/{model}"
        return Subject(id_, "externally_managed", "closed_weights", "OpenAI", signature)
    return Subject(model, signature=signature)


def _judges(workspace: Workspace, judge: str) -> Iterator[str]:
    """The models that a judge asks; none: rules, or people."""
    if judge == RULES or is_person(judge, HUMAN):
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

"""A board as records of Every Eval Ever: what its schema and its datastore ask of each."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import botchat
from botchat.cli.main import main
from botchat.records import HUMAN, Seed
from botchat.workspace.folder import Workspace
from tests.openai_server import Server

TOP = {
    "schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info",
    "eval_library", "evaluation_results",
}  # fmt: skip
"""Required, and beside them only these two may be there."""
MAY = {"evaluation_timestamp", "detailed_evaluation_results"}
RESULT = {"evaluation_name", "source_data", "metric_config", "score_details"}
METRIC = {
    "evaluation_description", "metric_id", "metric_name", "metric_kind", "metric_unit",
    "metric_parameters", "lower_is_better", "score_type", "level_names", "level_metadata",
    "has_unknown_level", "min_score", "max_score", "llm_scoring", "additional_details",
}  # fmt: skip
PATH = re.compile(r"data/[A-Za-z0-9._-]+/[A-Za-z0-9._-]+/[A-Za-z0-9._-]+/([0-9a-f-]{36})\.json")


def check(path: str, record: dict[str, Any]) -> None:
    """Whether a record is one: facts of eval.schema.json 0.3.0 and of the datastore's checks."""
    found = PATH.fullmatch(path)
    assert found is not None
    assert UUID(found[1]).version == 4
    assert TOP <= set(record) <= TOP | MAY
    assert record["schema_version"] == "0.3.0"
    assert float(record["retrieved_timestamp"]) > 0
    source = record["source_metadata"]
    assert source["source_type"] in ("documentation", "evaluation_run")
    assert source["evaluator_relationship"] in (
        "first_party", "third_party", "collaborative", "other",
    )  # fmt: skip
    assert source["source_organization_name"]
    assert {"name", "version"} <= set(record["eval_library"])
    check_model(record["model_info"])
    assert record["evaluation_results"]
    for result in record["evaluation_results"]:
        assert set(result) >= RESULT
        assert result["source_data"]["source_type"] in ("url", "hf_dataset", "other")
        assert result["source_data"]["dataset_name"]
        metric, scored = result["metric_config"], result["score_details"]
        assert set(metric) <= METRIC
        assert isinstance(metric["lower_is_better"], bool)
        assert metric["score_type"] == "continuous"
        lowest, highest = (float(metric[key]) for key in ("min_score", "max_score"))
        ends = scored["uncertainty"]["confidence_interval"]
        assert lowest <= ends["lower"] <= scored["score"] <= ends["upper"] <= highest
        assert math.isfinite(scored["score"])
        assert ends["confidence_level"] == 0.95
        assert isinstance(scored["uncertainty"]["num_samples"], int)
        told = [metric, scored.get("details"), result["source_data"].get("additional_details")]
        for strings in (metric["additional_details"], *told[1:]):
            assert all(isinstance(one, str) for one in (strings or {}).values())
        if "llm_scoring" in metric:
            assert metric["llm_scoring"]["input_prompt"]
            assert metric["llm_scoring"]["judges"]
            for judge in metric["llm_scoring"]["judges"]:
                check_model(judge["model_info"])
    names = [one["evaluation_result_id"] for one in record["evaluation_results"]]
    assert len(set(names)) == len(names)


def check_model(told: dict[str, Any]) -> None:
    """Whether this is a model of theirs."""
    assert {"name", "id", "additional_details"} <= set(told)
    details = told["additional_details"]
    assert details["deployment_type"] in ("self_deployed", "externally_managed", "unknown")
    assert details["model_availability"] in ("open_weights", "closed_weights", "unknown")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Two bots and people, judged by rules and by a served model."""
    with Server() as server:
        yield judged(Workspace(tmp_path_factory.mktemp("mine")), server)


def judged(workspace: Workspace, server: Server) -> Workspace:
    """The same in an empty workspace."""
    workspace.write_seeds(
        "s", [Seed(str(n), ("Hi.", "Oh, hi.", "So?", "No!", "Yes!")) for n in range(4)]
    )
    (workspace.root / "botchat.toml").write_text(
        f'[models.j]\nmodel = "Org/Judge-8B"\nbase_url = "{server.url}"\n'
    )
    botchat.generate(workspace, "s", ["bot:verbose", "bot:parrot"], turns=5)
    for judge in ("rules", "j"):
        botchat.judge(workspace, "unieval", "s", judge)
    botchat.judge(workspace, "arena", "s", "rules", turns=[5])
    botchat.judge(workspace, "gteval", "s", "rules")
    return workspace


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Path -> record."""
    return {
        path.relative_to(folder).as_posix(): json.loads(path.read_text("utf-8"))
        for path in folder.rglob("*.json")
    }


@pytest.mark.parametrize("judge", ["rules", "j"])
def test_a_record_for_each_model(judge: str, run: Workspace, tmp_path: Path) -> None:
    """With the numbers of the board and their intervals; people are no model."""
    out = tmp_path / "out"
    asked = ["share", "export", "--as", "eee", "--out", str(out), "--seeds", "s"]
    asked += ["--judge", judge, "--dir", str(run.root)]
    assert main([*asked, "--organization", "A lab"]) == 0
    found = read(out)
    assert {record["model_info"]["id"] for record in found.values()} == {
        "botchat/verbose", "botchat/parrot",
    }  # fmt: skip
    rows = {row["model"]: row for row in botchat.leaderboard(run, "s", judge).rows}
    assert HUMAN in rows
    for path, record in found.items():
        check(path, record)
        row = rows[record["model_info"]["name"]]
        assert record["source_metadata"]["source_organization_name"] == "A lab"
        told = {}
        for one in record["evaluation_results"]:
            key = one["metric_config"]["metric_id"].removeprefix("botchat.")
            score = one["score_details"]
            ends = score["uncertainty"]["confidence_interval"]
            told[key] = (score["score"], ends["lower"], ends["upper"])
            prompt = one["metric_config"].get("llm_scoring")
            assert (prompt is None) == (judge == "rules")
            if prompt:
                (judging,) = prompt["judges"]
                assert judging["model_info"]["id"] == "Org/Judge-8B"
                assert judging["model_info"]["developer"] == "Org"
        for key, value in told.items():
            if f"{key}_low" in row:
                assert value == (row[key], row[f"{key}_low"], row[f"{key}_high"])
        assert any(key.startswith("success_n") for key in told)
        assert ("bt_n5" in told) == ("gteval_win_or_tie" in told) == (judge == "rules")


def test_the_same_records_again(run: Workspace, tmp_path: Path) -> None:
    """To the byte, also beside a leaderboard; a folder with anything else is left alone."""
    out = tmp_path / "out"
    made = [botchat.export(run, "s", out, "eee", judge="rules") for _ in range(2)]
    assert made[0] == made[1]
    asked = ["leaderboard", "--seeds", "s", "--judge", "rules", "--dir", str(run.root)]
    assert main([*asked, "--no-png", "--format", "eee", "--format", "csv"]) == 0
    assert read(run.out("s") / "eee") == read(out)
    assert not list(run.out("s").glob("*.eee"))
    (out / "data" / "mine.txt").write_text("x")
    with pytest.raises(botchat.errors.ConfigError, match=r"holds data/mine\.txt, which is not of"):
        botchat.export(run, "s", out, "eee", judge="rules")


def test_whose_board_must_be_said(run: Workspace, tmp_path: Path) -> None:
    """Two have judged."""
    with pytest.raises(botchat.errors.ConfigError, match="several judges have judged s: name one"):
        botchat.export(run, "s", tmp_path / "out", "eee")

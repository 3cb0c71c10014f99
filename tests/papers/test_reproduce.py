"""`botchat bench PAPER --table N`: experiments over real HTTP, beside the paper's numbers."""

from __future__ import annotations

import hashlib
import json
import re
from statistics import stdev

import pytest

from botchat.cli.main import main
from tests.openai_server import Server, text
from tests.papers.test_bench import faireval, needs, said, scorer, url
from tests.rows import rows

pytestmark = pytest.mark.usefixtures("quick")

__all__ = ["faireval"]


def rows_of(found: dict, values: str) -> dict[str, dict]:
    """The rows of a kind by how the model was asked."""
    return {row["methods"]: row for row in found["rows"] if row["values"] == values}


def unsteady(call):
    """Scores that differ from one question, and from one draw, to the next."""
    asked = f"{call.messages[-1]['content']} {call.body.get('seed')}"
    first, second = hashlib.sha256(asked.encode()).digest()[:2]
    return text(f"Score of Assistant 1: {first % 9 + 1}\nScore of Assistant 2: {second % 9 + 1}")


def test_table_1_is_planned_run_and_resumed_with_ours_beside_the_papers(faireval, tmp_path, capsys):
    """Four ways to ask, two runs: calls as planned, none twice, mean ± std as worked out."""
    place = ["--dir", tmp_path / "w"]
    with Server(unsteady) as server:
        bench = ["bench", "chateval", "--table", 1, "--data", faireval, "--as", "GPT-4"]
        bench += ["--judge", url(server), "--limit", 3, "--runs", 2, *place]
        planned = said(capsys, *bench, "--plan")["rows"]
        (calls,) = {row["calls"] for row in planned}
        # 3 questions, 2 orders, 2 runs; 1 call of one agent, 3 samples, 3 roles, a talk of 4.
        assert calls == 3 * 2 * 2 * (1 + 3 + 3 + 4)
        assert server.n_received == 0
        assert main([*map(str, bench), "--max-calls", "50"]) == 3
        found = said(capsys, *bench)
        assert server.n_received == calls
        again = said(capsys, *bench)
        assert server.n_received == calls
        assert again["rows"] == found["rows"]
        one = said(capsys, *bench, "--runs", 1)
        two = said(capsys, "bench", "chateval", "--table", 1, "--data", faireval, *place)
    ours, paper, apart = (rows_of(found, kind) for kind in ("ours", "published", "difference"))
    assert list(ours) == [
        "MEC+BPC", "Single-Agent", "Multi-Agent (Ensemble)", "Multi-Agent (ChatEval)",
    ]  # fmt: skip
    assert paper["Multi-Agent (ChatEval)"]["accuracy"] == pytest.approx(0.638)
    assert paper["Multi-Agent (ChatEval)"]["accuracy_std"] == pytest.approx(0.009)
    single = ours["Single-Agent"]
    assert (single["runs"], single["n"]) == (2, 6)
    first = rows_of(one, "ours")["Single-Agent"]["accuracy"]
    second = 2 * single["accuracy"] - first
    assert single["accuracy_std"] == pytest.approx(stdev([first, second]), abs=5e-4)
    assert apart["Single-Agent"]["accuracy"] == pytest.approx(single["accuracy"] - 0.608)
    # Without --judge nobody stands for GPT-4: the model has lines of its own.
    assert {row["evaluator"] for row in two["rows"] if row["values"] == "ours"} == {url(server)}
    remarks = {row["evaluator"]: row["remark"] for row in two["rows"] if row["remark"]}
    assert remarks["GPT-4"] == "not run: needs GPT-4"
    out = tmp_path / "w" / "leaderboards" / "bench-faireval" / "chateval-table-1"
    assert "±" in (out / "agreement.md").read_text()
    assert (out / "chateval-table-1.csv").exists()


def test_a_grid_is_a_judge_a_point_and_runs_are_draws_of_their_own(faireval, tmp_path, capsys):
    """`--grid`: files of their own, agents and rounds as said; the ledger keeps runs apart."""
    place = ["--dir", tmp_path / "w"]
    with Server(scorer) as server:
        bench = ["bench", "faireval", "--data", faireval, "--judge", "chateval-default"]
        bench += ["--judge-model", url(server), "--limit", 1, *place]
        found = said(capsys, *bench, "--grid", "roles=1,2", "rounds=1,3", "--runs", 2)
        asked = {row["roles"] + "×" + row["rounds"]: row for row in found["rows"]}
        assert set(asked) == {"1×1", "1×3", "2×1", "2×3"}
        assert all(row["runs"] == 2 for row in asked.values())
        # One question, both orders, two runs. What two points ask alike is asked once: of one role
        # 3 rounds, of two another first speaker's answer and 2 rounds more.
        assert server.n_received == 2 * 2 * (3 + 1 + 4)
        said(capsys, *bench, "--grid", "roles=2", "rounds=3", "--runs", 2)
        assert server.n_received == 2 * 2 * (3 + 1 + 4)
    files = [*(tmp_path / "w" / "judgments" / "bench-faireval" / "answers").iterdir()]
    assert len(files) == 8
    names = {json.loads(file.read_text().splitlines()[0])["judge"] for file in files}
    assert f"chateval-default[roles=2,rounds=3]@{url(server)} (run 2)" in names


def test_two_models_never_share_a_line_and_money_is_that_of_all_calls(faireval, tmp_path, capsys):
    """`--as` gives the paper's line to the judge named; Table 6 counts dollars of the whole set."""
    w = tmp_path / "w"
    w.mkdir()
    with Server(scorer) as server:
        (w / "botchat.toml").write_text(
            "".join(
                f'[models.{name}]\nmodel = "m{n}"\nlabel = "{name}"\nbase_url = "{server.url}"\n'
                f"price_input = 1000.0\nprice_output = {1000.0 * n}\n"
                for n, name in enumerate(("gpt-4", "other"), 1)
            )
        )
        bench = ["bench", "chateval", "--table", 6, "--data", faireval, "--dir", w]
        said(capsys, *bench, "--judge", "gpt-4", "--limit", 2)
        found = said(capsys, *bench, "--judge", "other", "--limit", 2, "--as", "GPT-4")
    lines = {
        row["evaluator"]: row for row in found["rows"] if row["values"] == "ours"
    }  # fmt: skip
    assert list(lines) == [
        "GPT-4(SA)", "GPT-4(EN)", "GPT-4(MA)", "FairEval-GPT-4",
        "gpt-4(SA)", "gpt-4(EN)", "gpt-4(MA)", "FairEval-gpt-4",
    ]  # fmt: skip
    stats = said(capsys, "ledger", "stats", "--dir", w)["rows"]
    spent = sum(row["cost_usd"] for row in stats if row["model"] == "gpt-4")
    mine = [row["usd"] for name, row in lines.items() if "gpt-4" in name]
    assert sum(mine) == pytest.approx(spent, abs=1e-3)


def test_topical_chat_knows_its_metrics_and_what_is_missing(tmp_path, capsys):
    """Table 2 without a judge: ROUGE-L and BLEU-4 computed here within 0.04 of the paper's."""
    folder = needs("topicalchat")
    pytest.importorskip("sacrebleu", reason="needs the extra botchat-bench[metrics]")
    pytest.importorskip("rouge_score", reason="needs the extra botchat-bench[metrics]")
    found = said(
        capsys, "bench", "chateval", "--table", 2, "--data", folder, "--dir", tmp_path / "w"
    )
    apart = {row["metrics"]: row for row in found["rows"] if row["values"] == "difference"}
    # The paper's tau is Pearson's r.
    for name in ("ROUGE-L, r as τ", "BLEU-4, r as τ"):
        numbers = [v for k, v in apart[name].items() if re.search("(spearman|kendall)$", k)]
        assert len(numbers) == 10
        assert max(map(abs, numbers)) < 0.04
    assert apart["ROUGE-L"]["naturalness_kendall"] < -0.05


@pytest.mark.parametrize(
    ("command", "said_"),
    rows("what_cannot_be_reproduced_is_refused_in_one_line"),
)
def test_what_cannot_be_reproduced_is_refused_in_one_line(
    command, said_, faireval, tmp_path, capsys
):
    """What, which value, what to do."""
    paper, *rest = command.split()
    arguments = ["bench", paper, "--data", str(faireval), "--dir", str(tmp_path / "w"), *rest]
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert said_ in error
    assert error.count("\n") == 1

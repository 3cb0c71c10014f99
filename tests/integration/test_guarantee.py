"""A cascade with a guarantee, over real HTTP: calibrated, planned, stopped, resumed, compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from botchat.cli.main import main
from botchat.records import Judgment, Seed
from botchat.workspace import files
from tests.commands import refused, said
from tests.openai_server import Server, text

N_SEEDS, SLICE = 12, 5
N_CASES = 2 * 2 * N_SEEDS
"""GTEval: two bots, both orders."""

TOML = f"""
[panels.kept]
strategy = "cascade"
cheap = "small"
strong = "large"
alpha = 0.3
delta = 0.2
calibration_seeds = {SLICE}

[panels.outer]
strategy = "cascade"
cheap = "small"
strong = "kept"
calibration = 0.5
"""


def people_knower(call):
    """Both judges know people by their lines; of seed 7 the small one contradicts itself."""
    prompt = call.messages[-1]["content"]
    if call.model == "small" and "of talk 7" in prompt:
        return text("Choice: Conversation 1; Reason: the first")
    ai = "1" if "line 2 of" in prompt.rpartition("Conversation 2:")[2] else "2"
    return text(f"Choice: Conversation {ai}; Reason: the other one knows its lines")


def workspace(folder: Path, server: Server) -> Path:
    """Twelve seeds of five utterances, dialogues of two bots."""
    folder.mkdir()
    seeds = [
        Seed(f"s{n}", tuple(f"That is line {i} of talk {n}." for i in range(5)))
        for n in range(N_SEEDS)
    ]
    files.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    models = [
        f'[models.{name}]\nmodel = "{name}"\nbase_url = "{server.url}"\n'
        for name in ("small", "large")
    ]
    (folder / "botchat.toml").write_text("\n".join(models) + TOML)
    bots = ["--model", "bot:verbose", "--model", "bot:parrot"]
    generate = ["generate", "--seeds", "small", "--turns", "5", *bots]
    assert main([*generate, "--dir", str(folder)]) == 0
    return folder


JUDGE = ["judge", "gteval", "--seeds", "small", "--judge", "kept"]


def stage(folder: Path) -> bytes:
    """The stage file of the cascade."""
    (path,) = (folder / "judgments" / "small" / "gteval").glob("kept*")
    return path.read_bytes()


def asked(server: Server, model: str) -> int:
    """Calls of a model."""
    return sum(call.model == model for call in server.calls)


def test_the_slice_pays_for_the_rest(tmp_path, capsys):
    """The strong judge sees the slice and what the cheap one contradicts itself on; planned."""
    with Server(people_knower) as server:
        folder = workspace(tmp_path / "w", server)
        planned = said(capsys, *JUDGE, "--plan", "--dir", folder)["rows"]
        # Before the cheap judge has answered, everything may go on.
        expected = {r["model"]: r["calls"] for r in planned if r["level"] == "expected"}
        assert expected == {"small": N_CASES, "large": N_CASES}
        (made,) = said(capsys, *JUDGE, "--dir", folder)["rows"]
        assert asked(server, "small") == N_CASES
        found = made["calibrated"]
        assert (found["threshold"], found["disagreed"], found["seeds"]) == (1.0, 0, SLICE)
        of_7 = [j for j in files.read(Path(made["path"]), Judgment) if j.seed_id == "s7"]
        drawn = sum("drawn to calibrate" in j.reason for j in of_7)
        assert asked(server, "large") == SLICE + len(of_7) - drawn
        signed = f"alpha=0.3,delta=0.2,threshold=1.0,slice={found['slice_digest']}|"
        assert all(signed in j.signature for j in of_7)
        before, sent = stage(folder), server.n_received
        capsys.readouterr()
        assert main([*JUDGE, "--dir", str(folder)]) == 0
        assert "at most 30 % of the accepted verdicts disagree with the" in capsys.readouterr().out
        assert (stage(folder), server.n_received) == (before, sent)
        left = said(capsys, *JUDGE, "--plan", "--dir", folder)["rows"]
        assert sum(r["calls"] for r in left) == 0


@pytest.mark.parametrize("stop", [10, N_CASES + 2])
def test_a_run_that_was_stopped_sends_nothing_twice_and_ends_in_the_same_bytes(
    tmp_path, capsys, stop
):
    """Stopped while the cheap judge is asked, and in the midst of the slice."""
    with Server(people_knower) as server:
        whole = workspace(tmp_path / "whole", server)
        assert main([*JUDGE, "--dir", str(whole)]) == 0
        once = server.n_received
        parts = workspace(tmp_path / "parts", server)
        assert main([*JUDGE, "--max-calls", str(stop), "--dir", str(parts)]) == 3
        assert server.n_received == once + stop
        assert main([*JUDGE, "--dir", str(parts)]) == 0
        assert server.n_received == 2 * once
        assert stage(parts) == stage(whole)


def test_the_slice_is_never_evaluated_on(tmp_path, capsys):
    """Not one verdict of its ChatSEEDs counts in `agree`; it is said, and paid for."""
    with Server(people_knower) as server:
        folder = workspace(tmp_path / "w", server)
        for judge in ("kept", "large"):
            assert main([*JUDGE[:-1], judge, "--dir", str(folder)]) == 0
        place = ["--seeds", "small", "--protocol", "gteval", "--dir", folder]
        found = said(capsys, "agree", *place)
    rows = {row["judge"]: row for row in found["rows"]}
    assert (rows["kept"]["verdicts"], rows["large"]["verdicts"]) == (
        N_CASES - 4 * SLICE,
        N_CASES,
    )
    assert f"kept was calibrated on ChatSEEDs with {4 * SLICE} of its verdicts" in str(
        found["notes"]
    )
    assert rows["kept"]["calls"] > 1.0


def test_a_slice_of_all_seeds_leaves_nothing_to_compare(tmp_path, capsys):
    """One line."""
    with Server(people_knower) as server:
        folder = workspace(tmp_path / "w", server)
        toml = folder / "botchat.toml"
        toml.write_text(toml.read_text().replace(f"seeds = {SLICE}", f"seeds = {N_SEEDS}"))
        assert main([*JUDGE, "--dir", str(folder)]) == 0
        place = ["--seeds", "small", "--protocol", "gteval", "--dir", str(folder)]
        assert main(["agree", *place]) == 1
    error = capsys.readouterr().err
    assert "all verdicts of kept are on ChatSEEDs of its calibration slice" in error


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([*JUDGE[:-1], "outer"], "panels.outer: kept has alpha, which is kept on whole sets only"),
    ],
)
def test_where_there_is_no_whole_set_there_is_no_guarantee(tmp_path, capsys, command, message):
    """One line, and nothing is sent."""
    with Server(people_knower) as server:
        folder = workspace(tmp_path / "w", server)
        assert message in refused(capsys, [*command, "--dir", str(folder)])
        assert server.n_received == 0

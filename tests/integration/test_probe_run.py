"""``botchat probe`` and ``botchat judge diagnosis`` on a workspace, offline and over HTTP."""

from __future__ import annotations

import json

import pytest

from botchat.cli.main import main
from botchat.protocols import probe as probes
from botchat.protocols.catalogue import UNIEVAL
from botchat.records import HUMAN, Judgment, Seed
from botchat.workspace import files
from tests.commands import refused
from tests.openai_server import Server, text
from tests.scripted import accusation

SEEDS = [
    Seed(
        f"s{n}",
        (
            f"Did you get the {thing} I asked for?",
            f"Not yet, the {thing} man was shut when I came by.",
            "Then I'll go there myself tomorrow, before work.",
            f"Get some bread too, while you're out for the {thing}.",
        ),
    )
    for n, thing in enumerate(["fish", "lamp", "paint"])
]
SHORT = Seed("s9", ("Tea?", "Yes, please."))
EVERYWHERE = ("ai_phrase", "overlong", "formal", "foreign")


def workspace(folder, server=None):
    """Three dialogues with room for faults, and one without; perhaps a judge."""
    files.finish(folder / "seeds" / "small.jsonl", [*SEEDS, SHORT], lambda seed: seed.id)
    if server is not None:
        (folder / "botchat.toml").write_text(
            f'[models.umpire]\nmodel = "umpire"\nbase_url = "{server.url}"\n'
        )
    return folder


def run(capsys, *command):
    """Exit status and what ``--json`` printed."""
    status = main([*command, "--json"])
    return status, json.loads(capsys.readouterr().out or "null")


def knowing(call):
    """A judge that finds AI phrases, overlong utterances one too early, and little else.

    It accuses strangers' utterances in the first dialogue only, there from the start, and cannot
    speak about the last dialogue as it is.
    """
    planted = probes.probes(SEEDS, probes.strangers_of([*SEEDS, SHORT]))
    asked = {UNIEVAL.one(p.seed_id, "", p.utterances).prompt: p for p in planted}
    probe = asked.get(call.messages[-1]["content"])
    if probe is None:
        last = SEEDS[-1].utterances[0] in call.messages[-1]["content"]
        return text("I would rather not say." if last else accusation("No"))
    if probe.fault == "ai_phrase":
        return text(accusation(str(probe.index)))
    if probe.fault == "overlong":
        return text(accusation(str(probe.index - 1)))
    if probe.fault == "foreign":
        return text(accusation("1" if probe.seed_id == "s0" else "No"))
    return text(accusation("No"))


def test_the_numbers_of_a_judge_that_is_known(tmp_path, capsys, monkeypatch):
    """Detection, localisation and false alarms are what the judge's script says they must be."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    with Server(knowing) as server:
        folder = str(workspace(tmp_path, server))
        command = ["bench", "probe", "--seeds", "small", "--judge", "umpire", "--dir", folder]
        assert main([*command, "--plan", "--json"]) == 0
        (low, expected, high) = json.loads(capsys.readouterr().out)["rows"]
        status, made = run(capsys, *command)
        assert status == 0
        assert server.n_received == made["calls"] == expected["calls"] == low["calls"]
        again = run(capsys, *command)[1]
        assert (again["rows"], again["calls"], high["calls"]) == (made["rows"], 0, made["calls"])
    rows = {row["fault"]: row for row in made["rows"]}
    assert list(rows) == list(probes.FAULTS)
    shares = ("detected", "localised", "within_1")
    assert [rows["ai_phrase"][key] for key in shares] == [1, 1, 1]
    assert [rows["overlong"][key] for key in shares] == [1, 0, 1]
    assert (rows["overlong"]["found"], rows["formal"]["found"]) == (1, 0)
    assert rows["overlong"]["found_low"] < 1 == rows["overlong"]["found_high"]
    chances = [(r["chance_localised"], r["chance_within_1"]) for r in made["rows"] if r["n"]]
    assert all(0 < exact < near <= 1 for exact, near in chances)
    assert rows["foreign"]["detected"] == pytest.approx(1 / 3)
    assert [rows["formal"][key] for key in shares] == [0, 0, 0]
    assert all(rows[fault]["n"] == rows[fault]["planted"] == 3 for fault in EVERYWHERE)
    assert all(rows[fault]["n_untouched"] == 2 for fault in EVERYWHERE)
    assert all(row["false_alarms"] in (0, None) for row in rows.values())
    assert (made["untouched"]["n_untouched"], made["untouched"]["false_alarms"]) == (2, 0)
    (path,) = (tmp_path / "judgments" / "small" / "probe" / "unieval").iterdir()
    assert str(path) == made["path"]
    judgments = files.read(path, Judgment)
    assert len(judgments) == made["calls"] == 3 + sum(row["planted"] for row in rows.values())
    assert {j.contestants[0] for j in judgments} <= {HUMAN, *probes.FAULTS}
    assert made["signature"].startswith("botchat:")
    assert "|probe/unieval|set:small|judge:umpire@" in made["signature"]


def test_the_rules_judge_is_probed_offline(tmp_path, capsys):
    """On the sample set, which is the default; a limit takes its first dialogues."""
    status, made = run(capsys, "bench", "probe", "--judge", "rules", "--dir", str(tmp_path))
    assert (status, made["judge"], made["calls"]) == (0, "rules", 0)
    rows = {row["fault"]: row for row in made["rows"]}
    assert rows["repetition"]["localised"] >= 0.9
    assert rows["overlong"]["localised"] >= 0.9
    assert made["untouched"]["false_alarms"] <= 0.1
    for row in made["rows"]:
        for key in ("detected", "localised", "within_1", "false_alarms"):
            assert 0 <= row[f"{key}_low"] <= row[key] <= row[f"{key}_high"] <= 1
    few = run(capsys, "bench", "probe", "--judge", "rules", "--dir", str(tmp_path), "--limit", "4")[
        1
    ]
    assert few["untouched"]["n_untouched"] == 4
    assert main(["bench", "probe", "--judge", "rules", "--dir", str(tmp_path)]) == 0
    assert "At the utterance %" in capsys.readouterr().out


def test_what_cannot_be_probed_is_said(tmp_path, capsys):
    """One line, exit 1."""
    files.finish(tmp_path / "seeds" / "tiny.jsonl", [SHORT], lambda seed: seed.id)
    tiny = ["bench", "probe", "--judge", "rules", "--seeds", "tiny", "--dir", str(tmp_path)]
    assert "has more than 2 utterances" in refused(capsys, tiny)


def test_probes_do_not_take_part_in_the_leaderboard(tmp_path, capsys):
    """A judge that was only probed is not one of the judges of the set."""
    folder = ["--dir", str(workspace(tmp_path))]
    generate = ["generate", "--seeds", "small", "--model", "bot:parrot", "--turns", "4", *folder]
    assert main(generate) == 0
    assert main(["bench", "probe", "--seeds", "small", "--judge", "rules", *folder]) == 0
    assert main(["leaderboard", "--seeds", "small", *folder]) == 1
    assert "no judgments" in capsys.readouterr().err


REPORT = """Repetition? Yes
- Utterance 4: "{quote}" - said before
Logical inconsistency? No
Discontinuity? No
Inappropriate lexical choice? No
Factual error? Yes
- Utterance 3: "the moon is made of llamas" - it is not
AI self-identification? No
Contextual confusion? No
Excessive length? No
Formal tone? No
Repetitive phrasing? No"""


def diagnosing(call):
    """Finds a repetition in the last utterance of every dialogue, and makes up a quote."""
    shown = call.messages[-1]["content"].rpartition("\nConversation:\n")[2]
    quote = shown.split("[4] B: ")[1].split(" <chat_end>")[0] if "[4] B: " in shown else "x"
    return text(REPORT.format(quote=quote))


def test_a_diagnosis_over_http(tmp_path, capsys, monkeypatch):
    """Judged, made again from the ledger alone, counted on the board with its quotes checked."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    with Server(diagnosing) as server:
        folder = ["--dir", str(workspace(tmp_path, server))]
        make = ["generate", "--seeds", "small", "--model", "bot:parrot", "--turns", "4", *folder]
        assert main(make) == 0
        capsys.readouterr()
        judge = ["judge", "diagnosis", "--seeds", "small", "--judge", "umpire", *folder]
        status, made = run(capsys, *judge)
        (row,) = made["rows"]
        assert (status, row["cases"], row["unreadable"], made["calls"]) == (0, 8, 0, 8)
        (path,) = (tmp_path / "judgments" / "small" / "diagnosis").iterdir()
        before = path.read_bytes()
        path.unlink()
        assert run(capsys, *judge)[1]["calls"] == 0
        assert path.read_bytes() == before
    assert run(capsys, "leaderboard", "--seeds", "small", *folder)[0] == 0
    out = tmp_path / "leaderboards" / "small"
    tables = json.loads((out / "leaderboard.json").read_text("utf-8"))["tables"]
    rows = {row["model"]: row for row in tables["diagnosis"]["rows"]}
    bot, human = rows["bot:parrot"], rows[HUMAN]
    assert (bot["score"], bot["repetition"], bot["factual_error"], bot["quoted"]) == (-2, 1, 1, 0.5)
    assert (bot["formal_tone"], bot["missing"]) == (0, 0)
    # The short dialogue has no utterance 3 or 4, and its quotes are nowhere.
    assert (human["any"], human["quoted"]) == (1, 0.375)
    health = {row["protocol"]: row for row in tables["judge"]["rows"]}
    assert health["diagnosis"]["people_accused"] == 1
    records = (out / "diagnosis-records.jsonl").read_text("utf-8").splitlines()
    assert len(records) == 8 * 10

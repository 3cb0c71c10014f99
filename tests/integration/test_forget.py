"""``botchat ledger --forget``: wrongly final calls are asked again, and nothing else is."""

import re
import shutil
import zlib
from contextlib import closing

import pytest

from botchat.cli.main import main
from botchat.records import Seed
from botchat.workspace import jsonl
from botchat.workspace.ledger import Ledger
from tests.commands import refused, said
from tests.integration.test_runs import stage_files
from tests.openai_server import Server, converse, faults, text

PANEL = """
[panels.three]
strategy = "simultaneous-talk"
rounds = 2
model = "umpire"
agents = [{ name = "Ann", text = "A." }, { name = "Bob", text = "B." }, { name = "Cy" }]
"""

GENERATE = ["generate", "--seeds", "small", "--turns", "6", "--model", "alpha", "--model", "beta"]
CROSS = ["generate", "--seeds", "small", "--turns", "7", "--model", "alpha", "--partner", "beta"]


def judge(protocol, judge, *more):
    """A judging command."""
    return ["judge", protocol, "--seeds", "small", "--judge", judge, *more]


FAULTS = {
    "filtered": faults.content_filtered(),
    "overflow": faults.context_overflow("llama.cpp"),
    "empty": text("<think>What would a person say?</think>"),
}


def spoilt(outcome, prompts=""):
    """`converse`, but a fifth of all requests whose text has ``prompts`` ends so."""

    def answer(call):
        drawn = zlib.crc32(call.digest.encode()) % 100 < 20 and prompts in call.raw.decode()
        return FAULTS[outcome] if drawn else converse(call)

    return answer


def workspace(folder, server):
    """Ten seeds and three models whose window is known, so that an overflow is taken as it is."""
    seeds = [Seed(f"s{n}", tuple(f"line {i} of talk {n}" for i in range(6))) for n in range(10)]
    jsonl.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    entries = [
        f'[models.{name}]\nmodel = "{name}"\nbase_url = "{server.url}"\nmax_concurrency = 4\n'
        "context_window = 100000\nprice_input = 1.0\nprice_output = 1.0\n"
        for name in ("alpha", "beta", "umpire")
    ]
    (folder / "botchat.toml").write_text("\n".join(entries) + PANEL)
    return folder


def run(folder, *commands):
    """Each command, in this process."""
    for command in commands:
        assert main([*command, "--dir", str(folder)]) == 0


def forget(folder, capsys, outcome):
    """The command; what it says as JSON."""
    return said(capsys, "ledger", "--forget", "--outcome", outcome, "--dir", folder)


def keys(folder, table="calls"):
    """Keys in a table of the ledger."""
    path = folder / ".botchat" / "ledger.sqlite3"
    with closing(Ledger(path, readonly=True)) as ledger:
        return {key for (key,) in ledger.select(f"SELECT key FROM {table}")}


@pytest.mark.parametrize(
    ("before", "commands", "outcome", "prompts"),
    [
        ([], [CROSS], "overflow", ""),
        ([], [GENERATE, judge("unieval", "umpire")], "filtered", ""),
        ([GENERATE], [judge("arena", "three", "--turns", "6")], "empty", "Ann"),
    ],
)
def test_after_forgetting_everything_is_as_if_it_had_never_happened(
    tmp_path, capsys, before, commands, outcome, prompts
):
    """Only what was forgotten, and what depends on it, is sent again; the files are the same."""
    with Server(converse) as server:
        clean = workspace(tmp_path / "clean", server)
        run(clean, *before, *commands)
        folder = workspace(tmp_path / "w", server)
        run(folder, *before)
        server.play(spoilt(outcome, prompts))
        run(folder, *commands)
        assert stage_files(folder) != stage_files(clean)
        server.play(converse)
        sent = server.n_received
        run(folder, *commands)
        assert server.n_received == sent
        stale, all_keys = stage_files(folder), keys(folder)

        gone = forget(folder, capsys, outcome)
        assert keys(folder, "superseded") == all_keys - keys(folder)
        assert gone["calls"] == len(keys(folder, "superseded")) > 0
        assert gone["dialogues"] + gone["judgments"] > 0
        kept = stage_files(folder)
        assert all(line in stale[name] for name in kept for line in kept[name].splitlines())
        missing = keys(clean) - keys(folder)

        run(folder, *commands)
        assert server.n_received - sent == len(missing)
        assert stage_files(folder) == stage_files(clean)
        sent = server.n_received
        run(folder, *commands)
        assert server.n_received == sent
        assert forget(folder, capsys, outcome)["calls"] == 0


def test_what_was_forgotten_was_paid_for(tmp_path, capsys):
    """Stats count it, apart; it answers nothing, also in a copy of the ledger."""
    with Server(spoilt("filtered")) as server:
        folder = workspace(tmp_path / "w", server)
        run(folder, GENERATE)

        before = said(capsys, "ledger", "--dir", folder)["rows"]
        n = forget(folder, capsys, "filtered")["calls"]
        after = said(capsys, "ledger", "--dir", folder)["rows"]
        for what in ("calls", "prompt_tokens", "completion_tokens"):
            assert sum(row[what] for row in after) == sum(row[what] for row in before)
        spent = sum(row["cost_usd"] for row in before)
        assert sum(row["cost_usd"] for row in after) == pytest.approx(spent, rel=1e-12)
        apart = [row for row in after if row["superseded"]]
        assert sum(row["calls"] for row in apart) == n
        assert all(set(row["outcomes"]) == {"filtered"} for row in apart)
        assert main(["ledger", "--dir", str(folder)]) == 0
        head = re.split(r" {2,}", capsys.readouterr().out.splitlines()[0])
        assert {"superseded", "completion tokens", "USD"} <= {*head}
        other = workspace(tmp_path / "other", server)
        shutil.copytree(folder / ".botchat", other / ".botchat", dirs_exist_ok=True)
        n_left = server.n_received - n
        assert len(keys(other)) == n_left
        server.play(converse)
        sent = server.n_received
        run(other, GENERATE)
        run(folder, GENERATE)
        assert stage_files(other) == stage_files(folder)
        assert server.n_received - sent == 2 * (2 * 10 * 4 - n_left)


def test_a_kill_between_files_and_ledger_loses_nothing(tmp_path, capsys, monkeypatch):
    """What was taken out of the files comes back from the ledger; forgetting goes on."""
    with Server(spoilt("filtered")) as server:
        folder = workspace(tmp_path / "w", server)
        run(folder, GENERATE)
        before, sent = stage_files(folder), server.n_received

        def killed(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(Ledger, "forget", killed)
            arguments = ["ledger", "--forget", "--outcome", "filtered", "--dir", str(folder)]
            assert main(arguments) == 130
        assert stage_files(folder) != before
        run(folder, GENERATE)
        assert server.n_received == sent
        assert stage_files(folder) == before
        assert forget(folder, capsys, "filtered")["calls"] > 0


def test_what_to_forget_must_be_said(tmp_path, capsys):
    """One line, and everything stays."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server)
        run(folder, GENERATE)
    before, had = stage_files(folder), keys(folder)
    for flags, code, line in (
        ([], 2, "say which calls to forget: --outcome OUTCOME or --model MODEL"),
        (["--model", "nobody"], 1, "no call of 'nobody' (there are: alpha, beta)"),
    ):
        assert line in refused(capsys, ["ledger", "--forget", *flags, "--dir", str(folder)], code)
    assert main(["ledger", "--forget", "--outcome", "transport", "--dir", str(folder)]) == 2
    assert 'Invalid value "transport" for --outcome' in capsys.readouterr().err
    assert (stage_files(folder), keys(folder)) == (before, had)

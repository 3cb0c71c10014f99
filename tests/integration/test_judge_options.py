"""Single judges that are asked several times: whole runs on a server."""

from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from botchat.cli.main import main
from botchat.records import Judgment, Seed
from botchat.workspace import jsonl
from botchat.workspace.folder import Workspace
from tests.commands import said
from tests.integration.test_runs import workspace
from tests.openai_server import Server, converse, drawn


def judgments(folder, name):
    """Every judgment filed under a name."""
    lines = b"".join(path.read_bytes() for path in (folder / "judgments").rglob("*.jsonl"))
    every = msgspec.json.Decoder(Judgment).decode_lines(lines)
    return [judgment for judgment in every if judgment.judge == name]


def test_samples_are_planned_asked_and_counted(tmp_path, capsys):
    """K calls a case at temperature 1, each its own draw; the majority decides; nothing is new."""
    with Server(converse) as server:
        folder = workspace(tmp_path / "w", server, 6)
        with (folder / "botchat.toml").open("a") as settings:
            settings.write('[judges.five]\nmodel = "umpire"\ntemperature = 1.0\nsamples = 5\n')
        models = ["--model", "alpha", "--model", "beta"]
        said(capsys, "generate", "--seeds", "small", "--turns", "8", *models, "--dir", folder)
        server.play(drawn)
        for protocol in ("unieval", "gteval"):
            command = ["judge", protocol, "--seeds", "small", "--judge", "five", "--dir", folder]
            planned = said(capsys, *command, "--plan")["rows"][-1]["calls"]
            before = server.n_received
            result = said(capsys, *command)
            bodies = [call.body for call in server.calls[before:]]
            cases = sum(row["cases"] for row in result["rows"])
            assert len(bodies) == 5 * cases == result["calls"] == planned
            assert {body["temperature"] for body in bodies} == {1.0}
            draws = Counter(body.get("seed", 0) for body in bodies)
            assert draws == dict.fromkeys(range(5), cases)
            assert said(capsys, *command)["calls"] == 0
    decided = 0
    for judgment in judgments(folder, "five (5 samples)"):
        votes = Counter(remark.verdict for remark in judgment.transcript if remark.verdict)
        (most, n), *others = [*votes.most_common(), (None, 0)]
        if judgment.protocol != "unieval" and n > others[0][1]:
            assert judgment.verdict == most
            decided += 1
    assert decided


def test_samples_of_what_is_always_the_same_are_refused(tmp_path, capsys):
    """At temperature 0, where they are set."""
    (tmp_path / "botchat.toml").write_text('[judges.x]\nmodel = "m"\nsamples = 3\n')
    assert main(["models", "--dir", str(tmp_path)]) == 1
    assert "at temperature 0 all are the same; set temperature = 1.0" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("judge_limit", "model_limit", "utterance", "verdict"),
    [("", "", 256, 512), ("", "max_tokens = 99", 99, 99), ("max_tokens = 7", "", 256, 7)],
)
def test_limits_of_replies(tmp_path, judge_limit, model_limit, utterance, verdict):
    """An utterance has 256 tokens, a verdict 512; a judge takes its own limit or its model's."""
    Workspace(tmp_path).write_seeds("two", [Seed("a", ("Hi.", "Ho.")), Seed("b", ("So?", "No."))])
    with Server(converse) as server:
        model = f'[models.m]\nmodel = "m"\nbase_url = "{server.url}"\n{model_limit}\n'
        (tmp_path / "botchat.toml").write_text(f'{model}[judges.j]\nmodel = "m"\n{judge_limit}\n')
        at = ["--seeds", "two", "--dir", str(tmp_path)]
        assert main(["generate", *at, "--model", "m", "--turns", "3"]) == 0
        assert main(["judge", "unieval", *at, "--judge", "j"]) == 0
        assert [call.body["max_tokens"] for call in server.calls] == [utterance] * 2 + [verdict] * 2


@pytest.mark.parametrize("protocol", ["unieval", "arena"])
def test_an_n_that_is_given_twice_is_judged_once(tmp_path, capsys, protocol):
    """One row, one file."""
    bots = ["--model", "bot:parrot", "--model", "bot:verbose"]
    said(capsys, "generate", "--seeds", "sample", *bots, "--turns", "4", "--dir", tmp_path)
    judge = ["judge", protocol, "--seeds", "sample", "--judge", "rules", "--limit", "2"]
    turns = ["--turns", "4", "--turns", "3", "--turns", "4"]
    rows = said(capsys, *judge, *turns, "--dir", tmp_path)["rows"]
    assert [row["protocol"] for row in rows] == [f"{protocol}-n4", f"{protocol}-n3"]


# `judge arena --comparisons K`: a random part of the Arena, the same every time.


def sampled(folder, capsys, k):
    """Seeds and contestants of what K comparisons at N = 8 are, asked of the rules judge."""
    judge = ["judge", "arena", "--seeds", "sample", "--judge", "rules", "--turns", "8"]
    (row,) = said(capsys, *judge, "--comparisons", str(k), "--dir", str(folder))["rows"]
    path = folder / "judgments" / "sample" / "arena-n8"
    (file,) = path.iterdir()
    found = {(one.seed_id, one.contestants) for one in jsonl.read(file, Judgment)}
    file.unlink()
    assert row["cases"] == len(found)
    return found


def test_draws_are_balanced_repeated_and_hold_each_other(tmp_path, capsys):
    """Never more than K, both orders, pairs within one of each other; up to the whole Arena."""
    bots = [
        part for name in ("parrot", "verbose", "retrieval") for part in ("--model", f"bot:{name}")
    ]
    said(capsys, "generate", "--seeds", "sample", *bots, "--turns", "8", "--dir", tmp_path)
    draws = {k: sampled(tmp_path, capsys, k) for k in (2, 7, 60, 1000)}
    assert sampled(tmp_path, capsys, 7) == draws[7]
    for k, found in draws.items():
        assert len(found) == min(k - k % 2, 2 * 3 * 40)
        assert {(seed, names[::-1]) for seed, names in found} == found
        pairs = Counter(tuple(sorted(names)) for _, names in found)
        assert max(pairs.values()) - (min(pairs.values()) if len(pairs) == 3 else 0) <= 2
    assert all(one < other for one, other in pairwise(draws.values()))

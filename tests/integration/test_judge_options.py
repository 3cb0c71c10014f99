"""Single judges that are asked several times: whole runs on a server."""

from __future__ import annotations

import json
from collections import Counter

import msgspec
import pytest

from botchat.cli.main import main
from botchat.judges.single import sample_agreement
from botchat.pipeline import agree
from botchat.pipeline.run import contestants as judge_names
from botchat.pipeline.run import read_set
from botchat.records import Judgment, Seed
from botchat.workspace.folder import Workspace
from tests.integration.test_runs import workspace
from tests.openai_server import Server, converse, drawn

N_SEEDS = 6
JUDGES = """
[judges.five]
model = "umpire"
temperature = 1.0
samples = 5

[judges.three]
model = "umpire"
temperature = 0.5
samples = 3
"""


def prepared(folder, server, capsys=None):
    """A workspace with two models' dialogues and the judges above; the requests sent for it."""
    made = workspace(folder, server, N_SEEDS, max_concurrency=1)
    settings = (made / "botchat.toml").read_text().replace("max_concurrency = 4\n", "")
    (made / "botchat.toml").write_text(settings + JUDGES)
    models = ["--model", "alpha", "--model", "beta"]
    command = ["generate", "--seeds", "small", "--turns", "8", *models, "--dir", str(made)]
    assert main(command) == 0
    if capsys is not None:
        capsys.readouterr()
    return made


def judge(folder, name, *flags, protocol="unieval"):
    """Its exit code."""
    command = ["judge", protocol, "--seeds", "small", "--judge", name, "--dir", str(folder)]
    return main([*command, *flags])


def told(capsys):
    """The JSON object that a command printed."""
    return json.loads(capsys.readouterr().out)


def judgments(folder, name):
    """Every judgment filed under a name."""
    lines = b"".join(path.read_bytes() for path in (folder / "judgments").rglob("*.jsonl"))
    made = msgspec.json.Decoder(Judgment).decode_lines(lines)
    return [judgment for judgment in made if judgment.judge == name]


def sent_after(server, before):
    """The bodies of the requests that came after the first ``before``."""
    return [call.body for call in server.calls[before:]]


def test_a_bot_is_no_judge(tmp_path, capsys):
    """It is said what can judge, before anything is asked; also where a panel would ask it."""
    with Server(converse) as server:
        folder = prepared(tmp_path / "w", server)
        for names in (["bot:verbose"], ["chateval-default", "--judge-model", "bot:verbose"]):
            assert judge(folder, *names) == 1
            error = capsys.readouterr().err
            assert (
                "bot:verbose talks and judges nothing; judges: a model (not bot:…), rules, "
                in error
            )
            assert "five" in error
            assert "chateval-default" in error


def test_samples_are_planned_asked_counted_and_told(tmp_path, capsys):
    """K calls a case at temperature 1, each its own draw; the majority decides; nothing is new."""
    with Server(drawn) as server:
        folder = prepared(tmp_path / "w", server, capsys)
        for protocol in ("unieval", "arena", "gteval"):
            assert judge(folder, "five", "--plan", "--json", protocol=protocol) == 0
            planned = {row["level"]: row["calls"] for row in told(capsys)["rows"]}
            before = server.n_received
            assert judge(folder, "five", "--json", protocol=protocol) == 0
            whole = told(capsys)
            bodies = sent_after(server, before)
            cases = sum(row["cases"] for row in whole["rows"])
            assert len(bodies) == 5 * cases == whole["calls"] == planned["expected"]
            assert {body["temperature"] for body in bodies} == {1.0}
            drawn_with = Counter(body.get("seed", 0) for body in bodies)
            assert drawn_with == dict.fromkeys(range(5), cases)
            assert judge(folder, "five", "--json", protocol=protocol) == 0
            assert told(capsys)["calls"] == 0
    decided = 0
    for judgment in judgments(folder, "five (5 samples)"):
        votes = Counter(remark.verdict for remark in judgment.transcript if remark.verdict)
        (most, n), *others = [*votes.most_common(), (None, 0)]
        if judgment.protocol != "unieval" and n > others[0][1]:
            assert judgment.verdict == most
            decided += 1
    assert decided


def pairs(given):
    """Every two of them."""
    return [(given[i], given[j]) for i in range(len(given)) for j in range(i)]


def pair_alike(pair):
    """Whether both are the same."""
    return pair[0] == pair[1]


def test_samples_stopped_by_a_limit_go_on_without_paying_twice(tmp_path, capsys):
    """Exit 3 after so many calls; the next run makes the rest, each call once."""
    with Server(drawn) as server:
        folder = prepared(tmp_path / "w", server)
        before = server.n_received
        assert judge(folder, "three", "--max-calls", "7") == 3
        assert server.n_received - before == 7
        assert judge(folder, "three") == 0
        made = judgments(folder, "three (3 samples)")
        assert server.n_received - before == 3 * len(made)
        bodies = sent_after(server, before)
    assert server.n_repeated == 0
    assert {body["temperature"] for body in bodies} == {0.5}


def test_boards_and_agree_say_how_steady_a_judge_is(tmp_path):
    """Shares of equal samples, of the judge that was asked several times alone."""
    with Server(drawn) as server:
        folder = prepared(tmp_path / "w", server)
        for name in ("three", "umpire"):
            assert judge(folder, name, protocol="gteval") == 0
    listed = judgments(folder, "three (3 samples)")
    agreement = [each for judgment in listed for each in sample_agreement(judgment.transcript)]
    unanimous, equal = (sum(column) / len(agreement) for column in zip(*agreement, strict=True))
    keys = ("stable", "samples_agree")
    there = read_set.read(Workspace(folder), "small")
    health = {}
    for name in ("three (3 samples)", "umpire"):
        frame = there.board(name).judge_health.frame
        health[name] = {key: frame[key].iloc[0] for key in keys if key in frame}
    assert health["three (3 samples)"] == {
        "stable": pytest.approx(unanimous),
        "samples_agree": pytest.approx(equal),
    }
    assert health["umpire"] == {}
    found = agree.beside_each_other(Workspace(folder), there)["gteval"]
    rows = {row["judge"]: row for row in found.rows}
    assert rows["three (3 samples)"]["samples_agree"] == pytest.approx(equal)
    assert rows["three (3 samples)"]["calls"] == 3
    assert not {*keys} & set(rows["umpire"])
    method = judge_names.method(Workspace(folder), "three (3 samples)")
    assert method == ("three", "single (3 samples)")
    assert judge_names.own_name(Workspace(folder), "three (3 samples)") == "umpire"


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
        assert [call.body["max_tokens"] for call in server.calls] == [utterance] * 2 + [verdict] * 4

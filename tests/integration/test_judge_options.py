"""Single judges with structured replies, log-probabilities and samples: whole runs on a server."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from itertools import pairwise

import msgspec
import pytest

from botchat.boards import judge_agreement
from botchat.cli.main import main
from botchat.interfaces import Decoding, Message
from botchat.judges.single import stability
from botchat.models.endpoint import batch, batch_endpoint
from botchat.models.limits import Retry
from botchat.pipeline import agree
from botchat.pipeline.run import contestants as judge_names
from botchat.pipeline.run import read_set
from botchat.protocols.catalogue import ARENA, UNIEVAL
from botchat.records import Judgment
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger
from tests.integration.test_endpoints import ask
from tests.integration.test_runs import KEY, stage_files, workspace
from tests.openai_server import Server, converse, drawn, faults, text
from tests.openai_server.batches import BatchServer

N_SEEDS = 6
JUDGES = """
[judges.plain]
model = "umpire"

[judges.strict]
model = "umpire"
structured = true

[judges.open]
model = "umpire"
logprobs = 2

[judges.cold]
model = "umpire"

[judges.warm]
model = "umpire"
temperature = 0.5
structured = true
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


# --- structured replies --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "schema"),
    [("unieval", UNIEVAL.reading().schema), ("arena", ARENA.reading().schema)],
)
def test_a_structured_judge_is_held_to_the_protocol_s_schema(tmp_path, protocol, schema):
    """The papers' question and the schema are sent; JSON is read to the verdicts of plain text."""
    with Server(converse) as server:
        folder = prepared(tmp_path / "w", server)
        before = server.n_received
        assert judge(folder, "plain", protocol=protocol) == 0
        plain = sent_after(server, before)
        assert judge(folder, "strict", protocol=protocol) == 0
        strict = sent_after(server, before)[len(plain) :]
        assert judge(folder, "strict", protocol=protocol) == 0
        assert server.n_received == before + 2 * len(plain)
    assert [body.pop("response_format") for body in strict] == [
        {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": schema}}
    ] * len(plain)
    assert strict == plain
    one, other = judgments(folder, "plain"), judgments(folder, "strict")
    assert len(one) == len(plain) > N_SEEDS
    assert [(j.verdict, j.reason) for j in one] == [(j.verdict, j.reason) for j in other]
    assert None not in {judgment.verdict for judgment in one}
    assert one[0].signature.replace("plain@", "") != other[0].signature.replace("strict@", "")
    assert {j.calls for j in one}.isdisjoint({j.calls for j in other})


REFUSED = {
    "openai": faults.error(
        400,
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this "
        "model.",
        param="response_format",
    ),
    "in words": faults.error(400, "This model does not support response format `json_schema`."),
    "type": faults.error(
        400, "invalid value: `json_schema`, supported: `text`", param="response_format.type"
    ),
    "vllm": faults.vllm_error("The provided JSON schema contains features not supported."),
    "422": faults.error(422, "response_format: extra inputs are not permitted"),
}


@pytest.mark.parametrize("wording", REFUSED)
def test_an_endpoint_without_schemas_is_asked_for_one_once(tmp_path, wording):
    """One refusal, noted for later runs; then the text is read as ever."""

    def script(call):
        return REFUSED[wording] if "response_format" in call.body else converse(call)

    with Server(script) as server:
        folder = prepared(tmp_path / "w", server)
        before = server.n_received
        assert judge(folder, "strict") == 0
        made = judgments(folder, "strict")
        assert None not in {judgment.verdict for judgment in made}
        assert judge(folder, "strict", protocol="arena") == 0
        refused = ["response_format" in body for body in sent_after(server, before)]
        assert refused == [True] + [False] * (len(refused) - 1)
        assert len(refused) == len(judgments(folder, "strict")) + 1


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
            assert "strict" in error
            assert "chateval-default" in error


# --- log-probabilities ---------------------------------------------------------------------------


def test_log_probabilities_are_kept_whole_and_give_the_verdict_a_probability(tmp_path):
    """Asked for with alternatives; the body stays whole, the verdict's words have a probability."""
    with Server(converse) as server:
        folder = prepared(tmp_path / "w", server)
        before = server.n_received
        assert judge(folder, "open") == 0
        for body in sent_after(server, before):
            assert (body["logprobs"], body["top_logprobs"]) == (True, 2)
        assert judge(folder, "plain") == 0
        assert "logprobs" not in sent_after(server, before)[-1]
    ledger = Ledger(folder / ".botchat" / "ledger.sqlite3", readonly=True)
    made = judgments(folder, "open")
    assert len(made) > N_SEEDS
    for judgment in made:
        reply = ledger.get(judgment.calls[0])
        content = json.loads(reply.raw)["choices"][0]["logprobs"]["content"]
        told = [(token["token"].strip(), token["logprob"]) for token in content]
        # "Choice: Yes\nIndex: 3": the two words after the two colons.
        after = [word for (mark, _), word in pairwise(told) if mark == ":"][:2]
        assert after[1][0] == (judgment.verdict if judgment.verdict != "No" else "None")
        assert judgment.confidence == pytest.approx(math.exp(sum(log for _, log in after)))
    ledger.close()
    lines = [path.read_text() for path in (folder / "judgments").rglob("plain-*.jsonl")]
    assert lines
    assert "confidence" not in "".join(lines)


@pytest.mark.parametrize(
    "refusal",
    [
        faults.error(403, "You are not allowed to request logprobs from this model"),
        faults.error(400, "Logprobs is not enabled for models/umpire"),
        faults.vllm_error("Requested sample logprobs of 2, which is greater than max allowed: 0"),
    ],
)
def test_an_endpoint_without_log_probabilities_is_asked_for_them_once(tmp_path, refusal):
    """Both parameters go at once; the verdict stands without a probability."""

    def script(call):
        refused = "logprobs" in call.body or "top_logprobs" in call.body
        return refusal if refused else converse(call)

    with Server(script) as server:
        folder = prepared(tmp_path / "w", server)
        before = server.n_received
        assert judge(folder, "open") == 0
        made = judgments(folder, "open")
        assert server.n_received - before == len(made) + 1
    assert {judgment.confidence for judgment in made} == {msgspec.UNSET}
    assert None not in {judgment.verdict for judgment in made}


def test_alternatives_that_are_too_many_go_without_the_rest(tmp_path):
    """Where only ``top_logprobs`` is refused, the tokens' own log-probabilities stay."""

    def script(call):
        if "top_logprobs" in call.body:
            return faults.error(400, "top_logprobs must be at most 0", param="top_logprobs")
        assert call.body["logprobs"] is True
        return text("fine", logprobs=[(b"fi", -0.5), (b"ne", 0.0)])

    with Server(script) as server:
        asked = ask(
            server, tmp_path, [Message(role="user", content="?")], decoding=Decoding(logprobs=20)
        )
        assert server.n_received == 2
    assert asked.reply.tokens == ((b"fi", -0.5), (b"ne", 0.0))


@pytest.mark.parametrize(
    "told", [None, {}, {"content": None}, {"content": []}, {"content": "x"}, 7]
)
def test_log_probabilities_that_are_not_told_are_unknown(tmp_path, told):
    """Missing, null, empty or of another type: the reply stands."""
    answer = text("fine")
    answer.body["choices"][0]["logprobs"] = told
    with Server(answer) as server:
        asked = ask(server, tmp_path, decoding=Decoding(logprobs=0))
    assert (asked.reply.outcome, asked.reply.tokens) == ("ok", ())


# --- samples -------------------------------------------------------------------------------------


def test_samples_are_planned_asked_counted_and_told(tmp_path, capsys):
    """K calls a case at temperature 1, each its own draw; the majority decides; nothing is new."""
    with Server(drawn) as server:
        folder = prepared(tmp_path / "w", server, capsys)
        flags = ("--samples", "5", "--json")
        for protocol in ("unieval", "arena", "gteval"):
            assert judge(folder, "umpire", "--plan", *flags, protocol=protocol) == 0
            planned = {row["level"]: row["calls"] for row in told(capsys)["rows"]}
            before = server.n_received
            assert judge(folder, "umpire", *flags, protocol=protocol) == 0
            whole = told(capsys)
            bodies = sent_after(server, before)
            cases = sum(row["cases"] for row in whole["rows"])
            assert len(bodies) == 5 * cases == whole["calls"] == planned["expected"]
            assert {body["temperature"] for body in bodies} == {1.0}
            drawn_with = Counter(body.get("seed", 0) for body in bodies)
            assert drawn_with == dict.fromkeys(range(5), cases)
            assert judge(folder, "umpire", *flags, protocol=protocol) == 0
            assert told(capsys)["calls"] == 0
        assert judge(folder, "umpire", "--samples", "5", protocol="unieval") == 0
        said = capsys.readouterr().out
    made = judgments(folder, "umpire (5 samples)")
    votes = [[turn.verdict for turn in j.transcript] for j in made if j.protocol == "unieval"]
    assert all(len(given) == 5 for given in votes)
    same = [sum(map(pair_alike, pairs(given))) / 10 for given in votes]
    line = re.search(r"samples of ([\d.]+) % of (\d+) cases .* chance of ([\d.]+) %", said)
    unanimous = sum(len(set(given)) == 1 for given in votes) / len(votes)
    assert float(line[1]) == pytest.approx(100 * unanimous, abs=0.06)
    assert int(line[2]) == len(votes)
    assert float(line[3]) == pytest.approx(100 * sum(same) / len(same), abs=0.06)
    for judgment, given in zip(
        made, [[t.verdict for t in j.transcript] for j in made], strict=True
    ):
        counts = Counter(given).most_common()
        if judgment.protocol != "unieval" and (len(counts) == 1 or counts[0][1] > counts[1][1]):
            assert judgment.verdict == counts[0][0]


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
        assert judge(folder, "warm", "--samples", "3", "--max-calls", "7") == 3
        assert server.n_received - before == 7
        assert judge(folder, "warm", "--samples", "3") == 0
        made = judgments(folder, "warm (3 samples)")
        assert server.n_received - before == 3 * len(made)
        bodies = sent_after(server, before)
    assert server.n_repeated == 0
    assert {body["temperature"] for body in bodies} == {0.5}
    assert all("response_format" in body for body in bodies)


def test_samples_in_a_batch_are_the_same_to_the_byte(tmp_path, monkeypatch):
    """One batch of all samples; the stage files are those of single calls."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(batch, "FIRST_POLL_S", 0.0)
    monkeypatch.setattr(batch_endpoint, "RETRY", Retry(attempts=4, first_s=0.0))
    with BatchServer(drawn) as server:
        single, batched = (prepared(tmp_path / name, server) for name in ("single", "batched"))
        assert judge(single, "warm", "--samples", "3") == 0
        assert judge(batched, "warm", "--samples", "3", "--batch") == 0
        assert len(server.jobs) == 1
    assert stage_files(single) == stage_files(batched)


@pytest.mark.parametrize(
    ("name", "samples", "said"),
    [
        ("umpire", "0", "--samples 0: give a number from 1"),
        ("cold", "3", "--samples 3: cold is asked at temperature 0"),
        ("rules", "3", "the rules judge says the same however often it is asked"),
        (
            "chateval-default",
            "3",
            "--samples is for single judges and 'chateval-default' is a panel",
        ),
    ],
)
def test_samples_that_make_no_sense_are_one_line(tmp_path, capsys, name, samples, said):
    """Nothing is sent."""
    with Server(drawn) as server:
        folder = prepared(tmp_path / "w", server)
        before = server.n_received
        assert judge(folder, name, "--samples", samples) == 1
        assert server.n_received == before
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


# --- all of it elsewhere -------------------------------------------------------------------------


def test_boards_and_agree_say_how_steady_and_how_sure_a_judge_is(tmp_path):
    """Shares of equal samples, mean probability, and how far that is above the share right."""
    with Server(drawn) as server:
        folder = prepared(tmp_path / "w", server)
        for name, *flags in (("open",), ("umpire", "--samples", "3"), ("plain",)):
            assert judge(folder, name, *flags, protocol="gteval") == 0
    made = judgments(folder, "open")
    known = sum(judgment.confidence for judgment in made) / len(made)
    steady = stability(one.transcript for one in judgments(folder, "umpire (3 samples)"))
    keys = ("stable", "samples_agree", "confidence")
    there = read_set.read(Workspace(folder), "small")
    health = {}
    for name in ("open", "umpire (3 samples)", "plain"):
        frame = there.board(name).judge_health.frame
        health[name] = {key: frame[key].iloc[0] for key in keys if key in frame}
    assert health["open"] == {"confidence": pytest.approx(known)}
    assert health["umpire (3 samples)"] == {
        "stable": pytest.approx(steady.unanimous),
        "samples_agree": pytest.approx(steady.agreement),
    }
    assert health["plain"] == {}
    found = agree.beside_each_other(Workspace(folder), there)["gteval"]
    rows = {row["judge"]: row for row in found.rows}
    assert rows["open"]["confidence"] == pytest.approx(known)
    assert rows["open"]["overconfidence"] == pytest.approx(known - rows["open"]["accuracy"])
    assert rows["umpire (3 samples)"]["samples_agree"] == pytest.approx(steady.agreement)
    assert rows["umpire (3 samples)"]["calls"] == 3
    assert not {*keys, "overconfidence"} & set(rows["plain"])
    assert judge_names.method(Workspace(folder), "umpire (3 samples)") == (
        "umpire",
        "single (3 samples)",
    )
    assert judge_names.own_name(Workspace(folder), "umpire (3 samples)") == "umpire"
    (shown,) = (part for part in judge_agreement.tables(found) if part.name == "judges")
    headings = {column.heading for column in shown.columns}
    assert {"Samples all agree", "Two samples agree", "Confidence", "Overconfident"} <= headings

"""`botchat run` and `init`: a plan, a board, and nothing that is asked twice, under one budget."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import botchat
from botchat.cli.main import main
from botchat.errors import LimitReached
from botchat.models.limits import Retry
from botchat.pipeline import generate as generating
from botchat.pipeline import judge as judging
from botchat.pipeline.models import settings_text, templates
from botchat.records import Seed
from botchat.workspace.config import load
from tests.commands import said, stage_files
from tests.openai_server import text
from tests.openai_server.faults import server_error
from tests.openai_server.replies import by_model

ROOT = Path(__file__).resolve().parents[2]

SEEDS = [
    Seed(f"s{n}", (f"hello from {n}", f"hi, here is {n}", "fine", *"abcd"[: 1 + n % 3]))
    for n in range(6)
]


def judge_or_speak(call):
    """Speak when asked to go on, accuse the second conversation or nobody when asked to judge."""
    asked = call.messages[-1]["content"]
    if call.model != "judge":
        return text(f"to {asked} {call.model} says {len(call.messages)}")
    return text("Choice: Conversation 2" if "Conversation 2" in asked else "Choice: No")


@pytest.fixture
def place(tmp_path, server):
    """A workspace with a set of six, two models and a judge at a server, at a price."""
    server.play(judge_or_speak)
    workspace = botchat.Workspace(tmp_path)
    workspace.write_seeds("small", SEEDS)
    entry = '[models.{0}]\nmodel = "{0}"\nbase_url = "{1}"\nprice_input = 1\nprice_output = 2\n'
    models = "".join(entry.format(name, server.url) for name in ("one", "two", "three", "judge"))
    (tmp_path / "botchat.toml").write_text(
        f'{models}[generation]\nturns = 6\n[arena]\nturns = [4, 6]\n[run]\nseeds = "small"\n'
        'models = ["one", "two"]\njudge = "judge"\nlimit = 3\n'
    )
    return botchat.Workspace(tmp_path)


def run(place, *flags, code=0):
    """Exit code checked."""
    assert main(["run", *flags, "--dir", str(place.root)]) == code


def test_one_command_plans_asks_and_shows_the_board(place, server, capsys, tmp_path):
    """The plan is what is sent; of three seeds only, people's too, which is whole coverage.

    Again it sends nothing and changes no byte; one more model gets what it needs only; the steps
    one by one write the same files.
    """
    run(place, "--json")
    said = capsys.readouterr()
    whole = json.loads(said.out)
    steps = {row["step"]: row for row in whole["plan"]}
    assert {step: row["calls"] for step, row in steps.items()} == {
        "generate": 2 * 3 * 4,
        "unieval": 3 * 3,
        "arena-n4": 6,
        "arena-n6": 6,
        "gteval": 2 * 6,
        "total": server.n_received,
    }
    *parts, total = (row["cost_usd"] for row in steps.values())
    assert sum(parts) == pytest.approx(total)
    assert said.err.splitlines()[0] == "Plan: 2 models, 3 dialogues of small, judge judge"
    assert {row["model"] for row in whole["rows"]} == {"one", "two", "human"}
    assert Path(whole["page"]).is_file()
    assert {row["coverage"] for row in whole["rows"]} == {1.0}
    assert "So far" not in whole["headline"]
    assert any(note.startswith("3 of 6 dialogues; ") for note in whole["notes"])
    assert not any("without a readable verdict" in note for note in whole["notes"])
    assert "invented" not in said.out
    assert whole["calls"] == server.n_received
    sent, files = server.n_received, stage_files(place.root)
    run(place)
    assert "\nEverything is stored or free: 0 calls, USD 0.00.\n" in f"\n{capsys.readouterr().err}"
    assert (server.n_received, stage_files(place.root)) == (sent, files)
    run(place, "--model", "one", "--model", "two", "--model", "three")
    # Its dialogues, UniEval, GTEval, and the Arenas with the two others.
    assert server.n_received - sent == 3 * 4 + 3 + 6 + 2 * 2 * 6
    assert server.n_by_model["one"] == server.n_by_model["three"] == 12
    other = botchat.Workspace(tmp_path / "other")
    other.write_seeds("small", SEEDS)
    (other.root / "botchat.toml").write_bytes((place.root / "botchat.toml").read_bytes())
    botchat.generate(seeds="small", model=("one", "two"), limit=3, workspace=other)
    for protocol in ("unieval", "arena", "gteval"):
        botchat.judge(protocol, seeds="small", judge="judge", limit=3, workspace=other)
    assert stage_files(other.root) == files


def test_a_plan_over_the_limit_sends_nothing(place, server, capsys):
    """Exit 3 with both numbers; `[run]` may hold the limit, a flag comes before it."""
    run(place, "--max-usd", "0.0001", code=3)
    said = capsys.readouterr().err
    assert re.search(r"sent: the plan comes to USD 0\.0\d+, over the limit of USD 0\.0", said)
    with (place.root / "botchat.toml").open("a") as file:
        file.write("max_usd = 0.0001\n")
    run(place, code=3)
    with pytest.raises(LimitReached, match="over the limit of 3 calls"):
        botchat.run(workspace=place, spending=botchat.Spending(max_usd=9, max_calls=3))
    run(place, "--plan", "--json")
    plan = json.loads(capsys.readouterr().out)
    assert plan["notes"][-1] == "Over the limit of USD 0.0001 (max_usd): run would send nothing."
    assert server.n_received == 0


def test_one_budget_over_all_steps(place, server, capsys):
    """A limit that the plan keeps but the run does not stops in a later step, resumably."""
    words = "word " * 400
    server.play(lambda call: text(words) if call.model != "judge" else judge_or_speak(call))
    run(place, "--max-tokens", "60000", "--json", code=3)
    stopped = json.loads(capsys.readouterr().out)
    assert stopped["tokens"] <= 60000
    assert "stopped at" in stopped["stopped"]
    sent, generated = server.n_received, 24
    assert sent > generated
    run(place)
    assert server.n_received > sent
    assert server.n_repeated == 0


def test_the_limit_of_the_dialogues_is_the_limit_of_the_judge(place, server, capsys):
    """Human dialogues are judged only of the seeds that a model was given."""
    settings = place.root / "botchat.toml"
    settings.write_text(settings.read_text().replace("limit = 3", ""))
    generate = ["generate", "--model", "one", "--model", "two", "--limit", "2"]
    assert main([*generate, "--dir", str(place.root)]) == 0
    rows = said(capsys, "judge", "unieval", "--plan", "--dir", place.root)["rows"]
    assert [row["calls"] for row in rows] == [3 * 2, 3 * 2]
    assert main(["judge", "gteval", "--plan", "--dir", str(place.root)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Plan: gteval on small, judge judge"
    assert re.fullmatch(r"  total +8 +0\.00   at most 0\.\d\d", lines[3])


def test_python_has_a_limit_where_none_is_named(place, server):
    """Of money, so only where prices are known; a limit of one's own stands in its place."""
    toml = place.root / "botchat.toml"
    toml.write_text(toml.read_text().replace("price_output = 2", "price_output = 20000"))
    dear = botchat.Workspace(place.root)
    with pytest.raises(LimitReached, match=r"nothing was sent: .* over the limit of USD 5.00"):
        botchat.run(workspace=dear)
    with pytest.raises(LimitReached, match=r"over the limit of USD 9\.00"):
        botchat.run(workspace=dear, spending=botchat.Spending(max_usd=9.0))
    assert server.n_received == 0


@pytest.mark.parametrize("answers", [0, 5])
def test_a_model_that_dies_costs_the_others_nothing(place, server, capsys, monkeypatch, answers):
    """Its endpoint's words come first, the others are judged, and the end says what is missing."""
    monkeypatch.setattr(Retry, "wait_s", lambda *_: None)
    asked = iter(range(999))

    def dying(call):
        return server_error(503) if next(asked) >= answers else judge_or_speak(call)

    server.play(by_model({"two": dying}, judge_or_speak))
    names = [word for name in ("one", "two", "three") for word in ("--model", name)]
    run(place, *names, "--json", "--quiet", code=1)
    said = capsys.readouterr()
    assert {row["model"] for row in json.loads(said.out)["rows"]} == {"one", "three", "human"}
    first, last = [line for line in said.err.splitlines() if "HTTP 503" in line]
    assert first.startswith(("HTTP 503: ", "two has not answered once: HTTP 503"))
    assert first.endswith("(two has no dialogue); the others are judged")
    assert "3 dialogues or verdicts are missing" in last


def test_an_outage_of_the_judge_is_not_judged_never_unreadable(place, server, capsys, monkeypatch):
    """No check of the judge counts what it was never asked."""
    monkeypatch.setattr(Retry, "wait_s", lambda *_: None)
    asked = iter(range(999))

    def dying(call):
        return server_error(503) if next(asked) >= 12 else judge_or_speak(call)

    server.play(by_model({"judge": dying}, judge_or_speak))
    run(place, "--json", "--quiet", code=1)
    said = capsys.readouterr()
    whole = json.loads(said.out)
    assert 0 < min(row["coverage"] for row in whole["rows"]) < 1
    checks = {one["key"]: one for one in whole["judge"]["checks"]}
    assert checks["unreadable_rate"]["value"] == 0
    assert sum(one["unreadable"] for one in whole["judged"]) == 0
    assert "judge has failed 8 times in a row: HTTP 503: " in said.err.splitlines()[-1]


@pytest.mark.parametrize(
    "panel",
    [(), ("--protocol", "gteval", "--judge", "chateval-same-role", "--judge-model", "judge")],
)
def test_a_plan_of_some_is_the_plan_of_all(place, capsys, monkeypatch, panel):
    """Of many dialogues and cases some stand for all: the same calls, dollars within 2 % of 24."""
    seeds = [Seed(f"t{n}", tuple(f"{'word ' * (1 + n * k % 9)}{n}" for k in range(6)))
             for n in range(24)]  # fmt: skip
    place.write_seeds("many", seeds)
    plans = []
    for dialogues, cases in ((8, 20), (1000, 1000)):
        monkeypatch.setattr(generating, "WALKED", dialogues)
        monkeypatch.setattr(judging, "WALKED", cases)
        run(botchat.Workspace(place.root), "--seeds", "many", "--limit", "24", "--plan", "--json",
            *panel)  # fmt: skip
        plans.append(json.loads(capsys.readouterr().out)["rows"])
    for few, whole in zip(*plans, strict=True):
        assert few["calls"] == whole["calls"] > 0
        for key in ("cost_usd", "cost_usd_high"):
            assert few[key] == pytest.approx(whole[key], rel=0.02)


@pytest.mark.parametrize("provider", [None, *templates()])
def test_init_writes_settings_that_load(provider, tmp_path, monkeypatch, capsys):
    """With comments, for every provider; a second time the file stays as it is."""
    monkeypatch.chdir(tmp_path)
    command = ["init", *([provider] if provider else [])]
    assert main(command) == 0
    written = Path("botchat.toml").read_text("utf-8")
    seeds = None if provider else "sample"
    assert written == settings_text(command[1:], seeds or "")
    settings = load(Path("botchat.toml"))
    assert settings.run.seeds == seeds
    named = [*settings.run.models, settings.run.judge]
    assert [name for name in named if name in settings.models] == [*settings.models]
    prices = [model.price_input for model in settings.models.values()]
    assert (settings.run.max_usd is not None) == (None not in prices and any(prices))
    assert settings.run.judge == ("gpt" if provider == "openai" else "rules")  # never its own
    assert main(command) == 1
    assert Path("botchat.toml").read_text("utf-8") == written


def test_the_providers_are_those_of_the_docs():
    """Every line of a provider's entry that is no price stands in docs/providers.md."""
    page = (ROOT / "docs" / "providers.md").read_text("utf-8")
    blocks = tomllib.loads("\n".join(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)))["models"]
    assert len(templates()) > 10
    for entries in templates().values():
        assert blocks.keys() & entries.keys()
        for name in blocks.keys() & entries.keys():
            entry = tomllib.loads(entries[name])
            assert blocks[name].items() >= {k: entry[k] for k in entry if "price" not in k}.items()


def test_init_asks_a_server_what_it_serves(tmp_path, server, capsys):
    """An entry a model, free, with a limit; what lists none is one line, and no file."""
    server.listed = [{"id": "org/Small-1B", "max_model_len": 4096}, {"id": "big"}]
    assert main(["init", server.url, "--dir", str(tmp_path)]) == 0
    settings = load(tmp_path / "botchat.toml")
    assert settings.run.models == ("Small-1B", "big", "bot:parrot")
    entry = settings.models["Small-1B"]
    assert (entry.model, entry.base_url) == ("org/Small-1B", server.url)
    assert (entry.max_tokens, entry.price_input, entry.price_output) == (256, 0, 0)
    assert (entry.context_window, settings.models["big"].context_window) == (4096, None)
    capsys.readouterr()
    nowhere = ["init", "http://127.0.0.1:9/v1", "--dir", str(tmp_path / "other")]
    assert main(nowhere) == 1
    assert "nothing answers at 127.0.0.1:9" in capsys.readouterr().err
    assert not (tmp_path / "other" / "botchat.toml").exists()


def test_init_writes_several_providers_and_imports_dialogues(tmp_path, monkeypatch, capsys):
    """Of three the last judges and the others are contestants."""
    monkeypatch.chdir(tmp_path)
    Path("chats.jsonl").write_text('{"id": "a", "utterances": ["Hi.", "Hello.", "So?", "Fine."]}\n')
    assert main(["init", "mistral", "vllm", "anthropic", "--data", "chats.jsonl"]) == 0
    assert "first look" not in capsys.readouterr().out  # there are real dialogues
    settings = load(Path("botchat.toml"))
    assert settings.run.models == ("mistral", "by-vllm", "bot:parrot")
    assert (settings.run.seeds, settings.run.judge) == ("chats", "claude")
    assert "A model of its own judges" in Path("botchat.toml").read_text("utf-8")
    rows = {row["set"]: row["invented"] for row in said(capsys, "seeds")["rows"]}
    assert rows == {"sample": True, "chats": False}


def test_a_judge_that_is_a_contestant_is_told(place, capsys):
    """By `run` before it asks, and by the board; under any name."""
    toml = place.root / "botchat.toml"
    again = '[models.same]\nmodel = "one"\nbase_url = '
    url = re.search(r'base_url = (".*")', toml.read_text())[1]
    toml.write_text(f"{again}{url}\nprice_input = 1\nprice_output = 2\n{toml.read_text()}")
    run(place, "--judge", "same", "--json", "--quiet")
    said = capsys.readouterr()
    assert "one is a contestant and its own judge" in said.err
    whole = json.loads(said.out)
    assert whole["judge"]["self_judged"] == ["one"]
    assert "It judges itself: one is a contestant." in whole["judge"]["reasons"]


def test_an_invented_set_is_said_wherever_it_is_met(place, capsys):
    """By `run`, board, json and page; any set can be one."""
    place.about_path("small").write_text("invented = true\n")
    run(place, "--quiet", "--format", "json")
    out, line = place.out("small"), "The set small is invented"
    assert json.loads((out / "leaderboard.json").read_text())["invented"]
    files = [out / "leaderboard.md", out / "index.html"]
    for told in (capsys.readouterr().out, *(path.read_text("utf-8") for path in files)):
        assert line in told
    place.write_seeds("small", SEEDS[:5], "zh")  # what is said of a set stays
    assert place.about("small").invented


def test_the_weekly_workflow_finds_that_a_model_fell(
    place, server, monkeypatch, capsys, tmp_path_factory
):
    """docs/ci.md to the letter: what it says to commit, cloned, and the lines of its workflow."""
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    setup, workflow = page.split("<!-- workflow:begin -->")
    weekly = re.findall(r"- run: (botchat .*)", workflow.split("<!-- workflow:end -->")[0])
    once = re.findall(r"^botchat .*", setup, re.MULTILINE)
    (commit,) = re.findall(r"^git add .*", setup, re.MULTILINE)
    assert len(weekly) == 2
    place.write_seeds("small", [Seed(f"s{n}", (f"from {n}", f"to {n}")) for n in range(12)])
    (place.root / "warm.txt").write_text("{{conversation}}\nEnd with this line:\nWarm: 1 to 9")
    settings, own = place.root / "botchat.toml", 'kind = "score"\nscores = ["Warm"]\nscale = [1, 9]'
    settings.write_text(
        settings.read_text("utf-8").replace("limit = 3", 'protocols = ["unieval", "warm"]')
        + f'[protocols.warm]\nprompt = "warm.txt"\n{own}\n'
    )
    monkeypatch.chdir(place.root)

    def status_of(commands):
        """Exit code of the last; the others are 0."""
        *first, last = (line.replace("SET", "small").split()[1:] for line in commands)
        assert [main(words) for words in first] == [0] * len(first)
        return main(last)

    def speak_or_judge(call):
        prompt = call.messages[-1]["content"]
        if call.model == "judge" and "Warm:" in prompt:
            return text("Warm: 5")
        if call.model == "judge":
            return text("Choice: Yes\nIndex: 3" if "As an AI" in prompt else "Choice: No")
        return text("As an AI" if fallen and call.model == "two" else f"so it is {len(prompt)}")

    fallen = False
    server.play(speak_or_judge)
    assert status_of(once) == 0
    git = ["git", "-c", "user.name=ci", "-c", "user.email=ci@example.com"]
    for command in ("git init -q", f"{commit} warm.txt", " ".join([*git, "commit -qm board"])):
        subprocess.run(command, shell=True, check=True)
    for code in (0, 4):
        fallen = code == 4
        checkout = tmp_path_factory.mktemp("checkout")
        subprocess.run(["git", "clone", "-q", str(place.root), str(checkout)], check=True)
        monkeypatch.chdir(checkout)
        assert not (checkout / "generations").exists()
        assert status_of(weekly) == code
    assert "botchat: 1 of 1 models fell" in capsys.readouterr().err

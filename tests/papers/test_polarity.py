"""``botchat bench polarity``: roles that pull against the question are found, others are not."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from botchat.cli.main import main
from botchat.judges.talk import SWAPPED
from botchat.judges.voting import mirrored
from botchat.papers.polarity import AGAINST, POLARITY, UNCLEAR, WITH, counted, lines
from botchat.records import HUMAN, Judgment, Remark, Seed
from botchat.workspace import files
from tests.boards import judgment
from tests.openai_server import Server, text
from tests.scripted import choice

SEEDS = [
    Seed(
        f"s{n:02}",
        (
            f"Did you get the {thing} I asked for?",
            f"Not yet, the {thing} man was shut when I came by.",
            "Then I'll go there myself tomorrow, before work.",
            f"Get some bread too, while you're out for the {thing}.",
        ),
    )
    for n, thing in enumerate(["fish", "lamp", "paint", "rope", "soap", "glue"])
]
SHORT = Seed("s9", ("Tea?", "Yes, please."))


def workspace(folder, server=None, panels="", seeds=(*SEEDS, SHORT)):
    """Six dialogues that are long enough and one that is not; perhaps a judge and panels."""
    files.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    if server is not None:
        model = f'[models.umpire]\nmodel = "umpire"\nbase_url = "{server.url}"\n'
        (folder / "botchat.toml").write_text(model + panels)
    return folder


def obedient(call):
    """A model that does what its role says: told of "the better" it names the person, and sorry.

    The bot's third utterance is longer than any of the people's.
    """
    prompt = call.messages[-1]["content"]
    one, two = prompt.split("\nConversation 1:\n")[1].split("\n\nConversation 2:\n")[:2]
    machine = 1 if len(one) > len(two.split("\n\n")[0]) else 2
    better = "which is the better" in prompt or "is the better one" in prompt
    return text(choice(str(3 - machine if better else machine)))


PANEL = '[panels.{name}]\nstrategy = "one-by-one"\nturns = 1\nmodel = "umpire"\n{more}\n'
TWO = 'agents = ["general-public", "news-author"]\n'
OWN = (
    "agents = [{ name = 'Judge of style', text = 'Say which is the better.' }, 'scientist']\n"
    "position_calibration = true"
)


def probe(capsys, folder, judge, *more):
    """The result, as ``--json`` prints it."""
    command = ["bench", "polarity", "--seeds", "small", "--judge", judge, *more]
    assert main([*command, "--dir", str(folder), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_roles_of_the_wrong_polarity_are_found(tmp_path, capsys, monkeypatch):
    """ChatEval's own roles pull against GTEval's question; those for dialogues do not."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    panels = PANEL.format(name="own", more=f'{TWO}role_set = "answers"')
    panels += PANEL.format(name="auto", more=TWO) + PANEL.format(name="mixed", more=OWN)
    with Server(obedient) as server:
        folder = workspace(tmp_path, server, panels)
        found = {name: probe(capsys, folder, name) for name in ("own", "auto", "mixed")}
        assert found["auto"]["calls"] == 2 * len(SEEDS) * 2
        again = probe(capsys, folder, "own")
    pulls = {
        name: {row["who"]: row["pull"] for row in made["rows"]} for name, made in found.items()
    }
    right, wrong = "with it", "against it"
    assert pulls["auto"] == {"auto": right, "General Public": right, "News Author": right}
    assert pulls["own"] == {"own": wrong, "General Public": wrong, "News Author": wrong}
    # Position calibration: votes on the swapped order are turned back before they are counted.
    assert pulls["mixed"]["Judge of style"] == wrong
    assert pulls["mixed"]["Scientist"] == right
    (said, *_) = [line for line in found["own"]["lines"] if "General Public" in line]
    assert said.startswith("General Public pulls against the question: of its votes that name one")
    assert "0 % (0–39) name the machine's" in said
    assert found["auto"]["lines"] == [
        "all pull with the question: auto, General Public, News Author",
    ]
    assert (again["calls"], again["rows"]) == (0, found["own"]["rows"])
    row = found["own"]["rows"][1]
    assert (row["votes"], row["machine"], row["person"], row["named"]) == (12, 0, 12, 0)
    assert row["named_low"] == 0 < row["named_high"] < 0.5


def test_the_bots_and_the_rules_judge_need_no_model(tmp_path, capsys):
    """Offline; planned, stored as judgments of a folder of its own, told in words."""
    folder = workspace(tmp_path)
    made = probe(capsys, folder, "rules")
    assert [(row["who"], row["pull"]) for row in made["rows"]] == [("rules", "with it")]
    path = Path(made["path"])
    assert path.parent == folder / "judgments" / "small" / POLARITY.name
    judgments = files.read(path, Judgment)
    assert {one.contestants for one in judgments} == {
        ("bot:verbose", HUMAN),
        (HUMAN, "bot:verbose"),
    }
    assert {one.shown for one in judgments} == {4}
    assert not (folder / "generations").exists()
    command = ["bench", "polarity", "--seeds", "small", "--judge", "rules", "--dir", str(folder)]
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "all pull with the question: rules" in shown
    assert "Names the machine" in shown
    assert main([*command, "--limit", "1"]) == 0
    assert "which way rules pulls is not clear from 2 votes" in capsys.readouterr().out
    assert main([*command, "--plan"]) == 0


def test_a_set_in_another_language_has_the_bot_that_speaks_it(tmp_path, capsys):
    """Chinese: a person's lines in the wrong places, asked about in Chinese."""
    own = Path(__file__).parents[1] / "data" / "zh.jsonl"
    workspace(tmp_path, seeds=files.read(own, Seed))
    (tmp_path / "seeds" / "small.toml").write_text('language = "zh"\n')
    made = probe(capsys, tmp_path, "rules", "--limit", "3")
    assert "|set:small|lang:zh|" in made["signature"]
    assert made["rows"][0]["votes"] > 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--judge", "rules", "--limit", "0"], "--limit 0"),
        (["--judge", "rules", "--seeds", "tiny"], "has 4 and more utterances"),
        ([], "name one with --judge"),
    ],
)
def test_what_cannot_be_probed_is_said(tmp_path, capsys, flags, message):
    """One line, exit 1."""
    files.finish(tmp_path / "seeds" / "tiny.jsonl", [SHORT], lambda seed: seed.id)
    assert main(["bench", "polarity", "--dir", str(tmp_path), *flags]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


BOT = "bot:verbose"
VOTES = st.sampled_from(["1", "2", "both", "neither", None])


def judged(votes, verdict="1"):
    """A judgment for each (what A says first, then), the bot shown first, then second."""
    for n, (first, later) in enumerate(votes):
        shown = (BOT, HUMAN) if n % 2 == 0 else (HUMAN, BOT)
        talk = (
            Remark("A", "x", "", "ok", first),
            Remark("Feedback", "mind the time", "", "ok"),
            Remark("A", "y", "", "ok", later),
            Remark(f"A{SWAPPED}", "z", "", "ok", mirrored(first)),
        )
        one = judgment("probe/polarity", f"s{n // 2}", shown, verdict, 4)
        yield msgspec.structs.replace(one, judge="p", transcript=talk)


def found_in(votes, verdict="1"):
    """The rows by name."""
    made = counted("p", list(judged(votes, verdict)), "sig")
    return {row["who"]: row for row in made.records}, list(lines(made))


@settings(max_examples=20)
@given(votes=st.lists(st.tuples(VOTES, VOTES), min_size=1, max_size=12), verdict=VOTES)
def test_what_is_counted_is_what_was_said_first(votes, verdict):
    """Twice where the case was shown in the other order too; naming the other turns the pull."""
    rows, said = found_in(votes, verdict)
    assert list(rows) == ["p", "A"]
    first = [one for one, _ in votes]
    assert rows["A"]["votes"] == 2 * sum(one is not None for one in first)
    assert rows["A"]["decided"] == 2 * sum(one in ("1", "2") for one in first)
    for row in rows.values():
        assert row["machine"] + row["person"] == row["decided"] <= row["votes"]
        assert row["pull"] in (WITH, AGAINST, UNCLEAR)
        if row["decided"]:
            assert row["named"] == pytest.approx(row["machine"] / row["decided"], abs=1e-4)
            assert row["named_low"] <= row["named"] <= row["named_high"]
    turned, _ = found_in([(mirrored(one), two) for one, two in votes], mirrored(verdict))
    opposite = {WITH: AGAINST, AGAINST: WITH, UNCLEAR: UNCLEAR}
    assert [row["pull"] for row in turned.values()] == [
        opposite[row["pull"]] for row in rows.values()
    ]
    assert len(said) >= 1


def test_one_dialogue_is_never_enough():
    """Two votes about one ChatSEED, however clear, say nothing yet; none says nothing at all."""
    rows, said = found_in([("1", "1"), ("2", "2")])
    assert (rows["A"]["machine"], rows["A"]["pull"]) == (4, UNCLEAR)
    assert "which way A pulls is not clear from 4 votes" in said
    rows, _ = found_in([("both", None)], None)
    assert (rows["A"]["named"], rows["A"]["pull"], rows["p"]["votes"]) == (None, UNCLEAR, 0)


def test_a_single_judge_is_one_row():
    """Also where its reply could not be read and stands in the record as what it said."""
    one = next(judged([("1", "1")], None))
    talk = (Remark("p", "I would rather not say.", ""),)
    made = counted("p", [msgspec.structs.replace(one, transcript=talk)], "sig")
    assert [row["who"] for row in made.records] == ["p"]
    assert made.signature == "sig"

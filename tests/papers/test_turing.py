"""`botchat bench turing`: judges, annotators and traps on dialogues with known truth."""

import json
from pathlib import Path

import pytest

from tests.commands import refused, said
from tests.openai_server import Server, text
from tests.papers.test_bench import needs, url

DOMAINS = {  # annotators' majority right, its dialogues; one annotator accuses machines, humans
    "spotbot-convai2": (0.906, 309, 0.852, 0.299),
    "spotbot-dailydialog": (0.977, 133, 0.924, 0.130),
    "spotbot-empathetic": (0.789, 209, 0.669, 0.149),
}
"""TURING.md's numbers of Spot The Bot."""


def test_spot_the_bot_has_the_numbers_of_its_annotators(tmp_path, capsys):
    """People's to .001."""
    data = needs("turing", "spot-the-bot")
    found = said(capsys, "bench", "turing", "--data", data, "--dir", tmp_path)
    rows = {(row["source"], row["judge"]): row for row in found["judges"]}
    for source, (right, n, machines, humans) in DOMAINS.items():
        majority, one = rows[source, "annotators' majority"], rows[source, "one annotator"]
        assert majority["n"] == n
        assert majority["accuracy"] == pytest.approx(right, abs=1e-3)
        assert one["true_positive_rate"] == pytest.approx(machines, abs=1e-3)
        assert one["false_positive_rate"] == pytest.approx(humans, abs=1e-3)


WHO = [{"x": "human", "y": "human"}, {"x": "human", "y": "some-model"}]


def record(n: int) -> dict:
    """Dialogue n: of a machine where n is odd, of seven turns where n is below 4, else of four."""
    words = "word " * (9 if n % 2 and n != 5 else 3)
    turns = [{"speaker": "xy"[i % 2], "text": f"{words}{n}"} for i in range(7 if n < 4 else 4)]
    # Two are right after four turns, one is wrong; what is said after two does not count.
    accused = [[True, n % 2 == 0], [None, n % 2 == 0], [True, n % 2 == 1]]
    verdicts = [{"rater": r, "after": 4, "human": human} for r, human in enumerate(accused)]
    verdicts.append({"rater": 3, "after": 2, "human": [False, False]})
    return {"id": str(n), "turns": turns, "who": WHO[n % 2], "labels": {"verdicts": verdicts}}


@pytest.fixture
def place(tmp_path) -> Path:
    """Eight dialogues, and one that is shorter than the others."""
    records = [record(n) for n in range(8)]
    short = {"id": "short", "turns": [["x", "hi"], ["y", "hi"]], "who": WHO[0]}
    (tmp_path / "data").mkdir()
    lines = "".join(json.dumps(each) + "\n" for each in (*records, short))
    (tmp_path / "data" / "mine.jsonl").write_text(lines)
    return tmp_path / "data"


def umpire(call):
    """Is right of dialogues below 4, accuses all others, and says nothing of the last."""
    prompt = call.messages[-1]["content"]
    n = next(n for n in range(8) if f"word {n} <chat_end>" in prompt)
    assert prompt.count(f"word {n} <chat_end>") == 4
    if n == 7:
        return text("I do not know.")
    return text("Choice: Yes\nIndex: 3" if n % 2 or n >= 4 else "Choice: No\nIndex: None")


def test_judges_stand_beside_annotators_and_traps(place, tmp_path, capsys):
    """Dialogues are cut to what annotators read; rates worked out by hand; nothing asked twice."""
    bench = ["bench", "turing", "--data", place, "--dir", tmp_path / "w"]
    with Server(umpire) as server:
        alone = said(capsys, *bench)
        assert server.n_received == 0
        found = said(capsys, *bench, "--judge", url(server))
        again = said(capsys, *bench, "--judge", url(server))
        assert server.n_received == 8
        assert found["judges"] == again["judges"]
    rows = {row["judge"]: row for row in found["judges"]}
    assert {*rows} - {row["judge"] for row in alone["judges"]} == {url(server)}
    judge = rows[url(server)]
    assert (judge["n"], judge["unreadable"], judge["calls"]) == (7, 1, 1.0)
    assert judge["accuracy"] == pytest.approx(5 / 7)
    assert (judge["true_positive_rate"], judge["false_positive_rate"]) == (1.0, 0.5)
    assert judge["kappa"] == pytest.approx(1 - (2 / 7) / (1 - (3 * 5 + 4 * 2) / 49))
    assert (rows["annotators' majority"]["accuracy"], rows["annotators' majority"]["n"]) == (1.0, 8)
    one = rows["one annotator"]
    assert (one["n"], one["accuracy"]) == (24, pytest.approx(2 / 3))
    # Nobody but the wrong one is contradicted; beside the wrong one the right ones tie.
    assert one["kappa"] == pytest.approx(-1.0)
    # Thresholds are of the other seven; all dialogues have four turns, which tells nothing.
    assert rows["length alone"]["accuracy"] == pytest.approx(7 / 8)
    assert rows["length alone"]["skill"] == pytest.approx(3 / 4)
    turns = rows["number of turns alone"]
    assert (turns["ties"], turns["skill"]) == (1.0, 0.0)
    assert judge["skill"] == pytest.approx(3 / 8)  # the unreadable one is a tie
    traps = ("length alone", "number of turns alone")
    cut = "mine.jsonl is cut to 4 utterances, without 1 shorter dialogue and 8 labels given after "
    unbeaten = [f"{url(server)} does not beat {trap} on mine.jsonl." for trap in traps]
    assert found["notes"] == [f"{cut}another number.", *unbeaten]


def test_traps_need_both_kinds_and_are_named_once_for_all_sources(place, tmp_path, capsys):
    """A source of one class has none, and nobody to compare if nobody has judged it."""
    human = {"source": "people", "id": "h", "turns": [["x", "word 0"]] * 4, "who": WHO[0]}
    both = [record(n) | {"source": "copy"} for n in range(8)]
    with (place / "mine.jsonl").open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in (human, *both))
    bench = ["bench", "turing", "--data", place, "--dir", tmp_path / "w"]
    assert said(capsys, *bench)["notes"][2:] == ["Nobody has judged people."]
    with Server(umpire) as server:
        found = said(capsys, *bench, "--judge", url(server))
    assert {row["judge"] for row in found["judges"] if row["source"] == "people"} == {url(server)}
    assert f"{url(server)} does not beat length alone on mine.jsonl, copy." in found["notes"]


def test_an_odd_row_is_left_out_and_named(place, tmp_path, capsys):
    """With its file and row, the others count; one line where all are odd, or there is none."""
    bench = ["bench", "turing", "--data", str(place), "--dir", str(tmp_path)]
    with (place / "mine.jsonl").open("a") as file:
        file.write('{"id": "1", "turns": [["x", ["a", "b"]]], "who": {"x": "human"}}\n')
    found = said(capsys, *bench)
    assert {row["n"] for row in found["judges"] if row["judge"] == "length alone"} == {8}
    assert found["notes"][0].startswith("Left out: mine.jsonl row 10: {'id': '1'")
    (place / "mine.jsonl").write_text('{"id": "1", "turns": ["hi"], "who": {}}\n')
    assert "is no dialogue with id, turns and who" in refused(capsys, bench)
    (place / "mine.jsonl").unlink()
    assert "no dialogues: --data needs JSON lines" in refused(capsys, bench)
    (place / "mine.jsonl.gz").write_bytes(b"x")
    assert "is no gzip file" in refused(capsys, bench)

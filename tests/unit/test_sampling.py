"""The adaptive Arena without a judge: what can be compared, what is known, flags, words."""

from __future__ import annotations

from itertools import permutations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.cli.output import progress_line, progress_text
from botchat.errors import ConfigError
from botchat.interfaces import Answer
from botchat.pipeline.adaptive import (
    AdaptiveResult,
    known_comparisons,
    read_target,
    settings_of,
)
from botchat.pipeline.run.ask import Filing
from botchat.pipeline.run.work import run_now
from botchat.protocols.catalogue import ARENA
from botchat.protocols.kinds import Field
from botchat.ratings.adaptive import AdaptiveSettings, BoardSoFar, Target
from botchat.records import HUMAN, Dialogue, Judgment, Seed, human_dialogue
from botchat.requests import Judging
from botchat.requests.meter import Meter
from botchat.requests.results import StageResult
from botchat.workspace.folder import Workspace


def dialogue(seed_id, model, n):
    """A dialogue of ``n`` utterances that name model and position."""
    said = tuple(f"{model} says {i} on {seed_id}" for i in range(n))
    return Dialogue(seed_id, model, said, 2, (), "complete", "sig")


@given(
    st.lists(st.integers(2, 8), min_size=1, max_size=5),
    st.lists(st.lists(st.integers(0, 8), min_size=5, max_size=5), min_size=1, max_size=3),
    st.integers(3, 7),
    st.booleans(),
)
def test_the_field_has_the_cases_of_the_whole_arena(humans, lengths, turns, with_human):
    """Whatever is there and however long: the same cases, people among the contestants or not."""
    seeds = [Seed(f"s{i}", tuple(f"line {j}" for j in range(n))) for i, n in enumerate(humans)]
    contestants = {
        f"m{k}": {
            seed.id: dialogue(seed.id, f"m{k}", n)
            for seed, n in zip(seeds, of_model, strict=False)
            if n >= 2
        }
        for k, of_model in enumerate(lengths)
    }
    if with_human:
        contestants[HUMAN] = {seed.id: human_dialogue(seed) for seed in seeds}
    field = Field(ARENA.at(turns), seeds, contestants)
    made = [
        field.case(i, j, seed)
        for i, j in permutations(range(len(field.contestants)), 2)
        for seed in field.seeds_of(min(i, j), max(i, j)).tolist()
    ]
    expected = [make() for make in ARENA.at(turns).cases(seeds, contestants)]
    key = [(case.seed_id, case.contestants, case.digest, case.prompt) for case in expected]
    assert sorted((c.seed_id, c.contestants, c.digest, c.prompt) for c in made) == sorted(key)
    for i, j in permutations(range(len(field.contestants)), 2):
        there = set(field.seeds_of(i, j).tolist())
        assert there == {s for s in range(len(field.seed_ids)) if field.shown(i, j, s)}


class Teller:
    """A judge whose verdict is the one that it was made with."""

    name, digest, parallel, models = "teller", "0", 1, ()

    def __init__(self, verdict):
        self.verdict = verdict

    async def answer(self, case):
        """Its verdict."""
        return Answer(self.verdict, outcome="ok")


def test_what_is_known_is_what_still_holds(tmp_path):
    """Of current dialogues, readable, under this signature, between others than the one added."""
    workspace = Workspace(tmp_path)
    seeds = [Seed(f"s{i}", ("a", "b", "c", "d")) for i in range(3)]
    contestants = {m: {s.id: dialogue(s.id, m, 4) for s in seeds} for m in ("a", "b", "new")}
    field = Field(ARENA.at(4), seeds, contestants)

    def settle(verdict, *cases, signature="now", chosen=""):
        filing = Filing(workspace, "set", "arena-n4", Teller(verdict), signature, chosen)
        with filing:
            for case in cases:
                run_now(filing.settle(field.case(*case)))
        return filing

    settle("1", (1, 0, 2), signature="before")
    settle("2", (0, 1, 0), (0, 2, 0))
    settle("both", (1, 0, 1))
    filing = settle(None, (0, 1, 1))
    known = known_comparisons(field, filing, "new")
    rows = zip(known.first, known.second, known.result, known.cluster, strict=True)
    assert {tuple(map(float, row)) for row in rows} == {(0, 1, 1, 0), (1, 0, 0.5, 1)}
    assert known.models == ("a", "b", "new")
    # Another dialogue since: what was said of the old one does not count.
    contestants["a"]["s0"] = dialogue("s0", "a", 5)
    contestants["a"]["s1"] = msgspec.structs.replace(contestants["a"]["s1"], utterances=("x",) * 4)
    known = known_comparisons(Field(ARENA.at(4), seeds, contestants), filing, "new")
    assert known.cluster is not None
    assert known.cluster.tolist() == [0]


def test_a_whole_run_takes_the_mark_of_choice_off(tmp_path):
    """What an adaptive run chose keeps its mark until every case has been settled."""
    workspace = Workspace(tmp_path)
    seeds = [Seed("s", ("a", "b", "c", "d"))]
    field = Field(ARENA.at(4), seeds, {m: {"s": dialogue("s", m, 4)} for m in "ab"})
    for chosen, whole, mark in (
        ("adaptive", False, "adaptive"),
        ("", False, "adaptive"),
        ("", True, ""),
    ):
        filing = Filing(workspace, "set", "arena-n4", Teller("1"), "now", chosen)
        with filing:
            run_now(filing.settle(field.case(0, 1, 0)))
            if whole:
                filing.whole()
        (stored,) = workspace.judgments(filing.path).values()
        assert isinstance(stored, Judgment)
        assert stored.chosen == mark
    assert (filing.result().new, filing.result().cases) == (0, 1)


def test_a_target_is_read_from_parts():
    """Any of the three, in any order, with blanks; what is left out is the default."""
    assert read_target(None) == Target()
    assert read_target("gap=20") == Target(20, 2, 0.95)
    assert read_target(" confidence = .9, swaps=0 ,gap=5") == Target(5, 0, 0.9)


def test_flags_become_settings(tmp_path):
    """Nothing adaptive, a default target, a budget alone, both; and what placing a model takes."""

    def settings(protocol="arena", **flags):
        return settings_of(Judging(protocol, "sample", "m", **flags), Workspace(tmp_path))

    assert settings() is None
    assert settings(adaptive=True) == AdaptiveSettings()
    assert settings(adaptive=True, budget=9, rng_seed=3) == AdaptiveSettings(None, 9, seed=3)
    both = AdaptiveSettings(Target(gap=5), 9)
    assert settings(adaptive=True, target="gap=5", budget=9) == both
    assert settings(add="m") == AdaptiveSettings(None, 400)
    assert settings(add="m", target="gap=5") == AdaptiveSettings(Target(gap=5))
    assert settings(add="m", adaptive=True, budget=7) == AdaptiveSettings(None, 7)
    with pytest.raises(ConfigError, match="--add is for the arena: gteval"):
        settings("gteval", add="m")


def sampled(tmp_path, ratings, added=None, swaps=1, finished="target reached"):
    """What a run of these ratings would have found, 40 of 400 comparisons made."""
    state = BoardSoFar(
        made=40,
        population=400,
        rating=np.array(list(ratings.values()), dtype=float),
        error=np.full(len(ratings), 10.0),
        swaps=swaps,
        probability=0.955,
        finished=finished,
        warning="",
    )
    judged = StageResult("arena-n8", "j", 40, 40, 1, tmp_path / "j.rowl", 0)
    shown = {"turns": 8, "models": tuple(ratings), "target": Target(), "added": added}
    return AdaptiveResult(**vars(judged), state=state, **shown)


def test_the_ranking_in_words(tmp_path):
    """Best first, with 95 % errors, what is saved, and what it is sure of."""
    found = sampled(tmp_path, {"a": 900, "b": 1100, "c": 1000})
    assert [(row["place"], row["model"]) for row in found.rows] == [(1, "b"), (2, "c"), (3, "a")]
    assert found.board[0] == {"place": 1, "model": "b", "rating": "1100", "± 95 %": "20"}
    assert found.sentences == [
        "Arena at N = 8: 40 of 400 comparisons made, 90.0 % saved; target reached",
        "With 95 % confidence, at most 1 pair more than 10 Elo apart on the whole Arena is in the "
        "wrong order (at most 2: 96 %)",
        "Warning: the target allows 2 of 3 pairs in the wrong order; so few models need "
        "--target swaps=0",
    ]
    many = sampled(tmp_path, {f"m{i}": i for i in range(10)})
    assert not any("Warning" in line for line in many.sentences)
    assert found.progress == (
        "N = 8: 40 of 400 (90.0 % saved) · up to 1 swaps (at most 2: 96 %) · "
        "b 1100 ± 20, c 1000 ± 20, a 900 ± 20"
    )
    assert found.row["placed"] is None
    assert found.row["saved"] == 0.9
    assert "not finished" in sampled(tmp_path, {"a": 1, "b": 2}, finished="").sentences[0]


@pytest.mark.parametrize(
    ("rating", "place", "beside", "end"),
    [
        (1050, 2, ("b", "c"), None),
        (1200, 1, (None, "b"), "best"),
        (800, 4, ("a", None), "worst"),
    ],
)
def test_a_placed_model_in_words(tmp_path, rating, place, beside, end):
    """Its place, between whom; a warning where there is nobody beyond it."""
    found = sampled(tmp_path, {"a": 900, "b": 1100, "c": 1000, "new": rating}, added="new")
    placed = found.row["placed"]
    assert (placed["place"], placed["of"]) == (place, 4)
    assert (placed["above"], placed["below"]) == beside
    said = "\n".join(found.sentences)
    assert f"new: {rating} ± 20 (95 %), place {place} of 4" in said
    assert "comparisons with new made" in said
    assert (f"Warning: new is the {end} of all" in said) == (end is not None)


def test_progress_without_a_total_tells_no_time_left():
    """How much a target takes nobody knows; what is found so far stands below."""
    meter = Meter("judge", total=0, done=30, started=0.0)
    assert progress_line(meter, 10.0) == "judge · 30 · 3.0/s"
    assert "left" in progress_line(Meter("judge", total=60, done=30, started=0.0), 10.0)
    meter.notes["arena-n8"] = "N = 8: as it stands"
    assert progress_text(meter).splitlines()[1:] == ["N = 8: as it stands"]

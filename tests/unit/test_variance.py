"""What moves a verdict: components of worlds that are known, and what another design would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from botchat.errors import ConfigError, MissingError
from botchat.measures.variance import ITEM, ORDER, Crossed, standard_error
from botchat.requests import requests
from botchat.workspace.folder import Workspace

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
FACETS = (ITEM, "wording", "judge")
SD = {(ITEM,): 0.5, ("judge",): 0.3, (ITEM, "wording"): 0.4, ("wording", "judge"): 0.2, (): 0.6}


def world(rng: np.random.Generator, draws: int = 1) -> Crossed:
    """Verdicts whose components are the squares of `SD`, on 60 x 6 x 5 ways."""
    shape = {ITEM: 60, "wording": 6, "judge": 5}
    values = np.zeros((*shape.values(), draws))
    for effect, sd in SD.items():
        of = [n if facet in effect or not effect else 1 for facet, n in shape.items()]
        values = values + sd * rng.normal(size=(*of, 1 if effect else draws))
    return Crossed(FACETS, values)


@pytest.mark.parametrize("draws", [1, 2])
def test_known_components_are_found_and_absent_ones_are_not(draws: int) -> None:
    """In the mean of 60 worlds; asked once, a cell's own and its draws are one."""
    rng = np.random.default_rng(0)
    found = [world(rng, draws).components for _ in range(60)]
    truth = {effect: sd**2 for effect, sd in SD.items()}
    if draws == 1:
        truth[FACETS] = truth.pop(())
    for effect in found[0]:
        values = [one[effect] for one in found]
        off = np.mean(values) - truth.get(effect, 0.0)
        assert abs(off) < 4 * np.std(values) / 60**0.5, effect


def test_one_facet_is_the_variance_of_its_levels() -> None:
    """As anybody computes it; the interval is Student's."""
    values = np.array([0.1, 0.4, -0.3, 0.8, 0.5])
    one = Crossed((ITEM, "judge"), values.reshape(5, 1, 1))
    assert one.components == {(ITEM,): pytest.approx(values.var(ddof=1))}
    error = (values.var(ddof=1) / 5) ** 0.5
    assert one.interval() == pytest.approx((0.3, 0.3 - 2.7764 * error, 0.3 + 2.7764 * error), 1e-4)
    assert np.isnan(Crossed((ITEM,), np.ones((5, 1))).interval()[1])


def test_what_another_design_would_give() -> None:
    """Each component over the levels that share it; both orders leave nothing of an order."""
    parts = {(ITEM,): 0.2, ("judge",): 0.1, (ORDER,): 0.3, (ITEM, "judge", ORDER): 0.4, ("x",): -1}
    levels = {ITEM: 10, "judge": 2}
    assert standard_error(parts, levels) ** 2 == pytest.approx(0.02 + 0.05 + 0.3 + 0.02)
    assert standard_error(parts, {**levels, ORDER: 2}) ** 2 == pytest.approx(0.02 + 0.05 + 0.01)
    drawn = {(ITEM,): 0.2, (ITEM, ORDER): 0.4, (): 0.5}
    assert standard_error(drawn, {ITEM: 10, ORDER: 2}, 5) ** 2 == pytest.approx(0.02 + 0.005)


def ask(folder: Path, *files: Path, **more: object) -> Any:
    """``botchat variance``."""
    return requests()["variance"](files, **more).run(Workspace(folder))


def test_prd_as_it_is_published(tmp_path: Path) -> None:
    """Five judges in both orders on 80 questions: what one of them in one order does not see."""
    path = DATA / "prd" / "verdicts.csv"
    if not path.exists():
        pytest.skip("PRD's verdicts are not beside this checkout")
    found = ask(tmp_path, path)
    shares, following, means = found.tables
    share = {row["of"]: round(100 * row["share"], 1) for row in shares.records}
    assert share.pop("residual") == 60.3
    assert share.pop("judge × order") == 27.5
    assert (share.pop("question"), share.pop("question × order")) == (10.9, 1.3)
    assert set(share.values()) == {0.0}
    designs = {row["design"]: row for row in following.records}
    one, both = designs["one of each"], designs["one of each, both orders"]
    assert one["se"] == pytest.approx(0.503, abs=6e-4)
    assert one["se_again"] == pytest.approx(0.090, abs=6e-4)
    assert both["se_again"] == pytest.approx(0.067, abs=6e-4)
    # Judges differ also in the means of both orders (rms 0.17), which an interval must hold.
    assert both["se"] == pytest.approx(0.174, abs=6e-4)
    assert len(means.records) == 10
    assert all(row["mean_low"] <= row["again_low"] + 0.001 for row in means.records)
    assert found.answer[0].startswith("What moves a verdict: residual 60.3 %, judge × order 27.5 %")


def test_files_are_wordings_and_what_was_not_asked_in_all_ways_does_not_count(
    tmp_path: Path,
) -> None:
    """Personas stand before the model's name; people are read where nobody else is."""
    judges = ("strict@m", "kind@m", "strict@n", "kind@n")
    for name, skipped in (("plain", ""), ("polite", "3")):
        rows = [
            f"{item},{first},{second},{judge},{1 + (item + len(judge) + (first == 'a')) % 2}"
            for item in range(6)
            for first, second in (("a", "b"), ("b", "a"))
            for judge in judges
            if str(item) != skipped or judge != "kind@n"
        ]
        text = "\n".join(["item,first,second,judge,verdict", *rows, "1,a,b,human-1,1"])
        (tmp_path / f"{name}.csv").write_text(text)
    found = ask(tmp_path, tmp_path / "plain.csv", tmp_path / "polite.csv")
    (now,) = [row for row in found.tables[1].records if row["design"] == "as it is"]
    assert now["verdicts"] == 5 * 2 * 2 * 2 * 2
    assert "1 of 6 questions of two contestants lack a verdict in some way." in found.lines
    assert not any("Not seen" in line for line in found.answer)
    with pytest.raises(MissingError, match="in all ways on two questions"):
        ask(tmp_path, tmp_path / "plain.csv", judges=["human-1"])
    with pytest.raises(MissingError, match="no verdicts of nobody; there are: strict@m, kind@m"):
        ask(tmp_path, tmp_path / "plain.csv", judges=["nobody"])
    (tmp_path / "none.csv").write_text("item,first,second,judge,verdict\n1,a,b,j,\n2,a,b,j,\n")
    with pytest.raises(MissingError, match=r"on two questions.*: no verdict compares two"):
        ask(tmp_path, tmp_path / "none.csv")
    with pytest.raises(ConfigError, match="--samples and --limit are of --seeds"):
        ask(tmp_path, tmp_path / "plain.csv", limit=0)
    with pytest.raises(ConfigError, match=r"needs FILE\.csv"):
        ask(tmp_path)

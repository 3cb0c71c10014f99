"""Every number of the first screen opens exactly the cases that it counts."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from botchat.report import View, files
from botchat.report.archive import build
from botchat.workspace.jsonl import write_all
from tests.boards import make_records
from tests.browser.conftest import Browser

CELLS = """
return [...document.querySelectorAll('#board table.board tbody td a')].map((link) => {
  const cell = link.closest('td');
  const head = cell.closest('table').tHead.rows;
  const key = head[head.length - 1].cells[cell.cellIndex].dataset.key;
  return [link.hash, key, cell.dataset.value];
});
"""
OPENED = """
const read = !document.getElementById('read').hidden;
const shown = document.querySelector(read ? '#reader .count' : '.duel .counted, .duel .note');
const said = shown ? shown.textContent : '';
return location.hash === arguments[0] || location.hash.startsWith(arguments[0] + '&') ? said : '';
"""


def number(text: str) -> int:
    """A count as the page writes it."""
    return int(text.replace(",", ""))


@pytest.mark.parametrize("bots", [["bot:verbose", "bot:parrot"], []])
def test_every_number_opens_its_cases(browser: Browser, tmp_path: Path, bots: list[str]) -> None:
    """Of a board with scripts and of one without: what a link lists, counted, is its number."""
    skills = {"good": 0.9, "fair": 0.5, "poor": 0.2} | dict.fromkeys(bots, 0.05)
    records = make_records(skills, 30, unreadable=0.05)
    board = records.board()
    archive = build(records.seeds, records.dialogues, {board.judge: records.judgments})
    write_all(tmp_path, files([View.of(board)], archive))
    page = tmp_path / "index.html"
    browser.open(page)
    cells = browser.run(CELLS)
    assert len(cells) > 2 * len(skills)
    counted = set()
    for link, told, value in cells:
        browser.run("location.hash = arguments[0]; dispatchEvent(new Event('hashchange'))", link)
        browser.until(lambda link=link: browser.run(OPENED, link.partition("&seed=")[0]))
        said = browser.run(OPENED, link)
        asked = dict(parse_qsl(link[1:]))
        if results := re.match(r"([\d,]+) won, ([\d,]+) tied, ([\d,]+) lost of ([\d,]+)", said):
            won, tied, lost, of = map(number, results.groups())
            assert won + tied + lost == of
            hits = won + tied
        else:
            found = re.match(r"([\d,]+) of ([\d,]+)", said)
            assert found, (link, said)
            hits, of = map(number, found.groups())
        counted.add((link, hits, of))
        if value and (
            told.startswith(("success", "flagged")) or told.endswith(("coverage", "tie"))
        ):
            assert hits / of == pytest.approx(float(value), abs=1e-5), (link, told, said)
        elif value and told in ("bt_n16", "elo_n16", "bt_n8", "elo_n8"):
            on = [
                one
                for one in records.judgments[asked["protocol"]]
                if asked["a"] in one.contestants and one.verdict is not None
            ]
            assert of == len(on)
    assert browser.complaints() == []
    assert any(hits for _, hits, _ in counted)

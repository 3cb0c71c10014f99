"""Every number of the first screen opens exactly the cases that it counts."""

import re
from pathlib import Path

import pytest

from tests.boards import consistent, make_records
from tests.browser.conftest import Browser
from tests.browser.pages import write_page

CELLS = """
return [...document.querySelectorAll('#ranking table.board tbody td a')].map((link) => {
  const cell = link.closest('td');
  return [link.hash, cell.dataset.key, cell.dataset.value];
});
"""
OPENED = """
const read = !document.getElementById('read').hidden;
const shown = document.querySelector(read ? '#reader .count' : '.duel .note');
const text = shown ? shown.textContent : '';
return location.hash === arguments[0] || location.hash.startsWith(arguments[0] + '&') ? text : '';
"""


def test_every_number_opens_its_cases(browser: Browser, tmp_path: Path) -> None:
    """The dialogues that are accused, the verdicts beside the human, the pair with the next."""
    skills = {"good": 0.9, "fair": 0.5, "poor": 0.2, "bot:parrot": 0.05}
    records = consistent(make_records(skills, 40, unreadable=0))
    page = write_page(records, tmp_path)
    browser.open(page)
    cells = browser.run(CELLS)
    opened = {key: 0 for _, key, _ in cells}
    assert [*opened] == ["success_n16", "gteval_win_or_tie", "vs_next"]
    for link, key, value in cells:
        browser.run("location.hash = arguments[0]; dispatchEvent(new Event('hashchange'))", link)
        browser.until(lambda link=link: browser.run(OPENED, link))
        text = browser.run(OPENED, link)
        numbers = [int(number) for number in re.findall(r"\d+", text)]
        if key == "success_n16":
            accused, n = numbers
            rate = 100 * (1 - accused / n)
            assert float(value) == pytest.approx(rate, abs=1e-3) or "a=human" in link
        else:
            won, tied, lost, n = numbers[:4]
            assert won + tied + lost == n
            rate = 100 * (won + tied) / n if key == "gteval_win_or_tie" else won - lost
            assert float(value) == pytest.approx(rate, abs=1e-3)
        opened[key] += 1
    assert opened == {"success_n16": 4, "gteval_win_or_tie": 4, "vs_next": 3}
    assert browser.complaints() == []

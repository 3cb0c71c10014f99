"""What no page does at any width: text over text, cut names, empty halves, lost headings."""

from pathlib import Path

import pytest

import botchat
from tests.browser.conftest import Browser

FAULTS = Path(__file__).with_name("faults.js").read_text("utf-8")
FONTS = ("DejaVu Sans", "Liberation Sans")
SET_FONT = "document.body.style.fontFamily = arguments[0]; dispatchEvent(new Event('resize'))"
SHARE = "const w = (e) => document.querySelector(e).clientWidth; return w('.tabled') / w('main')"


@pytest.mark.parametrize("width", [1440, 1366, 1024, 390])
def test_nothing_touches(browser: Browser, large: Path, three: Path, width: int) -> None:
    """A row under the pointer has its line; all columns take the whole width; paper has room."""
    for page in (large, three):
        browser.open(page, width=width, height=900)
        for font in FONTS:
            browser.run(SET_FONT, font)
            assert browser.run(FAULTS) == []
            browser.command("Emulation.setEmulatedMedia", {"media": "print"})
            wide = browser.run("return document.querySelector('.board').offsetWidth")
            assert wide <= max(1031, width)
            browser.command("Emulation.setEmulatedMedia", {"media": ""})
        row = browser.driver.find_element("css selector", ".board [data-model=model-1] td")
        browser.run("arguments[0].dispatchEvent(new Event('mouseover', { bubbles: true }))", row)
        assert len(browser.texts(".plot g.now")) == 1
        browser.run("for (const e of document.querySelectorAll('.menu input')) e.click()")
        for font in FONTS:
            browser.run(SET_FONT, font)
            assert width == 1440 or browser.run(SHARE) == 1


def test_a_page_of_votes_has_no_judge(browser: Browser, tmp_path: Path) -> None:
    """It has the facts, and who met whom."""
    (tmp_path / "v.csv").write_text("model_a,model_b,winner\n" + "a,b,model_a\nb,c,tie\n" * 30)
    page = botchat.rank(tmp_path / "v.csv", workspace=tmp_path).data["page"]
    browser.open(Path(page))
    assert browser.run(FAULTS) == []
    assert "Judge" not in browser.text("main") + browser.text("nav")
    assert browser.texts(".facts dd")[2:] == ["60", "50 %", "0", "2 of 3", "30"]
    assert browser.texts(".matrix tbody tr:last-child td") == ["30", "30", "", "0", "50", ""]

"""Headless Chromium, and pages to open in it."""

from __future__ import annotations

import importlib.util
import json
import random
import shutil
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from botchat.workspace.folder import Workspace
from tests.boards import consistent, make_records
from tests.browser.pages import hostile_page, own_page, write_boards

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

SHOWN_AT = [(1440, False), (1024, True), (390, True)]
"""Width and dark: each width once, light and dark where there is room for everything."""

LOADED = "return document.readyState === 'complete' && location.search === arguments[0]"


class Browser:
    """One Chromium; every page in it starts with nothing stored."""

    def __init__(self, driver: WebDriver, downloads: Path) -> None:
        self.driver = driver
        self.downloads = downloads
        self.shown = (0, 0, False)
        self.n_opened = 0

    def open(
        self,
        page: Path,
        fragment: str = "",
        width: int = 1400,
        height: int = 1000,
        *,
        dark: bool = False,
        fresh: bool = False,
    ) -> None:
        """Show a page from disk; ``fresh``: in a browser that has kept nothing."""
        url = page.as_uri()
        if fresh:
            self.driver.get(url)
            self.run("localStorage.clear()")
        if self.shown != (width, height, dark):
            self.shown = (width, height, dark)
            scheme = "dark" if dark else "light"
            self.driver.get("about:blank")  # the last page is not laid out anew
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            self.command("Emulation.setDeviceMetricsOverride", size)
            media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
            self.command("Emulation.setEmulatedMedia", media)
        self.complaints()
        self.requests()
        self.n_opened += 1  # a new fragment would not load the page again
        self.driver.get(f"{url}?{self.n_opened}{fragment}")
        self.until(lambda: self.run(LOADED, f"?{self.n_opened}"))  # get may return too early

    def command(self, name: str, parameters: dict[str, Any]) -> Any:
        """A command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(name, parameters)

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a function body in the page; it is not bound by the page's policy."""
        return self.driver.execute_script(script, *arguments)

    def until(self, condition: Callable[[], Any]) -> Any:
        """The first true value of a condition that the page will meet soon."""
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.ui import WebDriverWait

        ignored = [StaleElementReferenceException]
        wait = WebDriverWait(self.driver, 8, 0.05, ignored_exceptions=ignored)
        return wait.until(lambda _: condition())

    def text(self, selector: str) -> str:
        """The text of the first element, waited for."""
        script = "return document.querySelector(arguments[0])?.textContent || ''"
        return str(self.until(lambda: self.run(script, selector)))

    def texts(self, selector: str) -> list[str]:
        """The texts of all such elements, also of what is not seen."""
        script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
        return list(self.run(script, selector))

    def seen(self, selector: str) -> list[str]:
        """What such elements show."""
        return [one.text for one in self.driver.find_elements("css selector", selector)]

    def click(self, selector: str) -> None:
        """Click the first, seen or not."""
        self.run("document.querySelector(arguments[0]).click()", selector)

    def choose(self, selector: str, value: str) -> None:
        """Set a field, as a person would."""
        self.run(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
            "e.dispatchEvent(new Event('change', { bubbles: true }))",
            selector,
            value,
        )

    def press(self, keys: str) -> None:
        """Type at what has the focus then, even if the page puts something new in its place."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(keys).perform()

    def complaints(self) -> list[str]:
        """What the console holds since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses asked for since the page was opened."""
        events = (json.loads(entry["message"]) for entry in self.driver.get_log("performance"))
        return [
            event["message"]["params"]["request"]["url"]
            for event in events
            if event["message"]["method"] == "Network.requestWillBeSent"
        ]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Debian's Chromium by its own driver."""
    if importlib.util.find_spec("selenium") is None:
        pytest.skip("selenium is not installed")
    programs = [shutil.which("chromium"), shutil.which("chromedriver")]
    if None in programs:
        pytest.skip("no chromium and chromedriver: apt-get install chromium chromium-driver")
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = str(programs[0])
    profile = tmp_path_factory.mktemp("profile")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=ChromeService(str(programs[1])))
    driver.set_script_timeout(120)  # axe on a loaded machine
    try:
        downloads = tmp_path_factory.mktemp("downloads")
        found = Browser(driver, downloads)
        allowed = {"behavior": "allow", "downloadPath": str(downloads)}
        found.command("Browser.setDownloadBehavior", allowed)
        yield found
    finally:
        driver.quit()


@pytest.fixture
def demo_workspace(demo_folder: Path) -> Workspace:
    """The demo; tests that change it take a copy."""
    return Workspace(demo_folder)


@pytest.fixture
def page(demo_workspace: Workspace) -> Path:
    """The demo's page."""
    return demo_workspace.out("sample") / "index.html"


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of somebody's own criteria."""
    return own_page(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page whose every text is an attack."""
    return hostile_page(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 contestants by two judges on 8 seeds, with costs."""
    names = ["bot:retrieval", "bot:parrot", "模型一号", f"a-model-with-a-long-name{'-2024' * 4}"]
    names += [f"model-{i}" for i in range(20)]
    records = make_records({name: random.Random(name).random() for name in names}, 8, arena=(16,))
    costs = {name: 0.001 * i for i, name in enumerate(names)}
    return write_boards(tmp_path_factory.mktemp("large"), records, ("rules", "judge: B"), costs)


@pytest.fixture(scope="session")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4 models by three judges: everything that a large page has, which axe reads sooner."""
    records = consistent(
        make_records({f"model-{i}": 0.95 - i / 4 for i in range(4)}, 48, arena=(16,))
    )
    costs = {"model-0": 0.0022}
    return write_boards(tmp_path_factory.mktemp("three"), records, ("rules", "B", "C"), costs)


def assert_fits(browser: Browser) -> None:
    """What is shown is no wider than the screen, and no text of it below 11 px."""
    wide, room, small = browser.run(
        "const e = document.documentElement;"
        "const small = [...document.querySelectorAll('body *')].filter((node) =>"
        "node.checkVisibility() && [...node.childNodes].some((one) => one.nodeType === 3"
        " && one.textContent.trim()) && !node.closest('svg')"
        " && parseFloat(getComputedStyle(node).fontSize) < 11);"
        "return [e.scrollWidth, e.clientWidth, small.map((node) => node.outerHTML.slice(0, 80))]"
    )
    assert wide <= room
    assert small == []


def serious_faults(browser: Browser, *, every: bool = False) -> list[dict[str, Any]]:
    """What axe finds in the page that is shown; ``every``: what is no more than moderate, too."""
    if importlib.util.find_spec("axe_core_python") is None:
        pytest.skip("axe-core-python is not installed")
    browser.run(resources.files("axe_core_python").joinpath("axe.min.js").read_text("utf-8"))
    found = browser.driver.execute_async_script(
        "const done = arguments[0];axe.run(document, { resultTypes: ['violations'] }).then(done)"
    )
    return [
        {"rule": one["id"], "at": [node["html"][:200] for node in one["nodes"][:3]]}
        for one in found["violations"]
        if every or one["impact"] in ("serious", "critical")
    ]

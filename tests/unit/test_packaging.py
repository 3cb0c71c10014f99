"""What is shipped, pinned and documented is whole; `make test-dist` and `make docs` do the rest."""

import ast
import inspect
import re
import shlex
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from cyclopts import CycloptsError
from packaging.requirements import Requirement

import botchat
from botchat import _COMMANDS, _PLACES
from botchat.commands import app
from botchat.workspace.config import load, model_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("*/README.md")]
COMMANDS = [
    (page.name, line)
    for page in PAGES
    if page.name != "CHANGELOG.md"  # which tells of commands as they were
    for line in re.findall(r"^botchat .*$|(?<=`)botchat [^`]+(?=`)", page.read_text("utf-8"), re.M)
]


def test_every_command_of_the_pages_has_the_flags_it_needs() -> None:
    """Also those that no test runs, since they need an endpoint, people or a large download."""
    assert len(COMMANDS) > 30
    for page, command in COMMANDS:
        words = shlex.split(command, comments=True)[1:]
        words = [word for word in words if word not in ("--json", "--quiet")]
        try:
            app.parse_args(words, exit_on_error=False, print_error=False)
        except CycloptsError as error:
            raise AssertionError((page, command, str(error))) from None


def test_the_sdist_has_every_file_of_the_repository() -> None:
    """Whatever git knows is under a path that pyproject.toml includes."""
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout, such as an sdist")
    known = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    given = [
        one.lstrip("/") for one in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    ]
    # hatchling takes these whatever is said
    given += ["pyproject.toml"]
    left_out = [
        path
        for path in known
        if not any(fnmatch(path, one) or path.startswith(f"{one}/") for one in given)
    ]
    assert left_out == []


@pytest.mark.parametrize(
    ("lock", "asked"),
    [
        (
            "requirements.lock",
            [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]],
        ),
        ("requirements-run.lock", PROJECT["project"]["dependencies"]),
        ("requirements-docs.lock", PROJECT["dependency-groups"]["docs"]),
        ("requirements-tokens.lock", ["llama-index-core"]),
    ],
)
def test_locks_have_what_is_asked_for_and_name_no_index(lock: str, asked: list[str]) -> None:
    """`make lock` was run after pyproject.toml changed; every package has digests."""
    text = (ROOT / lock).read_text("utf-8")
    pinned = dict(re.findall(r"^([a-z0-9-]+)(?:\[[^]]*\])?==(\S+) ", text, re.M))
    lacking = [
        one
        for one in map(Requirement, asked)
        if one.name not in pinned or pinned[one.name] not in one.specifier
    ]
    assert lacking == []
    assert "://" not in text
    assert re.findall(r"^\w.*[^\\]$", text, re.M) == []  # a line that no digest follows


def anchors(page: Path) -> set[str]:
    """What a link can name in a page: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def test_no_link_of_a_page_is_dead() -> None:
    """Files and headings that pages link to are there; `make docs` looks again, on the site."""
    dead = [
        f"{page.relative_to(ROOT)}: {link}#{anchor}"
        for page in PAGES
        for link, anchor in re.findall(
            r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", page.read_text("utf-8")
        )
        if page.name != "CHANGELOG.md"  # which tells of pages as they were
        if not (there := page.parent / link if link else page).exists()
        or (anchor and anchor not in anchors(there))
    ]
    assert dead == []


def test_no_file_that_the_code_names_is_gone() -> None:
    """Docstrings say where examples and benchmarks are."""
    named = set[str]()
    for path in (ROOT / "botchat").rglob("*.py"):
        named.update(re.findall(r"(?:tests|docs|benchmarks)/[\w/]+\.\w+", path.read_text("utf-8")))
    assert [file for file in sorted(named) if not (ROOT / file).exists()] == []


def test_the_site_has_every_page_and_every_public_name() -> None:
    """The navigation of mkdocs.yml, and docs/python.md, forget nothing."""
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert [
        page.name for page in ROOT.glob("docs/*.md") if f"docs/{page.name}\n" not in navigation
    ] == []
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    (members,) = re.findall(r"^::: botchat.commands\n.*?members: \[(.*?)\]", page, re.M | re.DOTALL)
    others = {"demo", "init", "models_", "seeds", "ledger", "figure"}
    assert set(members.split(", ")) == set(_COMMANDS) - others
    places = {f"botchat.{place.replace(':', '.')}" for place in _PLACES.values()}
    assert set(re.findall(r"^::: (.*)$", page, re.M)) == (
        places - {"botchat.records.VERSION"} | {"botchat.commands"}
    )
    assert all(hasattr(botchat, name) for name in _PLACES)
    text = inspect.getsource(botchat).partition("_PLACES")[0]
    static = re.findall(r"^    (?:from .* as )?([A-Za-z]\w+|__version__)(?: = .*)?$", text, re.M)
    assert {*static} == {*_PLACES}


def test_the_map_of_the_code_is_made_of_docstrings() -> None:
    """Every room has a row with its first line; every station of the walk names what is there."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    code = ROOT / "botchat"
    modules = {path.stem: path for path in code.glob("[!_]*.py")}
    modules |= {path.parent.name: path for path in code.glob("*/__init__.py")}
    assert dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page, re.M)) == {
        name: str(ast.get_docstring(ast.parse(module.read_text("utf-8")))).split("\n")[0]
        for name, module in modules.items()
    }
    stations = re.findall(r"^\d+\. `([\w/]+\.py)`, `([\w.]+)`", page, re.M)
    assert len(stations) == 12
    for file, names in stations:
        room, _, name = file.rpartition("/")
        texts = [path.read_text("utf-8") for path in (ROOT / "botchat" / room).rglob(name)]
        for part in names.split("."):
            assert any(re.search(rf"(def|class) {part}\b", text) for text in texts), (file, names)


# Every botchat.toml of docs/providers.md can be used as it is printed.

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "providers.md").read_text("utf-8")
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_is_read_by_botchats_own_loader(tmp_path, block):
    """Every model of it can be named; none is longer than five lines."""
    path = tmp_path / "botchat.toml"
    path.write_text(block)
    config = load(path)
    assert config.models
    for name, settings in config.models.items():
        assert model_name(name, config).settings == settings
        assert settings.base_url.startswith(("https://", "http://localhost:"))
    for entry in block.strip().split("\n\n"):
        assert len(entry.splitlines()) <= 6


def test_a_small_command_imports_neither_pandas_nor_aiohttp(tmp_path: Path) -> None:
    """They take most of a second, for nothing."""
    code = "import sys; from botchat.cli.main import main; place = ['--dir', sys.argv[1]]"
    for command in ("models", "seeds", "init"):
        code += f"; assert main(['{command}', *place]) == 0, '{command}'"
        code += "; print({'pandas', 'aiohttp', 'pyarrow'} & {*sys.modules}, file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True)
    assert run.stderr.count("set()\n") == 3, run.stderr

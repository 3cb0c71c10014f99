"""The same model at another address: what is paid already is said before it is paid again."""

from __future__ import annotations

import pytest

from botchat.cli.main import main
from botchat.records import Seed
from botchat.workspace.folder import Workspace
from tests.openai_server import Server

GENERATE = ["generate", "--seeds", "two", "--model", "q", "--turns", "4"]


def entry(folder, url, more=""):
    """Write botchat.toml with the model ``q`` there."""
    (folder / "botchat.toml").write_text(f'[models.q]\nmodel = "m"\nbase_url = "{url}"\n{more}\n')


@pytest.fixture
def folder(tmp_path):
    """A set of two seeds."""
    Workspace(tmp_path).write_seeds("two", [Seed("a", ("Hi.", "Ho.")), Seed("b", ("So?", "No."))])
    return tmp_path


def test_calls_of_another_address_are_named_and_used_on_request(folder, caplog):
    """Localhost for 127.0.0.1, or another port: one warning; with its identity nothing is sent."""
    with Server() as first, Server() as second:
        here = ["--dir", str(folder)]
        entry(folder, first.url)
        assert main([*GENERATE, *here]) == 0
        assert (first.n_received, caplog.text) == (4, "")
        before = {path: path.read_bytes() for path in folder.glob("generations/*/*")}

        entry(folder, second.url, "temperature = 0.5")
        assert main([*GENERATE, "--replace", *here]) == 0
        assert second.n_received == 4
        assert first.url in caplog.text  # the settings of a call do not decide who answers
        caplog.clear()

        entry(folder, first.url.replace("127.0.0.1", "localhost"), f'identity = "{first.url}"')
        assert main([*GENERATE, "--replace", *here]) == 0
        assert (first.n_received, caplog.text) == (4, "")
        assert {path: path.read_bytes() for path in folder.glob("generations/*/*")} == before


def test_another_model_or_other_fixed_parameters_are_no_reason_to_warn(folder, caplog):
    """Only the address may differ."""
    with Server() as first, Server() as second:
        entry(folder, first.url)
        assert main([*GENERATE, "--dir", str(folder)]) == 0
        entry(folder, second.url, "extra = { top_p = 0.5 }")
        assert main([*GENERATE, "--replace", "--dir", str(folder)]) == 0
        assert (second.n_received, caplog.text) == (4, "")


def test_a_ledger_of_another_machine_is_noticed(folder, tmp_path_factory, caplog):
    """After ``ledger import`` under a URL as name, too."""
    other = tmp_path_factory.mktemp("other")
    with Server() as first, Server() as second:
        for place, url in ((folder, first.url), (other, second.url)):
            Workspace(place).write_seeds("two", Workspace(folder).seeds("two"))
            if place == other:
                archive = str(folder / "ledger.jsonl.gz")
                assert main(["ledger", "export", archive, "--dir", str(folder)]) == 0
                assert main(["ledger", "import", archive, "--dir", str(other)]) == 0
            named = [*GENERATE[:4], f"{url}#m", *GENERATE[5:]]
            assert main([*named, "--dir", str(place)]) == 0
        assert (first.n_received, second.n_received) == (4, 4)
    assert f"4 calls of m with the same settings at {first.url}" in caplog.text

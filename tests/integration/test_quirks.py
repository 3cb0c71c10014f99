"""What an endpoint refuses is learnt once, and is no secret."""

from __future__ import annotations

import json

from botchat.cli.main import main
from botchat.records import Seed
from botchat.workspace.folder import Workspace
from tests.openai_server import Server, templates

GENERATE = ["generate", "--seeds", "two", "--model", "picky", "--turns"]


def test_what_an_endpoint_refuses_is_said_listed_and_signed(tmp_path, capsys, caplog):
    """Once on stderr; in ``botchat models``; in signatures."""
    Workspace(tmp_path).write_seeds("two", [Seed("a", ("Hi.", "Ho.")), Seed("b", ("So?", "No."))])

    def run(*command):
        code = main([*command, "--dir", str(tmp_path)])
        return code, *capsys.readouterr()

    with Server(models={"m": templates.Rules(default_temperature=True)}) as server:
        entry = f'[models.picky]\nmodel = "m"\nbase_url = "{server.url}"\ntemperature = 0.5\n'
        (tmp_path / "botchat.toml").write_text(entry)
        code, _, _ = run(*GENERATE, "4")
        assert (code, server.n_received) == (0, 5)  # the first is refused
        said = caplog.text
        assert said.count("picky is asked without temperature from now on") == 1
        (path,) = (tmp_path / "generations" / "two").glob("*.jsonl")
        before = path.read_text()
        assert before.count("|adapted:picky without temperature") == 2

        caplog.clear()
        code, _, _ = run(*GENERATE, "4")
        assert (code, server.n_received, path.read_text()) == (0, 5, before)
        assert "from now on" not in caplog.text

        _, listed, _ = run("models", "--json")
        (row,) = [row for row in json.loads(listed)["rows"] if row["name"] == "picky"]
        assert row["adapted"] == "without temperature"

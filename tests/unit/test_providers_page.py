"""Every botchat.toml of docs/providers.md can be used as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from botchat.models.endpoint import wire_format
from botchat.workspace.config import load, model_name

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "providers.md").read_text("utf-8")
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_is_read_by_botchats_own_loader(tmp_path, block):
    """Every model of it can be named and has a wire format; none is longer than five lines."""
    path = tmp_path / "botchat.toml"
    path.write_text(block)
    config = load(path)
    assert config.models
    for name, settings in config.models.items():
        assert model_name(name, config).settings == settings
        assert wire_format(name, settings).path.startswith("/")
        assert settings.base_url.startswith(("https://", "http://localhost:"))
    for entry in block.strip().split("\n\n"):
        assert len(entry.splitlines()) <= 6


def test_the_table_leads_to_sections_and_blocks_are_listed_in_it():
    """At least 15 rows."""
    rows = re.findall(r"^\| \[.*?\]\(#([\w-]+)\)", PAGE, re.MULTILINE)
    titles = {
        re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in re.findall("## (.*)", PAGE)
    }
    assert len(rows) >= 15
    assert set(rows) <= titles

"""`judge arena --comparisons K`: a random part of the Arena, the same every time."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from botchat.records import Judgment
from botchat.workspace import jsonl
from tests.commands import said


def drawn(folder, capsys, k):
    """Seeds and contestants of what K comparisons at N = 8 are, asked of the rules judge."""
    judge = ["judge", "arena", "--seeds", "sample", "--judge", "rules", "--turns", "8"]
    (row,) = said(capsys, *judge, "--comparisons", str(k), "--dir", str(folder))["rows"]
    path = folder / "judgments" / "sample" / "arena-n8"
    (file,) = path.iterdir()
    found = {(one.seed_id, one.contestants) for one in jsonl.read(file, Judgment)}
    file.unlink()
    assert row["cases"] == len(found)
    return found


@pytest.mark.parametrize("k", [2, 7, 60])
def test_a_draw_is_balanced_in_both_orders_and_repeated(tmp_path, capsys, k):
    """Never more than K, pairs within one of each other; again the same."""
    bots = [
        part for name in ("parrot", "verbose", "retrieval") for part in ("--model", f"bot:{name}")
    ]
    said(capsys, "generate", "--seeds", "sample", *bots, "--turns", "8", "--dir", str(tmp_path))
    found = drawn(tmp_path, capsys, k)
    assert len(found) == k - k % 2
    assert {(seed, names[::-1]) for seed, names in found} == found
    pairs = Counter(tuple(sorted(names)) for _, names in found)
    assert max(pairs.values()) - (min(pairs.values()) if len(pairs) == 3 else 0) <= 2
    assert drawn(tmp_path, capsys, k) == found


def test_a_larger_draw_holds_the_smaller(tmp_path, capsys):
    """So more comparisons add to those that are there, up to the whole Arena."""
    bots = [
        part for name in ("parrot", "verbose", "retrieval") for part in ("--model", f"bot:{name}")
    ]
    said(capsys, "generate", "--seeds", "sample", *bots, "--turns", "8", "--dir", str(tmp_path))
    draws = [drawn(tmp_path, capsys, k) for k in (10, 36, 90, 1000)]
    assert all(one < other for one, other in pairwise(draws))
    assert len(draws[-1]) == 2 * 3 * 40

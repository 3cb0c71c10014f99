"""Makes docs/board.png, the README's picture: the first screen of the page that the demo makes.

``python docs/board.py``, with Chromium on the path. ``board.json`` says which page the picture
shows; ``tests/integration/test_readme.py`` compares that with the page of today.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

DOCS = Path(__file__).parent
PICTURE = DOCS / "board.png"
WIDTH, HEIGHT = 1200, 860
COLOURS = 128


def digest(contents: bytes) -> str:
    """As ``tests/golden`` has them."""
    return hashlib.sha256(contents).hexdigest()[:16]


def photograph(page: Path, folder: Path) -> None:
    """Write the first screen of a page, in few colours."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or "chromium"
    shot = folder / "shot.png"
    command = [
        *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
        *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
        *("--disable-sync", "--hide-scrollbars", "--virtual-time-budget=5000"),
        *(f"--user-data-dir={folder / 'profile'}", f"--window-size={WIDTH},{HEIGHT}"),
        *(f"--screenshot={shot}", page.resolve().as_uri()),
    ]
    subprocess.run(command, check=True, timeout=120, stderr=subprocess.DEVNULL)
    with Image.open(shot) as whole:
        whole.convert("RGB").quantize(COLOURS).save(PICTURE, optimize=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        demo = [sys.executable, "-m", "botchat", "demo", "--dir", str(folder / "run"), "--quiet"]
        subprocess.run(demo, check=True, stdout=subprocess.DEVNULL)
        page = folder / "run" / "leaderboards" / "sample" / "index.html"
        photograph(page, folder)
        shown = page.read_bytes().replace(str(folder / "run").encode(), b"DIR")
    known = {"page": digest(shown), "picture": digest(PICTURE.read_bytes())}
    (DOCS / "board.json").write_text(json.dumps(known) + "\n")
    print(f"{PICTURE}: {PICTURE.stat().st_size:,} bytes")

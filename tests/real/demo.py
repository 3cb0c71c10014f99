"""``demo.py FOLDER``: rank SmolLM2 at two temperatures beside the bots, by the rules judge."""

import subprocess
import sys
from pathlib import Path

from tests.real.test_real import entry, serving

FREE = ("max_tokens = 48", "price_input = 0", "price_output = 0")
SERVER = 'identity = "llama.cpp"'  # whatever port it has this time

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
with serving(4096) as address:
    (folder / "botchat.toml").write_text(
        entry("smollm2", address, SERVER, *FREE)
        + entry("smollm2-warm", address, SERVER, *FREE, "temperature = 0.8")
        + '[run]\nseeds = "sample"\nlimit = 4\njudge = "rules"\n'
        + 'models = ["smollm2", "smollm2-warm", "bot:retrieval", "bot:parrot", "bot:verbose"]\n'
    )
    subprocess.run([sys.executable, "-m", "botchat", "run", "--dir", str(folder)], check=True)

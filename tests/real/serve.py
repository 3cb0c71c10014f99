"""``serve.py MODEL WINDOW [TEMPLATE]``: llama.cpp serves a model; prints its address, then waits.

One thread on purpose: on a shared machine two threads wait for each other at every layer.
"""

import sys
from pathlib import Path

import xllamacpp

SLOTS = 2

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_ctx = int(sys.argv[2]) * SLOTS
params.n_parallel = SLOTS
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
params.hostnames = ["127.0.0.1"]
params.port = 0
params.model_alias = {"smollm2-135m"}
if len(sys.argv) > 3:
    params.use_jinja = True
    params.chat_template = Path(sys.argv[3]).read_text("utf-8")
server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
sys.stdin.read()  # until whoever started it closes the pipe

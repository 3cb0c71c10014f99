"""Local weights: a tiny random model made on the spot, asked alone, in batches, in whole runs."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
from botchat.cluster import head
from botchat.cluster import shards as cluster

from botchat import parallel, prompts
from botchat.cli.main import main
from botchat.errors import ConfigError, FatalModelError
from botchat.interfaces import Decoding, Message
from botchat.models.limits import FREE
from botchat.models.local import model as model_module
from botchat.models.local import weights as transformers_weights
from botchat.models.local.model import LocalModel, local_model
from botchat.models.local.weights import Weights
from botchat.models.recorded import RecordedModel
from botchat.models.self_chat import PROMPT, Length, Speaker, extend, history
from botchat.pipeline.run.work import Stops, work_through
from botchat.records import Seed
from botchat.requests import Generating
from botchat.requests.meter import Meter
from botchat.workspace import files as store
from botchat.workspace.folder import Workspace
from botchat.workspace.ledger import Ledger

N_WORDS = 100
SPECIAL = ["<unk>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
END = SPECIAL.index("<|end|>")
GREEDY = Decoding(0.0, 24)

PLAIN = (
    "{% for m in messages %}<|{{ m.role }}|> {{ m.content }} <|end|> {% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}" + PLAIN
)
ALTERNATING = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate user/assistant') }}{% endif %}{% endfor %}" + PLAIN
)
ALTERNATING_AFTER_SYSTEM = (
    "{% if messages[0].role == 'system' %}{% set rest = messages[1:] %}{% else %}"
    "{% set rest = messages %}{% endif %}"
    "{% for m in rest %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate user/assistant') }}{% endif %}{% endfor %}" + PLAIN
)
DEAF_TO_SYSTEM = PLAIN.replace(
    "{% for m in messages %}", "{% for m in messages if m.role != 'system' %}"
)
ONLY_ONE_MESSAGE = (
    "{% if messages|length > 1 %}{{ raise_exception('one message only') }}{% endif %}" + PLAIN
)


def needs_torch():
    """Skip a test that runs a model where the extra is not installed."""
    for package in ("torch", "transformers"):
        pytest.importorskip(package, reason="needs the extra: pip install 'botchat-bench[hf]'")
    import torch

    # A second thread is no help for a model this small, and waits for a core that others use.
    torch.set_num_threads(1)


def make_weights(folder, *, window=512, template=PLAIN):
    """A random Llama of 25,000 parameters that knows a hundred words, with its tokenizer."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = [*SPECIAL, *(f"w{n}" for n in range(N_WORDS))]
    words = {word: i for i, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token=SPECIAL[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token=SPECIAL[0],
        eos_token=SPECIAL[1],
        additional_special_tokens=SPECIAL[2:],
    )
    fast.chat_template = template
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=window,
        # Wide weights: scores far enough apart that rounding decides nothing.
        initializer_range=1.0,
        eos_token_id=END,
        bos_token_id=None,
        pad_token_id=None,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def weights_folder(tmp_path_factory):
    """The tiny model with a lenient chat template and a window of 512 tokens."""
    needs_torch()
    return make_weights(tmp_path_factory.mktemp("weights") / "tiny")


@pytest.fixture
def batches(monkeypatch):
    """Prompt lengths of each batch that is run from here on."""
    seen = []
    run = Weights.generate

    def generate(self, batch, halt):
        seen.append([len(ask.ids) for ask in batch])
        return run(self, batch, halt)

    monkeypatch.setattr(Weights, "generate", generate)
    return seen


def words(n, start=0):
    """``n`` words that the tiny model knows; other ``start``, other words."""
    return " ".join(f"w{(start * 7 + i * (start + 1)) % N_WORDS}" for i in range(n))


def dialogues(n):
    """Dialogues of 2 to 6 utterances and very different lengths, seen by the next speaker."""
    return [
        history(words(5, 3), [words(1 + (i * 5 + k) % 23, i + k) for k in range(2 + i % 5)])
        for i in range(n)
    ]


def ask(model, chats, decoding=GREEDY):
    """Replies to all chats, asked at once."""

    async def all_of_them():
        return await asyncio.gather(*(model.chat(chat, decoding) for chat in chats))

    return asyncio.run(all_of_them())


@functools.cache
def plainly(folder):
    """Continues a chat by one whole forward pass a token, without cache or padding."""
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    @torch.inference_mode()
    def scores(chat, said=()):
        prompt = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        ids = tokenizer(prompt)["input_ids"]
        return model(torch.tensor([[*ids, *said]])).logits[0, -1]

    def continued(chat, most):
        said = []
        while len(said) < most:
            token = int(scores(chat, said).argmax())
            said.append(token)
            if token == END:
                break
        return tokenizer.decode(said, skip_special_tokens=True), said

    return continued, scores


def test_batched_greedy_replies_equal_those_of_a_plain_loop_over_one_dialogue(
    weights_folder, batches
):
    """Padding, masks, caches and company change no reply, nor where it ends."""
    chats = dialogues(40)
    replies = ask(LocalModel("hf:tiny", str(weights_folder), batch_size=16), chats)
    assert [len(batch) for batch in batches] == [16, 16, 8]
    assert len({n for batch in batches for n in batch}) > 10, "lengths to be padded"
    continued, _ = plainly(weights_folder)
    expected = [continued(chat, 24) for chat in chats]
    assert [(r.text, r.usage.completion_tokens) for r in replies] == [
        (text, len(said)) for text, said in expected
    ]
    assert [r.finish_reason == "stop" for r in replies] == [said[-1] == END for _, said in expected]
    assert {r.outcome for r in replies} >= {"ok", "truncated"}


def test_a_batch_holds_prompts_of_similar_length(weights_folder, batches):
    """All that waits is sorted, the longest first, before it is cut into batches."""
    ask(LocalModel("hf:tiny", str(weights_folder), batch_size=8), dialogues(30))
    lengths = [n for batch in batches for n in batch]
    assert lengths == sorted(lengths, reverse=True)


def test_a_batch_of_long_prompts_is_smaller(weights_folder, batches, monkeypatch):
    """Tokens bound a batch as well as rows do."""
    monkeypatch.setattr("botchat.models.local.model.BATCH_TOKENS", 400)
    replies = ask(LocalModel("hf:tiny", str(weights_folder), batch_size=16), dialogues(20))
    assert all(r.usable for r in replies)
    assert all(len(batch) == 1 or len(batch) * batch[0] <= 400 for batch in batches)
    assert len(batches) > 2


@pytest.mark.parametrize(("n", "batch_size"), [(24, 8), (50, 16), (3, 8)])
def test_a_turn_of_all_dialogues_is_a_few_batches(weights_folder, batches, n, batch_size):
    """Through ledger and workers, every turn of ``n`` dialogues is n / batch_size batches."""
    turns = 7
    model = LocalModel("hf:tiny", str(weights_folder), batch_size=batch_size)
    recorded = RecordedModel(model, Ledger(None), stage="generate", prices=FREE)
    speaker = Speaker(recorded, Decoding(0.0, 8))
    length = Length(tokens=None, size=len)
    made = {}

    async def do(seed):
        made[seed.id] = await extend(seed, [speaker], turns, length, str)

    seeds = [Seed(f"s{i}", (words(1 + i % 9, i), words(2, i))) for i in range(n)]
    asyncio.run(work_through(seeds, do, model.parallel, Stops(), model.name))
    assert {made[seed.id].status for seed in seeds} <= {"complete", "stopped:empty"}
    assert sum(map(len, batches)) > 0.8 * n * (turns - 2)
    assert len(batches) <= (turns - 2) * math.ceil(n / batch_size)


def test_calls_some_passes_of_the_loop_apart_share_a_batch(weights_folder, batches):
    """Work between a reply and the next call, as in a panel's talk, does not split batches."""
    model = LocalModel("hf:tiny", str(weights_folder))

    async def later(passes, chat):
        await model.chat(chat, Decoding(0.0, 2))
        for _ in range(passes):
            await asyncio.sleep(0)
        await model.chat(chat, Decoding(0.0, 3))

    async def all_of_them():
        await asyncio.gather(*(later(3 * i, chat) for i, chat in enumerate(dialogues(8))))

    asyncio.run(all_of_them())
    assert [len(batch) for batch in batches] == [8, 8]


def test_draws_follow_the_distribution_and_their_number(weights_folder):
    """Above temperature 0 a token comes as often as the model's softmax says."""
    import torch

    chat = dialogues(3)[2]
    _, scores = plainly(weights_folder)
    chances = torch.softmax(scores(chat) / 3.0, dim=-1)
    model = LocalModel("hf:tiny", str(weights_folder), batch_size=500)
    n = 4000

    async def draws():
        return await asyncio.gather(
            *(model.chat(chat, Decoding(3.0, 1, sample=i)) for i in range(n))
        )

    replies = asyncio.run(draws())
    vocabulary = [*SPECIAL, *(f"w{i}" for i in range(N_WORDS))]
    counts = torch.zeros(len(vocabulary))
    for reply in replies:
        counts[vocabulary.index(json.loads(reply.raw)["text"].strip() or SPECIAL[END])] += 1
    # Ended at once: the end token is in no text.
    assert sum(r.finish_reason == "stop" for r in replies) == counts[END]
    distance = 0.5 * float((counts / n - chances).abs().sum())
    assert distance < 0.08  # 105 tokens, 4,000 draws: about 0.05 by chance alone


def test_replies_of_one_batch_end_each_at_its_own_length(weights_folder, batches):
    """``max_tokens`` is a request's own, and reaching it is ``truncated``."""
    model = LocalModel("hf:tiny", str(weights_folder))
    chats = dialogues(8)

    async def mixed():
        return await asyncio.gather(
            *(model.chat(chat, Decoding(0.0, 1 + 3 * i)) for i, chat in enumerate(chats))
        )

    replies = asyncio.run(mixed())
    assert len(batches) == 1
    continued, _ = plainly(weights_folder)
    for i, (chat, reply) in enumerate(zip(chats, replies, strict=True)):
        text, said = continued(chat, 1 + 3 * i)
        ended = said[-1] == END
        assert reply.text == text
        assert reply.outcome == ("empty" if not text else "ok" if ended else "truncated")
        assert reply.usage.completion_tokens == len(said)
    truncated = next(r for r in replies if r.outcome == "truncated")
    assert (truncated.finish_reason, truncated.detail) == ("length", "finish_reason length")


def test_a_batch_takes_no_longer_than_its_longest_reply(weights_folder, monkeypatch):
    """A row that has used up its own ``max_tokens`` does not keep the others waiting."""
    continued, _ = plainly(weights_folder)
    chats = dialogues(12)
    ended = [continued(chat, 24)[1][-1] == END for chat in chats]
    assert {True, False} <= set(ended)
    steps = []
    draw = transformers_weights._Draw.__call__

    def counted(self, input_ids, scores):
        steps.append(len(scores))
        return draw(self, input_ids, scores)

    monkeypatch.setattr(transformers_weights._Draw, "__call__", counted)
    model = LocalModel("hf:tiny", str(weights_folder))

    async def mixed():
        return await asyncio.gather(
            *(
                model.chat(chat, Decoding(0.0, 100 if ends else 2))
                for chat, ends in zip(chats, ended, strict=True)
            )
        )

    replies = asyncio.run(mixed())
    assert steps == [12] * max(reply.usage.completion_tokens for reply in replies)


def test_a_prompt_that_leaves_no_room_is_an_overflow(tmp_path, batches):
    """Measured by the model's own tokenizer and template; nothing is run."""
    needs_torch()
    model = LocalModel("hf:small", str(make_weights(tmp_path, window=64)))
    fits, exceeds = (
        [Message(role="user", content=words(n))] for n in (64 - 16 - 3, 64 - 16 - 3 + 1)
    )
    replies = ask(model, [fits, exceeds], Decoding(0.0, 200))
    assert replies[0].usable
    # A reply of 200 tokens is cut down to a quarter of the window.
    assert replies[0].usage.completion_tokens <= 16
    assert replies[0].usage.prompt_tokens == 48
    assert replies[1].outcome == "overflow"
    assert replies[1].detail == ("49 tokens and up to 16 of reply exceed the context window of 64")
    assert batches == [[48]]


def test_a_long_dialogue_drops_no_more_than_its_own_tokenizer_asks_for(tmp_path):
    """The oldest utterances go one by one, until the prompt fits; the window is used up."""
    needs_torch()
    prompt_words = len(prompts.text(PROMPT).split())
    room = prompt_words + 60
    model = LocalModel("hf:small", str(make_weights(tmp_path, window=room + 12)))
    recorded = RecordedModel(model, Ledger(None), stage="generate", prices=FREE)

    async def made():
        seed = Seed("s", (words(9, 1), words(9, 2)))
        length = Length(tokens=None, size=len)  # counts letters: far too many, and not asked
        return await extend(seed, [Speaker(recorded, Decoding(1.5, 12))], 16, length, str)

    dialogue = asyncio.run(made())
    assert dialogue.facts[-1].dropped > 0
    for n, fact in enumerate(dialogue.facts, 2):
        sizes = [len(text.split()) + 2 for text in dialogue.utterances[:n]]
        total = prompt_words + 2 + sum(sizes[fact.dropped :]) + 1
        assert total <= room
        if fact.dropped:
            assert total + sizes[fact.dropped - 1] > room


@pytest.mark.parametrize(
    ("template", "layout", "system"),
    [
        (PLAIN, "natural", "system"),
        (NO_SYSTEM, "natural", "system-in-user"),
        (DEAF_TO_SYSTEM, "natural", "system-in-user"),
        (ALTERNATING_AFTER_SYSTEM, "merge-leading", "system"),
        (ALTERNATING, "merge-leading", "system-in-user"),
    ],
    ids=["lenient", "no system", "deaf to system", "alternating after system", "alternating"],
)
def test_the_role_layout_is_the_first_that_the_template_takes(tmp_path, template, layout, system):
    """Strict templates are found out before the first call, with nothing of the prompt lost."""
    needs_torch()
    model = LocalModel("hf:strict", str(make_weights(tmp_path, template=template)))
    replies = ask(model, dialogues(6))
    assert all(r.usable or r.outcome == "empty" for r in replies)
    assert {(r.sent["layout"], r.sent["system"]) for r in replies} == {(layout, system)}


@pytest.mark.parametrize(
    ("template", "said"),
    [(None, "no chat template"), (ONLY_ONE_MESSAGE, "takes no layout of a dialogue")],
)
def test_a_model_that_cannot_hold_a_dialogue_is_refused(tmp_path, template, said):
    """A base model, or a template for single questions, stops this model in one line."""
    needs_torch()
    with pytest.raises(FatalModelError, match=said):
        ask(LocalModel("hf:base", str(make_weights(tmp_path, template=template))), dialogues(1))


@pytest.mark.parametrize("error", ["OutOfMemoryError", "RuntimeError", "MemoryError"])
def test_out_of_memory_halves_the_batch_and_goes_on(weights_folder, monkeypatch, error):
    """Batches shrink until they fit and stay so; replies, also drawn ones, are the same."""
    import torch

    chats, decoding = dialogues(20), Decoding(1.0, 8)
    expected = [r.text for r in ask(LocalModel("hf:tiny", str(weights_folder)), chats, decoding)]
    run, shapes = Weights._generate, []
    failure = {
        "OutOfMemoryError": torch.OutOfMemoryError("CUDA out of memory."),
        "RuntimeError": RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"),
        "MemoryError": MemoryError(),
    }[error]

    def generate(self, batch, halt):
        shapes.append((len(batch), len(batch[0].ids)))
        made = run(self, batch, halt)
        if math.prod(shapes[-1]) > 500:
            raise failure
        return made

    monkeypatch.setattr(Weights, "_generate", generate)
    model = LocalModel("hf:tiny", str(weights_folder), batch_size=16)
    assert [r.text for r in ask(model, chats, decoding)] == expected
    assert [rows for rows, _ in shapes[:3]] == [16, 8, 4]
    assert all(math.prod(shape) <= 500 for shape in shapes[2:])
    assert sum(rows for rows, _ in shapes[2:]) == 20


def test_a_prompt_too_large_for_the_memory_is_asked_again_by_the_next_run(
    weights_folder, monkeypatch
):
    """It is this machine's failure, not an answer; the others are not held up."""
    import torch

    huge = [Message(role="user", content=words(396))]
    chats = [[Message(role="user", content=words(5, i))] for i in range(30)]
    run, sizes = Weights._generate, []

    def generate(self, batch, halt):
        sizes.append(len(batch))
        if any(len(ask.ids) > 300 for ask in batch):
            raise torch.OutOfMemoryError
        return run(self, batch, halt)

    monkeypatch.setattr(Weights, "_generate", generate)
    failed, *others = ask(LocalModel("hf:tiny", str(weights_folder)), [huge, *chats])
    assert all(reply.outcome in ("ok", "truncated", "empty") for reply in others)
    assert not failed.answered
    assert (failed.outcome, failed.retry_after_s) == ("transport", None)
    assert failed.detail == "out of memory with a single prompt of 399 tokens"
    assert sizes == [31, 15, 7, 3, 1, 30]


def test_any_other_failure_while_generating_stops_the_model(weights_folder, monkeypatch):
    """Nobody waits for ever: all calls end with one line that says what happened."""

    def generate(self, batch, halt):
        raise RuntimeError("device-side assert\ntriggered")

    monkeypatch.setattr(Weights, "_generate", generate)
    model = LocalModel("hf:tiny", str(weights_folder), batch_size=2)

    async def all_of_them():
        return await asyncio.gather(
            *(model.chat(chat, GREEDY) for chat in dialogues(5)), return_exceptions=True
        )

    failures = asyncio.run(all_of_them())
    assert {type(failure) for failure in failures} == {FatalModelError}
    assert {str(failure) for failure in failures} == {
        "hf:tiny cannot be run: RuntimeError: device-side assert triggered"
    }


def test_a_run_that_is_given_up_does_not_wait_for_its_replies(weights_folder, monkeypatch):
    """When the loop ends, so does the batch, at the next token."""
    made = []
    run = Weights.generate

    async def given_up():
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def generate(self, batch, halt):
            class Halt:
                """Tells the loop that tokens are coming, and lets it give up."""

                def is_set(self):
                    loop.call_soon_threadsafe(begun.set)
                    if not halt.wait(timeout=30):
                        raise TimeoutError
                    return True

            made.append(run(self, batch, Halt()))
            return made[-1]

        monkeypatch.setattr(Weights, "generate", generate)
        model = LocalModel("hf:tiny", str(weights_folder))
        call = asyncio.create_task(model.chat(dialogues(1)[0], Decoding(0.0, 100)))
        await begun.wait()
        return call

    call = asyncio.run(given_up())
    assert call.cancelled()
    assert [len(said.ids) for said in made[0]] == [1]


def test_one_set_of_weights_serves_every_role():
    """A model named twice in a session is loaded once, and let go with the session."""
    first = local_model("hf:o/n", "o/n")
    assert local_model("hf:o/n", "o/n") is first
    assert local_model("hf:o/n", "o/n", dtype="float16") is not first
    assert local_model("hf:other/n", "other/n") is not first
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None


def test_replies_are_shared_by_equal_weights_wherever_they_lie(weights_folder, tmp_path):
    """A folder is known by its content, so a retrained model never gets the old one's replies."""
    there = tmp_path / "copy"
    there.mkdir()
    for path in weights_folder.iterdir():
        (there / path.name).write_bytes(path.read_bytes())
    (there / "README.md").write_text("not part of the model")
    here = LocalModel("hf:tiny", str(weights_folder)).identity
    assert LocalModel("hf:copy", str(there)).identity == here
    weights = bytearray((there / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (there / "model.safetensors").write_bytes(weights)
    assert LocalModel("hf:copy", str(there)).identity != here
    assert str(tmp_path) not in json.dumps(here)


def test_hub_weights_are_known_by_name_and_revision():
    """Without anything being loaded, so that a ledger replays without the weights."""
    assert LocalModel("hf:o/n@v1", "o/n@v1").identity["weights"] == "hf:o/n@v1"
    assert LocalModel("hf:o/n", "o/n").identity["weights"] == "hf:o/n"


@pytest.mark.parametrize("missing", ["torch", "transformers"])
def test_without_the_extra_one_line_says_what_to_install(monkeypatch, missing):
    """The model stops with the command that installs what is missing."""
    monkeypatch.setitem(sys.modules, missing, None)
    if missing == "transformers" and importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch to get as far as transformers")
    with pytest.raises(FatalModelError) as failure:
        ask(LocalModel("hf:o/n", "o/n"), dialogues(3))
    assert str(failure.value) == (
        f"hf:o/n needs transformers and torch ({missing} is missing): "
        "pip install 'botchat-bench[hf]'"
    )


@pytest.mark.parametrize("target", ["./nothing", "/nothing/here", "~/nothing", "a/b/c"])
def test_a_folder_that_is_not_there_is_a_wrong_name(target):
    """Said when the name is read, before anything is sent."""
    with pytest.raises(ConfigError, match=re.escape(f"there is no folder {target}")):
        LocalModel(f"hf:{target}", target)


def test_weights_that_cannot_be_had_stop_the_model_in_one_line(monkeypatch):
    """Not on this machine and no network: what failed and how to name weights."""
    needs_torch()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FatalModelError) as failure:
        ask(LocalModel("hf:nobody/nothing", "nobody/nothing"), dialogues(3))
    said = str(failure.value)
    assert said.startswith("hf:nobody/nothing cannot be loaded: ")
    assert said.endswith("name weights on the hub as hf:ORG/NAME or a local folder as hf:FOLDER")
    assert "\n" not in said


def test_code_that_comes_with_a_model_is_not_run(tmp_path):
    """A folder that brings its own classes is refused; its Python file is never imported."""
    needs_torch()
    folder = make_weights(tmp_path / "weights")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "own",
        "auto_map": {
            "AutoConfig": "own.OwnConfig",
            "AutoModelForCausalLM": "own.OwnModel",
            "AutoTokenizer": ["own.OwnTokenizer", None],
        },
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'w')")
    with pytest.raises(FatalModelError, match="cannot be loaded"):
        ask(LocalModel("hf:own", str(folder)), dialogues(1))
    assert not (tmp_path / "was-run").exists()


def test_pickled_weights_are_not_read(tmp_path):
    """Weights that are no safetensors are refused, however harmless."""
    needs_torch()
    import torch
    from safetensors.torch import load_file

    folder = make_weights(tmp_path)
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(tensors, folder / "pytorch_model.bin")
    with pytest.raises(FatalModelError, match="cannot be loaded: OSError"):
        ask(LocalModel("hf:pickled", str(folder)), dialogues(1))


def workspace(folder, n=12):
    """A workspace with a small set."""
    seeds = [
        Seed(f"s{i}", (words(3 + i % 4, i), words(2 + i % 3, i), "w1", "w2")) for i in range(n)
    ]
    store.finish(folder / "seeds" / "small.jsonl", seeds, lambda seed: seed.id)
    return folder


def stage_files(folder):
    """Every dialogue and judgment file's bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for stage in ("generations", "judgments")
        for path in sorted((folder / stage).rglob("*.jsonl"))
    }


def test_a_whole_run_and_its_replay_without_the_extra(
    weights_folder, tmp_path, batches, monkeypatch, capsys
):
    """`botchat generate --model hf:FOLDER`, then the same from the ledger with torch gone."""
    folder, name = workspace(tmp_path / "run"), f"hf:{weights_folder}"
    generate = ["generate", "--seeds", "small", "--turns", "6", "--model", name]
    judge = ["judge", "unieval", "--seeds", "small", "--judge", name]
    monkeypatch.setattr("botchat.models.local.model.LONGEST_REPLY", 12)
    for command in (generate, judge):
        assert main([*command, "--dir", str(folder)]) == 0
    files = stage_files(folder)
    assert len(files) == 2
    made = stored_dialogues(folder)
    # A path is in no name.
    assert {dialogue["model"] for dialogue in made} == {f"hf:{weights_folder.name}"}
    assert sum(dialogue["status"] == "complete" for dialogue in made) > 6
    # Twelve dialogues a batch, four turns; then their judgments and the human dialogues'.
    assert len(batches) <= 4 + 1
    batches.clear()
    for path in files:
        (folder / path).unlink()
    for package in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, package, None)
    for command in (generate, judge):
        assert main([*command, "--dir", str(folder)]) == 0
    assert stage_files(folder) == files
    assert batches == []
    assert "12" in capsys.readouterr().out


@pytest.mark.parametrize("engine", ["threading", "loky"])
def test_workers_load_weights_once_and_give_the_same_bytes(
    weights_folder, tmp_path, monkeypatch, engine
):
    """Each process loads them at its first shard and keeps them; the run itself asks nothing."""
    log, load, here = tmp_path / "log", model_module.load, str(os.getpid())

    def loading(*place):
        with log.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return load(*place)

    def in_a_process(shard):
        model_module.load = loading
        return cluster.work(shard)  # its own, not this

    monkeypatch.setattr(model_module, "load", loading)
    if engine == "loky":
        monkeypatch.setattr(head, "work", in_a_process)
    monkeypatch.setattr(cluster, "_KEPT", {})
    monkeypatch.setattr(head, "LEAST_CALLS", 4)
    entry = f'[models.tiny]\nmodel = "hf:{weights_folder}"\nmax_tokens = 12\n'
    files, meters = {}, {}
    for workers in (0, 2):
        folder = workspace(tmp_path / str(workers))
        (folder / "botchat.toml").write_text(entry)
        meters = {workers: Meter()}
        gc.collect()  # the model of the run before, which its meter knew
        with parallel.engine(engine if workers else None, workers, None):
            Generating("small", ("tiny",), turns=6).run(Workspace(folder), None, meters[workers])
        files[workers] = stage_files(folder)
    assert files[0] == files[2]
    assert meters[2].replayed == meters[2].calls > 0
    alone, *loads = log.read_text().split()
    assert alone == here
    if engine == "loky":
        assert len(loads) == len({*loads, here}) - 1 <= 2
    else:
        assert loads == [here]


def stored_dialogues(folder):
    """The dialogues of the one generations file of a workspace."""
    (path,) = (folder / "generations").rglob("*.jsonl")
    return [json.loads(line) for line in path.read_bytes().splitlines()]


@contextlib.contextmanager
def transformers_serve(folder):
    """URL of `transformers serve` with the weights in ``folder``, on a free port."""
    program = Path(sys.executable).with_name("transformers")
    with subprocess.Popen(
        [program, "serve", folder, "--host", "127.0.0.1", "--port", "0", "--device", "cpu"],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        log = []
        try:
            for line in process.stderr:
                log.append(line)
                if running := re.search(r"running on (http://[\d.:]+)", line):
                    break
            else:
                pytest.fail("transformers serve did not start:\n" + "".join(log))
            # What it goes on to write must be read, or it would wait for a reader.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield running[1]
        finally:
            process.terminate()


@pytest.mark.opt_in
def test_transformers_serve_completes_a_small_run(weights_folder, tmp_path, monkeypatch):
    """Through a third party's OpenAI-compatible server the dialogues are those made locally."""
    for package in ("fastapi", "uvicorn"):
        pytest.importorskip(package, reason="needs pip install 'transformers[serving]'")
    served, local = workspace(tmp_path / "served", 4), workspace(tmp_path / "local", 4)
    generate = ["generate", "--seeds", "small", "--turns", "6", "--model"]
    with transformers_serve(weights_folder) as url:
        (served / "botchat.toml").write_text(
            f'[models.tiny]\nbase_url = "{url}/v1"\nmodel = "{weights_folder}"\nmax_tokens = 12\n'
            '[judges.strict]\nmodel = "tiny"\nmax_tokens = 12\nstructured = true\nlogprobs = 2\n'
        )
        assert main([*generate, "tiny", "--dir", str(served)]) == 0
        # Whatever it thinks of a schema and of log-probabilities, it answers.
        for name in ("tiny", "strict"):
            judge = ["judge", "unieval", "--seeds", "small", "--judge", name]
            assert main([*judge, "--dir", str(served)]) == 0
    monkeypatch.setattr("botchat.models.local.model.LONGEST_REPLY", 12)
    assert main([*generate, f"hf:{weights_folder}", "--dir", str(local)]) == 0
    by_server, here = stored_dialogues(served), stored_dialogues(local)
    assert len(here) == 4
    for key in ("utterances", "status"):
        assert [made[key] for made in by_server] == [made[key] for made in here]
    judged = [path.read_bytes() for path in (served / "judgments").rglob("*.jsonl")]
    assert [data.count(b"\n") for data in judged] == [4 + 4] * 2

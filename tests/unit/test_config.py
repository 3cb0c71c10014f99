"""botchat.toml and names on the command line."""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
from pathlib import Path

import pytest

from botchat.errors import ConfigError
from botchat.workspace.commands import KeyCommand
from botchat.workspace.config import Config, ModelSettings, load, model_name
from botchat.workspace.entries import address, api_key, header_values
from tests.rows import rows


def write(tmp_path, text):
    """A botchat.toml with this text."""
    path = tmp_path / "botchat.toml"
    path.write_text(text)
    return path


def test_a_whole_file_is_read_and_none_is_the_papers_defaults(tmp_path):
    """Every table arrives typed; the word none leaves a parameter out."""
    config = load(tmp_path / "botchat.toml")
    assert config.generation.turns == 16
    assert config.arena.turns == (8, 16)
    assert ModelSettings(model="x").temperature == 0
    config = load(
        write(
            tmp_path,
            '[models."my model"]\nmodel = "x"\nbase_url = "http://h/v1"\ntemperature = "none"\n'
            'extra = { top_p = 0.9 }\n[judges.strict]\nmodel = "my model"\nmax_tokens = 9\n'
            "[arena]\nturns = [4]\n",
        )
    )
    model = config.models["my model"]
    assert (model.temperature, model.extra) == (None, {"top_p": 0.9})
    assert config.judges["strict"].max_tokens == 9
    assert config.arena.turns == (4,)


def test_names_mean_what_design_says():
    """Each form resolves to its kind."""
    config = Config(models={"mine": ModelSettings(model="x")})
    assert model_name("mine", config, {}).kind == "endpoint"
    assert model_name("human", config, {}).kind == "human"
    assert model_name("bot:eliza", config, {}).target == "eliza"
    assert model_name("hf:org/name", config, {}).kind == "local"
    openai = model_name("openai:gpt-4", config, {"OPENAI_BASE_URL": "http://proxy/v1"})
    assert openai.settings is not None
    assert (openai.settings.model, openai.settings.base_url) == ("gpt-4", "http://proxy/v1")
    url = model_name("http://user:pass@host:8000/v1/#org/m", config, {})
    assert url.name == "http://host:8000/v1#org/m"
    assert url.settings is not None
    assert url.settings.model == "org/m"
    named = model_name(f"https://user:{SECRET}@host/v1?api-key={SECRET}#m", Config(), {})
    assert named.name == "https://host/v1#m"
    assert named.settings is not None
    assert SECRET in named.settings.base_url


@pytest.mark.parametrize("name", ["gpt-5", "http://host/v1", "http://#m", "bot:", "openai:", ""])
def test_an_unknown_name_lists_what_can_be_named(name):
    """A name that is none of the forms says which forms there are."""
    with pytest.raises(ConfigError, match="named"):
        model_name(name, Config(), {})


def test_a_key_goes_only_where_it_was_meant_to_go():
    """OPENAI_API_KEY is for OpenAI, its stated proxy and this machine; never for another host."""
    env = {"OPENAI_API_KEY": "sk-canary"}
    assert api_key(ModelSettings(model="m"), env) == "sk-canary"
    assert api_key(ModelSettings(model="m", base_url="http://127.0.0.1:8/v1"), env) == "sk-canary"
    elsewhere = ModelSettings(model="m", base_url="https://elsewhere.example/v1")
    assert api_key(elsewhere, env) is None
    assert api_key(elsewhere, env | {"BOTCHAT_API_KEY": "b"}) == "b"
    proxy = env | {"OPENAI_BASE_URL": "https://elsewhere.example/v1"}
    assert api_key(elsewhere, proxy) == "sk-canary"
    named = ModelSettings(model="m", base_url="https://e.example/v1", api_key_env="E_KEY")
    assert api_key(named, env | {"E_KEY": " k "}) == "k"


def test_a_key_may_stand_in_a_file_beside_the_settings(tmp_path):
    """Relative to botchat.toml; what is wrong with it is one line that does not tell its name."""
    path = tmp_path / "botchat.toml"
    path.write_text('[models.m]\nmodel = "m"\napi_key_file = "sk-secret"\n')
    settings = load(path).models["m"]
    with pytest.raises(ConfigError, match="api_key_file cannot be read") as caught:
        api_key(settings, {"OPENAI_API_KEY": "other"})
    assert "sk-secret" not in str(caught.value)
    for content, said in ((b" \n", "is empty"), (b"\xff", "is not text"), (b"a b", "no key can")):
        (tmp_path / "sk-secret").write_bytes(content)
        with pytest.raises(ConfigError, match=said):
            api_key(settings, {})
    (tmp_path / "sk-secret").write_text("sk-canary\n")
    assert api_key(settings, {"OPENAI_API_KEY": "other"}) == "sk-canary"
    path.write_text('[models.m]\nmodel = "m"\napi_key_env = "K"\napi_key_file = "k"\n')
    with pytest.raises(
        ConfigError, match=r"botchat\.toml:4: models\.m\.api_key_file: the key is in"
    ):
        load(path)


def test_a_missing_key_names_its_variable_unless_that_looks_like_a_key():
    """One clear line, which shows nothing that could be a key in the wrong place."""
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        api_key(ModelSettings(model="m"), {})
    with pytest.raises(ConfigError, match="E_KEY is not set"):
        api_key(ModelSettings(model="m", api_key_env="E_KEY"), {"E_KEY": " "})
    for named in ("a1b2c3d4e5f60718293a4b5c6d7e8f90", "gsk_0123456789abcdefghij"):
        with pytest.raises(ConfigError, match="the variable that api_key_env names is") as caught:
            api_key(ModelSettings(model="m", api_key_env=named), {})
        assert named not in str(caught.value)


SECRET = "hunter2-very-secret"
ENTRY = '[models.a]\nmodel = "x"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *rows("a_mistake_is_named_with_line_and_key"),
        *rows("a_secret_in_a_wrong_place_is_refused_and_not_shown"),
        *(
            (f"{ENTRY}{line}\n", said)
            for line, said in (
                *rows("what_no_request_can_hold_is_refused_when_it_is_read"),
                (f"extra = {{ a = {'9' * 5000} }}", "a number has thousands of digits"),
                (f"extra = {{ a = {'[' * 5000}{']' * 5000} }}", "nested too deep"),
                (
                    f"extra = {{ a = {'[' * 70}{']' * 70} }}",
                    "extra: tables and lists are more than",
                ),
                ("extra." + "a." * 5000 + "a = 1", "extra: tables and lists are more than 64 deep"),
            )
        ),
        *(
            (f'[models.q]\nmodel = "{model}"\n', r"models\.q\.model: ")
            for model in ("bot:eliza", "human", "hf:", "")  # would be paid for as a model's name
        ),
    ],
)
def test_a_mistake_is_named_with_line_and_key(tmp_path, text, said):
    """One line: the file, the line, the key, what is allowed or used instead; and no secret."""
    with pytest.raises(ConfigError, match=said) as caught:
        load(write(tmp_path, text))
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_settings_of_requests_that_only_sound_like_secrets_are_sent(tmp_path):
    """And schemas may have a property of any name."""
    extra = (
        'max_tokens = 5, prompt_cache_key = "a", eos_token = "</s>", '
        'response_format = { schema = { properties = { password = { type = "string" } } } }'
    )
    loaded = load(write(tmp_path, f"{ENTRY}extra = {{ {extra} }}\n")).models["a"].extra
    assert set(loaded) == {"max_tokens", "prompt_cache_key", "eos_token", "response_format"}


@pytest.mark.parametrize(
    ("url", "said"),
    rows("an_address_that_cannot_be_is_refused_wherever_it_stands"),
)
def test_an_address_that_cannot_be_is_refused_wherever_it_stands(tmp_path, url, said):
    """In [models], in [endpoints], in a name and in the environment."""
    quoted = url.replace("\\", "\\\\").replace("\t", "\\t")
    for text in (f'{ENTRY}base_url = "{quoted}"\n', f'[endpoints.e]\nbase_url = "{quoted}"\n'):
        with pytest.raises(ConfigError, match=said) as caught:
            load(write(tmp_path, text))
        assert "base_url: " in str(caught.value)
        assert "\n" not in str(caught.value)
    if url.startswith("http"):
        with pytest.raises(ConfigError, match=said):
            model_name(f"{url}#m", Config(), {})
    if url:
        with pytest.raises(ConfigError, match=f"OPENAI_BASE_URL: .*{said}"):
            model_name("openai:m", Config(), {"OPENAI_BASE_URL": url})
    # Nothing to do with a model that is somewhere else.
    elsewhere = ModelSettings(model="m", base_url="https://e.example/v1")
    assert api_key(elsewhere, {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"}) is None


def test_parts_of_an_address_may_stand_in_the_environment(tmp_path):
    """With a name of who answers; the value is looked up, and checked, where the call is made."""
    text = f'{ENTRY}base_url = "http://$NODE:$PORT_1/v1"\nidentity = "m@ours"\n'
    of = load(write(tmp_path, text)).models["a"]
    assert address(of, {"NODE": "gpu7", "PORT_1": " 8001\n"}) == "http://gpu7:8001/v1"
    with pytest.raises(ConfigError, match="the environment variable PORT_1 is not set"):
        address(of, {"NODE": "gpu7"})
    with pytest.raises(ConfigError, match="a port is a number"):
        address(of, {"NODE": "gpu7", "PORT_1": "x"})
    for wrong, said in (
        (text.replace("identity", "# identity"), r"base_url: .* set identity too"),
        (f'{ENTRY}base_url = "$NODE"\n', r"'\$NODE' is not an http"),
        (f'{ENTRY}base_url = "http://h:$/v1"\n', "a port is a number"),
    ):
        with pytest.raises(ConfigError, match=said):
            load(write(tmp_path, wrong))
    assert load(write(tmp_path, '[endpoints.e]\nbase_url = "http://h:$PORT/v1"\n')).endpoints


@pytest.mark.parametrize(
    "name",
    [
        f"host/v1?api-key={SECRET}#m",
        f"https://host:x/v1?api-key={SECRET}#m",
        f"https://host/v1#m?api-key={SECRET}",
        f"user:{SECRET}@host/v1#m",
        f"sk-{SECRET}",
    ],
)
def test_a_secret_in_a_wrong_name_is_not_repeated(name):
    """The line says what is wrong without it."""
    with pytest.raises(ConfigError, match="named") as caught:
        model_name(name, Config(), {})
    assert SECRET not in str(caught.value)


def test_headers_may_stand_in_the_environment(tmp_path):
    """Alone or after a scheme; what is not set is one line; only those values are secrets."""
    text = (
        'headers = { Authorization = "Bearer $GATE_TOKEN", X-Title = "BotChat $5", X-Who = "$who" }'
    )
    settings = load(write(tmp_path, f"{ENTRY}{text}\n")).models["a"]
    found, secrets = header_values(settings, {"GATE_TOKEN": " t0ken \n", "who": "me-ä"})
    assert found == {"Authorization": "Bearer t0ken", "X-Title": "BotChat $5", "X-Who": "me-ä"}
    assert secrets == ("t0ken", "me-ä")
    with pytest.raises(ConfigError, match=r"no header Authorization for x: .*GATE_TOKEN is not"):
        header_values(settings, {})
    with pytest.raises(ConfigError, match="Authorization for x: GATE_TOKEN has a character") as bad:
        header_values(settings, {"GATE_TOKEN": f"{SECRET}\nX-Evil: 1"})
    assert SECRET not in str(bad.value)


def ours(text, mode=0o600, user=None):
    """A command as of a settings file that is ours."""
    user = os.geteuid() if user is None else user
    status = os.stat_result((stat.S_IFREG | mode, 0, 0, 1, user, 0, 0, 0, 0, 0))
    return KeyCommand.of(text, Path("botchat.toml"), status)


def command(program, *more):
    """A command that runs a Python program."""
    return ours(shlex.join([sys.executable, "-c", program, *more]))


def test_only_a_command_of_ones_own_settings_runs(tmp_path, monkeypatch, caplog, capfd):
    """Not of a store or a shard, of somebody else, or where others may write; it is shown once."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    marks, there = tmp_path / "marks", tmp_path / "w"
    text = shlex.join([sys.executable, "-c", f"open({str(marks)!r}, 'a').write('x'); print('k')"])

    def asked(command):
        return api_key(ModelSettings(model="m", api_key_command=command))

    with pytest.raises(ConfigError, match=r"no botchat\.toml of this machine, and is not run"):
        asked(text)
    with pytest.raises(ConfigError, match="belongs to somebody else"):
        asked(ours(text, user=os.geteuid() + 1))
    for mode in (0o620, 0o602, 0o666):
        with pytest.raises(ConfigError, match=r"others may write .*; run: chmod go-w"):
            asked(ours(text, mode))
    assert not marks.exists()
    assert caplog.text == ""
    there.mkdir()
    path = write(there, f"{ENTRY}api_key_command = {json.dumps(text)}\n")
    path.chmod(0o666)
    entry = load(path).models["a"]
    path.chmod(0o644)  # what counts is whose it was when it was read
    with pytest.raises(ConfigError, match="others may write"):
        api_key(entry)
    for _ in range(2):
        assert api_key(load(path).models["a"]) == "k"
    assert marks.read_text() == "xx"
    assert caplog.text.count("the key of x is what this command prints: ") == 1
    assert str(marks) in caplog.text
    (tmp_path / "other").mkdir()
    api_key(load(write(tmp_path / "other", path.read_text())).models["a"])
    assert caplog.text.count("what this command prints") == 2
    assert [p.name for p in there.iterdir()] == ["botchat.toml"]


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; print({0!r}); print({0!r}, file=sys.stderr); sys.exit(3)", "exit status 3"),
        ("import os, signal; print({0!r}); os.kill(os.getpid(), signal.SIGKILL)", "status -9"),
        ("pass", "printed nothing"),
        ("print({0!r} + ' and more')", "a character that no key can have"),
        ("print({0!r}); print('another line')", "a character that no key can have"),
        ("import sys; sys.stdout.buffer.write(b'\\xff' + {0!r}.encode())", "printed no text"),
    ],
)
def test_a_command_that_fails_is_one_line_without_what_it_said(program, said):
    """The exit status, and nothing of its output or of itself."""
    settings = ModelSettings(model="m", api_key_command=command(program.format(SECRET), SECRET))
    with pytest.raises(ConfigError, match=said) as caught:
        api_key(settings, os.environ)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_command_that_is_not_there_or_never_ends_is_one_line(monkeypatch):
    """Also where a child of it keeps the pipe open."""
    with pytest.raises(ConfigError, match=r"cannot be run \(No such file or directory\)"):
        api_key(ModelSettings(model="m", api_key_command=ours(f"/nowhere/{SECRET}")), {})
    with pytest.raises(ConfigError, match="cannot be run"):
        api_key(ModelSettings(model="m", api_key_command=ours("a\0b")), {})
    monkeypatch.setattr("botchat.workspace.commands.COMMAND_S", 0.5)
    child = "import time; time.sleep(20)"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with pytest.raises(ConfigError, match=r"gave no key within 0\.5 s"):
        api_key(ModelSettings(model="m", api_key_command=command(program)), os.environ)


def test_a_command_beside_the_settings_is_found_from_anywhere(tmp_path):
    """As files are: relative to botchat.toml, where it is a path."""
    script = tmp_path / "bin" / "key"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\necho key-$1\n")
    script.chmod(0o755)
    text = f"{ENTRY}api_key_command = \"bin/key 'a b'\"\n"
    settings = load(write(tmp_path, text)).models["a"]
    with pytest.raises(ConfigError, match="no key can have"):
        api_key(settings, os.environ)
    settings = load(write(tmp_path, text.replace("'a b'", "ab"))).models["a"]
    assert api_key(settings, os.environ) == "key-ab"


def test_local_weights_may_have_an_entry(tmp_path, monkeypatch):
    """A folder beside botchat.toml, with decoding, device and a name; nothing of an endpoint."""
    (tmp_path / "weights" / "tiny").mkdir(parents=True)
    text = (
        '[models.q]\nmodel = "hf:weights/tiny"\nmax_tokens = 9\ntemperature = 0.5\n'
        'device = "cuda:1"\ndtype = "float16"\nbatch_size = 8\n'
    )
    named = model_name("q", load(write(tmp_path, text)), {})
    assert (named.kind, named.name) == ("local", "q")
    assert named.target == str(tmp_path / "weights" / "tiny")
    assert named.settings is not None
    assert (named.settings.max_tokens, named.settings.temperature) == (9, 0.5)
    assert (named.settings.device, named.settings.batch_size) == ("cuda:1", 8)
    config = load(write(tmp_path, f'{text}label = "Tiny 1"\n'))
    assert model_name("q", config, {}).name == "Tiny 1"
    hub = load(write(tmp_path, '[models.q]\nmodel = "hf:org/name@v1"\n'))
    assert model_name("q", hub, {}).target == "org/name@v1"
    for line in ('base_url = "http://h/v1"', 'api_key_env = "K"', "price_input = 1", "extra = {}"):
        with pytest.raises(ConfigError, match=rf"models\.q\.{line.split(' ')[0]}: .*local weights"):
            load(write(tmp_path, f"{text}{line}\n"))
    for line in ('dtype = "float8"', 'device = ""', "batch_size = 0"):
        with pytest.raises(ConfigError, match=rf"models\.q\.{line.split(' ')[0]}: "):
            load(write(tmp_path, f'[models.q]\nmodel = "hf:weights/tiny"\n{line}\n'))


def test_weights_in_a_folder_are_called_by_its_last_part(tmp_path, monkeypatch):
    """Names are on pages, in tables and in file names: no path is."""
    (tmp_path / "home" / "my tiny").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "home")
    for name in (f"hf:{tmp_path}/home/my tiny", "hf:./my tiny", "hf:my tiny", "hf:./my tiny/"):
        named = model_name(name, Config(), {})
        assert (named.name, named.target) == ("hf:my tiny", str(tmp_path / "home" / "my tiny"))
    assert model_name("hf:.", Config(), {}).name == "hf:home"
    assert model_name("hf:/gone/away/x/", Config(), {}).name == "hf:x"
    assert model_name("hf:org/name@v1", Config(), {}).name == "hf:org/name@v1"

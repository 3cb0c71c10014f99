"""botchat.toml and names on the command line."""

import json
import tomllib
from pathlib import Path

import msgspec
import pytest

from botchat.errors import ConfigError
from botchat.languages import ENGLISH, built_in
from botchat.protocols.catalogue import catalogue
from botchat.workspace.config import (
    ArenaSettings,
    Config,
    GenerationSettings,
    JudgeSettings,
    RunSettings,
    load,
    model_name,
)
from botchat.workspace.criteria import CriterionSettings
from botchat.workspace.model_settings import (
    ModelSettings,
    access,
    api_key,
    identity,
)
from botchat.workspace.panels import AgentSettings, PanelSettings
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
    assert ModelSettings(model="x").reasoning_tokens == 8192
    config = load(
        write(
            tmp_path,
            '[models."my model"]\nmodel = "x"\nbase_url = "http://h/v1"\ntemperature = "none"\n'
            'extra_body = { top_p = 0.9 }\n[judges.strict]\nmodel = "my model"\nmax_tokens = 9\n'
            "[arena]\nturns = [4]\n",
        )
    )
    model = config.models["my model"]
    assert (model.temperature, model.extra_body) == (None, {"top_p": 0.9})
    assert config.judges["strict"].max_tokens == 9
    assert config.arena.turns == (4,)


def test_names_mean_what_design_says():
    """Each form resolves to its kind."""
    config = Config(models={"mine": ModelSettings(model="x")})
    assert model_name("mine", config, {}).settings == config.models["mine"]
    assert [model_name(name, config, {}).is_bot for name in ("human", "bot:verbose")] == [0, 1]
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


def test_a_missing_key_names_its_variable_unless_that_looks_like_a_key():
    """One clear line, which shows nothing that could be a key in the wrong place."""
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        api_key(ModelSettings(model="m"), {})
    with pytest.raises(ConfigError, match="E_KEY is not set"):
        api_key(ModelSettings(model="m", api_key_env="E_KEY"), {"E_KEY": " "})
    named = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
    with pytest.raises(ConfigError, match="a variable of its entry is") as caught:
        api_key(ModelSettings(model="m", api_key_env=named), {})
    assert named not in str(caught.value)


SECRET = "hunter2-very-secret"
ENTRY = '[models.a]\nmodel = "x"\n'


DEEP = [
    (f"extra_body = {{ a = {'9' * 5000} }}", "not valid TOML"),
    (f"extra_body = {{ a = {'[' * 5000}{']' * 5000} }}", "not valid TOML"),
    ("extra_body." + "a." * 5000 + "a = 1", "lists or tables are nested too deep"),
]
MISTAKES = [*rows("settings_mistakes"), *((f"{ENTRY}{line}\n", fault) for line, fault in DEEP)]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_a_mistake_is_named_with_line_and_key(tmp_path, text, message):
    """One line: file, line, table, key, what is wrong; and no secret."""
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value).replace(str(path), "")
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_at_most_60_settings():
    """Names of all keys of botchat.toml."""
    tables = (
        ModelSettings, JudgeSettings, PanelSettings, AgentSettings,
        CriterionSettings, GenerationSettings, ArenaSettings, RunSettings,
    )  # fmt: skip
    assert len({name for table in tables for name in table.__struct_fields__}) <= 60


DIGESTS = tomllib.loads((Path(__file__).parents[1] / "data/settings_digests.toml").read_text())


def test_no_digest_or_identity_has_changed():
    """They are part of signatures and ledger keys, whatever settings are called."""
    chinese = built_in()["zh"]
    for name, settings in rows("criteria_of_a_digest"):
        own = {"x": msgspec.convert(settings, CriterionSettings)}
        named = catalogue(own, chinese if name.endswith("zh") else ENGLISH).named("x")
        assert named.digest == DIGESTS["criteria"][name], name
    for name, settings in rows("settings_of_an_identity"):
        model = ModelSettings(model="m", base_url="https://localhost/v1", **settings)
        assert json.dumps(identity(model)) == DIGESTS["identities"][name], name


def test_settings_of_requests_that_only_sound_like_secrets_are_sent(tmp_path):
    """And schemas may have a property of any name."""
    extra = (
        'max_tokens = 5, prompt_cache_key = "a", eos_token = "</s>", '
        'response_format = { schema = { properties = { password = { type = "string" } } } }'
    )
    loaded = load(write(tmp_path, f"{ENTRY}extra_body = {{ {extra} }}\n")).models["a"].extra_body
    assert set(loaded) == {"max_tokens", "prompt_cache_key", "eos_token", "response_format"}


@pytest.mark.parametrize(
    ("url", "said"),
    rows("an_address_that_cannot_be_is_refused_wherever_it_stands"),
)
def test_an_address_that_cannot_be_is_refused_wherever_it_stands(tmp_path, url, said):
    """In [models], in a name and in the environment."""
    quoted = url.replace("\\", "\\\\").replace("\t", "\\t")
    with pytest.raises(ConfigError, match=said) as caught:
        load(write(tmp_path, f'{ENTRY}base_url = "{quoted}"\n'))
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
    assert access(of, {"NODE": "gpu7", "PORT_1": " 8001\n"}).base_url == "http://gpu7:8001/v1"
    with pytest.raises(ConfigError, match="the environment variable PORT_1 is not set"):
        access(of, {"NODE": "gpu7"})
    with pytest.raises(ConfigError, match=r"'http://\$NODE:\$PORT_1/v1' with the values") as caught:
        access(of, {"NODE": "gpu7", "PORT_1": "8001/chat/completions?k=abcd"})
    assert "abcd" not in str(caught.value)
    for value in ("x", f"{SECRET} {SECRET}", f"{SECRET}:1"):
        with pytest.raises(ConfigError, match="is not a URL") as caught:
            access(of, {"NODE": SECRET, "PORT_1": value})
        assert SECRET not in str(caught.value)
    for wrong, said in (
        (text.replace("identity", "# identity"), r"base_url: .* set identity too"),
        (f'{ENTRY}base_url = "$NODE"\n', r"'\$NODE' is not a URL"),
        (f'{ENTRY}base_url = "http://h:$/v1"\n', "is not a URL"),
    ):
        with pytest.raises(ConfigError, match=said):
            load(write(tmp_path, wrong))


def test_what_comes_from_the_environment_or_stands_in_a_query_is_a_secret(monkeypatch):
    """Whatever its variable or field is called, and as a server may have read it."""
    env = {"NODE": "gpu7.lab", "WAY": "down/here", "WHO": "kim", "E_KEY": "k-e-y"}
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    url = "http://me:pass@$NODE/$WAY/v1?k=a+b%2Bc&version=2024-10-21&bare&to=$WHO&empty="
    settings = ModelSettings(
        model="m", base_url=url, identity="i", api_key_env="E_KEY", headers={"X-Team": "$WAY"}
    )
    found = access(settings)
    assert found.base_url == "http://me:pass@gpu7.lab/down/here/v1"
    assert found.query == "?k=a+b%2Bc&version=2024-10-21&bare&to=kim&empty="
    assert {"k-e-y", "me:pass", *env.values()} <= set(found.secrets)
    assert {"a+b+c", "a b+c", "2024-10-21", "bare"} <= set(found.secrets)
    assert "" not in found.secrets


def test_headers_may_stand_in_the_environment(tmp_path):
    """Alone or after a scheme; what is not set is one line; only those values are secrets."""
    text = (
        'headers = { Authorization = "Bearer $GATE_TOKEN", X-Title = "BotChat $5", X-Who = "$who" }'
    )
    settings = load(write(tmp_path, f'{ENTRY}base_url = "http://h/v1"\n{text}\n')).models["a"]
    found = access(settings, {"GATE_TOKEN": " t0ken \n", "who": "me-ä"})
    headers = {"authorization": "Bearer t0ken", "x-title": "BotChat $5", "x-who": "me-ä"}
    assert found.headers == headers
    assert found.secrets == ("t0ken", "me-ä")
    with pytest.raises(ConfigError, match=r"no header Authorization for x: .*GATE_TOKEN is not"):
        access(settings, {})
    with pytest.raises(
        ConfigError, match=r"Authorization for x: .*GATE_TOKEN has a character"
    ) as bad:
        access(settings, {"GATE_TOKEN": f"{SECRET}\nX-Evil: 1"})
    assert SECRET not in str(bad.value)

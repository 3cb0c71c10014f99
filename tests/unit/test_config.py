"""botchat.toml and names on the command line."""

from __future__ import annotations

import pytest

from botchat.errors import ConfigError
from botchat.workspace.config import Config, ModelSettings, load, model_name
from botchat.workspace.keys import api_key
from botchat.workspace.secrets import public_url


def write(tmp_path, text):
    """A botchat.toml with this text."""
    path = tmp_path / "botchat.toml"
    path.write_text(text)
    return path


def test_no_file_means_the_papers_defaults(tmp_path):
    """Without botchat.toml: 16 utterances, Arena at 8 and 16, temperature 0."""
    config = load(tmp_path / "botchat.toml")
    assert config.generation.turns == 16
    assert config.arena.turns == (8, 16)
    assert ModelSettings(model="x").temperature == 0


def test_a_whole_file_is_read(tmp_path):
    """Every table arrives typed; the word none leaves a parameter out."""
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[models.a]\nmodel = = 3\n", r"toml:2: not valid TOML at `model`"),
        ("[models.a", r"toml:1: not valid TOML"),
        (
            '[models.a]\nmodel = "x"\n\n[models.b]\nmodel = "y"\npric = 3\n',
            r"toml:6: models\.b\.pric: unknown key",
        ),
        ("[models.a]\nmodel = 3\n", r"toml:2: models\.a\.model: Expected `str`, got `int`"),
        ('[models.a]\nbase_url = "http://x"\n', r"toml:1: models\.a: required key `model`"),
        ('[modles.a]\nmodel = "x"\n', r"toml:1: unknown table or key `modles`; known: models"),
        ("[generation]\nturns = 2\n", r"toml:2: generation\.turns: Expected `int` >= 3"),
        ('[models.a]\nmodel = "x"\nbase_url = "ftp://x"\n', r"toml:3: .*not an http"),
        ('[models.human]\nmodel = "x"\n', r"toml:1: models\.human: this name stands"),
        ('[models."bot:x"]\nmodel = "x"\n', r"stands for something else"),
        (
            '[models.a]\nmodel = "x"\nlayout = "wild"\n',
            r"toml:3: models\.a\.layout: Invalid enum value 'wild'; known: auto, natural, merge-",
        ),
        ("models = 3\n", r"toml:1: models: Expected `object`"),
        ("panels = 3\n", r"toml:1: panels: Expected `object`"),
        ("[panels]\nx = 3\n", r"toml:2: panels\.x: Expected `object`"),
        (
            '[panels.x]\nstrategy = "ensemble"\nagents = [{ file = "no.txt" }]\n',
            r"toml:1: panels\.x: cannot read the role text no\.txt: ",
        ),
        (
            '[panels.x]\nstrategy = "cascade"\ncheap = "m"\nstrong = "x"\ncalibration = 0\n',
            r"toml:1: panels: a cascade leads back to itself: x -> x",
        ),
    ],
)
def test_a_mistake_is_named_with_line_and_key(tmp_path, text, said):
    """One line: the file, the line, the key and what is allowed."""
    with pytest.raises(ConfigError, match=said) as caught:
        load(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_names_mean_what_design_says():
    """Each form of name on the command line resolves to its kind."""
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


def test_a_missing_key_names_its_variable():
    """OpenAI without a key, or a named variable that is not set, is one clear line."""
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        api_key(ModelSettings(model="m"), {})
    with pytest.raises(ConfigError, match="E_KEY is not set"):
        api_key(ModelSettings(model="m", api_key_env="E_KEY"), {"E_KEY": " "})


def test_credentials_leave_no_trace_in_public_urls():
    """User, password and query are not shown."""
    assert public_url("https://u:p@h:1/v1/?key=s") == "https://h:1/v1"

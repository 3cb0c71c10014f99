"""Secrets are found in any spelling, and nothing else is touched."""

import html
import json
import re
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botchat.workspace.secrets import (
    GONE,
    Redactor,
    public,
    public_url,
    secrets_in,
)
from tests.rows import rows

SECRET = "hunter-2:secret/Va\"l\\ue+9'"


def escaped(text):
    """Every character as JSON may write it."""
    return "".join(f"\\u{ord(c):04x}" for c in text)


def some_escaped(text):
    """Every third character as JSON may write it: the secret is split."""
    return "".join(escaped(c) if n % 3 == 1 else json.dumps(c)[1:-1] for n, c in enumerate(text))


SPELLINGS = {
    "plain": str,
    "json": json.dumps,
    "json in json": lambda s: json.dumps(json.dumps(s)),
    "json five deep": lambda s: json.dumps(json.dumps(json.dumps(json.dumps(json.dumps(s))))),
    "escaped": escaped,
    "escaped in capitals": lambda s: escaped(s).upper().replace("\\U", "\\u"),
    "split by escapes": some_escaped,
    "escapes in json": lambda s: json.dumps(some_escaped(s)),
    "slashes": lambda s: s.replace("/", "\\/"),
    "percent": lambda s: quote(s, safe=""),
    "percent of all": lambda s: "".join(f"%{byte:02X}" for byte in s.encode()),
    "percent twice": lambda s: quote(quote(s, safe=""), safe=""),
    "percent in json": lambda s: json.dumps(quote(s, safe="")).replace("%", "\\u0025"),
    "html": html.escape,
    "html by number": lambda s: "".join(f"&#x{ord(c):x};" for c in s),
    "html in json": lambda s: json.dumps(html.escape(s)).replace("&", "\\u0026"),
    "javascript": lambda s: "".join(f"\\x{ord(c):02x}" for c in s),
    "base64": lambda s: b64encode(s.encode()).decode(),
    "base64 for URLs": lambda s: urlsafe_b64encode(s.encode()).decode().rstrip("="),
    "bearer": lambda s: f"Bearer {s}",
    "base64 of more": lambda s: b64encode(json.dumps({"k": s, "q": 1}).encode()).decode(),
}


@pytest.mark.parametrize("how", SPELLINGS)
@pytest.mark.parametrize("secret", [SECRET, "plainkey0123456789", "user:password~1"])
def test_a_secret_is_found_in_every_spelling(how, secret):
    """Nothing of it is left, and what stands around it is."""
    redactor = Redactor(["other-secret", secret])
    text = f'{{"said":"before {SPELLINGS[how](secret)} after"}}'
    cleaned = redactor.clean(text)
    said = redactor.clean_reply(text)
    assert said.count(GONE) == 1
    assert secret[-6:] not in said
    assert cleaned.startswith('{"said":"before ')
    assert cleaned.endswith(' after"}')
    assert len(cleaned) < len('{"said":"before  after"}Bearer ""') + len(GONE) + 80
    left = re.sub(r"\\+[\"']?", "", cleaned)
    assert left.count(GONE) == 1
    assert not [part for part in (secret[:6], secret[-6:]) if part in cleaned]


def test_words_beyond_ascii_are_found_too():
    """A password may be in any script; servers escape or percent-encode its bytes."""
    secret = "pässwörd-ключ"
    redactor = Redactor([f"user:{secret}"])
    for spelt in (secret, json.dumps(secret), quote(secret), b64encode(f"user:{secret}".encode())):
        text = spelt.decode() if isinstance(spelt, bytes) else spelt
        assert redactor.clean(f"a {text} b") in (f"a {GONE} b", f'a "{GONE}" b')


LETTERS = st.characters(codec="ascii", categories=("L", "N", "P", "S"), exclude_characters="\\")


@given(
    st.text(alphabet=LETTERS, min_size=8),
    st.text(max_size=30),
    st.text(max_size=30),
    st.sampled_from(sorted(SPELLINGS)),
    st.sampled_from(["plain", "json", "json in json", "percent", "html", "percent in json"]),
)
def test_no_spelling_of_a_spelling_lets_a_secret_through(secret, before, after, inner, outer):
    """Whatever the secret and what stands around it; the result is valid UTF-8."""
    text = SPELLINGS[outer](SPELLINGS[inner](secret))
    cleaned = Redactor([secret]).clean(f"{before} {text} {after}")
    assert cleaned.encode()
    assert GONE in cleaned or secret in GONE


@pytest.mark.parametrize("key", rows("keys_of_others"))
def test_keys_of_others_are_known_by_their_form(key):
    """Also where an escape comes before them or hides a part of them."""
    for text in (key, f'"{key}"', f"\\n{key}", key.replace("-", "\\u002d"), f"key={key}&x=1"):
        cleaned = Redactor().clean(f"is {text} it?")
        assert GONE in cleaned
        assert key[6:] not in cleaned
        assert key.rpartition("-")[2] not in cleaned


REPLIES = [
    *[(word, False) for word in ("EMPTY", "none", "ollama", "test", "lm-studio", "dummy", "local")],
    *[
        (word, False)
        for word in ("not-needed", "your-api-key-here", "YOUR_API_KEY_HERE", "test1234")
    ],
    *[(word, False) for word in ("secret password", "Nothing.At.All", "8001", "2024-10-21")],
    *[(key, True) for key in ("abcdef012345", "hunter2-very-secret", "0123456789012", SECRET)],
    *[(key, True) for key in ("qWeRtZuIoPaSdF", "x" * 21, "user:some-password", "ab!cd?ef$gh%ij")],
    *[(key, True) for key in ("2024-12-01-preview", "not-needed-1", "Bearer abcdef012345")],
]
"""Secrets, and whether each is cut out of what a model says."""


@pytest.mark.parametrize(("secret", "is_cut"), REPLIES)
def test_a_reply_keeps_its_words_and_a_message_keeps_no_secret(secret, is_cut):
    """A dummy key is a word like any other, in whatever spelling; messages never show one."""
    redactor = Redactor(["other-secret-0", secret])
    for spell in (str, escaped, json.dumps):
        text = f"I have a {spell(secret)} tomorrow."
        assert (GONE in redactor.clean_reply(text)) == is_cut
        assert is_cut or redactor.clean_reply(text) == text
        assert GONE in redactor.clean(text)
    for said in ("is sk-foreign-0123456789abcdef it?", "so other-secret-0 it is"):
        assert GONE in redactor.clean_reply(said)


@pytest.mark.parametrize("text", rows("other_texts_stay_as_they_are"))
def test_other_texts_stay_as_they_are(text):
    """Byte for byte, escapes and all."""
    redactor = Redactor(["plainkey0123456789", SECRET])
    assert redactor.clean(text) == redactor.clean_reply(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    rows("logins_and_queries_are_left_out_of_messages"),
)
def test_logins_and_queries_are_left_out_of_messages(text, shown):
    """Also of URLs that are wrong; nothing else is."""
    assert public(text) == shown


def test_ordinary_urls_keep_their_public_form():
    """It is in the ledger's keys."""
    for url in ("http://127.0.0.1:8000/v1", "https://api.openai.com/v1", "http://[::1]:80/a/b"):
        assert public_url(url) == public_url(f"{url}/") == url
    assert public_url("https://u:p@h:1/v1/?key=s#m") == "https://h:1/v1#m"
    assert public_url("HTTPS://Host/V1") == "https://Host/V1"


def test_the_environment_tells_its_secrets_by_name():
    """What is short, or only sounds alike, is none."""
    env = {"A_KEY": "12345678", "MY_TOKEN": "from-the-env", "KEY": "short", "TURKEY": "generate"}
    assert sorted(secrets_in(env)) == ["12345678", "from-the-env"]

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_compact.messages import masking
from mcp_compact.messages.masking import MASK, all_masked, masked

# Made up; parts are joined here so that no scanner of repositories takes them for real.
KEYS = (
    "sk-" + "ant-api03-" + "a1B2c3D4" * 4,
    "sk-" + "proj-" + "a1B2c3D4" * 4,
    "sk-" + "a1B2c3D4" * 5,
    "AKIA" + "IOSFODNN7EXAMPLE",
    "gh" + "p_" + "a1B2c3D4" * 5,
    "github" + "_pat_" + "a1B2c3D4" * 4,
    "glp" + "at-" + "a1B2c3D4" * 3,
    "xox" + "b-1234567890-abcdefghij",
    "AIza" + "a1B2c3D4" * 4 + "xyz",
    "npm" + "_" + "a1B2c3D4" * 5,
    "hf" + "_" + "a1B2c3D4" * 5,
    "sk" + "_live_" + "a1B2c3D4" * 3,
    "mcp" + "c_" + "a1B2-3D_" * 5,
    "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0In0" + "." + "a1B2c3D4e5F6",
)


@pytest.mark.parametrize("key", KEYS)
def test_keys_of_known_providers_are_taken_out_wherever_they_stand(key):
    for text in (key, f"use {key}, please", f'{{"k": "{key}"}}', f"export X={key}\n", f"({key})"):
        out = masked(text)
        assert key not in out
        assert MASK in out


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('password = "hunter22"', "hunter22"),
        ("DB_PASSWORD=correcthorse", "correcthorse"),
        ("api_key: abc123def456", "abc123def456"),
        ('"client_secret": "s3cr3tvalue"', "s3cr3tvalue"),
        ("Authorization: Bearer abcdefghijk1234567890", "abcdefghijk1234567890"),
        ("postgres://app:pa55word@db.internal/x", "pa55word"),
        ("mysql --password hunter22 -u root", "hunter22"),
        ("the password is hunter22, ok", "hunter22"),
        ("密码：abc12345", "abc12345"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\nxyz=\n-----END RSA PRIVATE KEY-----", "MIIEabc"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEabc and then it was cut", "MIIEabc"),
    ],
)
def test_what_stands_behind_a_word_for_a_secret_is_taken_out(text, secret):
    assert secret not in masked(text)


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f2a9bc81d4e5f60718293a4b5c6d7e8f9012345",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "session 0f9f3f0e-9a3c-4b5f-8d21-6a1a0d5c1f00",
        "max_tokens: 40000",
        "next_token: 1234567890",
        "token: str = ''",
        "token = get_token()",
        "secret: ${{ secrets.DEPLOY }}",
        "password: required",
        "connect(password=password)",
        "https://example.com:8080/a@b",
        "api_key = os.environ['KEY']",
        "the key-value store keeps its keys sorted",
        "tokens are counted, passwords are not",
        "image/png;base64,iVBORw0KGgoAAAANSUhEUgAA",
    ],
)
def test_hashes_ids_and_code_about_secrets_stay(text):
    assert masked(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Never rename the parameter privateKey: Uint8Array in the public API.",
        "privateKey: Ed25519PrivateKey.",
        "private_key: x25519.PrivateKey",
        "privateKey?: Uint8Array | null;",
        "signingKey: bytes32",
        "encryption_key: [u8; 32]",
        "secret: Buffer",
        "secret: string | Float64Array",
        "API_KEY = SecretStr",
        '{"apiKey": "string"}',
        '"secretKey": "Uint8Array"',
        "token: base64",
        "token: uuid4",
        "apiKey: config.apiKey",
        "apiKey = config.s3.secretKey",
        "token: process.env.TOKEN_V2",
        'API_KEY = environ["A1B2C3"]',
        "API_KEY=os.environ['A1B2C3']",
        "TOKEN = get_token()",
        "const token = b64decode(x)",
        "the secret key is Uint8Array of 32 bytes",
        "pass --private-key Uint8Array",
    ],
)
def test_types_and_what_values_are_taken_from_are_no_secrets(text):
    assert masked(text) == text


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("password: Secret123", "Secret123"),
        ("token: Token1234", "Token1234"),
        ("password: Buffer99", "Buffer99"),
        ("password: hunter2(prod)", "hunter2"),
        ("api_key: abc.def123", "abc.def123"),
        ("api_key: key1234567", "key1234567"),
        ("DB_PASSWORD=secretkey", "secretkey"),
        ("postgres://app:string32@db.internal/x", "string32"),
        ("secret: Uint8Array1f9c3b7d5e", "Uint8Array1f9c3b7d5e"),
        ("api_key: 2a97516c354b68848cdbd8f54a226a0a55b21ed1", "2a97516c"),
    ],
)
def test_what_only_resembles_a_type_is_taken_out(text, secret):
    assert secret not in masked(text)


@given(st.text(alphabet="abcAB12 :=\"'-_/@.$\n{}[]", max_size=200).map(lambda text: f"password{text}token{text}"))
def test_twice_is_once(text):
    once = masked(text)
    assert masked(once) == once


def test_text_without_a_trace_of_a_secret_is_the_same_object():
    text = "nothing to see here " * 100
    assert masked(text) is text


@pytest.mark.parametrize(
    "hostile",
    ["password=", "a://b:", "-----BEGIN PRIVATE KEY-----", "eyJ", "sk-a", "--token ", "token is ", "key: u8array"],
)
def test_hostile_text_takes_time_in_proportion_to_its_length(hostile):
    masked(hostile * (200_000 // len(hostile)))
    masked(f"token: {hostile.strip(':= ') * 40} " * 500)


def compiled(pattern: re.Pattern[str]) -> re.Pattern[str]:
    """The pattern itself, of one that is compiled when it is used."""
    return re.compile(pattern.pattern, pattern.flags)


@given(st.from_regex(compiled(masking._PROVIDER), fullmatch=True))
def test_a_look_for_beginnings_overlooks_no_key(key):
    assert masking._may_hold_keys(f"said: ({key}) twice")


@given(st.from_regex(compiled(masking._HEADER), fullmatch=True), st.text(max_size=20))
def test_texts_are_masked_together_as_each_one_alone(said, other):
    texts = [other, said, f"{KEYS[0]}, {other}", f"-----BEGIN PRIVATE KEY-----\n{other}", "password: hunter22"]
    for some in (texts, texts[:2], texts[-1:]):
        assert all_masked(some) == [masked(text) for text in some]
    without_looking = masking._HEADER.sub(masking._of_header, said)
    assert masked(said) == masked(without_looking)


@given(st.one_of(*(st.from_regex(compiled(own), fullmatch=True) for own in (masking._ASSIGNED, masking._SPOKEN))))
def test_a_look_for_what_tells_of_a_password_overlooks_none(said):
    assert masking._TOLD.search(said.casefold())
    assert masking._holds(said.casefold(), masking._TELLING)

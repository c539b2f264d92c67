"""What is a secret is not shown, whatever is around it, and the JSON stays what it was."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridle.server.redaction import Redactor
from bridle.server.redaction.text import most_places
from tests.levels import tries
from tests.operations import grows_as_its_size, operations

ENVIRON = {
    "MY_API_KEY": "correct-horse-battery",
    "DB_PASSWORD": 'quo"ted\\and\nlong',
    "NUMBER_TOKEN": "123456789012",
    "SHORT_KEY": "abc",
    "PATH": "/usr/bin:/usr/local/bin",
    "KEY_ÜMLAUT": "größer-als-zwölf",
}
REDACTOR = Redactor(ENVIRON)

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n+/==\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4"

SECRETS = {
    "anthropic-key": "sk-ant-api03-abcdefghijklmnopqrstuvwxyz",
    "api-key": "sk-proj-0123456789abcdefghij",
    "aws-key": "AKIAIOSFODNN7EXAMPLE",
    "github-token": "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "slack-token": "xoxb-123456789012-abcdefghij",
    "google-key": "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "jwt": JWT,
    "bridle-token": "bridle_p_abcdefghijklmnopqrstuv",
    "private-key": PEM,
    "MY_API_KEY": "correct-horse-battery",
    "DB_PASSWORD": 'quo"ted\\and\nlong',
}


def shown(value: Any, redactor: Redactor = REDACTOR, **how: Any) -> Any:
    return json.loads(redactor.bytes(json.dumps(value, **how).encode()))


@pytest.mark.parametrize(("kind", "secret"), SECRETS.items(), ids=SECRETS)
def test_a_secret_is_replaced_by_its_kind(kind: str, secret: str) -> None:
    around = ["{}", "a\n{}\nb", "({})", "é{} ", "x={}, y", '"{}"', "\t{}"]
    for is_ascii in (True, False):
        for text in around:  # each alone: what stands before one must not matter
            [told] = shown([text.format(secret)], ensure_ascii=is_ascii)
            assert told == text.format(f"[redacted:{kind}]"), is_ascii


@pytest.mark.parametrize(("kind", "secret"), SECRETS.items(), ids=SECRETS)
def test_a_secret_is_found_in_json_within_a_string(kind: str, secret: str) -> None:
    inner = json.dumps({"line": f"it is {secret}"})
    assert json.loads(shown({"text": inner})["text"]) == {"line": f"it is [redacted:{kind}]"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("export DB_PASSWORD=hunter2hunter", "export DB_PASSWORD=[redacted:password]"),
        ("?token=abcdef123&page=2", "?token=[redacted:token]&page=2"),
        ('client_secret="s3cr3t-s3cr3t" ok', 'client_secret="[redacted:secret]" ok'),
        ("--api-key=k1k2k3k4 run", "--api-key=[redacted:api-key] run"),
        ("apiKey: 'k1k2k3k4'", "apiKey: '[redacted:api-key]'"),
        ('{"password": "hunter2"}', '{"password": "[redacted:password]"}'),
        ("passwd=hunter2;", "passwd=[redacted:password];"),
        (
            "Authorization: Bearer abcdefghijklmnop.qrst",
            "Authorization: Bearer [redacted:bearer]",
        ),
        ("-H 'authorization: Basic dXNlcjpwYXNz'", "-H 'authorization: Basic [redacted:basic]'"),
        ("git clone https://me:pa$$@host/x", "git clone https://me:[redacted:password]@host/x"),
        ("redis://:p@ss@host:80", "redis://:[redacted:password]@host:80"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtn", "AWS_SECRET_ACCESS_KEY=[redacted:secret]"),
    ],
)
def test_a_value_is_replaced_and_its_name_stays(text: str, expected: str) -> None:
    assert shown([text, "after"]) == [expected, "after"]
    assert json.loads(shown(json.dumps([text]))) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "task-force-one-is-on-its-way-to-nowhere",
        "sk-spinner-double-bounce-child",
        "max_tokens=1024000",
        '{"max_tokens": 1024000, "tokens": "1024000", "token_count": "1024000"}',
        "see http://localhost:8080/a@b and https://host/x:y@z",
        "Basic understanding of the token and of the secret key",
        "token=$TOKEN_OF_MINE",
        "def login(password: str, token: str) -> None:",
        "the secret: nobody knows",
        "ghp_short",
        "0f8fad5b-d9cb-469f-a165-70867728950e",
        "/usr/bin:/usr/local/bin",
        "see -----BEGIN CERTIFICATE-----",
    ],
)
def test_what_is_no_secret_is_left_as_it_is(text: str) -> None:
    assert shown({"text": text}) == {"text": text}


def test_the_string_that_a_key_calls_a_secret_is_one() -> None:
    given = {"password": "hunter2", "x": "hunter2", "apiKey": "k1k2k3k4", "token": 123456}
    assert shown(given) == {
        "password": "[redacted:password]",
        "x": "hunter2",
        "apiKey": "[redacted:api-key]",
        "token": 123456,
    }
    pretty = json.dumps({"a": {"password": "hunter2hunter"}, "b": ["hunter2hunter"]}, indent=2)
    assert json.loads(REDACTOR.bytes(pretty.encode())) == {
        "a": {"password": "[redacted:password]"},
        "b": ["hunter2hunter"],
    }


def test_what_sessions_hold_is_hidden_as_soon_as_they_do() -> None:
    held: list[frozenset[tuple[str, str]]] = [frozenset()]
    redactor = Redactor({}, lambda: held[0])
    assert shown(["it is pa$$;1"], redactor) == ["it is pa$$;1"]
    held[0] = frozenset({("ANY", "pa$$;1"), ("DB_PASSWORD", "letmein"), ("B", 'q"\\\n123')})
    given = ["it is pa$$;1", "letmein", 'a q"\\\n123', json.dumps(['q"\\\n123'])]
    assert shown(given, redactor) == [
        "it is [redacted:ANY]",
        "[redacted:DB_PASSWORD]",
        "a [redacted:B]",
        '["[redacted:B]"]',
    ]
    held[0] = frozenset()
    assert shown(given, redactor) == given


@pytest.mark.parametrize(
    "value", ["12345", "default", "in_place", "/home/me/work", "~/work", "1.25"]
)
def test_what_stands_in_every_answer_is_a_secret_only_if_its_variable_says_so(value: str) -> None:
    redactor = Redactor({}, lambda: frozenset({("MODE", value)}))
    assert shown({"mode": value}, redactor) == {"mode": value}


@pytest.mark.parametrize("value", ["$ecretpass123", "a,b;c(d)1234", "with spaces 1", 'q"\\\nuoted'])
@pytest.mark.parametrize(
    ("key", "kind"),
    [
        *(("password", "password"), ("DB_PASSWORD", "password"), ("passwd", "password")),
        *(("secret", "secret"), ("client_secret", "secret"), ("aws_secret_access_key", "secret")),
        *(("secretKey", "secret"), ("ACCESS_KEY", "secret"), ("api_key", "api-key")),
        *(("apiKey", "api-key"), ("x-api-key", "api-key"), ("accessToken", "token")),
    ],
)
def test_the_value_of_such_a_key_is_a_secret_whatever_it_has(
    key: str, kind: str, value: str
) -> None:
    given, expected = {key: value, "x": value}, {key: f"[redacted:{kind}]", "x": value}
    assert shown([given]) == [expected]
    assert shown([given], indent=2) == [expected]
    assert shown([given], separators=(",", ":")) == [expected]
    assert json.loads(shown(json.dumps([given]))) == [expected]


def test_credentials_of_a_header_are_hidden_where_it_is_a_key() -> None:
    assert shown({"Authorization": "Basic dXNlcjpwYXNz", "basic": "Basic understanding"}) == {
        "Authorization": "[redacted:authorization]",
        "basic": "Basic understanding",
    }


def test_numbers_are_never_touched() -> None:
    given = {"a": 123456789012, "b": "123456789012", "c": [1.5, None, True]}
    assert shown(given) == {**given, "b": "[redacted:NUMBER_TOKEN]"}


def test_keys_with_secrets_stay_different_and_the_same_ones_stay_the_same() -> None:
    one, two = "sk-ant-aaaaaaaaaaaaaaaaaaaa", "sk-ant-bbbbbbbbbbbbbbbbbbbb"
    first, second = shown([{one: 1, two: 2}, {one: 3}])
    assert sorted(first.values()) == [1, 2]
    assert all(key.startswith("[redacted:anthropic-key]") for key in first)
    assert list(second) == [next(iter(first))]


def test_a_key_that_looks_like_the_replacement_is_not_hit() -> None:
    secret = "sk-ant-aaaaaaaaaaaaaaaaaaaa"
    assert len(shown({secret: 1, "[redacted:anthropic-key]#1": 2})) == 2
    assert len(shown({"[redacted:anthropic-key]#7": 1, secret: 2, "#" * 99: 3})) == 3


@pytest.mark.parametrize(
    "encoded",
    [
        b'"\\bridle_p_abcdefghijklmnopqrstuv"',  # a backspace, then other letters
        b'"\\u000bridle_p_abcdefghijklmnopqrstuv"',
        b'"\\u000AKIAIOSFODNN7EXAMPLE"',
        b'{"password=\\\\":12345678901}',
        b'["token=\\\\","abcdefghijkl"]',
        b'["-----BEGIN PRIVATE KEY-----\\"a","b"]',
        b'["-----BEGIN PRIVATE KEY-----\\\\\\\\","b"]',
        b'["-----BEGIN PRIVATE KEY-----\xc3\xa9","b"]',
    ],
)
def test_an_escape_is_never_torn(encoded: bytes) -> None:
    assert shape(json.loads(REDACTOR.bytes(encoded))) == shape(json.loads(encoded))


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [shape(one) for one in value.values()]
    if isinstance(value, list):
        return [shape(one) for one in value]
    return "a string" if isinstance(value, str) else value


PIECES = st.sampled_from(
    [
        *SECRETS.values(),
        *ENVIRON.values(),
        *(
            "password=",
            "token=",
            '"secret": "',
            "api_key='",
            "Bearer ",
            "-----BEGIN PRIVATE KEY-----",
        ),
        *("\\", '"', "\n", "\b", "\x0b", "=", ":", ",", "}", "é", "sk-", "\ud800"),
        *("password", "apiKey", '\\"secret\\": \\"', '\\"', "Authorization: Basic ", "://a:", "@"),
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=12), max_size=6).map("".join)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=tries(50, 500), deadline=None)
@given(DOCUMENTS)
def test_the_json_keeps_its_shape_whatever_is_in_it(document: Any) -> None:
    encoded = json.dumps(document).encode()
    once = REDACTOR.bytes(encoded)
    assert shape(json.loads(once)) == shape(document)
    readable = json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")
    loaded = json.loads(REDACTOR.bytes(readable).decode("utf-8", "surrogatepass"))
    assert shape(loaded) == shape(document)


@settings(max_examples=tries(50, 500), deadline=None)
@given(DOCUMENTS, st.sampled_from(sorted(SECRETS.items())))
def test_a_secret_does_not_get_through_wherever_it_stands(
    document: Any, secret: tuple[str, str]
) -> None:
    given = [document, f" {secret[1]} ", {f" {secret[1]} ": 1}]
    _, value, [key] = json.loads(REDACTOR.bytes(json.dumps(given).encode()))
    assert value == f" [redacted:{secret[0]}] "
    assert secret[1] not in key


def test_a_secret_is_hidden_to_its_end_however_long_it_is() -> None:
    long = "sk-ant-" + "a" * 1_000_000
    assert shown([f"{long} x {long}"]) == ["[redacted:anthropic-key] x [redacted:anthropic-key]"]


@pytest.mark.slow
async def test_others_go_on_while_a_large_text_is_searched() -> None:
    large = json.dumps("ab " * 10_000_000).encode()
    searching = asyncio.ensure_future(asyncio.to_thread(REDACTOR.bytes, large))
    turns = 0
    while not searching.done():
        await asyncio.wait([searching], timeout=0.001)
        turns += 1
    assert await searching == large
    assert turns > 10


@pytest.mark.slow
def test_many_keys_with_secrets_take_no_longer() -> None:
    encoded = json.dumps({f"sk-ant-{number:020}": "x" * 50 for number in range(20_000)}).encode()
    few = json.dumps({f"sk-ant-{number:020}": "x" * 50 for number in range(2_000)}).encode()
    assert len(json.loads(REDACTOR.bytes(encoded))) == 20_000
    assert grows_as_its_size(REDACTOR.bytes, few, encoded)


#: Beginnings of secrets, and halves of them, each after the other.
HALVES = (
    *(
        "-eyJ",
        "eyJ",
        ".eyJ",
        "\neyJ",
        "eyJaaaaaaaa.",
        "eyJaaaaaaaa.eyJ",
        "eyJaaaaaaaa.eyJaaaaaaaa.",
    ),
    *("sk-", "-sk-", "sk-ant-", "xoxb-", "ghp_", "github_pat_", "AIza", "AKIA", "bridle_p_", "a_"),
    *("Bearer ", "bearer\t", "Bearer aaaaaaaaaaaaaaa ", "Authorization: Basic ", "Authorization:"),
    *("password=", 'password": "', "password:   ", "password\\\\", "password='", "TOKEN=aaaaa;"),
    *(
        "token",
        "apiKey=\\",
        "secret_key=",
        '\\"secret\\": \\"',
        "secret=$",
        "=",
        "\\",
        "\x01",
        "#1",
    ),
    *("-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY----- a\n", "-----END "),
    *("Private-Lines: 1\n", "a1:-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----\n\n"),
    *("<password a>", "<password a b", '("password", "a1', 'password" value="', "-token a "),
    *("https://a:", "https://", "://a:b", "a@", "é"),
    *("sk-sk-sk-", "a:a:a:", "-u ", "-u a:b ", "'", '"', " ", "-", "--", "_", "{", '["', '{"a":'),
    *("password: x\n", 'password="\\', "--password ", "--password x ", "--password=", "token=["),
    *(
        "curl ",
        "curl -u",
        "mysql -p",
        "://a:b@",
        "<password>",
        "\\u0070",
        "cookie: a=",
        "basic aaaa ",
    ),
    *("login a password b ", "Q~", "key-", "_auth=", "password: |\n a\n", "token%3D", "sig="),
    *("password => ", "token: a = ", "password 'a' ", "x-api-key: a1b2c3 ", "held-value-1"),
)
KINDS_OF_DOCUMENT: dict[str, Callable[[str, int], str]] = {
    "one string": lambda half, size: json.dumps(half * (size // len(half))),
    "json in a string": lambda half, size: json.dumps(json.dumps([half * (size // len(half))])),
    "many strings": lambda half, size: json.dumps([half] * (size // (len(half) + 4))),
    "many keys": lambda half, size: json.dumps([{half: half}] * (size // (2 * len(half) + 10))),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS_OF_DOCUMENT)
def test_no_text_takes_longer_than_its_length(kind: str) -> None:
    document = KINDS_OF_DOCUMENT[kind]
    slow = []
    for half in HALVES:
        small, large = (document(half, size * 1024).encode() for size in (25, 250))
        if not grows_as_its_size(REDACTOR.bytes, small, large):
            slow.append(half)
    assert slow == []


SIZE = 20_000


def test_what_held_the_server_for_seconds_takes_few_operations() -> None:
    encoded = json.dumps({"text": "sk-" * 80_000}).encode()
    assert operations(lambda: REDACTOR.bytes(encoded)) < 20_000


@pytest.mark.slow
def test_what_it_does_is_bounded_by_the_length_of_the_text() -> None:
    redactor = Redactor({}, lambda: frozenset({("X", "held-value-1")}))
    too_many = []
    for kind, document in KINDS_OF_DOCUMENT.items():
        for half in HALVES:
            encoded = document(half, SIZE).encode()
            count = operations(lambda encoded=encoded: redactor.bytes(encoded))  # type: ignore[misc]
            # So many for each string, and for each place that is looked at.
            strings = encoded.count(b'"') // 2
            if count > 100 * (strings + most_places(len(encoded))):
                too_many.append((kind, half, count))
    assert too_many == []


def test_a_text_that_would_take_too_long_is_not_shown_at_all() -> None:
    many = "password: x\n" * 20_000
    assert shown([many, "and a password: hunter2", 1, "x"]) == [
        "[redacted:unchecked]",
        "[redacted:unchecked]",
        1,
        "x",
    ]
    assert shown({"kind": "agent.said", "text": many})["kind"] == "agent.said"

"""What is found and what is let be, in texts as agents write them. No secret here is a real one."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from bridle.server.redaction import Redactor

REDACTOR = Redactor({})
#: Made here, so that nobody's scanner takes them for real.
A = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY"
HEX = "0123456789abcdef" * 4


def shown(text: str) -> str:
    """As it is, in a document within a document, and in a line of JSON in a text: the same."""
    told = str(json.loads(REDACTOR.bytes(json.dumps({"text": text}).encode()))["text"])
    ascii_ = REDACTOR.bytes(json.dumps([text], ensure_ascii=False).encode())
    assert json.loads(ascii_) == [told]
    inner = json.loads(REDACTOR.bytes(json.dumps([json.dumps({"text": text})]).encode()))[0]
    assert json.loads(inner) == {"text": told}
    return told


#: What must not be seen, and the text.
TOKENS = {
    "anthropic-key": f"sk-ant-api03-{A}",
    "api-key": f"sk-proj-{A}",
    "stripe-key": "sk" + f"_live_{A}",
    "stripe-key 2": "rk" + f"_test_{A}",
    "stripe-key 3": f"whsec_{A}",
    "slack-token": f"xoxb-1234567890-{A}",
    "slack-token 2": f"xapp-1-A012-345-{HEX}",
    "github-token": f"ghs_{A}1234",
    "github-token 2": f"github_pat_11{A}_{A}",
    "gitlab-token": f"glpat-{A[:20]}",
    "gitlab-token 2": f"gldt-{A[:20]}",
    "gitlab-token 3": f"glrt-t1_{A[:20]}",
    "npm-token": f"npm_{A}1234",
    "hugging-face-token": f"hf_{A}12",
    "pypi-token": f"pypi-AgEIcHlwaS5vcmc{A}",
    "google-key": f"AIzaSy{A}1",
    "google-token": f"ya29.a0{A}",
    "google-token 2": f"1//0g{A}",
    "google-secret": f"GOCSPX-{A}",
    "aws-key": "AKIA" + "IOSFODNN7EXAMPLE",
    "aws-key 2": "ASIA" + "IOSFODNN7EXAMPLE",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4",
    "bridle-token": f"bridle_p_{A}",
    "sendgrid-key": f"SG.{A[:22]}.{A}",
    "digitalocean-token": f"dop_v1_{HEX}",
    "shopify-token": f"shpat_{HEX[:32]}",
    "docker-token": f"dckr_pat_{A[:27]}",
    "vault-token": f"hvs.{A}",
    "databricks-token": f"dapi{HEX[:32]}",
    "grafana-token": f"glsa_{A}_12345678",
    "linear-key": f"lin_api_{A}",
    "notion-token": f"ntn_{A}",
    "figma-token": f"figd_{A}",
    "api-key 2": f"gsk_{A}{A}",
    "api-key 3": f"tskey-auth-{A}",
    "sentry-token": f"sntrys_{A}",
    "atlassian-token": f"ATATT3xFfGF0{A}{A}",
    "square-token": f"sq0atp-{A[:22]}",
    "age-key": "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2,
    "twilio-key": f"SK{HEX[:32]}",
    "mailgun-key": f"key-{HEX[:32]}",
    "azure-secret": f"Q~{A}1234",
    "terraform-token": f"abcdefghijklmn.atlasv1.{A}{A}",
    "fly-token": f"fm2_{A}{A}",
}


def test_each_token_is_known_by_its_form() -> None:
    missed = {}
    for name, token in TOKENS.items():
        kind = name.split()[0]
        word = f"[redacted:{kind}]"
        for text in ("{}", "x={} y", "it is {}, and", "'{}'", "a\n{}\nb", "({})", "/{}?"):
            told = shown(text.format(token))
            if kind in ("azure-secret", "terraform-token"):
                is_hidden = token[-30:] not in told and word in told
            else:
                is_hidden = told == text.format(word)
            if not is_hidden:
                missed[name, text] = told
    assert missed == {}


PAIR = base64.b64encode(b"me:hunter2!").decode()
#: The text, with what must not be seen in braces, and its kind.
NAMED = [
    # YAML
    ("password: {x}", "password"),
    ("db:\n  password: {hunter2}\n  user: me", "password"),
    ("  DB_PASSWORD: {hunter2} # of the test", "password"),
    ("- secret: {changeme}", "secret"),
    ("password: '{it is a secret}'", "password"),
    ("  token: |\n    {abcdefgh1234}\n  b: c", "token"),
    ("- name: API_KEY\n  value: {abcd1234efgh}", "api-key"),
    ("password: {p@ss,w0rd;x}", "password"),
    # XML
    ('<add key="DbPassword" value="{x}"/>', "password"),
    ('<property name="password"  value="{it is}" />', "password"),
    ('<input name="password" value="{hunter2}">', "password"),
    ('<s:password type="x">{hunter2}</s:password>', "password"),
    ("<password><![CDATA[{hun<ter2}]]></password>", "password"),
    # arguments of calls
    ("define('DB_PASSWORD', '{abcd1234}');", "password"),
    ('os.Setenv("API_TOKEN", "{abcd-1234}")', "token"),
    ('props.setProperty("api_key","{abcd1234}")', "api-key"),
    # headers
    ("x-api-key: {abcdef123456}", "api-key"),
    ("-H 'X-API-Key: {abcdef123456}'", "api-key"),
    ('curl -H "X-Auth-Token: {abcdef123456}" https://h', "token"),
    ("PRIVATE-TOKEN: {abcdef123456}", "token"),
    ("Authorization: Bearer {abcdefghijklmnop.qrst}", "bearer"),
    ("Authorization: Basic {" + PAIR + "}", "basic"),
    ("sent Basic {" + PAIR + "} as always", "basic"),
    ("Authorization: token {abcdef123456}", "authorization"),
    ("Authorization: {abcdef123456}", "authorization"),
    ("Cookie: {session=abcdef; theme=dark}", "cookie"),
    ("Set-Cookie: {sid=abcdef123; Path=/}", "cookie"),
    # options
    ("tool --password {x} --user me", "password"),
    ("tool --http-passwd {abcd1234}", "password"),
    ("x11vnc -passwd {abcd1234} -once", "password"),
    ("tool -token '{abcd1234}'", "token"),
    ("tool --password '{a b}' run", "password"),
    ("tool --api-key {k1k2k3} run", "api-key"),
    ("tool --token={abcdef123} run", "token"),
    ("tool --db-password={hunter2}", "password"),
    ("curl -u a:{b} https://host", "password"),
    ("curl -sSu me:{pa55word} https://host", "password"),
    ("curl --user me:{pa55word} https://host", "password"),
    ("curl -u 'me:{pa55word}' https://host", "password"),
    ("curl --proxy-user me:{pa55word} https://host", "password"),
    ("sshpass -p {hunter2} ssh me@host", "password"),
    ("mysql -uroot -p{hunter2} db", "password"),
    ("redis-cli -h host -a {hunter2}", "password"),
    ("docker login -u me -p {hunter2} host", "password"),
    ("ldapsearch -D cn=me -w {hunter2}", "password"),
    # assignments
    ("export DB_PASSWORD={hunter2hunter}", "password"),
    ("AWS_SECRET_ACCESS_KEY={wJalrXUtnFEMI/K7MDENG}", "secret"),
    ("SECRET_KEY_BASE={abcdefgh}", "secret"),
    ("PGPASSWORD={a,b;c}", "password"),
    ("DB_PASS={hunter2}", "password"),
    ("wget --password={x} --user=y", "password"),
    ("curl -ume:{pa55word} https://host", "password"),
    ("client_secret = '{s3cr3t}'", "secret"),
    ('password: str = "{hunter2}"', "password"),
    ('pass := 1; apiKey := "{k1k2k3}"', "api-key"),
    ("'password' => '{hunter2}'", "password"),
    ("password = {hunter2}", "password"),
    ("//registry.example/:_authToken={abcdef-1234}", "token"),
    ("//registry.example/:_password={aHVudGVyMg==}", "password"),
    ("?access_token={abcdef123}&page=2", "token"),
    ("https://h/b?sv=1&sig={abcdefgh12345678%3D}&se=2", "token"),
    ("X-Amz-Signature={" + HEX + "}&x=1", "token"),
    ("password%3D{hunter2}", "password"),
    # connection strings
    ("AccountName=a;AccountKey={abcd1234+/==};EndpointSuffix=x", "secret"),
    ("SharedAccessKeyName=a;SharedAccessKey={abcd1234+/==}", "secret"),
    ("Server=h;User Id=me;Password={pa$$w0rd};Trusted=no", "password"),
    ("postgres://me:{pa55}@host/db", "password"),
    ("redis://:{p@ss}@host:80", "password"),
    ("https://{" + HEX[:32] + "}@sentry.io/1", "token"),
    ("machine h login me password {hunter2}", "password"),
    ("CREATE USER me WITH PASSWORD '{hunter2}'", "password"),
    # other documents
    ("<password>{hunter2}</password>", "password"),
    ("<db:Password>{hunter 2}</db:Password>", "password"),
    ('{{"token": ["{x}", "{ghijkl}"]}} and more', "token"),
    ('curl -d "{{\\"password\\": \\"{hunter2}\\"}}" h', "password"),
    ('x = {{"password": "{a\\"b\\\\c}", "y": 1}}', "password"),
    ('then {{"pass\\u0077ord": "{hunter2}"}}', "password"),
    ("https://hooks.slack.com/services/{T00000000/B00000000/XXXXXXXXXXXX}", "slack-webhook"),
    ("https://discord.com/api/webhooks/123456789/{abcdefghijkl-mn}", "webhook"),
    ("https://api.telegram.org/bot123456789:{AA" + A + "1}/x", "telegram-token"),
]


def test_what_a_name_says_is_a_secret_is_one() -> None:
    missed = []
    for written, kind in NAMED:
        text = written.replace("{{", "\1").replace("}}", "\2")
        expected = []
        plain = text
        for part in text.split("{")[1:]:
            secret = part.partition("}")[0]
            plain = plain.replace("{" + secret + "}", secret, 1)
            expected.append(secret)
        told = text
        for secret in expected:
            told = told.replace("{" + secret + "}", f"[redacted:{kind}]", 1)
        plain, told = (one.replace("\1", "{").replace("\2", "}") for one in (plain, told))
        if "\\u0077" in plain:
            told = told.replace("\\u0077", "w")
        if (found := shown(plain)) != told:
            missed.append((plain, found, told))
    assert missed == [], "\n".join(map(repr, missed))


BLOCKS = ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY"]


@pytest.mark.parametrize("kind", [*BLOCKS, "PGP PRIVATE KEY BLOCK"])
def test_a_private_key_is_hidden_also_if_its_end_is_cut_off(kind: str) -> None:
    lines = f"Version: GnuPG v2\n\n{A}{A}\n{A}==\n=aBcD\n"
    block = f"-----BEGIN {kind}-----\n{lines}-----END {kind}-----"
    assert shown(f"a\n{block}\nb") == "a\n[redacted:private-key]\nb"
    assert shown(f"{block} {block}") == "[redacted:private-key] [redacted:private-key]"
    cut = f"-----BEGIN {kind}-----\n{A}{A}\n{A}{A}\n{A}"
    assert A[:12] not in shown(cut)
    assert A[:12] not in shown(json.dumps({"key": cut})[:-5])


@pytest.mark.parametrize("name", ["BEGIN RSA PRIVATE KEY", "Private-Lines: 14"])
@pytest.mark.parametrize(
    "before",
    ["     9→", "    99\t", "+", "> ", "  ", "a/b-7.pem:9:", '"', "│ ", "2026-11-20T00:00:09Z "],
)
def test_the_lines_of_a_cut_key_are_hidden_whatever_is_before_each(name: str, before: str) -> None:
    """As tools show files: with their numbers, the marks of a diff, in strings."""
    first = f"-----{name}-----" if name.startswith("BEGIN") else name
    after = '\\n"' if before == '"' else ""
    lines = [f"{A}{A}{n}" for n in range(10, 30)]
    others = [before.replace("9", str(n)) for n in range(10, 30)]
    text = f"{before}{first}{after}\n" + "".join(
        f"{mark}{line}{after}\n" for mark, line in zip(others, lines, strict=True)
    )
    for end in (len(text), len(text) - 5, len(text) // 2):
        assert A[:12] not in shown(text[:end])
        assert A[:12] not in shown(json.dumps({"key": text})[:end])
    assert shown(f"{text}\nEnd of it: all is well\n").endswith("End of it: all is well\n")


def test_what_is_said_of_a_cut_key_does_not_end_it() -> None:
    said = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n"
    text = f"-----BEGIN RSA PRIVATE KEY-----\n{said}\n{A}{A}\n{A}{A}\n"
    assert A[:12] not in shown(text)
    numbered = "".join(f"{n:6}→{line}\n" for n, line in enumerate(text.splitlines(), 1))
    assert A[:12] not in shown(numbered)


def test_the_ticket_of_a_login_is_hidden_with_its_address() -> None:
    for host in ("http://127.0.0.1:7717", ""):
        text = f"open {host}/login?ticket={A}_-{A} in your browser"
        assert shown(text) == f"open {host}/login?ticket=[redacted:bridle-token] in your browser"
    assert shown("/login?ticket=TICKET and ticket=12345678901234567890") == (
        "/login?ticket=TICKET and ticket=12345678901234567890"
    )


#: Texts as they are, of which nothing may be taken.
ORDINARY = [
    # code
    "def login(password: str, token: Token | None = None) -> Session:",
    "    password: str\n    token: Token\n    secret: bytes = b''",
    "class A:\n    api_key: SecretStr\n    token: str | None = None\n    password: Optional[str]",
    "interface A { password: string; token?: string, secret: Buffer }",
    "token = get_token()\npassword = input('Password: ')\nsecret = secrets.token_urlsafe(32)",
    "self.token = token\nself._password = password\nclient(api_key=api_key, token=self.token)",
    "if token == 'if' or token != other: return token",
    "api_key = os.environ['API_KEY']; token = settings.auth.token",
    "password = process.env.DB_PASSWORD;\nconst token = await fetchToken(url)",
    "const { token, password } = req.body;",
    'password="$DB_PASSWORD" token="${TOKEN}" secret="{{ secret }}" password="<password>"',
    "export TOKEN=$(cat token) PASSWORD=$PASSWORD",
    "Vec<Token> tokens; a.token > 5; fn token(&self) -> Token",
    "tokens: [1, 2, 3], max_tokens=1024000, token_count: 5000000, input_tokens: 123456",
    "for token in tokens:\n    print(token)",
    "keyboard: qwertyuiop, monkey=banana12, key: value, primary_key=True, foreignKey: abcdef",
    "token_type: bearer\npassword_hash = None",
    "getattr(self, 'token', 'the_token'); t('password', 'New password 1'); ['token', 'abcd1234']",
    "if a < password and b > secret: <token kind='x'/> <secret a='b'></secret>",
    "tool -token is one; a -password flag; test -secret",
    'text.startswith("-----BEGIN PRIVATE KEY-----")\nreturn text',
    # prose
    "see -----BEGIN PRIVATE KEY----- in the file, and\nmore of it",
    "the secret: nobody knows; the password: you choose it yourself",
    "Password: must be at least 8 characters long",
    "use --token and --password to log in; --password is required",
    "Usage: tool [--password PASSWORD] [--token TOKEN] --api-key <key>",
    "Basic understanding of the token and of the secret key; bearer of good news",
    "The authorization: see below. Cookie: a small file.",
    "Authorization: Bearer $TOKEN",
    "token: required, password: optional",
    "-u is for users, and -p for ports; a pop-up: see set-up: done",
    # commands
    "docker run -u 1000:1000 -v a:b -p 80:80 image",
    "docker run --user node:node image && chown -R www-data:www-data /srv",
    "curl -s http://localhost:8080/a@b https://host/x:y@z",
    "git clone git@github.com:me/x.git && ssh -p 2222 me@host",
    "PWD=/home/me OLDPWD=/tmp/abc123 mysql -u root -p db",
    "kubectl create secret generic db --from-file=password=./password.txt",
    # what looks like a token
    "0f8fad5b-d9cb-469f-a165-70867728950e",
    "commit 7ed0791aa5c3f7e2b1d4c6a8e9f0b1c2d3e4f5a6",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "sha512-oYBVHQYyxXEnZ0vM2hRRZDlX3cZyUxNwTtn0M3kSGxnqoVvNxNbyR1qLf8gHnVvYwXxQ2z8mF0e5kA==",
    "toolu_01A09q90qw90lq917835lq9 msg_01XFDUDYJgAACzvnptvVoYEL req_011CSHoEeqs5C35K2UUqR7Fy",
    "sk-spinner-double-bounce-child sk-folding-cube task-force-one-is-on-its-way-to-nowhere",
    "npm_config_registry npm_package_name hf_hub_download pypi-publish glob-pattern xoxo-gossip",
    "eyJustASentence. AIzawa. AKIAK. ghp_short glpat-short",
    "see -----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "SKILL.md SG.txt dapifoo 1//0 :AAA",
    "claude-sonnet-4-5-20250929 claude-opus-4-1@20250805 2026-11-20T00:08:03Z 10.0.0.1:8080",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9Q",
]


def test_ordinary_texts_are_left_as_they_are() -> None:
    changed = [(text, told) for text in ORDINARY if (told := shown(text)) != text]
    assert changed == []


def test_our_own_sources_and_documents_keep_nearly_all_that_they_say() -> None:
    root = Path(__file__).parents[3]
    files = [*root.glob("src/bridle/**/*.py"), *root.glob("docs/*.md"), root / "README.md"]
    files = [file for file in files if file.parent.name != "redaction"]  # it has examples
    hits = []
    for file in files:
        lines = file.read_text().splitlines()
        for line, told in zip(lines, shown(file.read_text()).splitlines(), strict=False):
            if line != told:
                hits.append((file.name, line.strip(), told.strip()))
    assert len(files) > 300
    assert len(hits) < 8, "\n".join(map(repr, hits))


@pytest.mark.parametrize("value", ["x", "hunter2", 'q"\\\n'])
def test_a_key_says_it_however_it_is_spelled(value: str) -> None:
    for key in (r"pass\u0077ord", r"\u0070\u0061\u0073\u0073word", "DB_PASSWORD", "PassWord"):
        document = f'{{"{key}": {json.dumps(value)}, "x": 1}}'
        expected = ["[redacted:password]", 1]
        assert list(json.loads(REDACTOR.bytes(document.encode())).values()) == expected
        inner = json.loads(REDACTOR.bytes(json.dumps([document]).encode()))[0]
        assert list(json.loads(inner).values()) == expected
        deeper = json.dumps({"a": document})
        deeper = json.loads(REDACTOR.bytes(json.dumps([deeper]).encode()))[0]
        assert list(json.loads(json.loads(deeper)["a"]).values()) == expected


def test_what_is_in_lists_and_pairs_is_known_by_the_name_beside_it() -> None:
    given: dict[str, Any] = {
        "token": ["x", ["y"], 1],
        "secrets": ["a", "b"],
        "tokens": ["these", "are", "words"],
        "env": [{"name": "DB_PASSWORD", "value": "v"}, {"name": "MODE", "value": "v"}],
        "headers": [{"name": "X-Api-Key", "type": "text", "value": "v1v2v3"}],
        "argv": ["tool", "--password", "x", "--name", "y"],
        "password": {"type": "string", "description": "The password"},
        "after": "x",
    }
    for indent in (None, 2):
        told = json.loads(REDACTOR.bytes(json.dumps(given, indent=indent).encode()))
        assert told == {
            **given,
            "token": ["[redacted:token]", ["[redacted:token]"], 1],
            "secrets": ["[redacted:secret]", "[redacted:secret]"],
            "env": [{"name": "DB_PASSWORD", "value": "[redacted:password]"}, given["env"][1]],
            "headers": [{"name": "X-Api-Key", "type": "text", "value": "[redacted:api-key]"}],
            "argv": ["tool", "--password", "[redacted:password]", "--name", "y"],
        }

"""Secrets that would be published are found, and ordinary files are not."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import os
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from recollect.protection import packages, search
from recollect.protection.secrets import _IN_OTHERS, REFUSED, Secret, scan

# Files that are secrets by their name; shapes as their makers document them, with invented values.
NAMES = [
    *(".env", "app/.env.local", ".envrc", "prod.env", "tls/server.key", "server.pem", "store.jks"),
    *("login.kdbx", "a.p12", "putty.ppk", ".netrc", "_netrc", ".pgpass", ".htpasswd", ".my.cnf", ".npmrc"),
    *(".pypirc", ".git-credentials", ".dockercfg", ".docker/config.json", ".kube/config", ".aws/credentials"),
    *(".ssh/deploy", ".s3cfg", "rclone.conf", "sftp-config.json", "sitemanager.xml", "client_secret_12.json"),
    *("service-account.json", "x-firebase-adminsdk-1.json", "secrets.yml", "config/master.key"),
    *("terraform.tfstate", "prod.tfvars", "vpn.ovpn", "etc/shadow", "wp-config.php", "LocalSettings.php"),
    *("passwords.txt", "ssh_host_rsa_key", "token.json", ".vault_pass", "credentials.csv", "krb5.keytab"),
]
TOKENS = [
    b"ghp_" + b"a1B2" * 9,
    b"github_pat_" + b"a1B2c3D4e5" * 5,
    b"glpat-" + b"abcdefghij" * 2,
    b"xoxb-123456789012-abcdef",
    b"https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXX",
    b"https://discord.com/api/webhooks/123456789/" + b"abcdefghij" * 3,
    b"sk_live_" + b"0123456789abcdef",
    b"sk-ant-api03-" + b"abcdefghij" * 3,
    b"AIza" + b"abcdefghij" * 3 + b"abcde",
    b"npm_" + b"abcdef" * 6,
    b"pypi-AgEIcHlwaS5vcmc" + b"abcdefghij" * 2,
    b"SG." + b"abcdefghij" * 2 + b"." + b"abcdefghij" * 4,
    b"dop_v1_" + b"0123456789abcdef" * 4,
    b"DefaultEndpointsProtocol=https;AccountName=x;AccountKey=" + b"abcdefghij" * 8 + b"==",
    b"123456789:AA" + b"abcdefghijk" * 3,
    b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefghijklmnop",
    b"hf_" + b"abcdefghij" * 4,
    b"GOCSPX-" + b"abcdefghij" * 3,
]
SETTINGS = [
    b"DB_PASSWORD=correct-horse",
    b"export API_KEY=0123456789abcdef",
    b"database:\n  password: hunter2hunter\n",
    b"[client]\npassword = hunter2hunter\n",
    b"spring.datasource.password=hunter2hunter",
    b'{"auth": {"access_token": "abcdefghijk"}}',
    b"$config['db_password'] = 'hunter2hunter';",
    b"<!-- Authorization: Bearer abcdefghijklmnop -->",
    b"amqp://guest:guesswhat@queue.example/",
    b"define('AUTH_KEY',         'LzJ}op]mr|6+![P}Ak:uNdJC');",
]
# As people write them in other formats, languages and tools.
MORE_SETTINGS = [
    ("nodemailer.js", b"auth: { user: 'ann', pass: 'Xk29-pelican' }"),
    ("mail.ini", b"SMTP_PASS=Xk29pelican"),
    ("web.config", b'<add connectionString="Server=db;User Id=web;Password=Xk29pelican;" />'),
    ("local.xml", b"<password><![CDATA[Xk29pelican]]></password>"),
    ("settings.xml", b"<server><password>Xk29pelican</password></server>"),
    ("bericht.py", b"PASSWORT = 'Xk29pelican'"),
    ("conexion.php", "$contraseña = 'Xk29pelican';".encode()),
    ("config.rb", b"mot_de_passe: 'Xk29pelican'"),
    ("wpa.conf", b'  psk="Xk29pelican"'),
    ("wg0.conf", b"PrivateKey = mK0sX29pelicanAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
    ("deploy.sh", b"curl -T a.zip --user ann:Xk29pelican https://files.example/"),
    ("backup.sh", b"mysqldump -u root -pXk29pelican site > dump.sql"),
    ("sync.sh", b"sshpass -p Xk29pelican rsync -a . host:"),
    ("hosts", b"machine files.example\n  login ann\n  password Xk29pelican"),
    ("secret.k8s.yml", b"apiVersion: v1\nkind: Secret\ndata:\n  a: YWJj\n"),
    ("big.txt", b"-- nothing\n" * 1_000_000 + b"DB_PASSWORD=Xk29pelican\n"),
]
MORE_NAMES = [
    *(
        ".env.bak",
        ".env~",
        "Copy of .env",
        "site.key.old",
        "site (1).key",
        "copy-of-site.key",
        "id_rsa.bak",
        "id_ed25519_github",
    ),
    *(
        "wp-config.php.save",
        ".wp-config.php.swp",
        "wp-config.php~",
        "htpasswd",
        "netrc",
        ".bash_history",
        ".mysql_history",
    ),
    *(
        "passwörter.xlsx",
        "Zugangsdaten.txt",
        "mots-de-passe.csv",
        "contraseñas.txt",
        "senhas.csv",
        "wallet.dat",
        "acme.json",
    ),
    *(
        "dkim/default.private",
        ".smbcredentials",
        "sasl_passwd",
        "ipsec.secrets",
        ".idea/webServers.xml",
        ".dev.vars",
        ".secret",
    ),
    *(
        "env.production",
        ".flaskenv",
        "vault.yml",
        "kubeconfig.yaml",
        "etc/letsencrypt/live/site/privkey1.txt",
        ".config/gcloud/a.db",
    ),
    *(
        "group_vars/all/vault.yml",
        ".huggingface/token",
        "cookies.sqlite",
        "logins.json",
        ".vault-token",
        "secret_key.txt",
    ),
]
# Files whose contents or tables give them away, whatever their names.
TABLES = [
    ("users.csv", b"id,name,password\n1,ann,zebra\n"),
    ("users.tsv", b"id\tname\tpassword_hash\n1\tann\t5f4dcc3b5aa765d61d8327deb882cf99\n"),
    ("dump.sql", b"INSERT INTO users (id, name, `password`) VALUES (1,'ann','zebra');"),
    ("pg.sql", b"COPY public.users (id, name, password) FROM stdin;\n1\tann\tzebra\n\\.\n"),
    (
        "my.sql",
        b"CREATE TABLE `users` (\n  `id` int,\n  `password` varchar(255)\n);\nINSERT INTO `users` VALUES (1,'zebra');",
    ),
    ("conn.php", b"$c = mysqli_connect('localhost', 'web', 'zebra99x', 'shop');"),
    ("pdo.php", b"$pdo = new PDO('mysql:host=localhost;dbname=shop', $user, 'zebra99x');"),
    ("settings.py", b"SECRET_KEY = os.environ.get('SECRET_KEY', 'f3q9xzz_93kdj2m0s7bn1')"),
    ("config.json", b'{"auths":{"https://docker.example/":{"auth":"d2ViOnplYnJhOTl4"}}}'),
    ("npm.txt", b"//registry.example/:_authToken=00000000-1111-2222-3333-444455556666\n"),
    ("azure.json", b'{"clientId":"x","clientSecret":"abc~8Q~defghijklmnop"}'),
    ("wide.ini", "[db]\r\npassword=zebra99x\r\n".encode("utf-16-be")),
    ("state.json", b'{"terraform_version":"1.5","instances":[{"attributes":{"password":"zebra99x"}}]}'),
]
STORES = [
    b"\xfe\xed\xfe\xed\0\0\0\2\0\0\0\1",
    b"0\x82\x05\x0e0@\x06\x09*\x86H\x86\xf7\x0d\x01\x05\x0d",
    b"untrusted comment: minisign encrypted secret key\nRWRTY0Iy",
    b'{"keys":[{"d":"abc","n":"x","e":"AQAB","kty":"RSA"}]}',
    b'{"kty":"oct","k":"GawgguFyGrWKav7AX4VKUg"}',
]
OTHER_CASES = [
    *(".ENV", "ID_RSA", "Wp-Config.PHP.bak", "#.env#", ".env_old", ".HTPASSWD", "proxies.htpasswd", "vault_pass.txt"),
    *("lastpass.csv", "bitwarden_export_1.json", "a.1pif", ".composer/auth.json", "msal_token_cache.json"),
]
KEYS = [
    *STORES,
    b"tls.key: LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t",
    b"0\x82\x04\xbe\x02\x01\x000\r\x06\t*\x86H\x86\xf7",
    b"-----BEGIN RSA PRIVATE KEY-----",
    b"-----BEGIN ENCRYPTED PRIVATE KEY-----",
    b"-----BEGIN EC PRIVATE KEY-----",
    b"-----BEGIN PGP PRIVATE KEY BLOCK-----",
    b"PuTTY-User-Key-File-3: ssh-ed25519",
    b'{"type": "service_account", "private_key": "-----BEGIN"}',
    b'{"kty":"EC","crv":"P-256","x":"abc","y":"def","d":"ghi"}',
    b"# created\nAGE-SECRET-KEY-1ABCDEF",
]


def zipped(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as package:
        package.writestr(name, content)
    return out.getvalue()


def tarred(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as package:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        package.addfile(info, io.BytesIO(content))
    return out.getvalue()


def database(password: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE users (id INTEGER, name TEXT, password TEXT)")
        db.execute("INSERT INTO users VALUES (1, 'ann', ?)", (password,))
        db.commit()
        return db.serialize()


HASH = b"$2y$10$abcdefghijklmnopqrstuuabcdefghijklmnopqrstuvwxyzABCDE"


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        (".env", b"", Secret.CREDENTIALS),
        ("config/.env.production", b"", Secret.CREDENTIALS),
        ("deploy/id_rsa", b"", Secret.CREDENTIALS),
        ("key.txt", b"x\n-----BEGIN OPENSSH PRIVATE KEY-----\n", Secret.PRIVATE_KEY),
        ("age.txt", b"AGE-SECRET-KEY-1QQQ", Secret.PRIVATE_KEY),
        ("wp-config.php", b"define( 'DB_PASSWORD', 's3cr3t-value' );", Secret.CREDENTIALS),
        ("settings.py", b"SECRET_KEY = 'django-insecure-abc'", Secret.CREDENTIALS),
        ("app.json", b'{"api_key": "0123456789"}', Secret.CREDENTIALS),
        ("db.yml", b"url: postgres://joe:hunter2@db.example/site", Secret.CREDENTIALS),
        ("aws.txt", b"AKIAIOSFODNN7EXAMPLE", Secret.TOKEN),
        ("dump.sql", b"INSERT INTO users VALUES (1,'joe','" + HASH + b"');", Secret.PASSWORD_HASH),
        ("users.csv", b"$P$B" + b"a" * 30, Secret.PASSWORD_HASH),
        *((name, b"", Secret.CREDENTIALS) for name in NAMES),
        *((name, b"", Secret.CREDENTIALS) for name in MORE_NAMES),
        *((name, content, Secret.CREDENTIALS) for name, content in MORE_SETTINGS),
        *((name, b"", Secret.CREDENTIALS) for name in OTHER_CASES),
        *((name, content, Secret.CREDENTIALS) for name, content in TABLES),
        ("app.db", database("zebra"), Secret.CREDENTIALS),
        ("copy.zip", zipped("conf/app.db", database("zebra")), Secret.CREDENTIALS),
        ("old.zip", zipped("project/.git/config", b"[core]"), Secret.VERSION_CONTROL),
        ("old.tar.gz", tarred("project/.SVN/entries", b"12"), Secret.VERSION_CONTROL),
        ("project.bundle", b"# v2 git bundle\n0123 refs/heads/main\n", Secret.VERSION_CONTROL),
        ("all.zip", zipped("inner.zip", zipped("app/.env", b"X=1")), Secret.CREDENTIALS),
        *((f"notes{number}.txt", b"see: " + token, Secret.TOKEN) for number, token in enumerate(TOKENS)),
        *((f"conf{number}.txt", text, Secret.CREDENTIALS) for number, text in enumerate(SETTINGS)),
        *((f"k{number}", text, Secret.PRIVATE_KEY) for number, text in enumerate(KEYS)),
        ("shadow.txt", b"root:$6$rounds=656000$abc$def:1:2:3", Secret.PASSWORD_HASH),
        ("ldap.ldif", b"userPassword: {SSHA}0123456789abcdef0123456789", Secret.PASSWORD_HASH),
        ("utf16.txt", "\ufeffDB_PASSWORD=hunter2hunter2\r\n".encode("utf-16-le"), Secret.CREDENTIALS),
        ("backup.zip", zipped("app/.env", b"X=1"), Secret.CREDENTIALS),
        ("backup.zip", zipped("key.txt", b"-----BEGIN RSA PRIVATE KEY-----"), Secret.PRIVATE_KEY),
        ("backup.tar.gz", tarred("home/.ssh/id_ed25519", b"x"), Secret.CREDENTIALS),
        ("dump.sql.gz", gzip.compress(b"('joe','" + HASH + b"')", mtime=0), Secret.PASSWORD_HASH),
        ("dump.sql.xz", lzma.compress(b"AKIAIOSFODNN7EXAMPLE"), Secret.TOKEN),
        ("dump.sql", b"\n".join(b"('user%d@mail.example.org')" % n for n in range(9)), Secret.PERSONAL),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_secrets_are_found(name: str, content: bytes, kind: Secret) -> None:
    assert kind in {found.kind for found in scan([(name, content)])}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("main.py", b"password = input('Password: ')\nsecret = os.environ['SECRET']"),
        ("page.html", b"<a href='mailto:joe@example.org'>mail</a>"),
        (".env.example", b"DB_PASSWORD="),
        ("style.css", b"a { color: #fff }"),
        ("deploy.md", b"Set DB_PASSWORD= in your environment; the secret: see the wiki."),
        ("form.html", b'<input type="password" name="password" placeholder="your password">'),
        ("README.md", b"password: (ask Ann)\nToken: <your token>\nsecret: ${SECRET}"),
        ("id_rsa.pub", b"ssh-rsa AAAA joe@host"),
        ("cert.crt", b"-----BEGIN CERTIFICATE-----"),
        (
            "widgets.py",
            b'__all__ = ("PasswordInput",\n    "TextInput")\nfields = ("restriction", "password", "groups")',
        ),
        ("auth.py", b"        self._password = raw_password\n        user.password = form.new_password.data"),
        ("tokens.py", b"RESET_PASSWORD = 'reset_password'\nsecret = settings.SECRET_KEY"),
        ("test_login.py", b'create_user("ann", password="password", email="a@b.example")'),
        ("mask.py", b'url = self.replace(password="********")'),
        ("hashers.py", b"the default is ``pbkdf2:sha256:600000``; if h.startswith(('$apr1$', '{SHA}'))"),
        ("forms.py", b"{'password_mismatch': 'The two password fields didn\\'t match.', 'secret': 'Change Password'}"),
        ("dropdown.js", b"const DATA_API_KEY = '.data-api'; var s = 'SECRET_DO_NOT_PASS_THIS';"),
        ("embed.min.js", b'e.src+="#?secret="+t.substr(2),a.setAttribute("data-secret",t)'),
        ("de.po", b'msgid "Password"\nmsgstr "Passwort"\n'),
        ("router.py", b'pass_parameter="pagination_info"'),
        ("fullchain.pem", b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"),
        (".npmrc", b"save-exact=true\nengine-strict=true\n"),
        ("credentials.py", b"class Credentials:\n    pass\n"),
        ("secrets.py", b"import secrets\nsecret = secrets.token_hex()\n"),
        ("wp-config-sample.php", b"define( 'AUTH_KEY', 'put your unique phrase here' );"),
        ("config.toml", b"password = 'your-password-here'\napi_key = 'YOUR_API_KEY'\n"),
        ("templates/email/reset_password.txt", b"Hello, choose a new password."),
        ("talk.key", b"PK\x03\x04"),
        ("schema.sql", b"CREATE TABLE users (id int, password varchar(60));\nCREATE TABLE posts (id int);"),
        ("empty.db", database("")),
        ("form.csv", b"field,password\nlabel,\n"),
        ("resets.sql", b"INSERT INTO users (id, password_reset_at) VALUES (1, '2026-01-01');"),
        ("jwks.json", b'{"keys":[{"kty":"EC","crv":"P-256","x":"abc","y":"def"}]}'),
        ("docker.json", b'{"auths":{"https://docker.example/":{}},"credsStore":"desktop"}'),
        ("login.php", b"if (password_verify($password, $hash)) { $password = $_POST['password']; }"),
    ],
)
def test_ordinary_files_are_not(name: str, content: bytes) -> None:
    assert list(scan([(name, content)])) == []


def test_the_first_line_is_named() -> None:
    (found,) = scan([("notes.txt", b"a\nb\nAKIAIOSFODNN7EXAMPLE AKIAIOSFODNN7EXAMPLE\n")])
    assert str(found) == "notes.txt:3: access token (2 times)"


@pytest.mark.parametrize(
    "start", [b"PK\x03\x04", b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"\0" * 257 + b"ustar"]
)
def test_damaged_packages_do_no_harm(start: bytes) -> None:
    chance = Random(1)
    for size in (0, 10, 600, 5000):
        list(scan([("x.bin", start + chance.randbytes(size))]))
    for whole in (zipped("a", b"x" * 99), tarred("a", b"x" * 99)):
        for _ in range(200):
            data = bytearray(whole)
            data[chance.randrange(len(data))] = chance.randrange(256)
            list(scan([("x.bin", bytes(data))]))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_what_cannot_be_read_of_a_package_is_reported(pack: Callable[[bytes], bytes]) -> None:
    whole = pack(Random(3).randbytes(4000))
    assert list(scan([("dump.bin", whole)])) == []
    for cut in (30, len(whole) // 2, len(whole) - 9):
        assert [found.kind for found in scan([("dump.bin", whole[:cut])])] == [Secret.UNSEARCHED], cut


def test_what_cannot_be_read_of_zstd_is_reported() -> None:
    whole = zstandard.compress(b"nothing of worth " * 5000)
    assert list(scan([("dump.zst", whole)])) == []
    damaged = whole[:12] + b"\xff" * (len(whole) - 12)
    assert Secret.UNSEARCHED in [found.kind for found in scan([("dump.zst", damaged)])]


def test_what_cannot_be_read_of_a_zip_is_reported() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("notes.txt", b"nothing of worth " * 50)
    whole = out.getvalue()
    assert [found.kind for found in scan([("a.zip", whole[: len(whole) - 30])])] == [Secret.UNSEARCHED]
    method = whole.replace(b"\x08\x00", b"\x63\x00")  # a compression that is not known
    assert [found.kind for found in scan([("a.zip", method)])] == [Secret.UNSEARCHED]


def test_a_bomb_is_read_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "_MOST_BYTES", 10 << 20)
    bomb = gzip.compress(bytes(20 << 20), 1, mtime=0)
    assert [found.kind for found in scan([("bomb.gz", bomb)])] == [Secret.UNSEARCHED], "not searched is not nothing"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("bomb", bytes(20 << 20))
        package.writestr("behind", b"x")
    assert Secret.UNSEARCHED in {found.kind for found in scan([("bomb.zip", out.getvalue())])}


def test_text_behind_the_first_megabytes_of_a_package_is_searched() -> None:
    text = b"-- a line of a dump\n" * 600_000 + b"-----BEGIN EC PRIVATE KEY-----\n"
    (found,) = scan([("dump.txt.gz", gzip.compress(text, 1, mtime=0))])
    assert str(found) == "dump.txt.gz!dump.txt:600001: private key"


def test_the_standard_library_raises_hardly_an_alarm() -> None:
    """600 files of programs that are full of words about passwords: an example of urllib has one."""
    folder = Path(os.__file__).parent
    files = [path for pattern in ("*.py", "[a-z]*/*.py") for path in folder.glob(pattern)]
    files = [path for path in files if path.parent.name not in ("test", "tests", "site-packages", "__pycache__")]
    found = [one for one in scan((path.name, path.read_bytes()) for path in files) if one.kind in REFUSED]
    assert len(files) > 400 and len({one.file for one in found}) <= 2, found


WORDS = st.sampled_from(
    [
        b"DB_PASSWORD=zebra99x\n",
        b"x" * 50,
        b"\n",
        b"ghp_" + b"a1B2" * 9,
        b" pass word ",
        b"postgres://a:zebra9@db/",
        HASH,
    ]
)


@given(st.lists(WORDS, max_size=30), st.lists(st.integers(1, 200), min_size=1, max_size=20))
def test_pieces_of_a_text_give_what_the_whole_gives(words: list[bytes], sizes: list[int]) -> None:
    text, pieces, at = b"".join(words), [], 0
    for size in itertools.cycle(sizes):
        if at >= len(text):
            break
        pieces.append(text[at : at + size])
        at += size
    whole = _IN_OTHERS.find([text])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(search, "AHEAD", 600)  # so that a short text has several windows
        patched.setattr(search, "BACK", 300)
        assert _IN_OTHERS.find(pieces) == whole

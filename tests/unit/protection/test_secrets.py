"""Secrets that would be published are found, and ordinary files are not."""

from __future__ import annotations

import pytest

from recollect.protection.secrets import Secret, scan

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
        ("dump.sql", b"\n".join(b"('user%d@mail.example.org')" % n for n in range(9)), Secret.PERSONAL),
    ],
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
        ("login.php", b"if (password_verify($password, $hash)) { $password = $_POST['password']; }"),
    ],
)
def test_ordinary_files_are_not(name: str, content: bytes) -> None:
    assert list(scan([(name, content)])) == []


def test_the_first_line_is_named() -> None:
    (found,) = scan([("notes.txt", b"a\nb\nAKIAIOSFODNN7EXAMPLE AKIAIOSFODNN7EXAMPLE\n")])
    assert str(found) == "notes.txt:3: access token (2 times)"

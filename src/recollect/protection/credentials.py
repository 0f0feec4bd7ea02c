"""Names and passwords in text: settings, connection strings, addresses, headers, commands.

Hides: what separates a password from a word about passwords. Programs, forms and translations are full of lines such as
`password = form.password` or `"password": "Password"`; refusing those teaches people to switch the check off. So
`NAME = value` counts only where the value can be one: in quotes in programs, with or without quotes in settings, and no
placeholder, message or other name. Pure.
"""

from __future__ import annotations

import base64
import re
from pathlib import PurePosixPath

# Files in which a value without quotes is an expression, not a text.
_PROGRAMS = frozenset(
    [
        ".py",
        ".pyi",
        ".js",
        ".mjs",
        ".cjs",
        ".jsx",
        ".ts",
        ".tsx",
        ".vue",
        ".svelte",
        ".php",
        ".phtml",
        ".inc",
        ".rb",
        ".erb",
        ".pl",
        ".pm",
        ".go",
        ".rs",
        ".java",
        ".kt",
        ".scala",
        ".cs",
        ".vb",
        ".c",
        ".h",
        ".cc",
        ".cpp",
        ".hpp",
        ".m",
        ".swift",
        ".lua",
        ".r",
        ".ex",
        ".exs",
        ".clj",
        ".hs",
        ".dart",
        ".sql",
        ".html",
        ".htm",
        ".xhtml",
        ".xml",
        ".xsl",
        ".svg",
        ".css",
        ".scss",
        ".less",
        ".map",
        ".po",
        ".pot",
        ".mo",
        ".j2",
        ".jinja",
        ".jinja2",
        ".tmpl",
        ".tpl",
        ".twig",
        ".liquid",
        ".hbs",
        ".ejs",
        ".haml",
        ".pug",
        ".mako",
    ]
)
# Each begins where its stem is; what has to stand before it is looked for behind that place.
_BEFORE_TOKEN = b"|".join(
    rb"(?<=%s%s)" % (word, mark)
    for word in (b"auth", b"access", b"refresh", b"bearer", b"api", b"bot", b"session")
    for mark in (b"", b"_", b"-")
)
_WORD = (
    rb"(?i:pass(?:word|wd|phrase|wort)|(?<![a-z0-9])pass(?![a-z_.-])|kennwort|mot_?de_?passe"
    rb"|contrase(?:n|\xc3\xb1|\xf1)a|\bsenha|wachtwoord|\bpwd|(?<![a-z0-9])psk(?![a-z])|secret|api_?-?key"
    rb"|access_?-?key|private_?-?key|(?:" + _BEFORE_TOKEN + rb")token"
    rb"|(?:(?<=auth)|(?<=logged_in)|(?<=nonce))_(?:key|salt))"
)
WORD_STEMS = tuple(
    b"pass kennwort mot_d motd contrase senha wachtwoord pwd psk secret api_key apikey api-key api_-key access_key "
    b"accesskey access-key private_key privatekey private-key token _key _salt".split()
)
# a value in quotes behind a name, as in code and JSON
_QUOTED = re.compile(_WORD + rb"[\w-]{0,30}[\"']?\]?[ \t]{0,20}(?:=>?|:)\s{0,20}[\"'](?P<value>[^\"'\n]{6,200})[\"']")
# define('NAME', 'value'), and calls like it; the stem is the name of the function
_CALL = re.compile(
    rb"(?i:(?:define|putenv|setenv|set_?config|environ\.get|getenv)\s?\(\s{0,9}[\"'])(?P<name>\w{1,80})[\"']\s{0,9},\s{0,20}"
    rb"(?:default\s?=\s?)?[\"'](?P<value>[^\"'\n]{6,200})[\"']"
)
CALL_STEMS = (b"define", b"putenv", b"setenv", b"setconfig", b"set_config", b"environ.get", b"getenv")
# a connection to a database: where, who, password
_CONNECT = re.compile(
    rb"(?i:mysqli?_p?connect|new\s{1,3}(?:mysqli|pdo)|pg_connect|oci_connect)\s?\(\s{0,9}(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|\$?\w{1,60})"
    rb"\s{0,9},\s{0,9}(?:\"[^\"\n]{0,80}\"|'[^'\n]{0,80}'|\$?\w{1,60})\s{0,9},\s{0,9}[\"'](?P<value>[^\"'\n]{4,200})[\"']"
)
CONNECT_STEMS = (b"mysql_", b"mysqli_", b"new mysqli", b"new pdo", b"oci_connect")
# of Docker
_AUTH = re.compile(rb"\"auth\"\s{0,9}:\s{0,9}\"(?P<value>[A-Za-z0-9+/]{8,400}={0,2})\"")
AUTH_STEMS = (b'"auth"',)
_ANY_WORD = re.compile(_WORD)
# an element of XML; the word may have others before it
_ELEMENT = re.compile(rb"<[\w.:-]{0,80}(?:\s[^<>]{0,200})?>\s{0,9}(?:<!\[CDATA\[)?(?P<value>[^<>\s\]]{6,200})")
_NAME_PART = re.compile(rb"[\w.:-]{0,40}")
# a connection string
_CONNECTION = re.compile(rb"(?i:[;\"'](?:password|pwd)\s?=\s?(?P<value>[^;\"'\s{}$%<>&|)(]{4,200})[;\"'])")
# a value without quotes in a line of its own, as in .env, INI, YAML and properties
_SETTING = re.compile(
    rb"[ \t]{0,40}(?i:export[ \t]{1,9})?(?://[^\s=]{1,100}:)?[\w.-]{0,60}?"
    + _WORD
    + rb"[\w.-]{0,30}[ \t]{0,10}[=:][ \t]{0,10}"
    rb"(?P<value>[^\s\"'$<{%(\[*][^\s(){}<>\[\]*,;]{5,200})[ \t]{0,40}\r?(?:\n|\Z)"
)
# a user name and a password in an address
_ADDRESS = re.compile(rb"(?<=[a-zA-Z0-9+])://[^\s:/@'\"<>]{1,200}:(?P<value>[^\s:/@'\"<>${]{3,200})@[\w.-]")
# a header, .netrc, commands, a secret of Kubernetes
_ALWAYS = re.compile(
    rb"(?i:\bauthorization[\"']?\s{0,5}[:=,]\s{0,5}[\"']?(?:basic|bearer)\s{1,5}(?=[\w+/=.-]{0,400}\d)[\w+/=.-]{8}"
    rb"|\bauthorization:\s{1,5}(?:basic|bearer)\s{1,5}[\w+/=.-]{12})"
    rb"|\bmachine\s{1,9}\S{1,80}\s{1,9}login\s{1,9}\S{1,80}\s{1,9}password\s{1,9}\S{4}"
    rb"|\bsshpass\s{1,5}-p\s{0,3}[^\s$]{4}"
    rb"|\bcurl\b[^\n]{0,200}\s(?:-u|--user)[ =][\"']?[^\s:$\"'<]{1,80}:[^\s$\"'<]{4}"
    rb"|\bmysql(?:dump|admin)?\b[^\n]{0,120}\s(?:-p[^\s$\"'<]{4}|--password=[^\s$\"'<]{4})"
    rb"|(?m:^kind:[ \t]{0,9}Secret[ \t]{0,9}\r?$)"
)
ALWAYS_STEMS = (b"authorization", b"machine", b"sshpass", b"curl", b"mysql", b"kind:")
# Columns of passwords in dumps: of tables with rows.
_COLUMN = (
    rb"(?i:[\w.]{0,30}?(?:password|passwd|passphrase|passwort|kennwort|contrasena|senha|wachtwoord|secret|api_?key|user_pass"
    rb"|(?:access|auth|refresh|api)_?token|(?<![a-z0-9_])pass(?![a-z])|(?<![a-z0-9])pwd)"
    rb"(?!_?(?:reset|expir|change|update|hint|attempt|require|is_|at\b|date|length|policy))\w{0,15})"
)
COLUMN_NAME = re.compile(_COLUMN)
_INSERT = re.compile(
    rb"(?i:insert\s{1,5}into|replace\s{1,5}into|copy)\s{1,5}[\w.\"`\[\]]{1,140}\s{0,5}\((?P<columns>[^()]{1,4000})\)\s{0,5}"
    rb"(?i:values\s{0,9}\(|from\s{1,5}stdin[^\n]{0,80}\n(?!\\\.))"
)
_TABLE = re.compile(
    rb"(?i:create\s{1,5}table\s{1,5}(?:if\s{1,5}not\s{1,5}exists\s{1,5})?)[\"`\[]?(?P<table>[\w.]{1,64})[\"`\]]?\s{0,5}\("
)
_DEFINED = re.compile(
    rb"[\s,(][\"`\[]?"
    + _COLUMN
    + rb"[\"`\]]?\s{1,9}(?i:(?:var)?char|text|n(?:var)?char|blob|bytea|string|(?:var)?binary)"
)
_QUOTES = b" \t\r\n\"'`[]"
SQL_STEMS = (b"insert", b"replace", b"copy ", b"create")
# Words of placeholders and of names; a value that has no others is not a password.
_COMMON = frozenset(
    b"password passwords passwd passphrase pass pwd secret secrets "
    b"key keys token tokens api access auth private user users "
    b"username name your my the a an this that new old current confirm "
    b"confirmation repeat reset change changed changeme change_me "
    b"forgot lost example sample test testing dummy placeholder none "
    b"null true false undefined default foo bar baz foobar "
    b"here enter insert replace put fill me in it is of for to with "
    b"required field fields input form hash hashed hasher salt "
    b"header cookie session csrf xsrf x id url uri path file text string str type value label hint min max length "
    b"data development dev local localhost long random phrase unique and or not no client service public protected "
    b"login signin email mail admin django insecure xxx xxxx xxxxx xxxxxx todo".split()
)
_WORDS = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^\x00-\x7f]+")
_TEMPLATE = re.compile(rb"\{\{|\$\{|%[(s{]|<[\w /]|\$\(|#\{|\{\w*\}|\bvar\(|^\$\w|^\\")
_CODE = re.compile(rb"[+,;:?&|)][^\n]*[(),.]")  # between two texts of a program that lost its line breaks
_CONSTANT = re.compile(rb"[A-Z]+(?:_[A-Z]+)+|[.#][a-z]+(?:-[a-z]+)*")  # FTP_PASSWORD, .data-api
_NAME = re.compile(rb"[A-Za-z_.\\:-]+")  # user.change_password
_MESSAGE = re.compile(rb"[^\d_=/+]*[ \xa0][^\d_=/+]*")


def is_program(name: str) -> bool:
    """Whether a value without quotes in a file with this name is an expression."""
    return PurePosixPath(name).suffix.lower() in _PROGRAMS


def is_named_value(text: bytes, at: int) -> bool:
    """Whether a word for a password at this place has a value: in quotes, in an element, in a connection string."""
    match = _QUOTED.match(text, at)
    if match is not None and is_password(match["value"]):
        return True
    match = _CONNECTION.match(text, at - 1) if at else None
    if match is not None and is_password(match["value"]):
        return True
    opening = text.rfind(b"<", max(0, at - 42), at)
    is_name = opening >= 0 and _NAME_PART.fullmatch(text, opening + 1, at) and _ANY_WORD.match(text, at)
    match = _ELEMENT.match(text, opening) if is_name else None
    return match is not None and is_password(match["value"])


def is_setting(text: bytes, at: int) -> bool:
    """Whether a word for a password at this place is set in a line of its own, without quotes."""
    if not _ANY_WORD.match(text, at):
        return False
    line = text.rfind(b"\n", max(0, at - 120), at) + 1
    if not line and at > 120:
        return False
    match = _SETTING.match(text, line)
    return match is not None and is_password(match["value"])


def is_call(text: bytes, at: int) -> bool:
    """Whether a function at this place sets the value of a name for a password."""
    match = _CALL.match(text, at)
    return match is not None and _ANY_WORD.search(match["name"]) is not None and is_password(match["value"])


def is_connection(text: bytes, at: int) -> bool:
    match = _CONNECT.match(text, at)
    return match is not None and is_password(match["value"])


def is_basic_auth(text: bytes, at: int) -> bool:
    """Whether a name and a password in base64 are here, as in the settings of Docker."""
    match = _AUTH.match(text, at)
    try:
        return match is not None and b":" in base64.b64decode(match["value"], validate=True)
    except ValueError:
        return False


def is_address(text: bytes, at: int) -> bool:
    match = _ADDRESS.match(text, at)
    return match is not None and is_password(match["value"])


def is_command(text: bytes, at: int) -> bool:
    return _ALWAYS.match(text, at) is not None


def is_password_row(text: bytes, at: int) -> bool:
    """Whether a statement of SQL at this place begins rows of a table with a column of passwords."""
    rows = _INSERT.match(text, at)
    if rows is not None:
        return any(COLUMN_NAME.fullmatch(name.strip(_QUOTES)) for name in rows["columns"].split(b","))
    table = _TABLE.match(text, at)
    if table is None:
        return False
    end = text.find(b";", table.end(), table.end() + 6000)
    if end < 0 or not _DEFINED.search(text, table.end() - 1, end):
        return False
    inserted = re.compile(rb"(?i:insert\s{1,5}into\s{1,5})[\"`\[]?" + re.escape(table["table"]) + rb"[\"`\]]?[\s(]")
    return inserted.search(text, end, end + 2000) is not None


def has_password_column(head: bytes) -> bool:
    """Whether the first lines of a file are those of a table (CSV, TSV) with a column of passwords that has values."""
    lines = head.split(b"\n")[:-1][:50]
    for mark in (b",", b";", b"\t"):
        names = [name.strip(_QUOTES) for name in lines[0].split(mark)] if lines else []
        columns = [n for n, name in enumerate(names) if COLUMN_NAME.fullmatch(name)]
        if len(names) < 2 or not columns or not all(len(name) < 60 for name in names):
            continue
        rows = [line.split(mark) for line in lines[1:]]
        if any(len(row) == len(names) and row[n].strip(_QUOTES) for row in rows for n in columns):
            return True
    return False


def is_password(value: bytes) -> bool:
    """Whether a value may be a password: no placeholder, no message to a person, no name of a setting."""
    if len(set(value)) < 3 or _TEMPLATE.search(value) or _CODE.match(value):
        return False
    words = _WORDS.findall(value)
    if all(word.lower() in _COMMON or (word.isdigit() and len(word) < 4) for word in words):
        return False
    if value[:1].isupper() and _MESSAGE.fullmatch(value):  # "Please choose a password"
        return False
    if b" " in value and value.rstrip()[-1:] in b".?!:":
        return False
    if _CONSTANT.fullmatch(value):
        return False
    return not (_NAME.fullmatch(value) and len(words) > 1 and words[-1].lower() in _COMMON)

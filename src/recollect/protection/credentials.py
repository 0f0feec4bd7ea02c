"""Names and passwords in text: settings, connection strings, addresses, headers, commands.

Hides: what separates a password from a word about passwords. Programs, forms and translations are full of lines such as
`password = form.password` or `"password": "Password"`; refusing those teaches people to switch the check off. So
`NAME = value` counts only where the value can be one: in quotes in programs, with or without quotes in settings, and no
placeholder, message or other name. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
_LONG = rb"(?:(?:auth|access|refresh|bearer|api|bot|session)_?-?token|(?:auth|logged_in|nonce)_(?:key|salt))"
_WORD = (
    rb"(?:password|passwd|passphrase|passwort|kennwort|mot_?de_?passe"
    rb"|contrase(?:n|\xc3\xb1|\xf1)a|\bsenha|wachtwoord|\bpwd"
    rb"|(?<![a-z0-9])pass(?![a-z_.-])|(?<![a-z0-9])psk(?![a-z])|secret|api_?-?key|access_?key|private_?key|"
    + _LONG
    + rb")"
)
_STEMS = tuple(
    b"pass kennwort contrase senha wachtwoord pwd psk secret api_key "
    b"api-key apikey access_key access-key accesskey private_key "
    b"private-key privatekey token auth_key auth_salt logged_in_ nonce_".split()
)
_SHAPES: tuple[re.Pattern[bytes], ...] = (
    # a value in quotes behind a name, as in code and JSON
    re.compile(
        rb"(?i:" + _WORD + rb"[\w-]{0,30}[\"']?\]?[ \t]{0,20}(?:=>?|:)\s{0,20}[\"'](?P<value>[^\"'\n]{6,200})[\"'])"
    ),
    # define('NAME', 'value'), and calls like it
    re.compile(
        rb"(?i:\b(?:define|putenv|setenv|set_?config)\s?\(\s{0,9}[\"']\w{0,40}"
        + _WORD
        + rb"\w{0,30}[\"']\s{0,9},\s{0,20}"
        rb"[\"'](?P<value>[^\"'\n]{6,200})[\"'])"
    ),
    # an element of XML
    re.compile(
        rb"(?i:<(?:[\w.:-]{0,40}" + _WORD + rb")(?:\s[^<>]{0,200})?>\s{0,9}(?:<!\[CDATA\[)?(?P<value>[^<>\s\]]{6,200}))"
    ),
    # a connection string
    re.compile(rb"(?i:[;\"'](?:password|pwd)\s?=\s?(?P<value>[^;\"'\s{}$%<>&|)(]{4,200})[;\"'])"),
)
_SETTING = re.compile(
    # a value without quotes in a line of its own, as in .env, INI, YAML and properties
    rb"(?im:^[ \t]{0,40}(?:export[ \t]{1,9})?[\w.-]{0,60}?" + _WORD + rb"[\w.-]{0,30}[ \t]{0,10}[=:][ \t]{0,10}"
    rb"(?P<value>[^\s\"'$<{%(\[*][^\s(){}<>\[\]*,;]{5,200})[ \t]{0,40}\r?$)"
)
_ALWAYS = re.compile(
    # a user name and a password in an address
    rb"\b[a-zA-Z][a-zA-Z0-9+]{0,20}://[^\s:/@'\"<>]{1,200}:(?P<value>[^\s:/@'\"<>${]{3,200})@[\w.-]"
    # a header
    rb"|(?i:\bauthorization[\"']?\s{0,5}[:=,]\s{0,5}[\"']?(?:basic|bearer)\s{1,5}(?=[\w+/=.-]{0,400}\d)[\w+/=.-]{8}"
    rb"|\bauthorization:\s{1,5}(?:basic|bearer)\s{1,5}[\w+/=.-]{12})"
    # .netrc, commands, a secret of Kubernetes
    rb"|\bmachine\s{1,9}\S{1,80}\s{1,9}login\s{1,9}\S{1,80}\s{1,9}password\s{1,9}\S{4}"
    rb"|\bsshpass\s{1,5}-p\s{0,3}[^\s$]{4}"
    rb"|\bcurl\b[^\n]{0,200}\s(?:-u|--user)[ =][\"']?[^\s:$\"'<]{1,80}:[^\s$\"'<]{4}"
    rb"|\bmysql(?:dump|admin)?\b[^\n]{0,120}\s(?:-p[^\s$\"'<]{4}|--password=[^\s$\"'<]{4})"
    rb"|(?m:^kind:[ \t]{0,9}Secret[ \t]{0,9}$)"
)
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


def credentials(name: str, text: bytes) -> Iterator[int]:
    """Offsets of what looks like a name with its password, in the order of shapes."""
    lower = text.lower()
    if any(stem in lower for stem in _STEMS):
        yield from _settings(name, text)
    for match in _ALWAYS.finditer(text):
        if match["value"] is None or is_password(match["value"]):
            yield match.start()


def _settings(name: str, text: bytes) -> Iterator[int]:
    shapes = _SHAPES if PurePosixPath(name).suffix.lower() in _PROGRAMS else (*_SHAPES, _SETTING)
    for shape in shapes:
        for match in shape.finditer(text):
            if is_password(match["value"]):
                yield match.start()


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

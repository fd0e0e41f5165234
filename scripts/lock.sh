#!/bin/sh
# Writes the two lock files anew: `./bootstrap.sh` installs the first, `./bootstrap.sh test` the second.
# Both hold for every Python from 3.11 on and every architecture, and name no index. What is locked stays as
# it is unless pyproject.toml forbids it; `scripts/lock.sh --upgrade` takes the newest of everything.
set -eu
cd -- "$(dirname -- "$0")/.."

compile() {
    uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
        --no-emit-index-url --no-emit-find-links --no-annotate --custom-compile-command scripts/lock.sh "$@"
}

compile pyproject.toml --output-file requirements.lock "$@"
compile pyproject.toml --group dev --constraint requirements.lock --output-file requirements-dev.lock "$@"

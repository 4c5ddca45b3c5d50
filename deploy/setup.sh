#!/bin/sh
# Makes .venv with exactly the packages of requirements.lock, and Perdure itself in editable form.
# Usage: deploy/setup.sh PYTHON   (run from the repository's root; safe to repeat)
set -eu
python=${1:-python3}
for candidate in "$python" python3.13 python3.12 python3.11; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        found=$candidate
        break
    fi
done
if [ -z "${found:-}" ]; then
    echo "perdure: needs Python 3.11 or newer; install it (Debian: apt-get install python3 python3-venv) or name one: make PYTHON=/path/to/python" >&2
    exit 1
fi
if ! [ -x .venv/bin/python ] || ! .venv/bin/python -c '' 2>/dev/null; then
    rm -rf .venv
    if ! "$found" -m venv .venv; then
        rm -rf .venv
        echo "perdure: could not make .venv; on Debian run: apt-get install python3-venv" >&2
        exit 1
    fi
fi
echo "perdure: installing into .venv ..."
.venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
.venv/bin/python -m pip install -q --disable-pip-version-check --no-deps -e .
touch .venv/.installed

#!/usr/bin/env bash
# The built wheel, in an environment of its own, from another directory. What it needs comes from
# .venv: tests/deploy/test_lock.py compares that with deploy/requirements.lock.
set -euo pipefail
cd "$(dirname "$0")/.."
environment=$PWD/build/wheel-env
wheel=$(echo "$PWD"/dist/trimtab-*.whl)
folder='import sysconfig; print(sysconfig.get_path("purelib"))'
.venv/bin/python -m venv --clear --without-pip "$environment"
.venv/bin/python -m pip --python "$environment/bin/python" --quiet --disable-pip-version-check \
    install --no-deps --no-compile "$wheel"
# A path alone: the editable installation in .venv, whose .pth is not read so, stays out.
.venv/bin/python -c "$folder" > "$("$environment/bin/python" -c "$folder")/needed.pth"
cd /
"$environment/bin/python" -c 'import admin.cli; print(admin.cli.__file__)' | grep -q "^$environment/"
"$environment/bin/trimtab" --help
"$environment/bin/trimtab" doctor

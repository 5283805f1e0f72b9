#!/usr/bin/env bash
# The built wheel, in an environment of its own, from another directory.
set -euo pipefail
cd "$(dirname "$0")/.."
environment=$PWD/build/wheel-env
wheel=$(echo "$PWD"/dist/trimtab-*.whl)
.venv/bin/python -m venv --clear "$environment"
pip="$environment/bin/python -m pip --quiet --disable-pip-version-check install"
$pip --require-hashes -r deploy/requirements.lock
$pip --no-deps "$wheel"
cd /
"$environment/bin/trimtab" --help
"$environment/bin/trimtab" doctor

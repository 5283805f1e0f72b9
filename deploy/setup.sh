#!/usr/bin/env bash
# Steps too long for make: find or install a JDK, and build .venv from the lock.
#   deploy/setup.sh jdk     a full JDK >= 17, installed with apt-get if that is allowed
#   deploy/setup.sh venv    .venv with the locked packages and the project itself, editable
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'trimtab: %s\n' "$*" >&2; }

# Prints the prefix that lets apt-get run ("" for root), or fails.
root_prefix() {
    command -v apt-get >/dev/null || return 1
    if [ "$(id -u)" -eq 0 ]; then return 0; fi
    sudo -n true 2>/dev/null && printf 'sudo -n'
}

# apt_install NAME...: the first of the packages that this release has.
apt_install() {
    local prefix
    prefix=$(root_prefix) || return 1
    $prefix apt-get update -qq >/dev/null </dev/null || say "apt-get update failed; trying the lists at hand"
    local package
    for package in "$@"; do
        if apt-cache show "$package" >/dev/null 2>&1; then
            say "installing $package with apt-get"
            $prefix env DEBIAN_FRONTEND=noninteractive \
                apt-get install -y -qq --no-install-recommends "$package" >/dev/null </dev/null
            return
        fi
    done
    return 1
}

# Spark's vectorised reader needs jdk.incubator.vector, which trimmed runtimes lack.
java_is_good() {
    local java=${JAVA_HOME:+$JAVA_HOME/bin/}java modules major
    modules=$("$java" --list-modules 2>/dev/null) || return 1
    major=$(sed -n 's/^java\.base@\([0-9]*\).*/\1/p' <<<"$modules")
    [ "${major:-0}" -ge 17 ] && grep -q '^jdk\.incubator\.vector' <<<"$modules"
}

jdk() {
    if java_is_good; then return; fi
    if [ -n "${JAVA_HOME:-}" ]; then
        say "JAVA_HOME=$JAVA_HOME is not a full JDK >= 17. Type: unset JAVA_HOME"
        exit 1
    fi
    say "no full JDK >= 17 found (Spark and the embedded Kafka need one)"
    if apt_install openjdk-17-jdk-headless openjdk-21-jdk-headless default-jdk-headless \
        && java_is_good; then
        say "installed a JDK: $(java -version 2>&1 | head -n 1)"
        return
    fi
    case $(uname -s) in
        Darwin) say "Type: brew install openjdk@17 && export JAVA_HOME=\"\$(brew --prefix openjdk@17)\"" ;;
        *) say "Type: sudo apt-get install openjdk-17-jdk-headless    (or your system's JDK >= 17)" ;;
    esac
    exit 1
}

newest_python() {
    local candidate
    for candidate in ${PYTHON:-python3.14 python3.13 python3.12 python3.11 python3}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s' "$candidate"
            return
        fi
    done
    say "no Python >= 3.11 found${PYTHON:+ at $PYTHON}. Type: make PYTHON=/path/to/python3 .venv"
    return 1
}

venv() {
    local python version
    python=$(newest_python)
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    # Debian has ensurepip in a separate package.
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        apt_install "python$version-venv" python3-venv && "$python" -c 'import ensurepip' || {
            say "$python cannot make environments. Type: sudo apt-get install python$version-venv"
            exit 1
        }
    fi
    if ! .venv/bin/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        say "creating .venv with $python ($version)"
        "$python" -m venv --clear .venv
    fi
    say "installing the locked packages into .venv (PySpark alone is 450 MB; minutes the first time)"
    local quiet=--quiet
    if [ -t 1 ]; then quiet=; fi
    # Of what it would compile, most is never imported; Python compiles the rest when it is.
    .venv/bin/python -m pip install --disable-pip-version-check $quiet --no-compile \
        --require-hashes -r deploy/requirements-dev.lock
    .venv/bin/python -m pip install --disable-pip-version-check --quiet \
        --no-deps --no-build-isolation --editable .
    touch .venv/installed
    say ".venv is ready"
}

case ${1:-} in
    jdk | venv) "$1" ;;
    *) say "usage: deploy/setup.sh jdk | venv"; exit 2 ;;
esac

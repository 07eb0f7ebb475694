#!/bin/sh
# Build a Debian package in out/, for the Python of this Debian: deploy/debian/build.sh [PYTHON]
#
# All Python packages go inside, at the versions of requirements.txt, so that the package installs without a network.
# Building it needs one: pip fetches wheels. What `make setup` installs does the work.
set -eu
umask 022
cd "$(dirname "$0")/../.."

python=$(readlink -f "${1:-/usr/bin/python3}")
tools=.venv/bin
work=build/package
export ROOT="$work/root"
home="$ROOT/usr/lib/trainyard"

case "$python" in
/usr/bin/*) ;;
*)
    echo "$python: expected the Python of Debian, in /usr/bin" >&2
    exit 2
    ;;
esac
PYTHON_VERSION=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
PYTHON_AFTER=$("$python" -c 'import sys; print("%d.%d" % (sys.version_info[0], sys.version_info[1] + 1))')
ARCHITECTURE=$(dpkg --print-architecture)
export PYTHON_VERSION PYTHON_AFTER ARCHITECTURE

# setuptools would take what earlier builds have left.
rm -rf build hostlib/build
mkdir -p out "$work/wheels" "$home/bin"
pip="$tools/python -m pip --quiet --disable-pip-version-check"
$pip wheel --no-deps --no-build-isolation --wheel-dir "$work/wheels" ./hostlib .
VERSION=$(basename "$work"/wheels/trainyard-*.whl | cut -d- -f2)
export VERSION

# A virtual environment at the place where it will be, so that `python -m` works in processes that commands start.
packages="$home/lib/python$PYTHON_VERSION/site-packages"
printf 'home = /usr/bin\ninclude-system-site-packages = false\n' >"$home/pyvenv.cfg"
ln -s "$python" "$home/bin/python"
$pip --python "$python" install --target "$packages" --no-compile --only-binary :all: --constraint requirements.txt \
    --no-warn-script-location "$work"/wheels/trainyard_hostlib-*.whl "$work/wheels/trainyard-$VERSION-py3-none-any.whl[postgresql,report]"
rm -rf "$packages/bin"
printf '#!/usr/lib/trainyard/bin/python\nfrom trainyard.cli import main\n\nmain()\n' >"$home/bin/trainyard"
chmod 755 "$home/bin/trainyard"
"$python" -m compileall -q --invalidation-mode unchecked-hash -s "$ROOT" "$packages"

"$tools/nfpm" package --config deploy/debian/nfpm.yaml --packager deb --target out/

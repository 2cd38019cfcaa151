#!/usr/bin/env python3
"""Writes xterm.js as one classic script that defines window.Terminal: terminal_bundle.py LIB >xterm.js

LIB is the folder lib of Debian's node-xterm, whose CommonJS modules no browser reads. The file that libjs-xterm calls
xterm.js is only the last of these modules, without those it requires."""

import json
import os
import re
import sys

ENTRY = "public/Terminal.js"
REQUIRE = re.compile(r'require\("(\.[^"]+)"\)')
LOADER = """(function () {
var modules = {%s};
var loaded = {};
function load(name) {
    if (!loaded[name]) {
        var module = loaded[name] = {exports: {}};
        modules[name][0](function (path) { return load(modules[name][1][path]); }, module, module.exports);
    }
    return loaded[name].exports;
}
window.Terminal = load(%s).Terminal;
})();
"""


def main():
    lib, waiting, modules = sys.argv[1], [ENTRY], {}
    while waiting:
        name = waiting.pop()
        if name in modules:
            continue
        with open(os.path.join(lib, name), encoding="utf-8") as f:
            text = re.sub(r"//# sourceMappingURL=.*", "", f.read())
        paths = {path: os.path.normpath(os.path.join(os.path.dirname(name), path + ".js")) for path in REQUIRE.findall(text)}
        modules[name] = f"{json.dumps(name)}: [function (require, module, exports) {{{text}\n}}, {json.dumps(paths)}]"
        waiting += paths.values()
    print(LOADER % (",\n".join(modules[name] for name in sorted(modules)), json.dumps(ENTRY)), end="")


main()

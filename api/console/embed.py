#!/usr/bin/env python3
"""Writes the C++ file that holds the console: embed.py PAGE XTERM STYLE >ConsoleFiles.cpp

PAGE is the folder with the console's own files, XTERM the folder lib of Debian's node-xterm, STYLE the file xterm.css of
libjs-xterm."""

import hashlib
import os
import subprocess
import sys

TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".svg": "image/svg+xml"}
HEAD = """#include <algorithm>
#include <array>

#include "api/console/ConsoleFile.h"

namespace hearth::console {
namespace {

"""
TAIL = """
}  // namespace

const ConsoleFile* findConsoleFile(std::string_view name) {
    const auto* found = std::ranges::find(kFiles, name, &ConsoleFile::name);
    return found == kFiles.end() ? nullptr : found;
}

}  // namespace hearth::console
"""


def read(path):
    with open(path, "rb") as file:
        return file.read()


def literal(data):
    """Three octal digits for what is not plain: no digit after it can become a part."""
    plain = bytes(range(32, 127)).translate(None, b'\\"?')
    return "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in data)


def main():
    page, xterm, style = sys.argv[1:]
    files = {name: read(os.path.join(page, name)) for name in sorted(os.listdir(page))}
    bundle = os.path.join(os.path.dirname(os.path.abspath(__file__)), "terminal_bundle.py")
    files["xterm.js"] = subprocess.run([sys.executable, bundle, xterm], check=True, capture_output=True).stdout
    files["xterm.css"] = read(style)
    print(HEAD, end="")
    rows = []
    for number, (name, data) in enumerate(files.items()):
        print(f'constexpr char kFile{number}[] =')
        for at in range(0, len(data), 2000):
            print(f'    "{literal(data[at:at + 2000])}"')
        print("    ;" if data else '    "";')
        etag = hashlib.sha256(data).hexdigest()[:32]
        rows.append(f'    {{"{name}", "{TYPES[os.path.splitext(name)[1]]}", "\\"{etag}\\"", {{kFile{number}, sizeof(kFile{number}) - 1}}}},')
    print(f"\nconstexpr std::array<ConsoleFile, {len(rows)}> kFiles{{{{")
    print("\n".join(rows))
    print("}};")
    print(TAIL, end="")


main()

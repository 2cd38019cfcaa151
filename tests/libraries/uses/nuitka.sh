# Compiles a module's code into a program, with zig as the C compiler.
printf 'def f(n):\n    return sum(i * i for i in range(n))\n\nprint(f(1000))\n' >a.py
printf '#!/bin/sh\nexec python3 -m ziglang cc "$@"\n' >zigcc
chmod +x zigcc
CC=$PWD/zigcc python3 -m nuitka --quiet --jobs=2 --assume-yes-for-downloads a.py
./a.bin

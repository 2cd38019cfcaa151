# A program in C by meson and ninja, with zig as the compiler.
printf "project('trial', 'c')\ne = executable('trial', 'a.c')\ntest('runs', e)\n" >meson.build
printf 'int main(void) { return 0; }\n' >a.c
for each in cc ar; do printf '#!/bin/sh\nexec python3 -m ziglang %s "$@"\n' $each >$each; done
chmod +x cc ar
CC=$PWD/cc AR=$PWD/ar meson setup build >log
meson compile -C build >log
meson test -C build 2>&1 | grep -E '^(Ok|Fail):' | tr -s ' '

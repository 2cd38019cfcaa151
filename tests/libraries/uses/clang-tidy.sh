# Checks a file that needs no header.
printf 'int f(int a) { int *p = 0; if (a = 1) return *p; return 0; }\n' >a.c
clang-tidy --quiet --checks='-*,clang-analyzer-core.*,bugprone-assignment-in-if-condition' a.c -- 2>/dev/null | grep -oE '(warning|error): .*' | sort

# A compiler for C and Zig.
printf '#include <stdio.h>\nint main(void) { printf("%%d\\n", 6 * 7); return 3; }\n' >a.c
printf 'const std = @import("std");\ntest "sum" { try std.testing.expectEqual(@as(i32, 3), 1 + 2); }\n' >c.zig
python3 -m ziglang cc -O2 a.c -o a
./a || echo "status $?"
python3 -m ziglang test c.zig 2>&1 | tail -n 1

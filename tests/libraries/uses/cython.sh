# C from Python, compiled by zig, as the image has no compiler.
cat >fast.pyx <<'PYX'
def total(int n):
    cdef long s = 0
    cdef int i
    for i in range(n):
        s += i
    return s
PYX
cython -3 fast.pyx
include=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
if [[ -e $include/Python.h ]]; then
    python3 -m ziglang cc -shared -fPIC -O1 -I "$include" fast.c -o fast.so
    python3 -c 'import fast; print(fast.total(1000))'
else
    grep -c '__pyx_pw_4fast_1total' fast.c >/dev/null && echo "made C"
fi

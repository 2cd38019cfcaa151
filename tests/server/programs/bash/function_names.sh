# Functions that are named as builtins and programs.
# Also as a cell of a context.
cd() { builtin cd "$@" && echo "now in $PWD"; }
ls() { echo "my ls"; command ls "$@" | wc -l; }
cd /; ls -d /
test() { echo "my test $*"; return 1; }
test a || echo "it failed"
printf() { builtin printf 'p:%s\n' "$*"; }
printf x y
read() { echo "my read"; }
read line

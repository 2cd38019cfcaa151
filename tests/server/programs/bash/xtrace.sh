# set -x shows the commands with their expansions, and nothing else.
# Also as a cell of a context.
PS4='+ '
set -x
v="a b"
for i in 1 2; do
    [[ $v == a* && $i -gt 1 ]] && echo "$v $i"
done
f() { local y=$1; return 0; }
f "x y"
{ set +x; } 2>/dev/null
echo "quiet"

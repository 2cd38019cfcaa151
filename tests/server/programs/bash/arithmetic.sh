# Arithmetic: bases, operators, large numbers, let, a loop of C, an error.
# Also as a cell of a context.
echo $((2 ** 10)) $((7 / 2)) $((-7 % 3)) $((16#ff + 8#17 + 2#101)) $((1 << 62)) $((9223372036854775807 + 1))
x=5; ((x += 3, x *= 2)); echo $x $((x > 10 ? 1 : 0)) $((x++ + ++x)) $x
for ((i = 0, j = 10; i < j; i += 3, j -= 2)); do printf '%d/%d ' "$i" "$j"; done; echo
let 'y = 3 * 4' 'z = y - 12'; echo "$? $y $z"
((0)); echo $?
echo $((1 / 0))
echo "after the error $?"

# [ and [[: texts, numbers, patterns, regular expressions and their groups.
# Also as a cell of a context.
[[ abc < abd && 10 -gt 9 && ! -e none ]] && echo yes
[[ "2024-01-05" =~ ^([0-9]{4})-([0-9]+) ]] && echo "${BASH_REMATCH[@]}"
pattern='a*'; [[ abc == $pattern ]] && echo pattern; [[ abc == "$pattern" ]] || echo literal
[ 1 -eq 1 -a ! "" ] && echo old; [ -z "$unset" ] && echo empty
[ a -eq 1 ]; echo $?
[ = ] 2>/dev/null; echo $?
[[ -v HOME && -o braceexpand ]] && echo set

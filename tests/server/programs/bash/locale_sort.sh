# Sorting and characters in the locale, and in C.
printf '%s\n' b A a B ä _ 10 9 >words
sort words | tr '\n' ' '; LC_ALL=C sort words | tr '\n' ' '; sort -n words | tail -1
v=äöü; echo "${#v} ${v:1:1} $(echo -n "$v" | wc -c) $(echo -n "$v" | wc -m)"
[[ ä == [[:alpha:]] ]] && echo alpha
echo "$LANG ${LC_ALL-unset}"; locale charmap
LC_ALL=xx_XX.UTF-8 bash -c 'echo "x"'

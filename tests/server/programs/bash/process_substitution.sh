# Process substitution, both ways.
# Also as a cell of a context.
diff <(printf '%s\n' a b c) <(printf '%s\n' a x c)
echo "diff: $?"
tee >(tr a-z A-Z >upper) >/dev/null <<<'to both'
wait $!
cat upper
while read -r a b; do echo "$b $a"; done < <(printf '1 2\n3 4\n')

# find and xargs with odd names, in parallel, with actions.
# Also as a cell of a context.
mkdir -p t/{a,b}; touch "t/a/one two.txt" t/b/x.log $'t/b/new\nline.txt'; printf 12345 >t/b/big.txt
find t -type f -name '*.txt' -print0 | sort -z | xargs -0 -n1 basename | cat -v
find t -type f -size +3c -exec wc -c {} + ; find t -empty -type f -name '*.log' -delete
find t -name '*.log' | wc -l
seq 6 | xargs -P3 -n2 sh -c 'echo $(($1 + $2))' _ | sort -n | tr '\n' ' '
echo a b | xargs -I{} echo '<{}>'; seq 3 | xargs false; echo $?

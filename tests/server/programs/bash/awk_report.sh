# awk: fields, arrays, printf, BEGIN and END, its own functions.
# Also as a cell of a context.
printf '%s\n' 'ann 10 red' 'bob 25 blue' 'cid 7 red' 'dee 31 blue' >data
awk '{ sum[$3] += $2; n[$3]++ } END { for (k in sum) printf "%-5s %3d %.2f\n", k, sum[k], sum[k] / n[k] | "sort"; close("sort"); print NR, "rows" }' data
awk -F'[ ,]' -v limit=9 'function sq(x) { return x * x } $2 > limit && /b/ { print toupper($1), sq($2), length($0), substr($3, 2), NF } BEGIN { OFS = "|" }' data
awk 'BEGIN { while (("echo a; echo b" | getline line) > 0) print "got", line; exit 4 }'; echo $?

# sed: in place, groups, ranges, hold space, several commands.
# Also as a cell of a context.
printf '%s\n' 'key = old' '# comment' 'start' 'inner' 'stop' 'last' >conf
sed -i.bak -E 's/^(key) = .*/\1 = "new"/; /^#/d' conf
cat conf; cmp -s conf conf.bak || echo changed
sed -n '/start/,/stop/{s/n/N/2g;p}' conf
sed '1!G;h;$!d' conf | head -2
sed = conf | sed 'N;s/\n/\t/' | tail -1

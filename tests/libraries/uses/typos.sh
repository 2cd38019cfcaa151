printf 'Teh langauge\n' >a.txt
typos --format brief a.txt || echo "status $?"
typos --write-changes a.txt
cat a.txt

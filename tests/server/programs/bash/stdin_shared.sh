# Parent and children read one standard input in turn.
read -r first
echo "first: $first"
head -c 4
echo
cat

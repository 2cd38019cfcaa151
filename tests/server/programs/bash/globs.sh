# Globs: none matching, hidden files, globstar, brace expansion, special names.
# Also as a cell of a context.
mkdir -p d/e && touch d/a.txt d/b.txt d/.hidden d/e/c.txt "d/a b.txt"
cd d || exit
echo *.txt none*
shopt -s nullglob dotglob globstar
echo none* | wc -c
printf '%s\n' **/*.txt * | sort | tr '\n' ';'; echo
echo {a,b}{1..3} {05..1..2} {z..x}
set -f; echo *; set +f
rm -- *" "*

# set -e ends the script at the first failure, but not in conditions.
set -e
false || echo "in a list"
if grep -q x /dev/null; then echo no; fi
! true
x=$(false) || echo "in a substitution"
echo "before"
false
echo never

# Subshells keep their changes to themselves; groups do not.
# Also as a cell of a context.
x=1
(x=2; cd /; echo "inside $x $PWD")
echo "after $x"
{ x=3; }
echo "group $x $BASH_SUBSHELL $(echo $BASH_SUBSHELL)"

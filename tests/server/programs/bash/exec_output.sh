# exec sends all further output to a file, and back.
# Also as a cell of a context.
exec 3>&1 >log 2>&1
echo "into the log"
ls /none
exec >&3 3>&-
sed 's/^/log: /' log
exec 10>ten; echo "to ten" >&10; exec 10>&-
cat ten

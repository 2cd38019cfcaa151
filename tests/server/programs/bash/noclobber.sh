# set -C does not overwrite a file, but >| does.
# Also as a cell of a context.
echo one >f
set -C
echo two >f
echo "status $?"
echo three >|f
cat f

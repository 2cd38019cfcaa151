# set -v prints the lines as they are read.
set -v
echo "a b"  # with a comment
x=$(echo sub)
set +v
echo end

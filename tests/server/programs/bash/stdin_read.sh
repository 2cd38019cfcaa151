# A loop of read takes the lines of standard input, the last without a new line too.
while IFS= read -r line || [ -n "$line" ]; do
    echo "[$line]"
done

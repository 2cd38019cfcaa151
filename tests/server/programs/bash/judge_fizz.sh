# A judge's task in bash: read a count, then pairs.
read -r count
for ((i = 1; i <= count; i++)); do
    read -r a b
    while ((b)); do
        t=$((a % b)); a=$b; b=$t
    done
    echo "Case #$i: $a"
done

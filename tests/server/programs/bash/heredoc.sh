# Here documents: with and without substitution, indented, two at once, and a here string.
# Also as a cell of a context.
name=World
cat <<EOF
Hello $name, $((6 * 7)), $(echo sub), \$kept
EOF
cat <<'EOF'
$name stays `as it is`
EOF
	cat <<-EOF
	tab is gone
	EOF
paste -d, /dev/fd/3 - 3<<A <<B
1
A
2
B
tr a-z A-Z <<<"here string $name"

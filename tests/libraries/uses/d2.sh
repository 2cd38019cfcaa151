printf 'a -> b: calls\n' >a.d2
d2 --layout dagre a.d2 a.svg 2>/dev/null
grep -c '<svg' a.svg

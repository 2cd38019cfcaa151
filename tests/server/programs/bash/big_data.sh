# A hundred thousand numbers through a pipeline, and bytes that are no text.
seq 100000 | awk '{ s += $1 } END { print s }'
seq 1000 | shuf --random-source=<(yes) | sort -n | md5sum
head -c 300 /dev/zero | tr '\0' '\377' | od -An -tx1 | tail -1
printf 'a\0b' | wc -c; printf '\xff\xfe' | iconv -f utf-16 -t utf-8 2>&1 | wc -c
split -b 40 -d <(seq 30) part; ls part*; cat part* | wc -l; rm part*

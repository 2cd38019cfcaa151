# Standard input goes through a pipeline of sort, uniq, awk and sed.
sort | uniq -c | sort -k1,1nr -k2 | awk '{ printf "%s:%d\n", $2, $1 }' | sed -n '1,2p'

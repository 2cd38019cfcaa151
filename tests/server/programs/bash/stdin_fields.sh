# read splits into fields by IFS, and an array takes the rest.
IFS=: read -r user _ id rest
echo "$user $id $rest"
read -ra words
echo "${#words[@]} ${words[-1]}"
mapfile -t lines
printf '<%s>' "${lines[@]}"; echo

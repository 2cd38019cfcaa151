# for, while, until, select, break and continue by levels.
for i in 1 2 3; do for j in a b c; do [ $j = b ] && continue 2; [ $i = 3 ] && break 2; echo $i$j; done; done
n=3; until ((n == 0)); do echo -n "$n "; ((n--)); done; echo
select choice in red "dark blue" quit; do [ "$choice" = quit ] && break; echo "chose $choice ($REPLY)"; done 2>&1
while :; do break; done; echo "$?"

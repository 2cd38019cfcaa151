# grep: counts, groups, context, only the match, statuses.
printf '%s\n' alpha 'beta 42' gamma 'delta 7' épsilon >words
grep -c a words; grep -nE '[0-9]+' words; grep -oP '\d+(?=$)' words; grep -B1 -A1 gamma words
grep -vi '^[abdg]' words; grep -q zeta words; echo $?
grep x none; echo $?
cut -d' ' -f2 words | paste -sd, -; tr -d aeiou <words | rev | head -2; nl -ba words | tail -1

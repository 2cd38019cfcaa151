# date with zones, formats and arithmetic.
# Also as a cell of a context.
date -u -d @1700000000 +'%F %T %Z'
TZ=Asia/Tokyo date -d @0 '+%H:%M %Z %z'
TZ=America/New_York date -d '2024-07-01 12:00 UTC' +%c
date -u -d '2024-02-28 + 2 days' +%A
TZ=Europe/Berlin date -d '2024-10-27 02:30' +%s
date -d 'no date' 2>&1; echo $?

# A job that is still running when the script ends writes all the same.
(sleep 1.5; echo "from the background") &
echo "script has ended"

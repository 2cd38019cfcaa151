# set -euo pipefail: an unset variable is fatal and named.
set -euo pipefail
echo "${unset_with_default:-default}"
(false | cat) || echo "pipefail $?"
echo "$not_set"
echo never

#!/bin/bash
# dbt_core_experimental_parser 2.0.8, which dbt-core 1.12 depends on: the index has no wheel of it, only a source archive of 5 kB.
# A good guess: "pip install dbt-duckdb" needs the index alone, as 2.0.0a4 still had wheels; seen: only an archive whose build downloads the
# wheel from a code host, so that the whole installation fails where only the index can be reached.
# A way round: name the older version too, dbt-core-experimental-parser==2.0.0a4.
. "$(dirname -- "${BASH_SOURCE[0]}")/setup.sh"
install wheel
has_wheel() {
    pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: "dbt-core-experimental-parser==$1" >/dev/null 2>&1 && echo wheel || echo none
}
expect "2.0.0a4 wheel
2.0.8 none" "$(for version in 2.0.0a4 2.0.8; do echo "$version $(has_wheel "$version")"; done)"

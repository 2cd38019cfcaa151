# Words of a text are counted, the most frequent first.
import collections
import re
import sys

words = re.findall(r"\w+", sys.stdin.read().lower())
for word, count in sorted(collections.Counter(words).items(), key=lambda pair: (-pair[1], pair[0]))[:4]:
    print(f"{word:>8} {count}")

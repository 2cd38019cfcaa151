# The value of a last expression is not printed, nor is that of others.
1 + 1
"text"
[print("called")]
None or "the last value"

# Tabs and spaces that do not agree are a TabError.
# Also as a cell of a context.
if True:
        x = 1
	y = 2

# A NameError and an AttributeError suggest what was meant.
# Also as a cell of a context.
import collections

temperature = 20
for wrong in ("temprature", "collections.Countr", "temperature.bit_lenght()"):
    try:
        eval(wrong)
    except Exception as error:
        print(type(error).__name__, error)
print(temprature)

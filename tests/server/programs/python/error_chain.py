# An error during the handling of another shows both, and their causes.
# Also as a cell of a context.
def read(settings):
    try:
        return settings["port"]
    except KeyError as error:
        raise ValueError("no port in the settings") from error


try:
    read({})
except ValueError:
    int("eighty")

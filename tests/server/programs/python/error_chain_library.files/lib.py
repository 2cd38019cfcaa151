def call(function):
    try:
        return function()
    except Exception as error:
        raise RuntimeError("x") from error

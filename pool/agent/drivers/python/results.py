"""Turns values and figures into results: `{"main": true, "mime": {"text/plain": ...}}`.

Loaded only where there is something to show. What a value can show of itself is asked by the names
that notebooks use (`_repr_html_` and its kin); matplotlib figures and PIL images become PNG.
"""

import base64
import io
import json
import sys

import hearth_program as program

LIMITS = {"text/plain": 64 << 10, "text/html": 256 << 10}
OTHER_LIMIT = 4 << 20
# Asked of every value, in this order.
REPRESENTATIONS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "text/latex": "_repr_latex_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "application/json": "_repr_json_",
}
PLAIN_JSON = (dict, list, bool, int, float, str)
NO_JSON = (bool, int, float, str)  # alone they say no more than their text


def send(mime, main=False):
    """One result; what is too large of it is left out, and said."""
    kept = {}
    for kind, value in mime.items():
        limit = LIMITS.get(kind, OTHER_LIMIT)
        size = len(value) if isinstance(value, str) else len(json.dumps(value))
        if size <= limit:
            kept[kind] = value
        elif kind == "text/plain":
            kept[kind] = program.clip(value, limit)
        else:
            note = "[%s of %d characters left out: more than %d]" % (kind, size, limit)
            kept.setdefault("text/plain", note)
    if not kept:
        return
    payload = json.dumps({"main": main, "mime": kept}, ensure_ascii=True).encode("ascii")
    sys.stdout.flush()
    program.channel.send(b"result", payload)


def encoded(data):
    return base64.b64encode(data).decode("ascii") if isinstance(data, (bytes, bytearray)) else data


def json_form(value):
    """The value if it is JSON, without what JSON cannot say."""
    if not isinstance(value, PLAIN_JSON) or isinstance(value, NO_JSON):
        return None
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return json.loads(text) if len(text) <= OTHER_LIMIT else None


def own_forms(value):
    """What the value itself offers; a method that fails is as if it were not there."""
    forms = {}
    if isinstance(value, type):
        return forms
    try:
        bundle = getattr(value, "_repr_mimebundle_", None)
        if callable(bundle):
            found = bundle(include=None, exclude=None)
            found = found[0] if isinstance(found, tuple) else found
            forms.update({str(k): encoded(v) for k, v in dict(found or {}).items()})
    except Exception:
        pass
    for kind, name in REPRESENTATIONS.items():
        if kind in forms:
            continue
        try:
            method = getattr(value, name, None)
            shown = method() if callable(method) else None
        except Exception:
            continue
        if isinstance(shown, tuple):  # (data, metadata)
            shown = shown[0]
        if shown is not None:
            forms[kind] = encoded(shown)
    try:
        json.dumps(forms)
    except (TypeError, ValueError, RecursionError):
        return {k: v for k, v in forms.items() if isinstance(v, str)}
    return forms


def is_figure(value):
    figure = sys.modules.get("matplotlib.figure")
    return figure is not None and isinstance(value, figure.Figure)


def figure_forms(figure):
    picture = io.BytesIO()
    figure.savefig(picture, format="png", bbox_inches="tight")
    return {"image/png": encoded(picture.getvalue()), "text/plain": repr(figure)}


def image_forms(image):
    picture = io.BytesIO()
    image.save(picture, format="PNG")
    return {"image/png": encoded(picture.getvalue()), "text/plain": repr(image)}


def send_value(value, main=False):
    if is_figure(value):
        send(figure_forms(value), main)
        close(value)
        return
    forms = own_forms(value)
    try:
        forms.setdefault("text/plain", repr(value))
    except Exception as failure:
        forms["text/plain"] = "<%s: its repr() raised %s>" % (type(value).__name__, type(failure).__name__)
    as_json = json_form(value)
    if as_json is not None:
        forms.setdefault("application/json", as_json)
    send(forms, main)


def close(figure):
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and hasattr(pyplot, "close"):
        pyplot.close(figure)


def send_open_figures():
    """Every figure of pyplot that is open, in the order they were made; then they are closed."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if not hasattr(pyplot, "get_fignums"):
        return  # still being imported, or not what it seems
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        try:
            if figure.axes or figure.texts or figure.images:
                send(figure_forms(figure))
        except Exception as failure:
            sys.stderr.write("figure %d cannot be drawn: %s\n" % (number, failure))
        pyplot.close(figure)


def hook(name, module):
    if name == "matplotlib.pyplot":

        def show(*args, **kwargs):
            """Makes a result of every open figure and closes it."""
            send_open_figures()

        module.show = show
        module.Figure.show = lambda figure, warn=True: send_value(figure)
    elif name == "PIL.Image":

        def show_image(image, title=None):
            """Makes a result of the image."""
            send(image_forms(image))

        module.Image.show = show_image

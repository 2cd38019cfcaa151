"""Turns values and figures into results: `{"main": true, "mime": {"text/plain": ...}}`.

Loaded only where there is something to show. What a value can show of itself is asked by the names
that notebooks use (`_repr_html_` and its kin); matplotlib figures and PIL images become PNG.
"""

import base64
import io
import json
import os
import sys

import hearth_program as program

LIMITS = {"text/plain": 64 << 10, "text/html": 256 << 10}
OTHER_LIMIT = 4 << 20
RESULT_LIMIT = (4 << 20) - 4096  # of all that one result says together: the agent takes 4 MiB
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
# A larger picture comes in two sizes, and as a file: clients of MCP cannot take it whole.
LARGE_PICTURE = 200 << 10
SMALL_PICTURE = 110 << 10
SMALL_SIDES = (1400, 1000, 700, 400)
SAVED_FIGURE = "hearth-figure-%d.png"
PLAIN_JSON = (dict, list, bool, int, float, str)
NO_JSON = (bool, int, float, str)  # alone they say no more than their text


def send(mime, main=False):
    """One result; what is too large of it is left out, counted, and said in a result of its own."""
    kept = {}
    notes = []
    left_out = 0
    for kind, value in mime.items():
        limit = LIMITS.get(kind, OTHER_LIMIT)
        size = len(value) if isinstance(value, str) else length(value)
        if size <= limit:
            kept[kind] = value
        elif kind == "text/plain":
            kept[kind] = program.clip(value, limit)
        else:
            left_out += 1
            notes.append("[%s of %d characters left out: more than %d]" % (kind, size, limit))
    while sum(map(length, kept.values())) > RESULT_LIMIT:
        kind = max(kept, key=lambda each: length(kept[each]))
        left_out += 1
        notes.append("[%s of %d characters left out: there was too much else]" % (kind, length(kept.pop(kind))))
    if kept:
        send_kept(kept, main)
    for note in notes:
        send_kept({"text/plain": note})
    for _ in range(left_out):
        send_kept({})


def length(value):
    """Of a form as JSON."""
    return len(json.dumps(value))


def send_kept(kept, main=False):
    """Without any type it is a result that was lost: the server counts it as dropped."""
    payload = json.dumps({"main": main, "mime": kept}, ensure_ascii=True).encode("ascii")
    sys.stdout.flush()
    program.channel.send(b"result", payload)


def send_picture(png, mime, main=False):
    """Like send(). A large one is saved, and sent in a second size."""
    note = None
    if len(png) > LARGE_PICTURE:
        small, words = smaller(png)
        saved = save(png)
        if small:
            mime = dict(mime, **{"image/jpeg": encoded(small)})
        note = "[%s; it is %s]" % (words, "saved as " + saved if saved else "not saved: no file could be made")
    if len(png) * 4 // 3 + sum(map(length, mime.values())) < RESULT_LIMIT:
        send(dict(mime, **{"image/png": encoded(png)}), main)
    else:  # the file has it, and the smaller one shows it
        send(mime, main)
        if not saved:
            send_kept({})
    if note:
        send_kept({"text/plain": note})


def smaller(png):
    """A JPEG of less than SMALL_PICTURE bytes or None, and what it is in words."""
    try:
        import warnings

        from PIL import Image

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its size
            picture = Image.open(io.BytesIO(png))
        size = "%d x %d" % picture.size
        if picture.mode in ("RGBA", "LA", "P"):
            picture = picture.convert("RGBA")
            white = Image.new("RGB", picture.size, "white")
            white.paste(picture, mask=picture.getchannel("A"))
            picture = white
        picture = picture.convert("RGB")
        for side in SMALL_SIDES:
            picture.thumbnail((side, side))
            out = io.BytesIO()
            picture.save(out, format="JPEG", quality=80)
            if out.tell() <= SMALL_PICTURE:
                break
        return out.getvalue(), "a picture of %s pixels; where it is too large, as here, %d x %d are shown" % (
            (size,) + picture.size)
    except Exception:
        return None, "a picture of %d bytes" % len(png)


def save(png):
    """The name of a new file with it beside the program's; None if it cannot be made."""
    for number in range(1, 1000):
        name = SAVED_FIGURE % number
        try:
            file = open(name, "xb")
        except FileExistsError:
            continue
        except OSError:
            return None
        try:
            with file:
                file.write(png)
            return name
        except OSError:
            try:
                os.unlink(name)
            except OSError:
                pass
            return None
    return None


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


def send_figure(figure, main=False):
    picture = io.BytesIO()
    figure.savefig(picture, format="png", bbox_inches="tight")
    send_picture(picture.getvalue(), {"text/plain": repr(figure)}, main)


def send_image(image):
    picture = io.BytesIO()
    image.save(picture, format="PNG")
    send_picture(picture.getvalue(), {"text/plain": repr(image)})


def send_value(value, main=False):
    if is_figure(value):
        send_figure(value, main)
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
    png = picture_in(forms)
    if png:
        send_picture(png, forms, main)
    else:
        send(forms, main)


def picture_in(forms):
    """The bytes of a large PNG that a value shows of itself; taken out of its forms."""
    text = forms.get("image/png")
    if not isinstance(text, str) or len(text) // 4 * 3 <= LARGE_PICTURE or "image/jpeg" in forms:
        return None
    try:
        png = base64.b64decode(text)
    except ValueError:
        return None
    del forms["image/png"]
    return png


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
                send_figure(figure)
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
            send_image(image)

        module.Image.show = show_image

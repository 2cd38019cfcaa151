"""Turns values and figures into results: `{"main": true, "mime": {"text/plain": ...}}`.

Loaded only where there is something to show. What a value can show of itself is asked by the names
that notebooks use (`_repr_html_` and its kin); matplotlib figures and PIL images become PNG. A form that
cannot be sent is left out, and the result says why.
"""

import posix
import sys
from _io import BytesIO
from _io import open as open_file
from binascii import a2b_base64, b2a_base64

if "program" not in globals():  # hearth_program gives itself
    import hearth_program as program

MOST_TEXT = 64 << 10  # characters of text/plain, which is shortened
RESULT_LIMIT = (4 << 20) - 4096  # of all forms of one result together: the agent takes 4 MiB
MOST_TYPES = 16
TEXTS = ("text/plain", "text/html", "text/markdown", "text/latex", "text/csv", "image/svg+xml")
BINARIES = ("image/png", "image/jpeg", "image/gif", "image/webp")
JSONS = ("application/json", "application/geo+json")
MOST_VALUES = 100_000  # in one form
MOST_DEPTH = 48
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
PICTURE_FILES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg"}
shown_pictures = set()  # of this run


class Unfit(Exception):
    """Why a form of a value cannot be sent."""


class Foreign(Unfit):
    """It is no JSON at all, and nobody said that it was."""


class JsonWriter:
    """Writes values as JSON that the server takes, or raises Unfit."""

    def __init__(self):
        self.parts = []
        self.values = 0

    def text(self, value):
        self.write(value, 0)
        return "".join(self.parts)

    def write(self, value, depth):
        self.values += 1
        if self.values > MOST_VALUES:
            raise Unfit("it has more than %d values" % MOST_VALUES)
        if value is None or value is True or value is False:
            self.parts.append({None: "null", True: "true", False: "false"}[value])
        elif isinstance(value, str):
            self.parts.append(exactly(value))
        elif isinstance(value, int):
            if not -(1 << 63) <= value < 1 << 64:
                raise Unfit("it has an integer of more than 64 bits")
            self.parts.append(int.__repr__(value))
        elif isinstance(value, float):
            if value != value or value in (float("inf"), float("-inf")):
                raise Unfit("it has NaN or Infinity, which JSON has not")
            self.parts.append(float.__repr__(value))
        elif not isinstance(value, (list, tuple, dict)):
            raise Foreign("it has a value of type %s" % type(value).__name__)
        elif depth == MOST_DEPTH:
            raise Unfit("it is nested more than %d deep" % MOST_DEPTH)
        elif isinstance(value, dict):
            self.members(value, depth + 1)
        else:
            self.items(value, depth + 1)

    def items(self, value, depth):
        self.parts.append("[")
        for number, each in enumerate(value):
            if number:
                self.parts.append(",")
            self.write(each, depth)
        self.parts.append("]")

    def members(self, value, depth):
        self.parts.append("{")
        names = set()
        for key, each in value.items():
            name = self.name(key)
            if name in names:
                raise Unfit("it has a key twice")
            if names:
                self.parts.append(",")
            names.add(name)
            self.parts.append(exactly(name) + ":")
            self.write(each, depth)
        self.parts.append("}")

    @staticmethod
    def name(key):
        if isinstance(key, str):
            if "\0" in key:
                raise Unfit("a key has a NUL in it")
            return key
        if key is None or isinstance(key, (bool, int, float)):  # as json does
            return {None: "null", True: "true", False: "false"}[key] if key is None or isinstance(key, bool) else repr(key)
        raise Foreign("it has a key of type %s" % type(key).__name__)


def exactly(text):
    try:
        text.encode("utf-8")
    except UnicodeError:
        raise Unfit("it has half of a surrogate pair, which UTF-8 has not") from None
    return program.encode_basestring_ascii(text)


def is_json_type(kind):
    vendor = kind[len("application/vnd.") : -len("+json")]
    named = kind.startswith("application/vnd.") and kind.endswith(("+json", ".json")) and len(kind) <= 100
    return kind in JSONS or named and bool(vendor) and not vendor.strip("abcdefghijklmnopqrstuvwxyz0123456789.-")


def as_sent(kind, value):
    """The form as JSON."""
    if is_json_type(kind):
        if isinstance(value, (bytes, bytearray)):
            raise Unfit("its value is bytes")
        try:
            return JsonWriter().text(value)
        except RecursionError:
            raise Unfit("it is nested too deep") from None
    if kind in BINARIES:
        return program.quoted(base64_of(value))
    if kind not in TEXTS:
        raise Unfit("results have no such type")
    if isinstance(value, (bytes, bytearray)):
        value = bytes(value).decode("utf-8", "backslashreplace")
    if not isinstance(value, str):
        raise Unfit("its value is no text")
    return program.quoted(program.clip(value, MOST_TEXT) if kind == "text/plain" else value)


def base64_of(value):
    """Bytes, or text that is base64 already, perhaps with the ends of lines that encoders for mail write."""
    if isinstance(value, (bytes, bytearray)):
        return b2a_base64(value, newline=False).decode("ascii")
    if not isinstance(value, str):
        raise Unfit("its value is neither bytes nor base64")
    text = "".join(value.split())
    try:
        if b2a_base64(a2b_base64(text), newline=False) == text.encode("ascii"):
            return text
    except ValueError:
        pass
    raise Unfit("it is not base64")


def send(forms, main=False):
    """One result, which says what of it does not fit. The plain text always does."""
    kept = {}
    unfit = []
    for kind, value in forms.items():
        try:
            if len(kept) == MOST_TYPES:
                raise Unfit("the result has %d others" % MOST_TYPES)
            kept[kind] = as_sent(kind, value)
        except Unfit as why:
            unfit.append((program.clip(kind, 200), str(why)))
    while sum(map(len, kept.values())) > RESULT_LIMIT:
        largest = max(kept.keys() - {"text/plain"}, key=lambda kind: len(kept[kind]))
        del kept[largest]
        unfit.append((largest, "with it the result has more than %d bytes" % RESULT_LIMIT))
    if kept or unfit:
        send_kept(kept, main, unfit)


def send_note(text):
    send_kept({"text/plain": program.quoted(text)})


def send_kept(kept, main=False, unfit=()):
    members = ",".join("%s:%s" % (program.quoted(kind), text) for kind, text in kept.items())
    reasons = ",".join('{"type":%s,"reason":%s}' % tuple(map(program.quoted, each)) for each in unfit)
    payload = '{"main":%s,"mime":{%s}%s}' % (
        "true" if main else "false", members, ',"leftOut":[%s]' % reasons if unfit else "")
    try:
        sys.stdout.flush()
    except Exception:
        pass  # the program has closed or replaced it
    program.channel.send(b"result", payload.encode("ascii"))


def send_picture(png, forms, main=False, saved=None):
    """Like send(). A large one is saved, unless the program has, and sent in a second size."""
    note = None
    shown_pictures.add(hash(png))
    if len(png) > LARGE_PICTURE:
        small, words = smaller(png)
        saved = saved or save(png)
        if small:
            forms = dict(forms, **{"image/jpeg": small})
        note = "[%s; it is %s]" % (words, "saved as " + saved if saved else "not saved: no file could be made")
    send(dict(forms, **{"image/png": png}), main)
    if note:
        send_note(note)


def smaller(png):
    """A JPEG of less than SMALL_PICTURE bytes or None, and what it is in words."""
    try:
        import warnings

        from PIL import Image

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its size
            picture = Image.open(BytesIO(png))
        size = "%d x %d" % picture.size
        if picture.mode in ("RGBA", "LA", "P"):
            picture = picture.convert("RGBA")
            white = Image.new("RGB", picture.size, "white")
            white.paste(picture, mask=picture.getchannel("A"))
            picture = white
        picture = picture.convert("RGB")
        for side in SMALL_SIDES:
            picture.thumbnail((side, side))
            out = BytesIO()
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
            file = open_file(name, "xb")
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
                posix.unlink(name)
            except OSError:
                pass
            return None
    return None


def method_of(value, name):
    """Not that of a class, nor of what has every attribute that it is asked for (mocks)."""
    try:
        if isinstance(value, type) or hasattr(value, "_ipython_canary_method_should_not_exist_"):
            return None
        method = getattr(value, name, None)
    except Exception:
        return None
    return method if callable(method) else None


def answer_of(value, name, **options):
    """What the method returns; one that fails is as if it were not there."""
    method = method_of(value, name)
    try:
        return method(**options) if method else None
    except Exception:
        return None


def own_forms(value):
    """What the value itself offers: its bundle goes before the methods of one type each."""
    bundle = answer_of(value, "_repr_mimebundle_", include=None, exclude=None)
    try:
        bundle = bundle[0] if isinstance(bundle, tuple) else bundle  # (data, metadata)
        forms = {str(kind): form for kind, form in dict(bundle or {}).items()}
    except Exception:
        forms = {}
    for kind, name in REPRESENTATIONS.items():
        shown = None if kind in forms else answer_of(value, name)
        if isinstance(shown, tuple):
            shown = shown[0]
        if shown is not None:
            forms[kind] = shown
    return forms


def shows_itself(value):
    """Whether the value has a way of its own to display itself, and has gone it."""
    method = method_of(value, "_ipython_display_")
    try:
        if method:
            method()
    except Exception:
        return False
    return method is not None


def pretty_method(value):
    """`_repr_pretty_`, unless a class before the one that has it has a `__repr__`."""
    for each in type(value).__mro__[:-1]:
        if callable(vars(each).get("_repr_pretty_")):
            return each._repr_pretty_
        if "__repr__" in vars(each):
            return None
    return None


class End:
    """Calls something at the end of a `with`."""

    def __init__(self, function, *arguments):
        self.function = function
        self.arguments = arguments

    def __enter__(self):
        pass

    def __exit__(self, *_):
        self.function(*self.arguments)


class Printer:
    """For `_repr_pretty_(printer, cycle)`, as in IPython.lib.pretty. A group that is too long for its line is broken at
    all its breakables."""

    verbose = False
    max_width = 79

    def __init__(self):
        self.groups = [[]]  # the open ones: texts, groups and (separator, indentation)
        self.indentation = 0
        self.printed = []  # what is being printed
        self.parts = []

    def text(self, text):
        self.groups[-1].append(text)

    def breakable(self, sep=" "):
        self.groups[-1].append((sep, self.indentation))

    def break_(self):
        self.breakable(None)

    def begin_group(self, indent=0, open=""):
        self.text(open)
        self.groups.append([])
        self.indentation += indent

    def end_group(self, dedent=0, close=""):
        self.indentation -= dedent
        self.text(close)
        group = self.groups.pop()
        self.groups[-1].append(group)

    def group(self, indent=0, open="", close=""):
        self.begin_group(indent, open)
        return End(self.end_group, indent, close)

    def indent(self, indent):
        self.indentation += indent
        return End(self.dedent, indent)

    def dedent(self, indent):
        self.indentation -= indent

    def pretty(self, value):
        method = pretty_method(value)
        self.begin_group()
        if method is None:
            for number, line in enumerate(repr(value).splitlines()):
                if number:
                    self.break_()
                self.text(line)
        else:
            self.printed.append(id(value))
            method(value, self, id(value) in self.printed[:-1])
            self.printed.pop()
        self.end_group()

    def result(self):
        self.write(self.groups[0], 0)
        return "".join(self.parts)

    def write(self, group, column):
        """Returns the column where the group ends."""
        broken = column + self.width(group) > self.max_width
        for part in group:
            if isinstance(part, list):
                column = self.write(part, column)
                continue
            if isinstance(part, tuple):
                separator, indentation = part
                newline = broken or separator is None
                column, part = (-1, "\n" + " " * indentation) if newline else (column, separator)
            self.parts.append(part)
            column += len(part)
        return column

    def width(self, part):
        """Of one line; too much for one if it must be broken."""
        if isinstance(part, list):
            return sum(map(self.width, part))
        if isinstance(part, tuple):
            part = part[0]
        return self.max_width + 1 if part is None else len(part)


def plain_text(value):
    try:
        if pretty_method(value):
            printer = Printer()
            printer.pretty(value)
            return printer.result()
    except Exception:
        pass
    try:
        return repr(value)
    except Exception as failure:
        return "<%s: its repr() raised %s>" % (type(value).__name__, type(failure).__name__)


def is_json(value):
    """Whether a list or a dict is JSON but for what send() says of it: too long, too deep, a number too large."""
    if not isinstance(value, (dict, list)):  # a number or a text alone says no more than its repr()
        return False
    try:
        JsonWriter().text(value)
    except Foreign:
        return False
    except Unfit:
        return True
    except Exception:
        return False
    return True


def is_figure(value):
    figure = sys.modules.get("matplotlib.figure")
    return figure is not None and isinstance(value, figure.Figure)


def send_figure(figure, main=False, again=True):
    """`again`: also if the same picture has been shown in this run."""
    forms = {"text/plain": repr(figure)}
    saved, bytes_there = saved_file(figure)
    kind = PICTURE_FILES.get(bytes_there[:4]) or PICTURE_FILES.get(bytes_there[:3])
    if kind == "image/png":
        png = bytes_there
    else:
        picture = BytesIO()
        figure.savefig(picture, format="png", bbox_inches="tight")
        png = picture.getvalue()
        if kind:
            forms[kind] = bytes_there
    if again or hash(png) not in shown_pictures:
        send_picture(png, forms, main, saved if kind == "image/png" else None)


def saved_file(figure):
    """Name and bytes of the file to which the program has saved the figure as it is now: what is shown is the same."""
    name = getattr(figure, "_hearth_saved", None)
    if name is None or figure.stale:
        return None, b""
    try:
        with open_file(name, "rb") as file:
            return name, file.read()
    except OSError:
        return None, b""


def note_saved(figure, name):
    """Notes that a file shows the figure, until something changes it."""
    try:
        name = posix.fspath(name)
        if not isinstance(name, str):
            return
        if not name.lower().endswith((".png", ".jpg", ".jpeg")):
            name += ".png"  # matplotlib adds it
        posix.stat(name)
    except (TypeError, ValueError, OSError):
        return
    figure._hearth_saved = name
    figure.stale = False


def is_image(value):
    image = sys.modules.get("PIL.Image")
    return isinstance(value, getattr(image, "Image", ()))


def send_image(image, main=False):
    """As image.save() writes it: a picture that is saved and shown is the same twice."""
    try:
        png = png_of(image)
    except OSError:  # PNG has no such mode
        png = png_of(image.convert(sys.modules["PIL.Image"].getmodebase(image.mode)))
    send_picture(png, {"text/plain": repr(image)}, main)


def png_of(image):
    picture = BytesIO()
    image.save(picture, format="PNG")
    return picture.getvalue()


def send_value(value, main=False):
    if is_figure(value):
        send_figure(value, main)
        close(value)
        return
    if is_image(value):
        try:
            return send_image(value, main)
        except Exception:
            pass  # its file is cut off
    if shows_itself(value):
        return
    forms = own_forms(value)
    if "text/plain" not in forms:
        forms["text/plain"] = plain_text(value)
    if is_json(value):
        forms.setdefault("application/json", value)
    send_forms(forms, main)


def send_forms(forms, main=False):
    png = picture_in(forms)
    if png:
        send_picture(png, forms, main)
    else:
        send(forms, main)


def picture_in(forms):
    """The bytes of a PNG that a value shows of itself; taken out of its forms."""
    if "image/png" not in forms or "image/jpeg" in forms:
        return None
    try:
        png = a2b_base64(base64_of(forms["image/png"]))
    except Unfit:
        return None
    del forms["image/png"]
    return png


class Display:
    """The handle that display(…, display_id=…) returns: it shows a newer value of the same thing."""

    def __init__(self, display_id):
        self.display_id = display_id

    def display(self, value, **options):
        display(value, **options)

    update = display


def display(*values, include=None, exclude=None, metadata=None, transient=None, display_id=None, raw=False, clear=False,
            **options):
    """Makes a result of each value; with `raw` each is a dict of its forms by type."""
    for value in values:
        if raw:
            send_forms({str(kind): form for kind, form in dict(value).items()})
        else:
            send_value(value)
    return Display(display_id) if display_id is not None else None


def close(figure):
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None and hasattr(pyplot, "close"):
        pyplot.close(figure)


def send_open_figures(again=True):
    """Every figure of pyplot that is open, in the order they were made; then they are closed."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if not hasattr(pyplot, "get_fignums"):
        return  # still being imported, or not what it seems
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        try:
            if figure.axes or figure.texts or figure.images:
                send_figure(figure, again=again)
        except Exception as failure:
            program.print_error("figure %d cannot be drawn: %s\n" % (number, failure))
        pyplot.close(figure)


def end_run():
    """Shows what a run has left open."""
    send_open_figures(again=False)
    shown_pictures.clear()


def hook_pyplot(module):
    def show(*args, **kwargs):
        """Makes a result of every open figure and closes it."""
        send_open_figures()

    write = module.Figure.savefig

    def savefig(self, fname, *args, **kwargs):
        result = write(self, fname, *args, **kwargs)
        note_saved(self, fname)
        return result

    savefig.__doc__, savefig.__wrapped__ = write.__doc__, write
    module.show = show
    module.Figure.show = lambda figure, warn=True: send_value(figure)
    module.Figure.savefig = savefig


def hook_pillow(module):
    class Viewer(module.Viewer):
        def show(self, image, **options):
            send_image(image)
            return True

    module.register(Viewer(), -1)  # before all others


def hook_webbrowser(module):
    class Browser(module.BaseBrowser):
        """There is none: shows what a page in a file has, and says where the others are."""

        def open(self, url, new=0, autoraise=True):
            if show_page(url):
                return True
            # Libraries that serve one page to their browser would wait for it.
            raise module.Error("could not locate runnable browser")

    find = module.open

    def open_url(url, new=0, autoraise=True):
        try:
            return find(url, new, autoraise)
        except module.Error:
            return False

    module.register("hearth", None, Browser("hearth"), preferred=True)
    module.open = open_url


def show_page(url):
    path = url[len("file://") :] if url.startswith("file://") else url
    try:
        if "://" in path:
            raise OSError
        if not path.startswith("/"):
            path = posix.getcwd() + "/" + path
        with open_file(path, "rb") as file:
            page = file.read(RESULT_LIMIT + 1)
    except (OSError, ValueError):
        send_note("[%s is not opened: a sandbox has no browser. Fetch it with urllib or requests, or give the address to the"
                  " user]" % program.clip(url, 2000))
        return False
    send({"text/html": page, "text/plain": "[the page %s]" % path})
    return True


class Notebook:
    """What plotly looks for in IPython and nbformat."""

    __version__ = "5.0"
    display = staticmethod(display)


def plotly_forms(figure, config, **options):
    """The forms of a plotly figure: its own, and a page that loads plotly.js from the web."""
    import plotly.io

    forms = plotly.io.base_renderers.PlotlyRenderer(config).to_mimebundle(dict(figure))
    kinds = ", ".join(getattr(each, "type", None) or each.get("type", "scatter") for each in figure.get("data", ())) or "nothing"
    forms["text/html"] = plotly.io.to_html(figure, config, include_plotlyjs="cdn", full_html=False, validate=False, **options)
    forms["text/plain"] = "<plotly figure of %s; fig.write_html(FILE) saves it as a page>" % kinds
    return forms


def hook_plotly_renderers(module):
    """Every way to show a figure in a browser or in a notebook makes a result; pictures and JSON stay what they are."""
    class Results(module.MimetypeRenderer):
        auto_play = True  # these are as to_html() has them; show() sets others
        post_script = animation_opts = None

        def __init__(self, config=None):
            self.config = config or {}

        def to_mimebundle(self, fig_dict):
            return plotly_forms(fig_dict, **vars(self))

    shown = module.BrowserRenderer, module.NotebookRenderer.__base__, module.IFrameRenderer, module.PlotlyRenderer
    for name, renderer in list(module.renderers.items()):
        if isinstance(renderer, shown):
            module.renderers[name] = Results()
    module.renderers.default = module.renderers.default or "browser"
    module.ipython_display = module.nbformat = Notebook


def hook_plotly_figures(module):
    del module.BaseFigure._ipython_display_  # its bundle is the same, and can be the value of a last expression


def hook_plotly_offline(module):
    def iplot(figure_or_data, validate=True, *args, **options):
        """Makes a result of the figure."""
        import plotly.io

        figure = module.tools.return_figure_from_figure_or_data(figure_or_data, validate)
        plotly.io.show(figure, validate=validate, **options)

    module.iplot = iplot
    module.init_notebook_mode = lambda connected=False: None


def hook_altair(module):
    renderers = module.renderers
    with renderers.enable("html"):
        page = renderers.get()

    def browser(spec, offline=False, using=None, port=0, **options):
        return page(spec, **options)

    def show(chart, *args, **options):
        """Makes a result of the chart; the options are those of vega-embed."""
        options.update(zip(("renderer", "theme", "actions"), args))
        if not options:
            return send_value(chart)
        embedding = dict(renderers.options.get("embed_options", {}), **options)
        with renderers.enable(**dict(renderers.options, embed_options=embedding)):
            send_value(chart)

    renderers.register("browser", browser)
    for each in module.Chart.__mro__:
        for name in ("show", "display"):
            if name in vars(each):
                setattr(each, name, show)


def hook_bokeh(module):
    """The hooks for notebooks, which bokeh.io installs: output_notebook() does nothing, and then show() makes a result."""
    def show_doc(obj, state, notebook_handle=None):
        from bokeh.embed import file_html
        from bokeh.resources import CDN

        send_forms({"text/html": file_html(obj, CDN), "text/plain": repr(obj)})

    module.load_notebook = lambda *args, **options: None
    module.show_doc = show_doc


def hook_ipython(module):
    module.display = display
    module.publish_display_data = lambda data, *args, **kwargs: send_forms(dict(data))
    module.update_display = display


HOOKS = {
    "matplotlib.pyplot": hook_pyplot,
    "PIL.ImageShow": hook_pillow,
    "webbrowser": hook_webbrowser,
    "plotly.io._renderers": hook_plotly_renderers,
    "plotly.basedatatypes": hook_plotly_figures,
    "plotly.offline.offline": hook_plotly_offline,
    "altair": hook_altair,
    "bokeh.io.notebook": hook_bokeh,
    "IPython.core.display_functions": hook_ipython,
}


def hook(name, module):
    try:
        HOOKS[name](module)
    except AttributeError:
        pass  # a version that has it elsewhere, or a module of the program's own of that name


PACKAGES = "install them with `packages` of REST, or the tool `packages` of MCP"
COMMAND = "run it as a `command` of REST or of the tool `run` of MCP, or with subprocess.run()"
LINES_OF_NOTEBOOKS = (
    (("%pip", "!pip", "%conda", "!conda", "%uv", "!uv", "!python -m pip", "!python3 -m pip", "%%pip"), PACKAGES),
    (("!", "%%bash", "%%sh", "%%script", "%sx", "%system"), COMMAND),
    (("%matplotlib", "%config"), "leave it out: figures are shown without it"),
    (("%load_ext", "%reload_ext", "%autoreload"), "leave it out: importlib.reload(module) reads a changed module again"),
    (("%time", "%%time", "%prun", "%%prun"), "use time.perf_counter(), timeit or cProfile"),
    (("%cd", "%pwd"), "use os.chdir() and os.getcwd()"),
    (("%env", "%set_env"), "use os.environ, or `env` of the request"),
    (("%%writefile", "%%file"), "write the file with open(), or with the file operations of REST and MCP"),
    (("%",), "write it in Python, or " + COMMAND),
)


def explain(source, error):
    """Says what to write instead of a line that only notebooks take; False for any other line."""
    lines = source.text.split(b"\n")
    if not isinstance(error.lineno, int) or not 1 <= error.lineno <= len(lines):
        return False
    line = lines[error.lineno - 1].decode("utf-8", "replace").strip()
    if any(word in line.split("#")[0] for word in ("await", "async")) and "outside" in str(error.msg):
        error.msg += ": write asyncio.run(main()), or run it in a context" if source.path else ": make it an async def"
        return True
    target, sign, right = line.partition("=")
    if sign and right.strip()[:1] in ("!", "%") and target.replace(",", "").strip().isidentifier():
        line = right.strip()
    if line[:1] == "?" or line[-1:] == "?":
        error.msg = "`%s` is a line of IPython, not of Python: use help(%s)" % (program.clip(line, 100), line.strip("? ")[:100])
        return True
    for starts, way in LINES_OF_NOTEBOOKS:
        if line.startswith(starts):
            error.msg = "`%s` is a line of IPython, not of Python: %s" % (program.clip(line, 100), way)
            return True
    return False

# A warning shows file, line and text; with the filter "error" it is an exception.
import warnings

warnings.warn("this is odd")
warnings.warn("an old way", DeprecationWarning)
warnings.simplefilter("error")
warnings.warn("now it stops")

# logging: levels, a hierarchy, an exception, a dictConfig.
import logging
import logging.config

logging.warning("before any set-up")
logging.config.dictConfig({"version": 1, "disable_existing_loggers": False, "formatters": {"f": {"format": "%(name)s|%(levelname)-7s|%(module)s:%(lineno)d|%(threadName)s|%(message)s"}},
                           "handlers": {"h": {"class": "logging.StreamHandler", "formatter": "f", "stream": "ext://sys.stdout"}},
                           "loggers": {"app": {"level": "DEBUG", "handlers": ["h"], "propagate": False}}})
log = logging.getLogger("app.db")
log.debug("value %s", {"a": 1})
try:
    1 / 0
except ZeroDivisionError:
    log.exception("failed")
log.error("wrong %d", "args")

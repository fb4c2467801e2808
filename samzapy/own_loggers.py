"""samzapy's own loggers, which code of the user's may switch off without meaning to."""

from __future__ import annotations

import logging

OURS = __name__.partition(".")[0]


def keep_on() -> None:
    """After code of the user's: `logging.config.dictConfig` and `fileConfig` switch off every logger that was there before, unless they are told
    otherwise, and a run that failed would say nothing. A level that was set for them stays."""
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.partition(".")[0] == OURS and isinstance(logger, logging.Logger):
            logger.disabled = False

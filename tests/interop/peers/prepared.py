"""What a script called `run` hands to its suite."""

import argparse
import signal
import sys
from pathlib import Path


def paths(parser, *names, required=True):
    """Adds arguments that are paths. The script gives them, and nobody else needs to."""
    for name in names:
        parser.add_argument(f"--{name}", type=Path, required=required, help=argparse.SUPPRESS)


def unwind_at_the_end():
    """A signal must still end the children: turns it into an exception that unwinds."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

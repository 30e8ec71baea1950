# SPDX-License-Identifier: Apache-2.0
"""The arguments that a script called `run` passes to its suite."""

import argparse
import signal
import sys
from pathlib import Path


def paths(parser, *names, required=True):
    """Adds arguments that are paths. Only the script passes them."""
    for name in names:
        parser.add_argument(f"--{name}", type=Path, required=required, help=argparse.SUPPRESS)


def unwind_at_the_end():
    """Turns a signal into an exception, so that the children are ended when it unwinds."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

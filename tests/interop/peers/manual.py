# SPDX-License-Identifier: Apache-2.0
"""Configurations of the manual, as they are written, with the addresses and paths of this place."""

from pathlib import Path

from .process import Failed

FOLDER = Path(__file__).resolve().parents[3] / "config"


def written(name, changes):
    """The text of a file, in which each of these texts is replaced; one that is missing is a failure."""
    text = (FOLDER / name).read_text()
    for found, here in changes.items():
        if found not in text:
            raise Failed(f"config/{name} does not have {found}")
        text = text.replace(found, str(here))
    return text

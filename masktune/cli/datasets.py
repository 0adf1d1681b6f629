"""``python -m masktune datasets``."""

import argparse
import dataclasses

from masktune.cli.terminal import answer
from masktune.data.card import DatasetCard
from masktune.datasets.catalogue import CATALOGUE


def carry_out(chosen: argparse.Namespace) -> None:
    """List every dataset."""
    cards = list(CATALOGUE.values())
    answer(
        chosen,
        {"datasets": [dataclasses.asdict(card) for card in cards]},
        *(line for card in cards for line in _lines(card)),
    )


def _lines(card: DatasetCard) -> list[str]:
    where = "bundled" if card.bundled else "needs --root"
    if card.download:
        where += f", or downloads {card.download}"
    lines = [f"{card.key:24}{where}", f"    {card.summary}"]
    return [*lines, f"    Layout: {card.layout}."] if card.layout else lines

"""The packages to install. Everything else stands in pyproject.toml.

The question cards live in book/cards, where people edit them, and are installed from there as
minilab.textbook.cards_data: pyproject.toml cannot add one package to those that it finds.
"""

from setuptools import find_packages, setup

CARDS = "minilab.textbook.cards_data"

setup(packages=[*find_packages(include=["minilab", "minilab.*"]), CARDS], package_dir={CARDS: "book/cards"})

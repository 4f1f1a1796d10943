"""The packages to install. Everything else stands in pyproject.toml.

What people edit stands in book/, and some of it is installed from there: the question cards as
minilab.textbook.cards_data, and the claims and the references as minilab.textbook.book_data.
pyproject.toml cannot add a package to those that it finds; it says which files of each are data.
"""

from setuptools import find_packages, setup

DATA = {"minilab.textbook.cards_data": "book/cards", "minilab.textbook.book_data": "book"}

setup(packages=[*find_packages(include=["minilab", "minilab.*"]), *DATA], package_dir=DATA)

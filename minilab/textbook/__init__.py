"""What the book's pages need: figures, the style, quizzes, and the tool that executes chapters.

Nothing in the lab imports this package; it may import the lab.
"""

from minilab.textbook.album import album
from minilab.textbook.exercise import check
from minilab.textbook.explorer import explore
from minilab.textbook.figures import show
from minilab.textbook.plane import plane
from minilab.textbook.planner import planner
from minilab.textbook.points import points
from minilab.textbook.quiz import quiz
from minilab.textbook.softmax import softmax_explorer
from minilab.textbook.start import start
from minilab.textbook.style import COLOURS, LINES, use_book_style

__all__ = [
    "COLOURS", "LINES", "album", "check", "explore", "plane", "planner", "points", "quiz", "show",
    "softmax_explorer", "start", "use_book_style",
]  # fmt: skip

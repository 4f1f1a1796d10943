"""minilab: the lab behind the book. It trains SimCLR and MoCo on CIFAR-scale images, small enough to read."""

from minilab.recipe import Recipe
from minilab.training import Run, train

__all__ = ["Recipe", "Run", "train"]
__version__ = "0.1.0"

"""`python -m minilab` is the command `minilab`."""

import sys

from minilab.cli import main

sys.exit(main())

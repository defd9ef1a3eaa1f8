"""``python -m millrace_jobs``: the command line."""

import sys

from ._command import main

sys.exit(main(sys.argv[1:]))

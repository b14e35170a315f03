"""``python -m rlvr``."""

import os
import sys


def main() -> None:
    """Run the command line and leave with its exit code; an interrupt is one line from the first import on."""
    try:
        from rlvr.cli import main as run

        code = run()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        code = 130
    _let_go_of_stdout()
    sys.exit(code)


def _let_go_of_stdout() -> None:
    """Drop what a full disk or a closed pipe would not take; Python would complain of it once more at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    main()

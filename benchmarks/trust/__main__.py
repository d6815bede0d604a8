"""``python -m benchmarks.trust``."""

from benchmarks.trust.command import main

main()

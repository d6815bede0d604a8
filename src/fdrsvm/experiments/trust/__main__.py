"""``python -m fdrsvm.experiments.trust``."""

from fdrsvm.experiments.trust.command import main

main()

"""The Flower app: glue between Flower's apps and :mod:`fdrsvm.federation`. No mathematics here."""

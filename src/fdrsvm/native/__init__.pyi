# The parts have stubs of their own beside this one.
LEVEL: str

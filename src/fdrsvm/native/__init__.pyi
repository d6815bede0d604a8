# Each submodule has its own stub next to this one.
LEVEL: str

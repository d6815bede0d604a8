"""From files to a model file and back: what the command line does, without the command line.

``rows`` reads clients' tables, ``configuration`` a TOML file, ``training`` fits and writes,
``scores`` and ``certifying`` say how good a model is and what is proved of it.
"""

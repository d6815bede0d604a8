"""The claims of SECURITY.md, measured."""

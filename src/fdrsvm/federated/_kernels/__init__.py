"""Compiled inner loops of the federated methods: numbers and arrays in, nothing checked.

local_steps  what the baselines' clients do between two averages
rules        what the server holds the clients' answers against
"""

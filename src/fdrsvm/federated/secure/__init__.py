"""Secure aggregation: the server sees weighted sums over all clients, and no client's answer."""

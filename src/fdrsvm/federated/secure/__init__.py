"""Secure sums: clients mask their answers, and the server learns nothing but weighted sums."""

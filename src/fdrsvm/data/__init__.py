"""From a table to a client: reading, the contract, scaling, and what training is given."""

"""From a table to the rows of a client: reading, the contract, scaling."""

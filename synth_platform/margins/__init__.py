"""Safe synthetic data from coarsened margins: categorical tables whose preserved relations are named."""

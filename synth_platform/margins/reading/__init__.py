"""Microdata, recipes and published tables made rows in categories and margins."""

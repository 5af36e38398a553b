"""Measures of what synthetic rows keep of the rows they stand for, one a file."""

"""Margins under differential privacy: declared domains, noisy counts, adaptive choice."""
